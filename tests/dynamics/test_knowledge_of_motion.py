"""What the user knows of laws of motion, robust samples, validation trajectories, exports and the report."""

from __future__ import annotations

import re

import numpy as np
import pytest
from dynamics.motions import motion, noisy, predator_and_prey

from symenum import ODERegressor
from symenum.bench.judge import same_structure
from symenum.dynamics.outliers import without_outliers
from symenum.dynamics.trajectory import Piece
from symenum.expressions import parse, variables, walk

T = np.linspace(0, 25, 400)
HUNT = predator_and_prey(T)


def quick(**parameters) -> ODERegressor:
    settings = {"operators": "arithmetic", "max_iterations": 1, "random_state": 0, "model_selection": "mdl"}
    settings["max_time"] = None  # results do not depend on how busy the machine is
    return ODERegressor(**{**settings, **parameters})


@pytest.fixture(scope="module")
def fitted() -> ODERegressor:
    return quick().fit(noisy(HUNT, 0.01), T)


def laws(model: ODERegressor) -> list:
    return [entry.expression for front in model.fronts_.values() for entry in front]


def test_forbidden_variables_by_state() -> None:
    with pytest.warns(UserWarning, match="accounts for how x1 move"):
        model = quick(forbidden_variables={"x1": ["x2"]}).fit(noisy(HUNT, 0.02), T)
    assert not any("x2" in variables(entry.expression) for entry in model.fronts_["x1"])
    assert same_structure(model.best_expressions_["x2"], parse("x1*x2 - x2"))
    with pytest.raises(ValueError, match="forbidden_variables names 'y', which is no state"):
        quick(forbidden_variables={"y": ["x2"]}).fit(HUNT, T)
    with pytest.raises(ValueError, match="forbidden_variables leaves no variable for the law of x1"):
        quick(forbidden_variables=["x1", "x2"]).fit(HUNT, T)


def test_constraints_hold_for_all_laws() -> None:
    model = quick(operators="koza", max_depth=3, nested_constraints={"exp": {"exp": 0}}).fit(noisy(HUNT, 0.1), T)
    assert all(law.depth <= 3 for law in laws(model))
    only = quick(operators="koza", variable_operators={"x1": ["+", "-", "*"]}).fit(noisy(HUNT, 0.1), T)
    for law in laws(only):
        inside = [node for node in walk(law) if getattr(node, "operator", None) is not None]
        assert all(node.operator.arity == 2 for node in inside if "x1" in variables(node))


SWING = {"x1": "m", "x2": "m/s", "t": "s"}


def test_units_leave_out_what_they_forbid_and_a_rate_of_one_is_no_plain_number() -> None:
    t = np.linspace(0, 12, 150)
    X = noisy(np.column_stack([np.cos(t), -np.sin(t)]), 0.05)
    model = quick(operators=["+", "-", "*", "cos", "exp"], units=SWING).fit(X, t)
    assert [str(law) for law in model.best_expressions_.values()] == ["x2", "-x1"]
    for law in laws(model):
        assert not re.search(r"(cos|exp)\(-?x\d\)", str(law))
        assert "x1 + x2)" not in str(law)
    with pytest.raises(ValueError, match=r"guesses holds .* which units forbid: cos\(x1\) takes a plain number"):
        quick(operators=["+", "*", "cos"], units=SWING, guesses=["a*cos(x1)"]).fit(X, t)


def test_plain_constants_have_no_units() -> None:
    t = np.linspace(0, 12, 150)
    X = noisy(np.column_stack([np.cos(t), -np.sin(t)]), 0.05)
    with pytest.warns(UserWarning, match="accounts for how x2 move"):
        model = quick(units=SWING, dimensional_constants=False).fit(X, t)
    assert str(model.best_expressions_["x1"]) == "x2"  # the velocity; the acceleration has no law without seconds
    with pytest.raises(ValueError, match=r"no law of .* has the unit of the target"):
        quick(units={"x1": "m", "x2": "kg", "t": "s"}, dimensional_constants=False).fit(X, t)


