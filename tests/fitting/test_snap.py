"""Fitted constants become the numbers that people write, inner ones too, when the data say so and only then."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from symenum.expressions import evaluate, parse, same_function
from symenum.fitting import (
    least_squares,
    refine,
    snap,
    tidy,
    with_coefficients,
)


def fit(truth: list[float], noise: float, rows: int = 200, seed: int = 0) -> list[float]:
    generator = np.random.default_rng(seed)
    A = generator.normal(size=(rows, len(truth)))
    y = A @ np.array(truth) + noise * generator.normal(size=rows)
    return [number.value for number in snap(A, y).numbers]


def test_exact_coefficients_come_out_exactly() -> None:
    truth = [1 / 3, -2.0, 0.0, 3.39, math.pi, 0.0]
    assert fit(truth, 0.0) == pytest.approx(truth, rel=1e-15)
    assert fit(truth, 0.0, rows=8) == pytest.approx(truth, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_a_term_that_is_not_needed_leaves_at_any_scale(scale: float) -> None:
    generator = np.random.default_rng(1)
    A = generator.normal(size=(50, 3)) * [1.0, scale, scale]
    y = 2 * A[:, 0] + 3 * A[:, 1] / scale
    numbers = snap(A, y).numbers
    assert numbers[2].value == 0.0
    assert numbers[0].value == 2.0


def test_noise_does_not_make_constants_nice() -> None:
    """Odd constants under noise: moved by one standard error at most, and the loss stays within its own error."""
    generator = np.random.default_rng(3)
    for seed in range(30):
        truth = generator.uniform(0.5, 3, 3)
        A = np.random.default_rng(seed).normal(size=(100, 3))
        y = A @ truth + 0.3 * np.random.default_rng(seed + 1000).normal(size=100)
        free = least_squares(A, y)
        sigma = float(np.sqrt((free.residual**2).sum() / 97))
        numbers = snap(A, y).numbers
        loss = float(np.mean((y - A @ [number.value for number in numbers]) ** 2))
        assert loss <= free.rms**2 * (1 + 3 / 97) * (1 + 1e-12)
        first = abs(numbers[0].value - free.coefficients[0])
        assert first <= 3 * sigma * float(free.sensitivity[0])


def rigged(value: float, error: float) -> tuple[np.ndarray, np.ndarray]:
    """One column whose fitted coefficient is `value` with that standard error, 101 rows."""
    column = np.ones(101)
    noise = np.random.default_rng(0).normal(size=101)
    noise -= noise.mean()
    noise *= error * math.sqrt(101) * math.sqrt(100) / np.linalg.norm(noise)
    return column[:, None], value + noise


@pytest.mark.parametrize(
    ("value", "error", "snapped"), [(1.03, 0.05, True), (1.08, 0.05, False), (1.3, 0.5, False), (1.03, 0.02, False)]
)
def test_under_noise_a_constant_moves_by_one_standard_error_at_most(value: float, error: float, snapped: bool) -> None:
    (number,) = snap(*rigged(value, error)).numbers
    assert number.snapped == snapped
    assert number.value == (1.0 if snapped else pytest.approx(value))


def test_many_rows_do_not_make_rounding_errors_vanish() -> None:
    """All errors of one sign: t = y - x with x ten times t."""
    x = np.linspace(1, 10, 1000)
    t = (np.sin(x * x) + 1 / 3 + x) - x
    numbers = snap(np.column_stack([np.ones(1000), np.sin(x * x)]), t).numbers
    assert [number.value for number in numbers] == [1 / 3, 1.0]


def test_more_columns_than_rows_gives_finite_numbers() -> None:
    generator = np.random.default_rng(0)
    A = generator.normal(size=(3, 6))
    numbers = snap(A, generator.normal(size=3)).numbers
    assert len(numbers) == 6
    assert all(math.isfinite(number.value) for number in numbers)


def test_row_weights_are_honoured() -> None:
    A = np.ones((4, 1))
    y = np.array([1.2345678, 1.2345678, 7.0, 9.0])
    (number,) = snap(A, y, np.array([1.0, 1.0, 1e-30, 1e-30])).numbers
    assert number.value == pytest.approx(1.2345678)


pytestmark = pytest.mark.usefixtures("one_thread")


generator = torch.Generator().manual_seed(0)


COLUMNS = {
    "x": 4 * torch.rand(60, generator=generator, dtype=torch.float64) - 2,
    "z": 3 * torch.rand(60, generator=generator, dtype=torch.float64) + 0.5,
}


NOISE = torch.randn(60, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("law", "candidate"),
    [
        ("2.5*exp(-x*x/3)", "exp(x*x)"),
        ("3.39*z**1.5 - 2", "z**1.2"),
        ("pi*x + z/3", "x + z"),
        ("(x + 2.1)**2*z", "(x + 1)**2*z"),
        ("log(z + 1/3)", "log(z)"),
        ("x/(z + 2)", "x/(z + 1)"),
    ],
)
def test_an_exact_law_comes_out_as_it_is_written(law: str, candidate: str) -> None:
    y = evaluate(parse(law), COLUMNS)
    (fitted,) = refine([with_coefficients(parse(candidate))], COLUMNS, y)
    found = tidy(fitted.expression, COLUMNS, y)
    assert same_function(found.expression, parse(law))
    assert found.expression.complexity <= parse(law).complexity
    assert found.loss <= 1e-26


def test_under_noise_only_what_is_within_one_error_moves() -> None:
    truth = parse("1.2345*sin(2*x) + 0.777")
    y = evaluate(truth, COLUMNS) + 0.05 * NOISE
    (fitted,) = refine([truth], COLUMNS, y)
    found = tidy(fitted.expression, COLUMNS, y)
    assert found.loss <= fitted.loss * (1 + 3 / 57) * (1 + 1e-9)
    assert found.loss == pytest.approx(float((evaluate(found.expression, COLUMNS) - y).square().mean()), rel=1e-9)


def test_a_term_that_is_not_needed_leaves() -> None:
    y = evaluate(parse("3*sin(2*x)"), COLUMNS)
    found = tidy(parse("2.9999999999999996*sin(2.0000000000000004*x + 1e-17) + 1e-16"), COLUMNS, y)
    assert str(found.expression) == "3*sin(2*x)"


def test_an_expression_without_constants_stays() -> None:
    found = tidy(parse("x*z"), COLUMNS, COLUMNS["x"])
    assert str(found.expression) == "x*z"


def test_a_short_decimal_is_one_number_with_an_error_and_a_third_stays_a_third() -> None:
    y = evaluate(parse("2.5*x + z/3"), COLUMNS)
    found = tidy(parse("2.4999999999999996*x + 0.33333333333333337*z"), COLUMNS, y)
    assert str(found.expression) == "2.5*x + z/3"
    decimal = tidy(parse("2.4999999999999996*x"), COLUMNS, 2.5 * COLUMNS["x"])
    assert str(decimal.expression) == "2.5*x"
    assert decimal.constants == (2.5,)
