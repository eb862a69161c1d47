"""The contract of SRBench's experiments: est, model(est, X), eval_kwargs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas
import pytest
import sympy
from sklearn.base import RegressorMixin, clone

ADAPTER = Path(__file__).parents[2] / "integrations" / "srbench" / "regressor.py"


@pytest.fixture(scope="module")
def adapter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("srbench_regressor", ADAPTER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_est_is_a_regressor_that_can_be_cloned_and_seeded(adapter: ModuleType) -> None:
    assert isinstance(adapter.est, RegressorMixin)
    copy = clone(adapter.est).set_params(random_state=42)
    assert copy.get_params()["random_state"] == 42
    assert copy.max_time == 3600


def test_model_is_text_for_sympy_with_the_columns_of_x(adapter: ModuleType) -> None:
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.uniform(1, 3, (60, 2)), columns=["mass", "x_0"])
    y = X["mass"] * X["x_0"] ** 2 / 2
    est = clone(adapter.est).set_params(random_state=1, max_time=20).fit(X, y)
    expr = sympy.sympify(adapter.model(est, X))
    assert {symbol.name for symbol in expr.free_symbols} == {"mass", "x_0"}
    assert sympy.simplify(expr - sympy.sympify("mass*x_0**2/2")) == 0
    assert np.allclose(est.predict(X), y)


def test_model_of_an_array_has_numbered_names(adapter: ModuleType) -> None:
    X = np.random.default_rng(0).uniform(1, 3, (40, 1))
    est = clone(adapter.est).set_params(random_state=1, max_time=20).fit(X, 3 * X[:, 0])
    assert sympy.sympify(adapter.model(est, X)) == 3 * sympy.Symbol("x1")
    assert adapter.model(est) == adapter.model(est, X)


def test_eval_kwargs_leave_the_data_as_they_are(adapter: ModuleType) -> None:
    assert adapter.eval_kwargs["scale_x"] is False
    assert adapter.eval_kwargs["scale_y"] is False
