"""ODERegressor on bad data: a clear message, or a correct answer.

Most tests choose by the older rule, which takes a fraction of a second; the same under the default is marked slow.
"""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from dynamics.motions import motion, noisy, predator_and_prey

from symenum import ODERegressor
from symenum.bench.judge import same_structure
from symenum.expressions import Constant, parse

T = np.linspace(0, 25, 400)
HUNT = predator_and_prey(T)


EITHER_RULE = pytest.mark.parametrize("rule", ["mdl", pytest.param("trajectories", marks=pytest.mark.slow)])


def quick(rule: str = "mdl", **parameters) -> ODERegressor:
    settings = {"operators": "arithmetic", "max_iterations": 1, "random_state": 0, "model_selection": rule}
    settings["max_time"] = None  # results do not depend on how busy the machine is
    return ODERegressor(**{**settings, **parameters})


def is_hunt(model: ODERegressor) -> bool:
    first, second = list(model.best_expressions_.values())[:2]
    return same_structure(first, parse("x1 - x1*x2")) and same_structure(second, parse("x1*x2 - x2"))


def test_unsorted_repeated_and_few_times_are_refused() -> None:
    for times, message in ((T[::-1], "must increase"), (np.r_[T[:-1], T[-2]], "repeats the time")):
        with pytest.raises(ValueError, match=message):
            quick().fit(HUNT, times)
    with pytest.raises(ValueError, match="at least 9"):
        quick().fit(HUNT[:6], T[:6])


@EITHER_RULE
def test_few_points_give_a_front_all_the_same(rule: str) -> None:
    model = quick(rule).fit(HUNT[:12], T[:12])
    assert all(len(front) for front in model.fronts_.values())


@EITHER_RULE
def test_nan_stretches_are_gaps(rule: str) -> None:
    X = noisy(HUNT, 0.01)
    X[100:130] = np.nan
    X[200, 1] = np.inf
    assert is_hunt(quick(rule).fit(X, T))


@EITHER_RULE
def test_a_state_that_does_not_move_has_the_law_zero(rule: str) -> None:
    X = np.column_stack([noisy(HUNT, 0.01), np.full(len(T), 7.0)])
    model = quick(rule).fit(X, T)
    assert is_hunt(model)
    assert model.best_expressions_["x3"] == Constant(0)
    assert model.score(X, T) > 0.98
    assert np.allclose(model.simulate([10, 5, 7], T[:20], max_time=None)[:, 2], 7)


@pytest.mark.parametrize("rule", ["mdl", "trajectories"])
def test_only_a_state_that_does_not_move(rule: str) -> None:
    model = quick(rule).fit(np.full((50, 1), 3.0), 0.1)
    assert model.best_expressions_["x1"] == Constant(0)


@EITHER_RULE
def test_a_state_that_moves_evenly_has_a_constant_law(rule: str) -> None:
    X = np.column_stack([noisy(HUNT, 0.01), 6000 + 2 * T])[:200]
    model = quick(rule).fit(X, T[:200])
    assert float(model.predict([[1.0, 1.0, 6000.0]])[0, 2]) == pytest.approx(2, rel=1e-3)


@EITHER_RULE
def test_units_of_very_different_size(rule: str) -> None:
    X = noisy(HUNT, 0.01) * np.array([1e9, 1e-8])
    assert is_hunt(quick(rule).fit(X, T))
    assert is_hunt(quick(rule).fit(X, T * 1e-6))


@EITHER_RULE
def test_a_trajectory_that_leaves_the_domain_of_an_operator(rule: str) -> None:
    """log x1 exists on half of the motion only: no law may hold it, and the others are found."""
    swing = motion(["x2", "-x1"], (1.0, 0.0), T)
    model = quick(rule, operators=["+", "-", "*", "/", "log"]).fit(noisy(swing, 0.01), T)
    assert same_structure(model.best_expressions_["x1"], parse("x2"))
    for front in model.fronts_.values():
        assert all(np.isfinite(entry.loss) for entry in front)


@pytest.mark.parametrize("rule", ["mdl", "trajectories"])
def test_a_found_system_that_blows_up_is_cut_off_with_a_warning(rule: str) -> None:
    t = np.linspace(0, 0.8, 200)
    model = quick(rule).fit((1 / (1 - t))[:, None], t)
    assert same_structure(model.best_expressions_["x1"], parse("x1**2"))
    with pytest.warns(RuntimeWarning, match="blew up .* later rows are NaN"):
        simulated = model.simulate([1.0], np.linspace(0, 3, 50), max_time=None)
    assert np.isfinite(simulated[0, 0])
    assert np.isnan(simulated[-1, 0])


def test_wrong_starts_and_times_of_a_simulation_are_refused() -> None:
    model = quick().fit(HUNT, T)
    for start, times, message in (
        ([1.0], T, "x0 must be 2 finite numbers"),
        ([1.0, np.nan], T, "x0 must be 2 finite numbers"),
        ([1.0, 1.0], T[::-1], "increasing times"),
        ([1.0, 1.0], [], "increasing times"),
    ):
        with pytest.raises(ValueError, match=message):
            model.simulate(start, times)


@pytest.fixture(scope="module")
def driven() -> ODERegressor:
    """Laws of y, x with an input f that plays no part, fitted with names."""
    u = np.sin(3 * T[:, None])
    states = pandas.DataFrame(motion(["x2", "-x1"], (1.0, 0.0), T), columns=["y", "x"])
    return quick().fit(states, T, pandas.DataFrame(u, columns=["f"]))


