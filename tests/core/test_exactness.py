"""What is zero up to rounding does not depend on units; and real laws are within it."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symenum.bench.judge.numeric import extended_value
from symenum.core.exactness import (
    EPSILON,
    EXACTNESS,
    is_exact,
    is_exact_fit,
    is_exact_sum,
    is_flat,
    is_tie,
    loss_up_to,
    row_rounding,
)
from symenum.core.target import Target
from symenum.expressions import evaluate, parse
from symenum.fitting import snap
from symenum.heads.response import law_limit

sizes = st.floats(1e-6, 1e6)
residuals = st.floats(1e-18, 1.0)
exponents = st.integers(-60, 60)


@given(residuals, sizes, exponents)
def test_a_power_of_two_in_the_units_of_y_changes_no_answer(residual: float, size: float, k: int) -> None:
    unit = 2.0**k
    loss, mean_square = (residual * size) ** 2, size**2
    assert is_exact(loss, mean_square) == is_exact(loss * unit**2, mean_square * unit**2)
    rounding = row_rounding(3 * size)
    for decide in (is_exact_fit, is_exact_sum):
        now, scaled = (
            decide(residual * size, size, rounding),
            decide(residual * size * unit, size * unit, rounding * unit),
        )
        assert now == scaled


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=6), exponents)
def test_a_column_is_as_flat_in_any_unit(values: list[float], k: int) -> None:
    column = torch.tensor(values, dtype=torch.float64)
    column[column.abs() < 1e-200] = 0.0  # or the unit would take it below the smallest double
    assert bool(is_flat(column)) == bool(is_flat(column * 2.0**k))


@given(st.floats(0, 1e6), st.floats(0, 1e6), exponents)
def test_ties_are_mutual_and_the_same_in_any_unit(one: float, other: float, k: int) -> None:
    one, other = (0.0 if value < 1e-200 else value for value in (one, other))
    assert is_tie(one, other) == is_tie(other, one) == is_tie(one * 2.0**k, other * 2.0**k)
    assert is_tie(one, one)


@given(st.integers(0, 10_000), exponents)
def test_coefficients_of_a_sum_are_recognised_in_any_unit_of_y(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    A = random.uniform(-1, 1, (20, 3))
    y = A @ np.array([2.0, -0.5, 0.0])
    once, again = snap(A, y), snap(A * 2.0**k, y * 2.0**k)
    assert once.exact
    assert again.exact
    assert [number.value for number in once.numbers] == [number.value for number in again.numbers] == [2.0, -0.5, 0.0]


def test_the_limit_of_a_law_scales_with_the_square_of_y() -> None:
    y = torch.linspace(1, 2, 10, dtype=torch.float64)
    weight = torch.full_like(y, 0.1)
    limits = [law_limit(Target(y * unit, weight)) for unit in (1.0, 2.0**20)]
    assert limits[1] == limits[0] * 2.0**40
    assert is_exact(limits[0], Target(y, weight).mean_square)


def test_the_relative_loss_is_the_square_of_the_relative_residual() -> None:
    assert math.isclose(loss_up_to(EXACTNESS.law, 9.0), (3 * EXACTNESS.law) ** 2)


def test_thresholds_are_above_the_epsilon_and_in_the_order_that_their_reasons_give() -> None:
    e = EXACTNESS
    ladder = (EPSILON, e.stalled, e.rounding, e.law, e.fitted, e.noise_free, e.scanned, e.logarithm)
    assert list(ladder) == sorted(set(ladder))
    assert all(getattr(e, field.name) > EPSILON for field in fields(e))


def test_a_column_that_rounding_alone_moves_is_flat_and_one_with_six_digits_is_not() -> None:
    base = torch.full((10,), 1e9, dtype=torch.float64)
    noise = torch.linspace(-1, 1, 10, dtype=torch.float64)
    assert bool(is_flat(base * (1 + 4 * EPSILON * noise)))
    assert not bool(is_flat(base * (1 + 1e-6 * noise)))
    assert is_flat(torch.stack([base, noise])).tolist() == [True, False]


def test_noise_of_a_millionth_is_never_rounding() -> None:
    assert not is_exact(1e-12, 1.0)
    assert not is_exact_fit(1e-6, 1.0, row_rounding(10.0))
    assert not is_exact_sum(1e-6, 1.0, row_rounding(10.0))


@pytest.mark.parametrize(
    "text",
    [
        "x**3 + x**2 + x",
        "sin(x**2)*cos(x) - 1",
        "exp(-x**2/2)/sqrt(2*pi)",
        "(x - y)/(x + y) + log(x*y + 2)",
        "x*y/(1 + x**2*y**2) - x*y",
        "(1 + x)**4 - 1 - 4*x - 6*x**2 - 4*x**3",  # its terms cancel
    ],
)
def test_the_rounding_of_laws_is_within_the_threshold(text: str) -> None:
    random = np.random.default_rng(0)
    columns = {name: random.uniform(0.5, 2, 30) for name in ("x", "y")}
    law = parse(text)
    values = np.asarray(evaluate(law, columns))
    missed = []
    for i, value in enumerate(values):
        exact = extended_value(law, {name: float(column[i]) for name, column in columns.items()})
        assert exact is not None
        missed.append(float(float(value) - exact))
    assert is_exact(float(np.mean(np.square(missed))), float(np.mean(values**2)), EXACTNESS.rounding)
