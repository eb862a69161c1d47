"""What the user tells the estimator holds for every law on the front; the loss is in the measure asked for."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn.base import clone

from symenum import PSERegressor
from symenum.expressions import evaluate, parse, variables
from symenum.heads.operator_grammar import Prior

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (60, 2))
Y = 2 * X[:, 0] ** 2 / X[:, 1]
NOISY = Y + RNG.normal(0, 0.02, 60)


def quick(**parameters: object) -> PSERegressor:
    return PSERegressor(**{"max_time": None, "max_iterations": 4, "random_state": 0, **parameters})


def laws(model: PSERegressor) -> list:
    return [entry.expression for entry in model.front_]


@pytest.mark.parametrize("loss", ["mae", "huber", "log_cosh"])
def test_the_law_is_found_among_outliers(loss: str) -> None:
    y = NOISY.copy()
    y[::8] += RNG.normal(0, 40, 8)
    model = quick(loss=loss, max_iterations=3).fit(X, y)
    far = np.abs(model.predict(X) - Y)
    assert np.median(far) < 0.05
    assert far.max() < 0.2


def test_the_loss_of_a_row_is_that_of_the_printed_law() -> None:
    model = quick(loss="mae", max_iterations=2).fit(X, NOISY)
    for entry in model.front_:
        predicted = evaluate(parse(str(entry.expression)), {"x1": X[:, 0], "x2": X[:, 1]})
        assert entry.loss == pytest.approx(np.abs(predicted - NOISY).mean())
    assert (np.diff(model.equations_["loss"]) < 0).all()


def test_a_callable_ranks_the_front() -> None:
    def worst(y: np.ndarray, prediction: np.ndarray) -> float:
        return float(np.abs(y - prediction).max())

    model = quick(loss=worst, max_iterations=2).fit(X, NOISY)
    for i, value in enumerate(model.equations_["loss"]):
        assert value == pytest.approx(np.abs(model.predict(X, index=i) - NOISY).max())


def test_relative_error_does_not_forget_small_values() -> None:
    x = np.linspace(0.1, 8, 60)[:, None]
    y = np.exp(x[:, 0]) * np.exp(RNG.normal(0, 0.01, 60))
    model = quick(loss="relative", max_iterations=30).fit(x, y)
    assert np.abs(model.predict(x) / y - 1).max() < 0.05
    assert model.get_best()["loss"] == pytest.approx(np.mean((model.predict(x) / y - 1) ** 2))


def test_an_exact_law_ends_the_search_under_any_loss() -> None:
    for loss in ("mae", "huber", "relative"):
        model = quick(loss=loss).fit(X, Y)
        assert str(model.best_expression_) == "2*x1**2/x2"
        assert "up to rounding" in model.stop_reason_


def test_nothing_on_the_front_breaks_a_constraint() -> None:
    y = np.sin(np.sin(2 * X[:, 0]) + X[:, 1])
    nested = {"sin": {"sin": 0, "cos": 0}, "cos": {"sin": 0}}
    model = quick(nested_constraints=nested, max_depth=5, required_variables=["x2"], max_iterations=8).fit(X, y)
    prior = Prior(5, nested, {}, ("x2",))
    assert len(model.front_) > 0
    assert all(prior.allows(law) for law in laws(model))


def test_operators_of_a_variable_hold() -> None:
    allowed = {"x1": ["+", "*"]}
    model = quick(variable_operators=allowed, max_iterations=6).fit(X, Y)
    assert not any("/x1" in str(law) or "sin(x1" in str(law) or "exp(x1" in str(law) for law in laws(model))
    assert len(model.front_) > 1


def test_required_and_forbidden_variables() -> None:
    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": RNG.uniform(size=60)})
    model = quick(required_variables=["c"], forbidden_variables=["b"], max_iterations=3).fit(table, Y)
    for law in laws(model):
        assert "c" in variables(law)
        assert "b" not in variables(law)


def test_constraints_that_nothing_keeps_to_are_an_error() -> None:
    with pytest.raises(ValueError, match="required_variables"):
        quick(required_variables=["x1", "x2"], max_complexity=1, operators=["sin"], max_iterations=1).fit(X, Y)


def test_a_guess_stands_on_the_front() -> None:
    y = 1.7 * np.tanh(X[:, 0] * X[:, 1] - 3.1) + 0.4
    guess = "a*tanh(x1*x2 - b) + c"
    model = quick(operators=["+", "-", "*", "tanh"], guesses=[guess], max_iterations=1).fit(X, y)
    assert model.front_[len(model.front_) - 1].loss < 1e-20
    plain = quick(operators=["+", "-", "*", "tanh"], max_iterations=1).fit(X, y)
    assert plain.front_[len(plain.front_) - 1].loss > 1e-6


def test_declared_constants_appear_by_name() -> None:
    model = quick(constants={"g": 9.81}).fit(X, 4.905 * X[:, 0] ** 2)
    assert str(model.best_expression_) == "g*x1**2/2"
    np.testing.assert_allclose(model.predict(X), 4.905 * X[:, 0] ** 2, rtol=1e-12)
    assert "9.81" in model.export("python")
    noisy = quick(constants={"g": 9.81}).fit(X, 9.81 * X[:, 0] + RNG.normal(0, 0.02, 60))
    assert any(str(law) == "g*x1" for law in laws(noisy))


def test_clone_and_parameters() -> None:
    told = {"guesses": ["a*x1"], "nested_constraints": {"sin": {"sin": 0}}, "loss": "mae", "constants": {"g": 9.81}}
    assert clone(quick(**told)).get_params() == quick(**told).get_params()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "mea"}, "loss must be one of"),
        ({"max_depth": 0}, "max_depth must be"),
        ({"nested_constraints": ["sin"]}, "nested_constraints must be a mapping"),
        ({"nested_constraints": {"sin": 0}}, "nested_constraints must be a mapping"),
        ({"nested_constraints": {"sin": {"sin": -1}}}, "number of times"),
        ({"nested_constraints": {"sni": {"sin": 0}}}, "nested_constraints: .*did you mean 'sin'"),
        ({"variable_operators": {"x9": ["+"]}}, "variable_operators names 'x9'"),
        ({"variable_operators": {"x1": ["plsu"]}}, "variable_operators: unknown operator"),
        ({"variable_operators": ["x1"]}, "variable_operators must be a mapping"),
        ({"required_variables": "x1"}, "required_variables must be a list"),
        ({"required_variables": ["x3"]}, "required_variables names 'x3'"),
        ({"forbidden_variables": ["x1", "x2"]}, "names all variables"),
        ({"forbidden_variables": ["x1"], "required_variables": ["x1"]}, "both"),
        ({"guesses": "a*x1"}, "guesses must be a list"),
        ({"guesses": ["a*x1 +"]}, "guesses: cannot read"),
        ({"guesses": [3]}, "guesses: a formula must be text"),
        ({"guesses": ["log(-x1)"]}, "no finite value"),
        ({"guesses": ["sin(x1)"], "required_variables": ["x2"]}, "the constraints on laws forbid"),
        ({"guesses": ["a*x1"], "constants": False}, "would be fitted"),
        ({"constants": {"x1": 2.0}}, "which is a variable"),
        ({"constants": 9.81}, "constants must be True or False"),
        ({"model_selection": "validation"}, "needs rows to choose on"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(X, Y)


def test_a_search_with_named_constants_and_guesses_can_go_on(tmp_path) -> None:
    told = {"constants": {"g": 9.81}, "guesses": ["a*sin(b*x1)"], "loss": "mae"}
    y = 4.905 * X[:, 0] ** 2 + 0.1 * np.sin(7 * X[:, 1])
    kept = tmp_path / "kept.json"
    quick(**told, checkpoint=kept, max_iterations=2).fit(X, y)
    gone_on = PSERegressor.resume(kept, max_iterations=4)
    at_once = quick(**told).fit(X, y)
    assert gone_on.equations_["equation"].tolist() == at_once.equations_["equation"].tolist()
