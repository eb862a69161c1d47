"""ODERegressor: what users rely on, whichever rule chooses the laws.

Fits to the trajectories take seconds where the older rule takes a fraction of one, so most tests choose by that one.
`test_regressor_by_trajectories` is about the default; what must hold under it, too, is repeated here, marked slow.
"""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from dynamics.motions import motion, noisy, predator_and_prey
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from symenum import ODERegressor
from symenum.bench.judge import same_structure
from symenum.dynamics.simulate import right_side, simulate
from symenum.expressions import parse

T = np.linspace(0, 25, 500)
HUNT = predator_and_prey(T)


EITHER_RULE = pytest.mark.parametrize("rule", ["mdl", pytest.param("trajectories", marks=pytest.mark.slow)])


def quick(**parameters) -> ODERegressor:
    settings = {"operators": "arithmetic", "max_iterations": 1, "random_state": 0, "model_selection": "mdl"}
    settings["max_time"] = None  # results do not depend on how busy the machine is
    return ODERegressor(**{**settings, **parameters})


@pytest.fixture(scope="module")
def fitted() -> ODERegressor:
    return quick().fit(noisy(HUNT, 0.02), T)


def has_structure(model: ODERegressor, *laws: str) -> bool:
    found = model.best_expressions_.values()
    return all(same_structure(law, parse(text)) for law, text in zip(found, laws, strict=True))


def test_the_laws_come_out(fitted: ODERegressor) -> None:
    assert has_structure(fitted, "x1 - x1*x2", "x1*x2 - x2")
    assert fitted.score(HUNT, T) > 0.99
    np.testing.assert_allclose(fitted.predict([[10.0, 5.0]]), [[-9.0, 3.0]], rtol=0.1)
    assert all("noise" in reason for reason in fitted.stop_reason_.values())


def test_every_state_has_a_front_with_its_judges(fitted: ODERegressor) -> None:
    assert list(fitted.equations_) == ["x1", "x2"]
    table = fitted.equations_["x1"]
    assert {"complexity", "loss", "heldout_loss", "chi_square", "bits", "indistinguishable", "equation"} <= set(table)
    row = fitted.selected_["x1"]
    assert table["indistinguishable"][row]
    assert table["chi_square"][row] == pytest.approx(1, abs=0.5)
    assert not table["indistinguishable"][0]
    assert table["bits"].idxmin() == row


def test_simulation_follows_the_measured_motion(fitted: ODERegressor) -> None:
    simulated = fitted.simulate(HUNT[0], T, max_time=None)
    assert np.sqrt(((simulated - HUNT) ** 2).mean(axis=0) / HUNT.var(axis=0)).max() < 0.3


def test_index_picks_other_rows(fitted: ODERegressor) -> None:
    assert np.ptp(fitted.predict(HUNT, index=0)[:, 0]) == 0
    mixed = fitted.predict(HUNT, index={"x1": 0})
    assert np.ptp(mixed[:, 0]) == 0
    assert np.ptp(mixed[:, 1]) > 0
    np.testing.assert_array_equal(fitted.predict(HUNT, index=list(fitted.selected_.values())), fitted.predict(HUNT))
    with pytest.raises(ValueError, match="states are x1, x2"):
        fitted.predict(HUNT, index={"y": 0})


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (99, IndexError, r"equations_\['x1'\] has the rows 0 to \d+, and no row 99"),
        (-99, IndexError, "and no row -99"),
        ({"x2": 99}, IndexError, r"equations_\['x2'\] has the rows 0 to \d+, and no row 99"),
        ([0, 99], IndexError, r"equations_\['x2'\] has the rows 0 to \d+, and no row 99"),
        ([0, 1, 2], ValueError, r"one row for each of the 2 states \(x1, x2\), not \[0, 1, 2\]"),
        ("x1", ValueError, "one row for each of the 2 states"),
        (1.5, TypeError, r"a row number of equations_\['x1'\], 0 to \d+, not 1.5"),
        ({"x1": None}, TypeError, "a row number of equations_"),
        (True, TypeError, "not True"),
        ({0: 1}, ValueError, "index names 0; states are x1, x2"),
    ],
)
def test_an_index_that_is_no_row_is_refused_with_the_rows_there_are(
    fitted: ODERegressor, index: object, error: type[Exception], message: str
) -> None:
    calls = [
        lambda: fitted.predict(HUNT, index=index),
        lambda: fitted.simulate(HUNT[0], T, index=index),
        lambda: fitted.sympy(index),
        lambda: fitted.latex(index),
        lambda: fitted.export("c", index),
    ]
    for call in calls:
        with pytest.raises(error, match=message):
            call()


