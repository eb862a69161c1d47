"""Tables come in any unit: numbers whose squares overflow or vanish give a front, without errors and warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from symenum import PSERegressor, fit_constants

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3, (60, 3))
Y = 3 * X[:, 0] * X[:, 1] + 0.01 * RNG.normal(size=60)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e-80, 1e100, 1e160, 1e300])
def test_a_fit_in_any_unit_neither_fails_nor_warns(unit: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PSERegressor(max_time=None, max_iterations=14, random_state=0).fit(X * unit, Y)
    assert np.isfinite(model.front_[-1].loss)
    if 1e-160 < unit < 1e160:  # else the constant 3/unit² is no double
        assert model.front_[-1].loss < 1e-3


def test_a_formula_in_any_unit_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_constants("a*x1 + b*exp(x2)", X * 1e-160, Y)
    assert np.isfinite(found.loss)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_a_law_is_found_in_units_whose_squares_are_no_doubles(unit: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a move that fails warns
        model = PSERegressor(max_time=None, max_iterations=40, random_state=0).fit(
            X[:30, :2] * unit, X[:30, 0] ** 2 / X[:30, 1]
        )
    # x1**2 would be 0 or infinite: the law is written with square roots
    assert model.front_[-1].loss < 1e-20
