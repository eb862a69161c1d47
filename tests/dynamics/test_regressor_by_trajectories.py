"""ODERegressor with laws chosen by fits to the trajectories: short, noisy, single runs."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics.motions import motion

from symenum.bench.judge import same_structure
from symenum.dynamics import ODERegressor, regressor
from symenum.dynamics.discover import Discovery, discover
from symenum.expressions import parse

T = np.linspace(0, 10, 200)
HUNT = ("1.84*x1 - 1.45*x1*x2", "1.62*x1*x2 - 3*x2")
GROWTH = "0.8*x1 - 0.16*x1**2"


def quick(**parameters: object) -> ODERegressor:
    settings = {"operators": "arithmetic", "max_iterations": 1, "max_time": None, "random_state": 0, **parameters}
    return ODERegressor(**settings)


def multiplied(X: np.ndarray, part: float, seed: int = 0) -> np.ndarray:
    return X * (1 + part * np.random.default_rng(seed).normal(size=X.shape))


@pytest.fixture(scope="module")
def hunt() -> ODERegressor:
    return quick().fit(multiplied(motion(HUNT, (4.0, 1.0), T), 0.05), T)


def test_a_system_is_found_from_one_short_run_with_five_percent_of_noise(hunt: ODERegressor) -> None:
    for law, text in zip(hunt.best_expressions_.values(), HUNT, strict=True):
        assert same_structure(law, parse(text))
    simulated = hunt.simulate([4.0, 1.0], T, max_time=None)
    true = motion(HUNT, (4.0, 1.0), T)
    assert np.all(1 - np.sum((simulated - true) ** 2, axis=0) / np.sum((true - true.mean(axis=0)) ** 2, axis=0) > 0.95)


def test_the_chosen_laws_stand_on_the_fronts(hunt: ODERegressor) -> None:
    for state, row in hunt.selected_.items():
        assert hunt.fronts_[state][row].expression == hunt.trajectories_.laws[hunt.state_names_.index(state)]
        complexities = [entry.complexity for entry in hunt.fronts_[state]]
        assert complexities == sorted(set(complexities))


def test_noise_is_measured_and_said(hunt: ODERegressor) -> None:
    for noise in hunt.noise_.values():
        assert noise.grows > 0.9
        assert 0.035 < noise.level < 0.065
    assert all(0.7 < value < 1.6 for value in hunt.trajectories_.chi_square)


def test_constants_have_errors_that_hold(hunt: ODERegressor) -> None:
    table = hunt.constants_
    assert list(table.columns) == ["state", "value", "error"]
    assert (table["error"] > 0).all()
    assert (table["error"] < 0.2).all()
    rates = [abs(value) for value in table.loc[table["state"] == "x1", "value"]]
    assert all(min(abs(rate - true) for true in (1, 1.84, 1.45)) < 0.2 for rate in rates)


def test_alternatives_begin_with_the_chosen_law_and_weights_sum_to_one(hunt: ODERegressor) -> None:
    table = hunt.alternatives_
    for state in hunt.state_names_:
        own = table[table["state"] == state]
        assert abs(own["weight"].sum() - 1) < 1e-9
        assert own["bits"].iloc[0] <= 0
        assert str(hunt.best_expressions_[state]) in set(own["equation"])


def test_another_rule_has_neither_and_says_what_to_do() -> None:
    model = quick(model_selection="mdl").fit(multiplied(motion(HUNT, (4.0, 1.0), T), 0.05), T)
    assert model.trajectories_ is None
    for name in ("constants_", "alternatives_"):
        with pytest.raises(AttributeError, match='model_selection="trajectories"'):
            getattr(model, name)


def test_a_term_that_saturates_is_found() -> None:
    law = "0.52/(x1 + 0.4) - 0.4"
    t = np.linspace(0, 12, 240)
    X = motion([law], (6.0,), t)
    model = quick().fit(X, t)
    assert same_structure(model.best_expressions_["x1"], parse(law))


def test_a_state_that_never_moves_is_left_alone() -> None:
    X = np.column_stack([motion([GROWTH], (0.5,), T), np.full(len(T), 3.0)])
    model = quick().fit(multiplied(X, 0.0), T)
    assert str(model.best_expressions_["x2"]) == "0"
    assert same_structure(model.best_expressions_["x1"], parse(GROWTH))
    assert model.trajectories_ is not None


def test_positions_alone_give_laws_of_second_order() -> None:
    t = np.linspace(0, 8, 100)
    X = motion(["-2*x1 - 0.3*x1_dot"], (1.0, 0.0), t, order=2)
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    model = quick(operators=["+", "-", "*"], order=2).fit(X, t)
    assert same_structure(model.best_expressions_["x1"], parse("-2*x1 - 0.3*x1_dot"))
    assert model.trajectories_ is not None


def test_runs_of_different_length_are_fitted_together() -> None:
    short = np.linspace(0, 3, 60)
    runs = [motion([GROWTH], (0.5,), T), motion([GROWTH], (9.0,), short)]
    model = quick().fit([multiplied(run, 0.05, i) for i, run in enumerate(runs)], [T, short])
    assert same_structure(model.best_expressions_["x1"], parse(GROWTH))
    assert model.trajectories_ is not None


@pytest.mark.slow
def test_two_runs_of_a_system_are_fitted_together() -> None:
    short = np.linspace(0, 3, 60)
    runs = [motion(HUNT, (4.0, 1.0), T), motion(HUNT, (1.0, 2.0), short)]
    model = quick().fit([multiplied(run, 0.05, i) for i, run in enumerate(runs)], [T, short])
    assert all(
        same_structure(law, parse(text)) for law, text in zip(model.best_expressions_.values(), HUNT, strict=True)
    )


@pytest.mark.parametrize(
    ("laws", "start"), [((GROWTH,), (0.5,)), pytest.param(HUNT, (4.0, 1.0), marks=pytest.mark.slow)]
)
def test_the_same_seed_gives_the_same_laws(laws: tuple[str, ...], start: tuple[float, ...]) -> None:
    X = multiplied(motion(laws, start, T), 0.05)[:80]
    one, two = (quick().fit(X, T[:80]) for _ in range(2))
    assert one.trajectories_.laws == two.trajectories_.laws
    assert one.fronts_ == two.fronts_


def test_more_states_than_can_be_followed_together_are_chosen_by_the_older_rule() -> None:
    t = np.linspace(0, 5, 80)
    X = np.column_stack([wave((1 + 0.3 * i) * t) for i in range(7) for wave in (np.cos, np.sin)])
    model = quick(operators=["+", "-"]).fit(X + 0.05 * np.random.default_rng(0).normal(size=X.shape), t)
    assert len(model.best_expressions_) == 14
    assert model.trajectories_ is None


@pytest.mark.parametrize(("states", "followed"), [(2, True), (14, False)])
def test_time_is_kept_for_fits_to_trajectories_where_there_are_any(
    monkeypatch: pytest.MonkeyPatch, states: int, followed: bool
) -> None:
    asked: list[dict] = []

    def noted(*arguments: object, **options: object) -> Discovery:
        asked.append(options)
        return discover(*arguments, **options)

    monkeypatch.setattr(regressor, "discover", noted)
    t = np.linspace(0, 5, 80)
    X = np.column_stack([np.cos((1 + 0.1 * i) * t) for i in range(states)])
    quick(operators=["+", "-"], max_time=1e5, callbacks=lambda report: True).fit(X, t)  # ends at once
    assert (asked[0]["bounded"] is not None) == followed
    assert asked[0]["max_time"] == pytest.approx((0.55 if followed else 1.0) * 1e5 / states, rel=1e-2)
    assert len(asked) == states


@pytest.mark.slow
def test_a_system_of_sixty_states_ends_with_an_answer() -> None:
    t = np.linspace(0, 5, 60)
    X = np.column_stack([np.cos(t + 0.1 * i) for i in range(60)]) + 0.05 * np.random.default_rng(0).normal(
        size=(60, 60)
    )
    model = quick(max_time=3).fit(X, t)
    assert len(model.best_expressions_) == 60
    assert model.elapsed_ < 60