def test_tables_may_have_their_columns_in_any_order(driven: ODERegressor) -> None:
    states = pandas.DataFrame(motion(["x2", "-x1"], (1.0, 0.0), T), columns=["y", "x"])
    turned, f = states[["x", "y"]], pandas.DataFrame({"f": np.sin(3 * T)})
    np.testing.assert_array_equal(driven.predict(turned, f), driven.predict(states, f))
    assert driven.score(turned, T, f) == driven.score(states, T, f) > 0.99
    simulated = (driven.simulate(start, T[:20], f[:20], max_time=None) for start in (turned.iloc[0], states.iloc[0]))
    np.testing.assert_array_equal(*simulated)
    several = quick().fit([states, turned], [T, T], [f, f])
    assert several.best_expressions_ == driven.best_expressions_
    checked = quick("validation").fit(states, T, f, validation=(turned, T, f))
    assert checked.selected_ == quick("validation").fit(states, T, f, validation=(states, T, f)).selected_
    rates = pandas.DataFrame(driven.predict(states, f), columns=["y", "x"])
    assert quick().fit(turned, T, x_dot=rates).score(states, T) > 0.99


def test_points_that_do_not_belong_to_the_laws_are_refused(driven: ODERegressor) -> None:
    f = np.zeros(3)
    points = pandas.DataFrame(HUNT[:3], columns=["y", "x"])
    for give, message in (
        (lambda: driven.predict(points.rename(columns={"x": "z"}), f), "X must have the columns y, x, not y, z"),
        (lambda: driven.predict(points.assign(z=1), f), "X must have the columns y, x, not y, x, z"),
        (lambda: driven.predict(points, pandas.DataFrame({"g": f})), "u must have the columns f, not g"),
        (lambda: driven.predict(HUNT[:3, :1], f), r"X must have 2 columns \(y, x\), .* not shape \(3, 1\)"),
        (lambda: driven.predict(np.zeros((2, 2, 2)), f), r"not shape \(2, 2, 2\)"),
        (lambda: driven.predict(points, f[:2]), r"u must have shape \(3, 1\), not \(2, 1\)"),
        (lambda: driven.predict(points), "u is missing: the laws were fitted with inputs f"),
        (lambda: driven.predict(points + 1j, f), "X must be an array of real numbers: it holds complex ones"),
        (lambda: driven.predict(points, f * 1j), "u must be an array of real numbers: it holds complex ones"),
        (lambda: driven.predict([["a", "b"]], [1]), "X must be an array of real numbers: could not convert"),
        (lambda: driven.simulate([1j, 0], T, np.sin(T)), "x0 must be an array of real numbers: it holds complex"),
        (lambda: driven.simulate([1, 0], T, T + 1j), "u must be an array of real numbers: it holds complex"),
        (lambda: driven.simulate([1, 0], T, T * np.nan), "u must be finite at all times"),
        (lambda: driven.score(HUNT[:, :1], T, T), "X and u must have the states and inputs of the fit, y, x, f"),
        (lambda: driven.score(HUNT, T), "X and u must have the states and inputs of the fit"),
        (lambda: quick().fit(HUNT, T).predict(HUNT, T), "the laws were fitted without inputs, leave it out"),
        (lambda: quick().fit(HUNT, T * 1e-200), "give t in another unit"),
        (lambda: quick().fit(HUNT * 1e200, T), "X has a largest absolute value of .* whose square is out of range"),
    ):
        with pytest.raises(ValueError, match=message):
            give()


def test_one_state_takes_its_points_as_a_plain_sequence() -> None:
    model = quick().fit(HUNT[:, :1], T)
    np.testing.assert_array_equal(model.predict([1.0, 2.0, 3.0]), model.predict([[1.0], [2.0], [3.0]]))
    table = pandas.DataFrame({"prey": [1.0, 2.0, 3.0]})  # the fit had no names
    np.testing.assert_array_equal(model.predict(table), model.predict([1.0, 2.0, 3.0]))


def test_states_and_inputs_of_one_name_are_refused() -> None:
    frame = pandas.DataFrame(HUNT, columns=["a", "b"])
    with pytest.raises(ValueError, match="different names"):
        quick().fit(frame, T, frame[["a"]])


@pytest.mark.parametrize("rule", ["mdl", "trajectories"])
def test_a_state_that_was_not_measured_is_missed(rule: str) -> None:
    """Of an oscillation the positions alone: their rates are no function of them."""
    t = np.linspace(0, 12, 100)
    x = np.sin(t)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(100, 1))
    with pytest.warns(UserWarning, match="accounts for how x1 move.*A state or an input may be missing.*order=2"):
        quick(rule, operators=["+", "-", "*"]).fit(x, t)


def test_laws_that_explain_the_motion_come_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    t = np.linspace(0, 12, 100)
    X = np.column_stack([np.sin(t), np.cos(t)]) + 0.01 * np.random.default_rng(0).normal(size=(100, 2))
    quick(operators=["+", "-", "*"]).fit(X, t)
    assert not [one for one in recwarn if issubclass(one.category, UserWarning)]


@pytest.mark.parametrize(("device", "message"), [("gpuu", "device must be 'auto'"), ("cuda:99", "device 'cuda:99'")])
def test_a_device_that_is_not_there_is_refused_before_the_search(device: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(device=device).fit(HUNT, T)
