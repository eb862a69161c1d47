"""Formulas of the user's: fitted, scored, placed beside the front, and refused where they make no sense."""

from __future__ import annotations

import copy

import numpy as np
import pandas
import pytest

from symenum import PSERegressor, fit_constants
from symenum.estimator.data import make_training
from symenum.estimator.formulas import UndeclaredNameError, constant_errors
from symenum.expressions import parse, written
from symenum.fitting.losses import make_loss

X = np.random.default_rng(0).uniform(1, 3, (40, 2))
Y = 2 * X[:, 0] ** 2 / X[:, 1]


@pytest.fixture(scope="module")
def model() -> PSERegressor:
    noise = np.random.default_rng(1).normal(0, 0.02, 40)
    return PSERegressor(max_time=None, max_iterations=4, random_state=0).fit(X, Y + noise)


def test_constants_of_a_form_are_fitted_and_numbers_stay() -> None:
    found = fit_constants("a*x1**2/x2 + 0.5*b", X, Y + 1.0)
    assert found.constants == pytest.approx({"a": 2.0, "b": 2.0})
    assert str(found.expression).endswith("+ 0.5*" + repr(found.constants["b"]))
    assert found.r2 == pytest.approx(1.0)


def test_numbers_are_fitted_on_request_but_not_whole_ones() -> None:
    found = fit_constants("1.5*x1**2/x2", X, Y, fit_numbers=True)
    assert found.constants == pytest.approx({"c1": 2.0})
    assert fit_constants("1.5*x1**2/x2", X, Y).constants == {}


def test_one_name_is_one_constant() -> None:
    found = fit_constants("a*x1 + a*x2", X, 3 * X[:, 0] + 3 * X[:, 1])
    assert found.constants == pytest.approx({"a": 3.0})


def test_declared_constants_keep_value_and_name() -> None:
    found = fit_constants("g*x1**2*a", X, 9.81 * 0.5 * X[:, 0] ** 2, constants={"g": 9.81})
    assert found.constants == pytest.approx({"a": 0.5})
    assert str(found.expression).startswith("g*x1**2*")


def test_names_of_a_frame_and_weights_count() -> None:
    frame = pandas.DataFrame(X, columns=["mass", "length (m)"])
    y = Y.copy()
    y[:5] = 1e3
    weight = np.r_[np.zeros(5), np.ones(35)]
    assert fit_constants("a*mass**2/length_m", frame, y, weight).constants == pytest.approx({"a": 2.0})


@pytest.mark.parametrize("loss", ["mae", "huber", "log_cosh"])
def test_a_robust_loss_is_not_led_by_outliers(loss: str) -> None:
    y = Y.copy()
    y[::8] += 50.0
    assert abs(fit_constants("a*x1**2/x2", X, y).constants["a"] - 2) > 0.5
    assert fit_constants("a*x1**2/x2", X, y, loss=loss).constants["a"] == pytest.approx(2.0, abs=0.03)


def test_the_median_is_the_constant_of_least_absolute_error() -> None:
    y = np.array([1.0, 2.0, 3.0, 10.0, 100.0])
    found = fit_constants("a + 0*x1", np.arange(5.0)[:, None], y, loss="mae")
    assert found.constants["a"] == pytest.approx(3.0, abs=1e-3)
    assert found.loss == pytest.approx(np.abs(y - 3).mean(), rel=1e-3)


def test_a_callable_is_minimised_as_it_is() -> None:
    def pinball(y: np.ndarray, prediction: np.ndarray) -> float:
        rest = y - prediction
        return float(np.maximum(0.9 * rest, -0.1 * rest).mean())

    y = np.arange(101.0)
    found = fit_constants("a + 0*x1", y[:, None], y, loss=pinball)
    assert found.constants["a"] == pytest.approx(90, abs=1)


def test_the_front_says_where_a_formula_stands(model: PSERegressor) -> None:
    best = model.front_[len(model.front_) - 1]
    itself = model.score_expression(best.expression)
    assert itself.on_front
    assert itself.loss == pytest.approx(best.loss)
    assert itself.complexity == best.complexity
    worse = model.score_expression("x1 + x2 + x1*x2 + sin(x1)*cos(x2) + a")
    assert worse.beaten_by is not None
    beater = model.front_[worse.beaten_by]
    assert beater.loss <= worse.loss
    assert beater.complexity <= worse.complexity


def test_a_better_formula_beats_rows_of_the_front() -> None:
    model = PSERegressor(operators=["+", "*"], max_time=None, max_iterations=1, random_state=0).fit(
        X, np.sin(3 * X[:, 0])
    )
    found = model.score_expression("sin(b*x1)", start={"b": 2.9})
    assert found.constants == pytest.approx({"b": 3.0})
    assert found.on_front
    assert len(model.front_) - 1 in found.beats


def test_other_rows_can_be_scored(model: PSERegressor) -> None:
    found = model.score_expression("2*x1**2/x2", X[:10], Y[:10])
    assert found.loss == 0.0
    assert found.beats == ()
    with pytest.raises(ValueError, match="both X and y"):
        model.score_expression("x1", X)
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.score_expression("x1", X[:, :1], Y)


