"""What the user tells the estimator holds for every law on the front; the loss is in the measure asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone

from symenum import PSERegressor
from symenum.core.target import check_target
from symenum.estimator.preparation import denoised, important_columns
from symenum.expressions import Apply, evaluate, parse, variables, walk
from symenum.expressions.complexity import ComplexityWeights
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
        ({"loss": "hubert"}, r"loss must be one of .*, not 'hubert' \(did you mean 'huber'\?\)$"),
        ({"loss": 3}, "or a callable, not 3"),
        ({"guesses": ["a*x9"]}, "guesses: 'x9' is no variable: did you mean 'x1'\\? .* unlike any variable$"),
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


# PySR's constraints and complexities


def test_arguments_are_no_larger_than_allowed() -> None:
    y = np.sin(X[:, 0] * X[:, 1] + X[:, 0]) + X[:, 1] ** 1.5
    settings = {"operators": ["+", "*", "sin", "pow"], "max_iterations": 40}
    free = quick(**settings).fit(X, y)
    bound = quick(**settings, constraints={"sin": 1, "pow": (-1, 0)}).fit(X, y)

    def sizes(model: PSERegressor, name: str, place: int) -> list[int]:
        nodes = (node for law in laws(model) for node in walk(law) if isinstance(node, Apply))
        return [node.operands[place].complexity for node in nodes if node.operator.name == name]

    assert max(sizes(free, "sin", 0), default=0) > 1
    assert max(sizes(bound, "sin", 0), default=0) <= 1
    assert max(sizes(bound, "pow", 1), default=0) == 0
    assert len(bound.front_) > 1


def test_a_power_in_disguise_keeps_to_the_limits_of_powers() -> None:
    y = (X[:, 0] + X[:, 1]) ** 1.37 * (1 + RNG.normal(0, 0.02, 60))
    settings = {"guesses": ["exp(a*log(x1 + x2))"]}
    powers = {str(law) for law in laws(quick(**settings).fit(X, y)) if "**" in str(law)}
    assert any(law.startswith("(x1 + x2)**1.3") for law in powers)
    bound = quick(**settings, constraints={"pow": (0, 0)}).fit(X, y)
    assert not any("(x1 + x2)**" in str(law) for law in laws(bound))


@pytest.mark.parametrize(
    "value", [3, {"sin": (1, 2)}, {"pow": (1, 2, 3)}, {"sin": -2}, {"sin": True}, {"pow": "big"}, {"no such": 3}]
)
def test_constraints_that_make_no_sense_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="constraints"):
        quick(constraints=value).fit(X, Y)


def test_complexities_are_those_of_the_users_weights() -> None:
    weights = {"complexity_of_operators": {"/": 7, "*": 2}, "complexity_of_constants": 3, "complexity_of_variables": 1}
    model = quick(**weights, max_iterations=8).fit(X, NOISY)
    count = ComplexityWeights((("div", 7), ("mul", 2)), (), 1, 3)
    assert model.equations_["complexity"].tolist() == [count.of(law) for law in laws(model)]
    assert (np.diff(model.equations_["complexity"]) > 0).all()
    assert (np.diff(model.equations_["loss"]) < 0).all()
    guess = model.score_expression("a*x1/x2")
    assert guess.complexity == 7 + 2 + 3 + 2


def test_what_is_dear_is_left_out_where_something_cheap_does_as_well() -> None:
    x = X[:, :1]
    y = x[:, 0] ** 3
    plain = quick(operators=["*", "exp", "log"]).fit(x, y)
    assert "exp" not in str(plain.best_expression_)
    dear_products = {"max_complexity": 12, "complexity_of_operators": {"*": 30, "**": 30}}
    dear = quick(operators=["*", "exp", "log"], **dear_products).fit(x, y)
    assert all("*" not in str(law) for law in laws(dear))


def test_a_variable_may_have_a_weight_of_its_own_and_the_limit_holds_for_it() -> None:
    model = quick(complexity_of_variables={"x2": 20}, max_complexity=15).fit(X, NOISY)
    assert all(variables(law) in ((), ("x1",)) for law in laws(model))


def test_weights_are_kept_by_checkpoints_and_saved_models(tmp_path: Path) -> None:
    settings = {"complexity_of_operators": {"/": 7}, "complexity_of_constants": 3, "operators": "arithmetic"}
    whole = quick(**settings, max_iterations=6).fit(X, NOISY)
    quick(**settings, max_iterations=3, checkpoint=tmp_path / "checkpoint.json").fit(X, NOISY)
    resumed = PSERegressor.resume(tmp_path / "checkpoint.json", max_iterations=6)
    assert resumed.front_ == whole.front_
    assert resumed.equations_["complexity"].tolist() == whole.equations_["complexity"].tolist()
    whole.save(tmp_path / "saved")
    loaded = PSERegressor.load(tmp_path / "saved")
    assert loaded.equations_["complexity"].tolist() == whole.equations_["complexity"].tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("complexity_of_operators", 3),
        ("complexity_of_operators", {"sin": -1}),
        ("complexity_of_operators", {"sin": 1.5}),
        ("complexity_of_operators", {"no such": 1}),
        ("complexity_of_constants", -1),
        ("complexity_of_constants", 10**400),
        ("complexity_of_variables", "x1"),
        ("complexity_of_variables", {"x9": 1}),
        ("complexity_of_variables", -1),
    ],
)
def test_weights_that_make_no_sense_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        quick(**{name: value}).fit(X, Y)


def test_a_list_of_weights_of_variables_is_answered_with_the_mapping_to_give() -> None:
    with pytest.raises(ValueError, match=r"complexity_of_variables must be a mapping such as \{'x1': 2\}, or a number"):
        quick(complexity_of_variables=[1, 2, 1]).fit(X, Y)


# Fewer columns, and a smoother y


def test_the_columns_that_matter_are_searched_with() -> None:
    wide = RNG.uniform(1, 3, (200, 30))
    y = wide[:, 3] * wide[:, 17] + RNG.normal(0, 0.05, 200)
    model = quick(operators="arithmetic", select_k_features=4).fit(wide, y)
    assert model.selection_mask_.sum() == 4
    assert model.selection_mask_[[3, 17]].all()
    chosen = {f"x{i + 1}" for i in np.flatnonzero(model.selection_mask_)}
    assert all(set(variables(law)) <= chosen for law in laws(model))
    assert model.predict(wide).shape == (200,)
    assert model.n_features_in_ == 30


def test_columns_that_are_asked_for_stay_and_those_that_are_forbidden_go() -> None:
    wide = RNG.uniform(1, 3, (100, 6))
    y = wide[:, 0] * wide[:, 1]
    names = {"required_variables": ["x6"], "forbidden_variables": ["x1"]}
    model = quick(operators="arithmetic", select_k_features=3, **names, max_iterations=1).fit(wide, y)
    assert model.selection_mask_[[5, 1]].all()
    assert not model.selection_mask_[0]
    assert model.selection_mask_.sum() == 3


def test_no_selection_is_no_mask() -> None:
    assert quick(max_iterations=1).fit(X, Y).selection_mask_ is None
    assert quick(max_iterations=1, select_k_features=9).fit(X, Y).selection_mask_.tolist() == [True, True]
    with pytest.raises(ValueError, match="select_k_features must be a whole number of at least 1"):
        quick(select_k_features=0).fit(X, Y)


def test_a_smoothed_y_is_nearer_to_the_law() -> None:
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 3, (150, 1)), axis=0)
    clean = np.exp(-x[:, 0]) * 4
    noisy = clean + rng.normal(0, 0.3, 150)
    target, rows = check_target(noisy, None, 150)
    smooth = denoised(torch.tensor(x), target)
    assert len(rows) == len(smooth.y) == 150
    assert np.sqrt(np.mean((smooth.y.numpy() - clean) ** 2)) < 0.4 * np.sqrt(np.mean((noisy - clean) ** 2))
    model = quick(denoise=True, max_iterations=15).fit(x, noisy)
    assert np.allclose(model.training_.target.y.numpy(), smooth.y.numpy())
    assert model.score(x, clean) > 0.95
    again = quick(denoise=True, max_iterations=15).fit(x, noisy)
    assert again.front_ == model.front_


def test_rows_of_small_weight_are_smoothed_more() -> None:
    x = np.linspace(0, 1, 60)[:, None]
    y = np.zeros(60)
    y[30] = 5.0
    y += 0.1 * np.sin(6 * x[:, 0])
    weight = np.ones(60)
    weight[30] = 1e-4
    heights = [float(denoised(torch.tensor(x), check_target(y, given, 60)[0]).y[30]) for given in (None, weight)]
    assert abs(heights[1]) <= abs(heights[0]) + 1e-9


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_preparation_works_in_any_unit(scale: float) -> None:
    table, y = RNG.uniform(1, 3, (50, 5)) * scale, RNG.uniform(1, 3, 50)
    target, _ = check_target(y, None, 50)
    chosen = [important_columns(torch.tensor(table / unit), target, 2) for unit in (1.0, scale)]
    assert chosen[0] == chosen[1]
    assert bool(torch.isfinite(denoised(torch.tensor(table), target).y).all())


def test_a_y_that_does_not_vary_needs_no_smoothing() -> None:
    target, _ = check_target(np.full(20, 3.0), None, 20)
    assert denoised(torch.rand(20, 2, dtype=torch.float64), target) is target
