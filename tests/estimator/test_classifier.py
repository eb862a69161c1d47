"""SymbolicClassifier: log-odds as a law, probabilities that fit the data, and scikit-learn's contract."""

from __future__ import annotations

import time

import numpy as np
import pandas
import pytest
import scipy.special
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from symenum import SymbolicClassifier
from symenum.estimator.classifier import LogOdds
from symenum.expressions import evaluate, parse

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-2, 2, (400, 2))
ODDS = 3 * X[:, 0] * X[:, 1] - 1
Y = np.where(RANDOM.random(400) < scipy.special.expit(ODDS), "yes", "no")


def quick(**parameters: object) -> SymbolicClassifier:
    given = {"operators": ["+", "-", "*"], "max_iterations": 10, "max_time": None, "random_state": 0}
    return SymbolicClassifier(**{**given, **parameters})


@pytest.fixture(scope="module")
def model() -> SymbolicClassifier:
    return quick().fit(X, Y)


@parametrize_with_checks([quick(operators="arithmetic", layers=2, inputs=3, max_iterations=2)])
def test_scikit_learn_accepts_it(estimator, check) -> None:
    check(estimator)


def test_the_log_odds_are_found(model: SymbolicClassifier) -> None:
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.corrcoef(model.decision_function(X), ODDS)[0, 1] > 0.98
    assert model.score(X, Y) > 0.8


def test_probabilities_follow_from_the_law_as_it_is_printed(model: SymbolicClassifier) -> None:
    odds = evaluate(parse(str(model.best_expression_)), {"x1": X[:, 0], "x2": X[:, 1]})
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability[:, 1], scipy.special.expit(odds))
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert (model.predict(X) == model.classes_[probability.argmax(axis=1)]).all()


def test_the_loss_of_each_row_is_the_log_loss_of_its_law(model: SymbolicClassifier) -> None:
    for i, loss in enumerate(model.equations_["loss"]):
        assert loss == pytest.approx(log_loss(Y, model.predict_proba(X, i)))
    assert (np.diff(model.equations_["loss"]) < 0).all()
    assert (np.diff(model.equations_["complexity"]) > 0).all()


def test_a_linear_law_is_that_of_logistic_regression() -> None:
    odds = 2 * X[:, 0] - X[:, 1] + 0.5
    y = RANDOM.random(400) < scipy.special.expit(odds)
    model = quick(operators=["+", "-"], model_selection="accuracy").fit(X, y)
    known = LogisticRegression(C=1e6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), known.decision_function(X), atol=0.1)


def test_classes_that_can_be_told_apart_have_finite_constants() -> None:
    y = X[:, 0] ** 2 + X[:, 1] ** 2 < 2
    model = quick(max_iterations=20).fit(X, y)
    assert model.score(X, y) > 0.97
    assert np.abs(model.decision_function(X)).max() < 1e3
    assert 0 < model.equations_["loss"].iloc[-1] < 0.2


def test_an_offset_goes_into_the_sum_that_has_a_number_already() -> None:
    model = quick(operators=["+", "-", "*"], max_iterations=4).fit(X, X[:, 0] > 1.3)
    texts = [str(law.expression) for law in model.front_]
    assert not any(text.count("(") == 1 and ") + " in text.replace(") - ", ") + ") for text in texts), texts


def test_weights_count() -> None:
    y = np.array([0, 1] * 200)
    weights = np.where(y == 1, 3.0, 1.0)
    model = quick(max_iterations=1).fit(X, y, sample_weight=weights)
    assert model.predict_proba(X, 0)[0, 1] == pytest.approx(0.75, abs=0.02)


def test_the_same_seed_gives_the_same_front(model: SymbolicClassifier) -> None:
    again = quick().fit(X, Y)
    assert again.equations_["equation"].tolist() == model.equations_["equation"].tolist()
    assert again.equations_["loss"].tolist() == model.equations_["loss"].tolist()


def test_the_time_limit_holds_with_the_last_fits() -> None:
    begin = time.monotonic()
    SymbolicClassifier(max_time=4, random_state=0).fit(RANDOM.normal(size=(500, 10)), RANDOM.random(500) < 0.5)
    assert time.monotonic() - begin < 9  # the machine may be busy


def test_frames_keep_their_names_and_the_laws_can_be_exported() -> None:
    table = pandas.DataFrame(X, columns=["dose (mg)", "age"])
    model = quick().fit(table, Y)
    assert model.variable_names_ == ("dose_mg", "age")
    assert "dose_mg" in str(model)
    assert "def f(dose_mg, age):" in model.regressor_.export("python")
    assert model.predict(table).shape == (400,)


def test_three_classes_need_a_classifier_for_each() -> None:
    y = np.digitize(X[:, 0], [-0.7, 0.7])
    with pytest.raises(ValueError, match=r"Only binary classification is supported.*OneVsRestClassifier"):
        quick().fit(X, y)
    assert OneVsRestClassifier(quick(max_iterations=2)).fit(X, y).predict(X).shape == (400,)


def test_one_class_and_other_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="only one class"):
        quick().fit(X, np.zeros(400))
    with pytest.raises(ValueError, match="model_selection must be one of 'evidence', 'best', 'accuracy', "):
        quick(model_selection="kfold").fit(X, Y)
    with pytest.raises(ValueError, match="top_k must be"):
        quick(top_k=0).fit(X, Y)


def test_rows_on_which_the_law_is_not_defined_are_counted() -> None:
    x = np.linspace(1, 5, 60)[:, None]
    model = quick(operators=["log"], max_iterations=5, required_variables=["x1"]).fit(x, np.arange(60) % 7 < x[:, 0])
    if "log" in str(model.best_expression_):
        with pytest.warns(RuntimeWarning, match="not defined on 1 of 2 rows"):
            assert model.predict([[-1.0], [2.0]])[0] == model.classes_[0]


@pytest.mark.parametrize("offset", [0.0, 5.0, -1e6])
def test_scale_and_offset_are_those_of_the_best_log_loss(offset: float) -> None:
    y = torch.tensor(np.where(Y == "yes", 1.0, -1.0))
    weight = torch.full_like(y, 1 / len(y))
    law = torch.tensor(ODDS)
    best = LogOdds().total(y, law, weight)
    assert LogOdds().total(y, law / 7 + offset, weight) == pytest.approx(best, rel=1e-6)
    known = LogisticRegression(C=1e6).fit(ODDS[:, None], Y)
    assert best == pytest.approx(log_loss(Y, known.predict_proba(ODDS[:, None])), rel=1e-3)


def test_a_constant_and_an_infinite_prediction_have_a_loss() -> None:
    y = torch.tensor([1.0, 1.0, 1.0, -1.0])
    weight = torch.full_like(y, 0.25)
    entropy = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert LogOdds().total(y, torch.full_like(y, 3.0), weight) == pytest.approx(entropy, rel=0.1)
    assert LogOdds().total(y, torch.tensor([1.0, np.inf, 0.0, 0.0]), weight) == np.inf


def test_a_notebook_shows_the_front_of_the_log_odds() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = SymbolicClassifier(max_iterations=2, max_time=None, random_state=0)
    shown = model.fit(X, np.where(X[:, 0] > 0, "high", "low"))._repr_mimebundle_()
    assert shown["text/plain"] == str(model)
    assert "log-odds of low" in shown["text/html"]