def test_rows_may_be_counted_from_the_end(fitted: ODERegressor) -> None:
    last = [len(table) - 1 for table in fitted.equations_.values()]
    assert fitted.latex(-1) == fitted.latex(np.array(last)) == fitted.latex(tuple(last))


def test_a_notebook_shows_the_fronts(fitted: ODERegressor) -> None:
    shown = fitted._repr_mimebundle_()
    assert shown["text/plain"] == str(fitted)
    assert [f"<th>{state}&#x27;</th>" in shown["text/html"] for state in ("x1", "x2")] == [True, True]
    assert shown["text/html"].count("<tr class=chosen>") == 2
    assert "sk-" in ODERegressor()._repr_mimebundle_()["text/html"]  # scikit-learn's diagram


def test_exports_of_the_whole_system(fitted: ODERegressor) -> None:
    assert "def system(t, state):" in fitted.export("python")
    assert "np." not in fitted.export("python")
    assert "void system_derivative" in fitted.export("c")
    assert "\\dot{x}_{1} &= " in fitted.latex()
    assert fitted.sympy()["x1"].free_symbols
    with pytest.raises(ValueError, match="language must be one of 'python'"):
        fitted.export("fortran")
    compile(fitted.export("numpy"), "system", "exec")


def test_printing_marks_choice_and_twins(fitted: ODERegressor) -> None:
    text = str(fitted)
    assert text.count(">>>>") == 2
    assert "x1' =" in text
    assert "ODERegressor(" in str(quick())


@EITHER_RULE
def test_names_of_a_data_frame_are_kept(rule: str) -> None:
    frame = pandas.DataFrame(noisy(HUNT, 0.01), columns=["hare", "lynx"])
    model = quick(model_selection=rule).fit(frame, T)
    assert list(model.best_expressions_) == ["hare", "lynx"]
    assert "lynx" in str(model.best_expressions_["hare"])


@EITHER_RULE
def test_uneven_samples_with_a_gap(rule: str) -> None:
    t = np.sort(np.random.default_rng(1).uniform(0, 30, 700))
    t = t[(t < 12) | (t > 16)]
    model = quick(operators="koza", model_selection=rule).fit(noisy(predator_and_prey(t), 0.02), t)
    assert has_structure(model, "x1 - x1*x2", "x1*x2 - x2")


@EITHER_RULE
def test_several_trajectories(rule: str) -> None:
    t = np.linspace(0, 3, 80)
    starts = [(10.0, 5.0), (3.0, 2.0), (6.0, 1.0), (2.0, 4.0)]
    X = [noisy(motion(("1.1*x1 - 0.4*x1*x2", "0.1*x1*x2 - 0.4*x2"), s, t), 0.005, i) for i, s in enumerate(starts)]
    model = quick(model_selection=rule).fit(X, [t] * 4)
    assert has_structure(model, "x1 - x1*x2", "x1*x2 - x2")


@EITHER_RULE
def test_external_inputs(rule: str) -> None:
    u = np.sin(3 * T)
    x = np.zeros_like(T)
    step = T[1] - T[0]
    for i in range(len(T) - 1):  # exact for an input that is linear in between is not needed: the step is small
        x[i + 1] = x[i] + step * (-0.5 * x[i] + 2 * (u[i] + u[i + 1]) / 2)
    model = quick(model_selection=rule).fit(noisy(x[:, None], 0.005), T, u)
    assert has_structure(model, "x1 + u1")
    simulated = model.simulate([0.0], T, u, max_time=None)
    assert np.corrcoef(simulated[:, 0], x)[0, 1] > 0.999
    by_function = model.simulate([0.0], T, lambda t: np.sin(3 * t), max_time=None)
    np.testing.assert_allclose(by_function, simulated, atol=0.05)
    with pytest.raises(ValueError, match="u is missing"):
        model.predict([[1.0]])
    with pytest.raises(ValueError, match="function of time"):
        model.simulate([0.0], T)


def test_measured_derivatives_are_taken_as_they_are() -> None:
    rates = np.column_stack([HUNT[:, 0] * (1.1 - 0.4 * HUNT[:, 1]), HUNT[:, 1] * (0.1 * HUNT[:, 0] - 0.4)])
    t = np.arange(len(T)) * 77.0  # the times play no part
    model = quick().fit(HUNT, t, x_dot=noisy(rates, 0.02))
    assert has_structure(model, "x1 - x1*x2", "x1*x2 - x2")
    assert has_structure(quick().fit([HUNT], [t], x_dot=[noisy(rates, 0.02)]), "x1 - x1*x2", "x1*x2 - x2")
    with pytest.raises(ValueError, match="shape of X"):
        quick().fit(HUNT, T, x_dot=rates[:, :1])
    with pytest.raises(ValueError, match="x_dot is for order=1"):
        quick(order=2).fit(HUNT, T, x_dot=rates)


