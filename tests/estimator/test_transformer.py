"""SymbolicTransformer: features that a linear model can use, and scikit-learn's contract."""

from __future__ import annotations

import copy

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from symenum import SymbolicTransformer
from symenum.expressions import evaluate, parse, variables

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(1, 3, (150, 3))
Y = 2 * X[:, 0] / X[:, 1] + 3 * X[:, 2] ** 2 + RANDOM.normal(0, 0.05, 150)


def quick(count: int = 4, **parameters: object) -> SymbolicTransformer:
    given = {"operators": "arithmetic", "max_iterations": 12, "max_time": None, "random_state": 0}
    return SymbolicTransformer(count, **{**given, **parameters})


@pytest.fixture(scope="module")
def fitted() -> SymbolicTransformer:
    return quick().fit(X, Y)


@parametrize_with_checks([quick(layers=2, inputs=3, max_iterations=2)])
def test_scikit_learn_accepts_it(estimator, check) -> None:
    check(estimator)


def test_a_linear_model_on_the_features_beats_one_on_the_columns(fitted: SymbolicTransformer) -> None:
    plain = LinearRegression().fit(X[:100], Y[:100]).score(X[100:], Y[100:])
    made = make_pipeline(quick(), LinearRegression()).fit(X[:100], Y[:100]).score(X[100:], Y[100:])
    assert 1 - made < 0.1 * (1 - plain)


def test_features_are_what_their_names_say(fitted: SymbolicTransformer) -> None:
    values = fitted.transform(X)
    assert values.shape == (150, len(fitted.expressions_))
    for name, column in zip(fitted.get_feature_names_out(), values.T, strict=True):
        np.testing.assert_array_equal(evaluate(parse(name), {f"x{i + 1}": X[:, i] for i in range(3)}), column)


def test_long_names_are_short_and_unlike_and_the_others_stay_whole(fitted: SymbolicTransformer) -> None:
    long = "1.2345678901234*sin(2.3456789012345*x1)*exp(x2/3.4567890123456)"
    longer = "*".join(f"sin({i}.125*x1 + x2)" for i in range(1, 9))
    texts = ["x1/x2", long, long.replace("345*x1", "346*x1"), longer, f"{longer}*x3", "sin(x3)*1.23456789012345"]
    model = copy.copy(fitted)
    model.expressions_ = [parse(text) for text in texts]
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == len(texts)
    assert max(map(len, names)) <= 50
    assert [names[0], names[5]] == [texts[0], texts[5]]
    assert names[1].startswith("1.2346*sin(2.3457*x1)*exp(")
    assert names[3].startswith("sin(1.125*x1 + x2)*sin(2.125*x1")


def test_features_are_independent_of_one_another(fitted: SymbolicTransformer) -> None:
    design = np.column_stack([np.ones(150), fitted.transform(X)])
    assert np.linalg.matrix_rank(design) == design.shape[1]


def test_no_feature_is_a_sum_or_a_multiple(fitted: SymbolicTransformer) -> None:
    for feature in fitted.expressions_:
        assert feature.complexity <= 15
        name = getattr(getattr(feature, "operator", None), "name", "")
        assert name not in ("add", "sub", "neg")
        assert name != "mul" or all(variables(part) for part in feature.operands)


def test_there_are_never_more_features_than_asked_for_and_the_first_ones_stay(fitted: SymbolicTransformer) -> None:
    fewer = quick(2).fit(X, Y)
    assert fewer.expressions_ == fitted.expressions_[:2]
    many = quick(1000).fit(X, Y)
    assert len(many.expressions_) < 1000


def test_names_of_a_frame_are_used_and_pandas_comes_out_where_asked() -> None:
    table = pandas.DataFrame(X, columns=["mass (kg)", "b", "c"])
    model = quick(max_iterations=3).set_output(transform="pandas").fit(table, Y)
    out = model.transform(table)
    assert list(out.columns) == model.get_feature_names_out().tolist()
    assert any("mass_kg" in name for name in out.columns)


def test_a_target_that_does_not_vary_leaves_features_all_the_same() -> None:
    assert quick(max_iterations=1).fit(X, np.ones(150)).transform(X).shape[1] >= 1


def test_it_repeats_and_can_be_searched_over(fitted: SymbolicTransformer) -> None:
    assert clone(fitted).fit(X, Y).expressions_ == fitted.expressions_
    pipeline = make_pipeline(quick(max_iterations=1), LinearRegression())
    grid = GridSearchCV(pipeline, {"symbolictransformer__n_components": [1, 3]}, cv=2).fit(X, Y)
    assert grid.best_params_["symbolictransformer__n_components"] == 3


@pytest.mark.parametrize("count", [0, -1, 2.5, True, None])
def test_a_number_of_features_that_is_none_is_refused(count: object) -> None:
    with pytest.raises(ValueError, match="n_components must be a whole number of at least 1"):
        quick(count).fit(X, Y)
