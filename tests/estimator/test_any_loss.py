"""A loss may be any real number: a law is found and chosen under minus a log-likelihood as under the mean square."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from symenum import PSERegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3, (60, 2))
SIGMA = 0.01
Y = 3 * X[:, 0] * X[:, 1] + SIGMA * RNG.normal(size=60)


def minus_log_likelihood(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.square(prediction - y).mean() / (2 * SIGMA**2) + math.log(SIGMA * math.sqrt(2 * math.pi)))


@pytest.mark.parametrize("model_selection", ["best", "mdl", "reward", "kfold"])
def test_a_negative_loss_finds_the_law(model_selection: str, tmp_path: Path) -> None:
    settings = {"max_time": None, "max_iterations": 3, "random_state": 0, "model_selection": model_selection}
    model = PSERegressor(loss=minus_log_likelihood, **settings).fit(X, Y)
    assert str(model.best_expression_) == "3*x1*x2"
    assert model.equations_.loss.iloc[model.selected_index_] == pytest.approx(minus_log_likelihood(Y, model.predict(X)))
    assert model.equations_.loss.min() < 0
    model.report(tmp_path / "report.html")


def test_a_search_under_a_negative_loss_can_be_resumed_and_stopped_at_a_loss(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.json"
    settings = {"max_time": None, "random_state": 0, "loss": minus_log_likelihood}
    PSERegressor(max_iterations=2, checkpoint=file, **settings).fit(X, Y)
    model = PSERegressor.resume(file, max_iterations=4, loss=minus_log_likelihood)
    assert model.n_iter_ == 4
    model = PSERegressor(max_iterations=50, stop_loss=-1.0, **settings).fit(X, Y)
    assert model.stop_reason_ == "the loss is at most -1"


def test_a_slow_loss_does_not_hold_up_the_end() -> None:
    """What counts is the number of calls, which does not depend on how busy the machine is."""
    calls_late = 0
    began = time.monotonic()

    def slow(y: np.ndarray, prediction: np.ndarray) -> float:
        nonlocal calls_late
        calls_late += time.monotonic() - began > 1.0
        time.sleep(0.05)
        return float(np.square(prediction - y).mean())

    PSERegressor(max_time=1.0, random_state=0, loss=slow).fit(X, Y)
    assert calls_late <= 10