def test_units_of_velocities_follow() -> None:
    t = np.linspace(0, 12, 150)
    model = quick(operators=["+", "-", "*", "sin"], order=2, units={"x1": "m", "t": "s"}).fit(np.cos(t)[:, None], t)
    assert str(model.best_expressions_["x1"]) == "-x1"


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ("names", "units must be a mapping for laws of motion"),
        ({"x1": "m", "t": "s"}, "units says nothing of 'x2'"),
        ({"x1": "m", "x2": "m/s"}, "for the time, t"),
        ({**SWING, "x3": "m"}, "units names 'x3', which is no state or input"),
        ({**SWING, "x1": "quux"}, "units: 'quux' is no unit"),
    ],
)
def test_units_that_cannot_be_read_are_refused(units: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(units=units).fit(HUNT, T)


def test_a_law_of_the_trajectories_keeps_to_what_the_user_knows() -> None:
    """Leaving out a part of a law may lead to one that the user does not allow."""
    t = np.linspace(0, 6, 80)
    X = motion(["0.8*x1 - 0.16*x1**2"], (0.5,), t)
    known = {"variable_operators": {"x1": ["-", "*"]}, "nested_constraints": {"*": {"*": 1}}}
    found = quick(model_selection="trajectories", operators=["+", "-", "*"], **known).fit(noisy(X, 0.02), t)
    names = {node.operator.name for law in found.trajectories_.laws for node in walk(law) if hasattr(node, "operator")}
    assert "add" not in names
    assert same_structure(found.best_expressions_["x1"], parse("x1 - x1**2"))


def test_a_guess_is_fitted_and_stands_on_the_front() -> None:
    t = np.linspace(0, 6, 150)
    X = motion(["2*x1/(1 + x1**3) - 0.3*x1"], (0.2,), t)
    model = quick(guesses={"x1": ["a*x1/(1 + b*x1**3) - c*x1"]}).fit(X, t)
    assert same_structure(model.best_expressions_["x1"], parse("x1/(1 + x1**3) - x1"))
    with pytest.raises(ValueError, match="guesses names 'y', which is no state; there are x1"):
        quick(guesses={"y": ["a*x1"]}).fit(X, t)
    with pytest.raises(ValueError, match="guesses must be a list for all states, or a mapping"):
        quick(guesses="a*x1").fit(X, t)


def test_outliers_do_not_decide_with_a_robust_loss() -> None:
    X = noisy(HUNT, 0.01)
    random = np.random.default_rng(1)
    X = X + (random.random(X.shape) < 0.03) * random.normal(size=X.shape) * 5 * X.std(axis=0)
    model = quick(loss="huber").fit(X, T)
    assert same_structure(model.best_expressions_["x1"], parse("x1 - x1*x2"))
    assert same_structure(model.best_expressions_["x2"], parse("x1*x2 - x2"))
    with pytest.raises(ValueError, match="loss must be one of 'mse', 'huber' for laws of motion"):
        quick(loss="mae").fit(X, T)


def test_samples_without_outliers_hardly_move_and_outliers_come_near() -> None:
    t = np.linspace(0, 10, 300)
    true = np.cos(2 * t)[:, None]
    X = true + 0.02 * np.random.default_rng(0).normal(size=true.shape)
    (same,) = without_outliers([Piece(t, X, np.empty((300, 0)))])
    assert np.abs(same.X - X).max() < 0.03
    wrong = X.copy()
    wrong[[5, 100, 101, 250]] += 3.0
    (pulled,) = without_outliers([Piece(t, wrong, np.empty((300, 0)))])
    assert np.abs(pulled.X - true).max() < 0.2


def test_laws_are_chosen_on_validation_trajectories() -> None:
    t = np.linspace(0, 5, 100)
    one, other = (noisy(motion(("1.1*x1 - 0.4*x1*x2", "0.1*x1*x2 - 0.4*x2"), s, t), 0.005) for s in ((10, 5), (3, 2)))
    model = quick(model_selection="trajectories").fit(one, t, validation=(other, t))
    assert same_structure(model.best_expressions_["x1"], parse("x1 - x1*x2"))
    table = model.equations_["x1"]
    assert table["validation_loss"][model.selected_["x1"]] <= 1.5 * table["validation_loss"].min()
    with pytest.raises(ValueError, match='model_selection="validation" needs trajectories'):
        quick(model_selection="validation").fit(one, t)
    with pytest.raises(ValueError, match="validation must have the same states"):
        quick().fit(one, t, validation=(other[:, :1], t))
    with pytest.raises(ValueError, match=r"validation must be \(X, t\)"):
        quick().fit(one, t, validation=other)


def test_a_device_and_a_memory_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="max_memory must be at least"):
        quick(max_memory="1MB").fit(HUNT, T)
    assert quick(max_memory="500MB", device="cpu").fit(noisy(HUNT, 0.01), T).best_expressions_


def test_the_scipy_function_solves_the_system(fitted: ODERegressor, tmp_path) -> None:
    file = tmp_path / "hunt.py"
    file.write_text(fitted.export("scipy"))
    import importlib.util

    spec = importlib.util.spec_from_file_location("hunt", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    followed = module.solve([10.0, 5.0], T[:100])
    np.testing.assert_allclose(followed, fitted.simulate([10.0, 5.0], T[:100], max_time=None), rtol=1e-5)


def test_a_modelica_model_names_states_inputs_and_starts() -> None:
    t = np.linspace(0, 12, 300)
    u = np.sin(0.9 * t)
    X = motion(["-2*x1 - 0.3*x1_dot"], (1.0, 0.0), t, order=2)
    model = quick(order=2).fit(noisy(X, 0.002), t, u)
    text = model.export("modelica")
    assert text.startswith("model Motion\n  Real x1(start = ")
    assert "  input Real u1;" in text
    assert "  der(x1) = x1_dot;" in text
    assert "  der(x1_dot) = " in text
    assert text.endswith("end Motion;\n")


def test_the_report_holds_laws_plots_and_settings(fitted: ODERegressor, tmp_path) -> None:
    fitted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 4
    for text in ("Laws of motion of x1, x2", "Errors of the samples", "The front of x1", "Settings", "<math"):
        assert text in page
    assert "<script" not in page
