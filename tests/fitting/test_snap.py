"""Constants become the numbers that people write, when the data say so and only then."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symenum.expressions import evaluate, parse
from symenum.fitting import least_squares, linear_combination, nice_number, plain_number, snap


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (-3.0, "-3"),
        (1 / 3, "1/3"),
        (-5 / 7, "-5/7"),
        (3.39, "3.39"),
        (0.5, "1/2"),
        (math.pi, "pi"),
        (-2 * math.pi, "-(2*pi)"),
        (math.pi / 4, "pi/4"),
        (3 / math.pi, "3/pi"),
        (math.e, "E"),
        (math.sqrt(2), "sqrt(2)"),
        (math.sqrt(math.pi) / 2, "sqrt(pi)/2"),
        (0.0, "0"),
    ],
)
def test_a_nice_number_is_recognised_and_evaluates_to_itself(value: float, text: str) -> None:
    number = nice_number(value * (1 + 1e-13), 1e-11)
    assert number is not None
    assert str(number.expression) == text
    assert float(evaluate(number.expression, {})) == pytest.approx(value, rel=4e-16, abs=1e-300)


@given(st.floats(-1e5, 1e5), st.floats(1e-14, 1e-3))
def test_a_recognised_number_is_within_the_uncertainty(value: float, uncertainty: float) -> None:
    number = nice_number(value, uncertainty)
    if number is not None:
        assert abs(number.value - value) <= max(uncertainty, 4e-16 * abs(value))
        assert float(evaluate(number.expression, {})) == pytest.approx(number.value, rel=1e-15)


def test_an_irrational_number_is_left_alone() -> None:
    assert nice_number(1.2345678912, 1e-10) is None
    assert nice_number(2.718, 1e-9, rational=True) is None


def test_a_number_known_badly_is_left_alone() -> None:
    assert nice_number(1.3, 0.5) is None
    assert nice_number(0.3341, 0.01) is None


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


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1, 0, 0), "x"),
        ((-1, 2, 0), "2*y - x"),
        ((-1, 0, -2), "-x - 2"),
        ((0.5, 0, 1), "x/2 + 1"),
        ((-1.5, 0, 0), "-3*x/2"),
        ((0, 0, 0), "0"),
        ((0, 0, -1 / 3), "-1/3"),
    ],
)
def test_combinations_are_written_as_people_write_them(values: tuple[float, ...], text: str) -> None:
    numbers = [nice_number(value, 1e-12) for value in values]
    terms = [parse("x"), parse("y"), parse("1")]
    expression = linear_combination([number for number in numbers if number], terms)
    assert str(expression) == text
    assert parse(text) == expression


def test_a_plain_number_keeps_all_digits() -> None:
    assert str(plain_number(-0.1234567890123).expression) == "-0.1234567890123"