def test_columns_of_a_frame_cannot_be_mixed_up() -> None:
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = PSERegressor(max_time=None, max_iterations=1, random_state=0).fit(frame, Y)
    assert model.score_expression("2*a**2/b", frame, Y).loss == pytest.approx(0, abs=1e-20)
    with pytest.raises(ValueError, match="feature names"):
        model.score_expression("2*a**2/b", frame[["b", "a"]], Y)


def test_uncertainties_are_those_of_the_fit(model: PSERegressor) -> None:
    form = model.score_expression("a*x1**2/x2 + b")
    table = pandas.DataFrame({"x": form.constants, "e": form.errors})
    assert (abs(table["x"] - [2.0, 0.0]) < 4 * table["e"]).all()
    for i in range(len(model.front_)):
        errors = model.uncertainties(i)
        assert list(errors.columns) == ["constant", "standard_error"]
        assert (errors["standard_error"] > 0).all()
    assert len(model.uncertainties(0)) <= 1


@pytest.mark.parametrize(
    ("found", "as_written", "numbers"),
    [
        ("-0.5*x1*(x2 - x1 - 2)", "0.5*x1*(x1 - x2 + 2)", [0.5]),
        ("x1/4.5", "0.2222222222222222*x1", [1 / 4.5]),
        ("2.5*x1*1.5", "3.75*x1", [3.75]),
    ],
)
def test_uncertainties_are_of_the_numbers_of_the_law_as_it_is_written(
    found: str, as_written: str, numbers: list[float]
) -> None:
    training = make_training(X, Y, None)
    errors = constant_errors(parse(found), training, make_loss("mse", training.target))
    assert str(written(parse(found))) == as_written
    assert errors["constant"].tolist() == pytest.approx(numbers)
    assert np.isfinite(errors["standard_error"]).all()


def test_a_model_without_its_rows_asks_for_some(model: PSERegressor) -> None:
    bare = copy.copy(model)
    del bare.training_
    with pytest.raises(ValueError, match="give X and y"):
        bare.uncertainties()
    pandas.testing.assert_frame_equal(bare.uncertainties(0, X, Y), model.uncertainties(0, X, Y))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"formula": "a*x1 +"}, ValueError, "cannot read the expression"),
        ({"formula": 3}, TypeError, "a formula must be text"),
        ({"formula": "a*x1", "start": {"b": 1.0}}, ValueError, "start names 'b'"),
        ({"formula": "a*x1", "constants": {"x1": 1.0}}, ValueError, "which is a variable"),
        ({"formula": "a*x1", "constants": {"sin": 1.0}}, ValueError, "names that formulas can use"),
        ({"formula": "a*x1", "constants": {"g": float("nan")}}, ValueError, "finite numbers"),
        ({"formula": "a*x1", "constants": [9.81]}, ValueError, "constants must be True, False or a mapping"),
        ({"formula": "a*x1", "loss": "mea"}, ValueError, "loss must be one of"),
        ({"formula": "a*x1", "loss": 3}, ValueError, "loss must be one of"),
        ({"formula": "a*x1", "loss": lambda y, p: y - p}, TypeError, "one number for all rows"),
        ({"formula": "a*x1", "loss": lambda y, p: "good"}, TypeError, "loss must return a number"),
        ({"formula": "a*x1", "loss": lambda y, p: float("nan")}, ValueError, "finite number"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict, error: type[Exception], message: str) -> None:
    formula = arguments.pop("formula")
    with pytest.raises(error, match=message):
        fit_constants(formula, X, Y, **arguments)


def test_a_loss_without_weights_is_refused_where_rows_have_some() -> None:
    with pytest.raises(ValueError, match="third argument"):
        fit_constants("a*x1", X, Y, np.ones(40), loss=lambda y, p: float(np.abs(y - p).mean()))


def test_relative_error_needs_a_y_that_is_not_zero() -> None:
    with pytest.raises(ValueError, match="y is 0"):
        fit_constants("a*x1", X, np.r_[0.0, Y[1:]], loss="relative")


def test_formulas_cannot_run_code() -> None:
    for text in ("__import__('os').system('true')", "x1.__class__", "[1]", "lambda: 1", "eval(x1)"):
        with pytest.raises(ValueError, match="cannot read the expression"):
            fit_constants(text, X, Y)


def test_named_constants_survive_text() -> None:
    law = parse("g*x/2", constants={"g": 9.81})
    assert str(law) == "g*x/2"
    assert parse(str(law), constants={"g": 9.81}) == law


def test_a_name_that_looks_like_a_variable_is_no_constant_unless_it_is_declared() -> None:
    frame = pandas.DataFrame(X, columns=["mass", "length"])
    for text, meant in (("a*mas", "mass"), ("a*Mass", "mass"), ("a*lenght", "length")):
        with pytest.raises(UndeclaredNameError, match=f"did you mean '{meant}'"):
            fit_constants(text, frame, Y)
    with pytest.raises(ValueError, match="'x9' is no variable: did you mean 'x1'"):
        fit_constants("a*x9", X, Y)
    found = fit_constants("mass0*mass", frame, 2 * X[:, 0], start={"mass0": None})
    assert found.constants == pytest.approx({"mass0": 2.0})
    assert fit_constants("tau*mass", frame, 2 * X[:, 0]).constants == pytest.approx({"tau": 2.0})
    with pytest.raises(ValueError, match="guesses: 'x9' is no variable"):
        PSERegressor(max_iterations=1, guesses=["a*x9"]).fit(X, Y)
