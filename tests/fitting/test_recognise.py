"""When a fitted number is taken for a nice one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symenum.expressions import Expression, evaluate, walk
from symenum.fitting.recognise import RECOGNITION, constant_bits, nice_number, plain_number, recognise

fractions = st.tuples(st.integers(-30, 30).filter(bool), st.integers(1, 12)).map(lambda pair: pair[0] / pair[1])


@given(fractions, st.floats(-1, 1))
def test_a_fraction_is_recognised_within_eight_errors_of_an_exact_fit(value: float, off: float) -> None:
    number = recognise(value + 7.9 * off * 1e-9, 1e-9, exact=True)
    assert number is not None
    assert number.value == value


@given(st.integers(-9, 9).filter(bool), st.floats(1.1, 30), st.sampled_from([-1, 1]))
def test_in_noise_one_error_is_the_limit(value: int, errors: float, sign: int) -> None:
    error = 1e-3
    near, far = (recognise(value + sign * part * error, error, exact=False, rational=True) for part in (0.9, errors))
    assert near is not None
    assert near.value == value
    assert far is None or far.value != value


@given(fractions, st.floats(1e-6, 1e-2))
def test_recognition_in_noise_never_accepts_what_an_exact_fit_would_not_reach(value: float, error: float) -> None:
    number = recognise(value, error, exact=False)
    assert number is None or abs(number.value - value) <= RECOGNITION.noise_errors * error


@given(st.floats(0.01, 100), st.floats(1e-12, 1.0))
def test_a_larger_error_recognises_no_larger_share_of_numbers(value: float, error: float) -> None:
    """What is known worse than a quarter of the spacing of whole numbers says nothing, even where one is expected."""
    number = recognise(value, max(error, 0.3), exact=False, expected=True)
    assert number is None


def test_an_exponent_may_be_recognised_where_another_constant_may_not() -> None:
    assert recognise(2.09, 0.1, exact=False, rational=True) is None
    expected = recognise(2.09, 0.1, exact=False, rational=True, expected=True)
    assert expected is not None
    assert expected.value == 2


def test_what_a_scan_found_is_recognised_though_its_last_digits_are_wrong() -> None:
    value = math.pi * (1 + 4e-7)
    assert recognise(value, 0.0, exact=True) is None
    number = recognise(value, 0.0, exact=True, polished=False)
    assert number is not None
    assert str(number.expression) == "pi"


def test_an_exponent_of_a_scan_may_be_zero() -> None:
    number = recognise(4e-7, 0.0, exact=True, rational=True, polished=False)
    assert number is not None
    assert number.value == 0
    assert recognise(4e-7, 0.0, exact=True, rational=True, zero=False, polished=False) is None


@pytest.mark.parametrize("fixed", [1, 3])
def test_the_residual_may_grow_by_rounding_or_by_the_variance_of_what_was_fixed(fixed: int) -> None:
    assert RECOGNITION.residual_growth(fixed, 20, exact=True) == 4
    assert math.isclose(RECOGNITION.residual_growth(fixed, 20, exact=False) ** 2, 1 + fixed / 20)
    assert RECOGNITION.residual_growth(fixed, 0, exact=False) == math.sqrt(1 + fixed)


def test_the_bound_of_a_nice_number_is_at_least_its_own_rounding() -> None:
    number = nice_number(math.nextafter(2 / 3, 1), 0.0)
    assert number is not None
    assert str(number.expression) == "2/3"


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


def test_a_plain_number_keeps_all_digits() -> None:
    assert str(plain_number(-0.1234567890123).expression) == "-0.1234567890123"


@pytest.mark.parametrize("rows", [20, 300, 5000])
def test_shorter_constants_are_never_dearer_than_fitted_ones(rows: int) -> None:
    fitted = constant_bits(0.73194613, rows)
    cheap = [constant_bits(value, rows) for value in (0.0, 1.0, -2.0, 0.5, 1 / 3, 0.7, 2 * math.pi, 12345.0)]
    assert all(bits <= fitted for bits in cheap)
    assert cheap[0] <= cheap[1] <= cheap[2] <= cheap[3] <= cheap[4]


@pytest.mark.parametrize("relative_error", [1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-6])
@pytest.mark.parametrize("exact", [False, True])
def test_of_random_constants_fewer_than_one_in_a_hundred_is_taken_for_irrational(
    relative_error: float, exact: bool
) -> None:
    constants = 10 ** np.random.default_rng(7).uniform(-2, 2, 2000)
    found = [recognise(float(value), relative_error * value, exact=exact) for value in constants]
    irrational = [number for number in found if number is not None and any(map(is_irrational, walk(number.expression)))]
    assert len(irrational) < 20


def is_irrational(node: Expression) -> bool:
    return str(node) in ("pi", "E") or str(node).startswith("sqrt")


def test_the_rarer_a_number_is_written_the_more_digits_it_takes_to_recognise_it() -> None:
    assert recognise(0.0920, 3e-4, exact=False) is None  # 1/(4*E) is 0.09197
    assert str(recognise(1 / (4 * math.e) + 1e-6, 2e-6, exact=False).expression) == "1/(4*E)"
    assert str(recognise(math.pi + 0.01, 0.015, exact=False).expression) == "pi"
    assert str(recognise(2 * math.pi + 0.01, 0.015, exact=False).expression) == "2*pi"