@EITHER_RULE
def test_second_order(rule: str) -> None:
    """A damped pendulum, from its angle alone."""
    t = np.linspace(0, 30, 900)
    angle = motion(["-2*sin(x1) - 0.1*x1_dot"], (2.5, 0.0), t, order=2)
    model = quick(operators=["+", "-", "*", "sin", "cos"], order=2, model_selection=rule).fit(noisy(angle, 0.005), t)
    assert has_structure(model, "sin(x1) + x1_dot")
    simulated = model.simulate([2.5, 0.0], t, max_time=None)
    assert np.corrcoef(simulated[:, 0], angle[:, 0])[0, 1] > 0.95
    assert model.predict([[1.0, 0.0]])[0, 0] == pytest.approx(-2 * np.sin(1), rel=0.1)


@pytest.mark.slow
def test_a_double_pendulum_with_uneven_samples_and_a_gap() -> None:
    """Lagrange's equations of two equal rods and masses: each law holds the other's acceleration."""
    laws = (
        "-0.5*x2_ddot*cos(x1 - x2) - 0.5*x2_dot**2*sin(x1 - x2) - 9.81*sin(x1)",
        "-x1_ddot*cos(x1 - x2) + x1_dot**2*sin(x1 - x2) - 9.81*sin(x2)",
    )
    names = ["x1", "x2", "x1_dot", "x2_dot"]
    right = right_side([parse(law) for law in laws], names, None, 2, ["x1_ddot", "x2_ddot"])
    t = np.sort(np.random.default_rng(0).uniform(0, 12, 3000))
    t = t[(t < 5) | (t > 6)]
    angles = simulate(right, np.array([1.8, 1.2, 0.0, 0.0]), t, max_time=None).states[:, :2]
    model = quick(operators=["+", "-", "*", "sin", "cos"], order=2, coupled=True).fit(noisy(angles, 0.001), t)
    assert has_structure(model, *laws)
    follow = t < 2
    simulated = model.simulate([1.8, 1.2, 0.0, 0.0], t[follow], max_time=None)
    assert np.abs(simulated[:, :2] - angles[follow]).max() < 0.1
    assert model.score(angles, t) > 0.99
    with pytest.raises(ValueError, match="no explicit form"):
        model.export("python")


def test_a_budget_for_the_whole_system(fitted: ODERegressor) -> None:
    model = quick(system_complexity=5).fit(noisy(HUNT, 0.02), T)
    spent = [model.fronts_[name][row].complexity for name, row in model.selected_.items()]
    assert sum(spent) <= 5
    assert quick(system_complexity=50).fit(noisy(HUNT, 0.02), T).selected_ == fitted.selected_


@pytest.mark.parametrize("derivative", ["savitzky_golay", "spline", "central"])
def test_other_derivatives(derivative: str) -> None:
    t = np.linspace(0, 25, 1500)  # differences are only as good as the steps are short
    model = quick(derivative=derivative).fit(predator_and_prey(t), t)
    laws = [parse(law) for law in ("x1 - x1*x2", "x1*x2 - x2")]
    for front, law in zip(model.fronts_.values(), laws, strict=True):
        assert any(same_structure(entry.expression, law) and entry.loss < 1e-2 for entry in front)


def test_callbacks_see_each_state_and_can_stop() -> None:
    told = []
    model = quick(callbacks=[told.append]).fit(noisy(HUNT, 0.02), T)
    assert {report.state for report in told} == {"x1", "x2"}
    assert model.fronts_["x2"] == told[-1].front
    stopped = quick(callbacks=[lambda report: True], max_iterations=None).fit(HUNT[:, :1], T)
    assert stopped.n_iter_ == 0


def test_same_seed_same_fronts() -> None:
    X = noisy(HUNT, 0.05)[:150]
    one, two = (quick(max_time=None).fit(X, T[:150]) for _ in range(2))
    assert one.fronts_ == two.fronts_


def test_conventions_of_scikit_learn() -> None:
    model = clone(quick(order=2, top_k=7))
    assert model.get_params()["top_k"] == 7
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 3}, "order must be 1 or 2"),
        ({"coupled": True}, "coupled is for order=2"),
        ({"derivative": "magic"}, "derivative must be one of 'weak'"),
        ({"model_selection": "luck"}, "model_selection must be one of"),
        ({"max_time": -1}, "max_time"),
        ({"operators": "nope"}, "unknown operator set"),
    ],
)
def test_wrong_parameters_are_refused_in_fit(parameters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(HUNT, T)
