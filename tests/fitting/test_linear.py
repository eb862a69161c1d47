"""Least squares of many small sets of columns at once, and the sums that coefficients write."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from symenum.expressions import parse
from symenum.fitting import linear_combination, nice_number
from symenum.fitting.linear import least_squares_of_each


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(6, 30), st.integers(-8, 8))
def test_each_set_has_its_least_squares_whatever_the_units(seed: int, columns: int, rows: int, power: int) -> None:
    random = np.random.default_rng(seed)
    F, y = random.normal(size=(4, columns, rows)), random.normal(size=rows)
    units = np.ones(columns)
    units[0] = 10.0**power
    fits = least_squares_of_each(torch.from_numpy(F * units[:, None]), torch.from_numpy(y))
    for at in range(4):
        truth = np.linalg.lstsq(F[at].T, y, rcond=None)[0]
        np.testing.assert_allclose(fits.coefficients[at].numpy() * units, truth, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(fits.residual[at], y - truth @ F[at], atol=1e-10)
    others = torch.from_numpy(random.normal(size=(4, 3, rows)))
    assert float((fits.orthogonal_part(others) @ torch.from_numpy(F).transpose(1, 2)).abs().max()) < 1e-10 * rows


@pytest.mark.parametrize("bad", ["zero", "same", "infinite", "nan"])
def test_columns_without_a_direction_spoil_no_others(bad: str) -> None:
    random = np.random.default_rng(0)
    F, y = torch.from_numpy(random.normal(size=(3, 2, 20))), torch.from_numpy(random.normal(size=20))
    alone = least_squares_of_each(F[[0, 2]], y)
    if bad == "same":
        F[1, 1] = F[1, 0]
    else:
        F[1, 1, 3 if bad != "zero" else slice(None)] = {"zero": 0.0, "infinite": float("inf"), "nan": float("nan")}[bad]
    fits = least_squares_of_each(F, y)
    torch.testing.assert_close(fits.coefficients[[0, 2]], alone.coefficients, rtol=0, atol=0)


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
