"""PDERegressor: laws of fields are found with and without noise, shown and saved; odd fields end in time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from symenum import PDERegressor
from symenum.bench.judge import same_structure
from symenum.bench.problems.fields import (
    FIELD_PROBLEMS,
    MARKED_PROBLEMS,
    FieldProblem,
    FieldSamples,
    random_problem,
    solve_fields,
)
from symenum.expressions import Constant, parse


def small(name: str, **changes) -> tuple[FieldProblem, FieldSamples]:
    """A problem of the benchmark, on a smaller grid where `changes` says so."""
    problem = next(one for one in (*MARKED_PROBLEMS, *FIELD_PROBLEMS) if one.name == name)
    problem = FieldProblem(**{**vars(problem), **changes})
    return problem, solve_fields(problem)


BURGERS = small("Burgers", points=(128,), times=61)
WAVE = small("wave equation", points=(96,), times=101)


def quick(**parameters) -> PDERegressor:
    return PDERegressor(**{"max_iterations": 1, "max_time": 20, "random_state": 0, **parameters})


def fitted(samples: FieldSamples, **parameters) -> PDERegressor:
    return quick(**parameters).fit(samples.fields, samples.t, *samples.axes)


def finds(model: PDERegressor, problem: FieldProblem) -> bool:
    return all(same_structure(model.best_expressions_[name], law) for name, law in problem.trees.items())


@pytest.fixture(scope="module")
def burgers() -> PDERegressor:
    return fitted(BURGERS[1].noisy(0.05, 0))


@pytest.fixture(scope="module")
def wave() -> PDERegressor:
    return fitted(WAVE[1].noisy(0.01, 0))


def test_without_noise_coefficients_come_out_to_the_last_digit() -> None:
    assert str(fitted(BURGERS[1]).best_expressions_["u"]) == "0.1*u_xx - u*u_x"


def test_burgers_with_noise_and_what_is_said_of_it(burgers: PDERegressor) -> None:
    assert finds(burgers, BURGERS[0])
    sigma = 0.05 * BURGERS[1].fields["u"].std()
    noise = burgers.noise_["u"]
    assert noise.level * noise.mean_square**0.5 == pytest.approx(sigma, rel=0.1)
    constants = burgers.constants_.set_index("term")
    for term, true in (("u_xx", 0.1), ("u*u_x", -1.0)):
        assert abs(constants.loc[term, "value"] - true) < 4 * constants.loc[term, "error"]
        assert constants.loc[term, "error"] < 0.05 * abs(true)
    assert set(burgers.windows_) == {"t", "x"}
    assert burgers.equations_["u"].loc[burgers.selected_["u"], "chi_square"] < 1.5
    assert list(burgers.alternatives_.columns) == ["field", "equation", "bits"]


def test_two_fields(wave: PDERegressor) -> None:
    assert finds(wave, WAVE[0])
    assert wave.field_names_ == ("u", "v")


def test_two_dimensions_have_the_laplacian_as_one_term() -> None:
    problem, samples = small("flow around in 2D", points=(36, 40), times=41)
    model = fitted(samples.noisy(0.01, 0))
    assert finds(model, problem)
    assert "(u_xx + u_yy)" in str(model.best_expressions_["u"])


def test_products_of_smoothed_derivatives() -> None:
    # a·x² solves u_t = u_x² where a' = 4·a², and u_t = 2·u*u_xx as well: the data cannot say which.
    t, x = np.linspace(0, 1, 60), np.linspace(0.5, 3, 90)
    u = x**2 / (10 - 4 * t[:, None])
    model = quick(max_order=2).fit(u + 1e-4 * np.random.default_rng(0).normal(size=u.shape), t, x)
    law = model.predict(u, t, x)
    assert law == pytest.approx(u**2 * 4 / x**2, rel=0.05, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["porous medium", "Kardar-Parisi-Zhang", "Gray-Scott"])
def test_other_equations_with_noise(name: str) -> None:
    problem, samples = small(name)
    assert finds(fitted(samples.noisy(0.01, 0), max_time=60), problem)


def test_a_random_equation_that_no_setting_was_looked_at_on() -> None:
    problem = random_problem(100)
    assert finds(fitted(solve_fields(problem).noisy(0.01, 1)), problem)


@pytest.mark.slow
@pytest.mark.parametrize("problem", MARKED_PROBLEMS[:4], ids=lambda problem: problem.name)
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_the_usual_equations(problem: FieldProblem, noise: float) -> None:
    assert finds(fitted(solve_fields(problem).noisy(noise, 0), max_time=60), problem)


def test_the_search_on_points_finds_what_is_no_sum_of_the_library() -> None:
    t, x = np.linspace(0, 4, 80), np.linspace(0, 10, 100)
    # u_t = -2·sin(u + 0.7) at each place for itself.
    start = 2 * np.sin(0.9 * x)
    half = np.tan((start + 0.7) / 2)
    u = 2 * np.arctan(half * np.exp(-2 * t[:, None])) - 0.7
    model = quick(operators=["+", "-", "*", "sin", "cos"], max_iterations=20, max_order=1).fit(u, t, x)
    assert model.score(u, t, x) > 0.9999


def test_it_is_printed_and_written(wave: PDERegressor) -> None:
    shown = str(wave)
    assert "u_t =" in shown
    assert "v_t =" in shown
    assert shown.count(">>>>") == 2
    assert wave.latex().count("&=") == 2
    assert "u_{t}" in wave.latex()
    assert set(wave.sympy()) == {"u", "v"}
    assert "<table" in wave._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match="index names w; fields are u, v"):
        wave.sympy({"w": 0})
    with pytest.raises(IndexError, match=r"equations_\['v'\] has the rows 0 to \d+, and no row 99"):
        wave.latex({"v": 99})
    assert repr(PDERegressor()) == str(PDERegressor()) == "PDERegressor()"


def test_predict_gives_the_right_hand_sides_in_the_form_of_u(wave: PDERegressor) -> None:
    samples = WAVE[1]
    by_name = wave.predict(samples.fields, samples.t, *samples.axes)
    assert by_name["u"] == pytest.approx(samples.fields["v"], abs=1e-3)
    as_list = wave.predict(list(samples.fields.values()), samples.t, *samples.axes)
    stacked = wave.predict(np.stack(list(samples.fields.values()), axis=-1), samples.t, *samples.axes)
    assert np.array_equal(as_list[1], by_name["v"])
    assert np.array_equal(stacked[..., 1], by_name["v"])
    other = wave.predict(samples.fields, samples.t, *samples.axes, index={"v": 0})
    assert np.array_equal(other["u"], by_name["u"])
    assert not np.allclose(other["v"], by_name["v"])
    assert wave.score(samples.fields, samples.t, *samples.axes) > 0.999
    turned = dict(reversed(samples.fields.items()))
    assert np.array_equal(wave.predict(turned, samples.t, *samples.axes)["u"], by_name["u"])
    assert wave.score(turned, samples.t, *samples.axes) > 0.999
    with pytest.raises(ValueError, match="u must hold the fields u, v, not u, w"):
        wave.predict({"u": samples.fields["u"], "w": samples.fields["v"]}, samples.t, *samples.axes)
    with pytest.raises(ValueError, match="u has 1 fields, and the laws are those of 2"):
        wave.predict(samples.fields["u"], samples.t, *samples.axes)
    with pytest.raises(ValueError, match="the laws were fitted in 1 dimensions"):
        wave.predict(np.zeros((20, 20, 20)), 1, 1, 1)


def test_saved_laws_come_back_whole(wave: PDERegressor, tmp_path: Path) -> None:
    wave.save(tmp_path / "wave.json")
    back = PDERegressor.load(tmp_path / "wave.json")
    assert str(back) == str(wave)
    assert back.best_expressions_ == wave.best_expressions_
    assert back.constants_.equals(wave.constants_)
    assert (back.noise_, back.windows_, back.stop_reason_) == (wave.noise_, wave.windows_, wave.stop_reason_)
    samples = WAVE[1]
    predictions = [one.predict(samples.fields, samples.t, *samples.axes)["v"] for one in (wave, back)]
    assert np.array_equal(*predictions)
    assert PDERegressor.load(tmp_path / "wave.json", verbose=True).verbose


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "is no file of PDERegressor.save"),
        ({"version": 99}, "has version 99 of the format"),
        ({"parameters": {"operators": ["+"], "evil": 1}}, "does not say how it was made"),
        ({"found": {}}, "is damaged"),
    ],
)
def test_damaged_files_are_refused(wave: PDERegressor, tmp_path: Path, change: dict, message: str) -> None:
    wave.save(tmp_path / "wave.json")
    document = {**json.loads((tmp_path / "wave.json").read_text()), **change}
    (tmp_path / "wave.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message):
        PDERegressor.load(tmp_path / "wave.json")


def test_files_that_are_not_there_or_hold_parts_of_different_fits_are_refused(wave: PDERegressor, tmp_path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        PDERegressor.load(tmp_path / "none.json")
    wave.save(tmp_path / "wave.json")
    document = json.loads((tmp_path / "wave.json").read_text())
    document["found"]["judged"][0]["bits"] = []
    (tmp_path / "wave.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="the measures of its laws do not belong to its fronts"):
        PDERegressor.load(tmp_path / "wave.json")
    (tmp_path / "wave.json").write_text("{")
    with pytest.raises(ValueError, match="or a truncated one"):
        PDERegressor.load(tmp_path / "wave.json")


def test_the_same_seed_gives_the_same_fronts(burgers: PDERegressor) -> None:
    again = fitted(BURGERS[1].noisy(0.05, 0))
    assert str(again) == str(burgers)


def test_callbacks_hear_of_each_field_and_can_stop() -> None:
    heard = []
    samples = WAVE[1]
    fitted(samples, callbacks=heard.append)
    assert {report.state for report in heard} == {"u", "v"}
    model = fitted(BURGERS[1].noisy(0.3, 0), callbacks=lambda report: True, max_iterations=None)
    assert set(model.stop_reason_.values()) <= {
        "a callback asked to stop",
        "noise accounts for all that a law leaves",
    }


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_order": 0}, "max_order must be a whole number from 1 to 6, or None, not 0"),
        ({"max_order": 2.5}, "max_order must be a whole number from 1 to 6, or None, not 2.5"),
        ({"model_selection": "trajectories"}, "model_selection must be one of 'mdl'"),
        ({"max_time": -1}, "max_time must be"),
        ({"max_time": None, "max_iterations": None}, "the search would not end"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(BURGERS[1], **parameters)
    with pytest.raises(TypeError, match="it is max_iterations"):
        PDERegressor(niterations=3)


# Odd fields


def test_a_field_that_never_changes_has_the_law_zero_and_is_in_no_other() -> None:
    samples = BURGERS[1]
    model = quick().fit({"u": samples.fields["u"], "still": np.full((61, 128), 7.0)}, samples.t, *samples.axes)
    assert model.best_expressions_["still"] == Constant(0)
    assert finds(model, BURGERS[0])
    only = quick().fit(np.full((20, 30), 3.0), 0.1, 0.1)
    assert only.best_expressions_["u"] == Constant(0)
    assert only.score(np.full((20, 30), 3.0), 0.1, 0.1) == 1


def test_a_field_that_is_nothing_but_noise_ends() -> None:
    noise = np.random.default_rng(0).normal(size=(40, 60))
    model = quick(max_time=3).fit(noise, 0.1, 0.1)
    assert len(model.fronts_["u"])
    assert model.best_expressions_["u"].complexity < 20


def test_places_where_a_term_is_infinite_leave_it_out() -> None:
    u = np.abs(np.sin(np.linspace(0, 6, 60) - np.linspace(0, 1, 40)[:, None]))
    u[:, 30] = 0.0  # 1/u has no value there
    assert len(quick().fit(u, 0.02, 0.1).fronts_["u"])


def test_units_of_very_different_size() -> None:
    samples = BURGERS[1]
    size, long, slow = 1e6, 1e-4, 1e3
    model = quick().fit(size * samples.fields["u"], slow * samples.t, long * samples.axes[0])
    law = model.best_expressions_["u"]
    assert same_structure(law, parse("u_xx - u*u_x"))


def test_the_smallest_grid_gives_a_front() -> None:
    t, x = np.arange(11) * 0.1, np.arange(15) * 0.2
    model = quick().fit(np.sin(x - t[:, None]), t, x)
    assert len(model.fronts_["u"]) > 1


def test_sixty_fields_end_with_a_law_for_each() -> None:
    random = np.random.default_rng(0)
    t, x = np.linspace(0, 1, 30), np.linspace(0, 6, 40)
    waves = [np.exp(-k * t)[:, None] * np.sin(x + k) for k in random.uniform(0, 2, 60)]
    model = PDERegressor(max_time=2, random_state=0).fit(waves, t, x)
    assert len(model.best_expressions_) == 60
    assert all(len(front) for front in model.fronts_.values())


def test_far_too_many_samples_are_shortened_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symenum.dynamics.pde_regressor._MOST_SAMPLES", 40 * 128)
    with pytest.warns(UserWarning, match="the search takes 40 of the 61 times"):
        assert finds(fitted(BURGERS[1]), BURGERS[0])
