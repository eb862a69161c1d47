"""Dimensions: products of powers of base units, numbers that stand for them, and exponents that give a dimension."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symenum.core.dimensions import BASE_UNITS, DIMENSIONLESS, SAME_NUMBER, Dimension, solve_exponents
from symenum.estimator.unit_text import read_unit

powers = st.fractions(-4, 4, max_denominator=6)
dimensions = st.builds(lambda own: Dimension(tuple(own)), st.lists(powers, min_size=7, max_size=7))


@given(dimensions, dimensions)
def test_numbers_add_as_dimensions_multiply(a: Dimension, b: Dimension) -> None:
    assert abs((a * b).number - a.number - b.number) < SAME_NUMBER
    assert abs((a / b).number - a.number + b.number) < SAME_NUMBER


@given(dimensions, dimensions)
def test_two_dimensions_have_one_number_only_if_they_are_equal(a: Dimension, b: Dimension) -> None:
    assert (abs(a.number - b.number) < SAME_NUMBER) == (a == b)


@given(dimensions)
def test_a_dimension_prints_as_a_unit_that_is_read_again(dimension: Dimension) -> None:
    assert read_unit(str(dimension)).dimension == dimension


@given(st.lists(dimensions, min_size=1, max_size=5), st.lists(powers, min_size=5, max_size=5))
def test_exponents_are_found_wherever_there_are_some(bases: list[Dimension], exponents: list[Fraction]) -> None:
    pairs = list(zip(bases, exponents, strict=False))
    wanted = reduce(lambda whole, pair: whole * pair[0] ** pair[1], pairs, DIMENSIONLESS)
    found = solve_exponents(bases, wanted)
    assert found is not None
    assert (
        reduce(lambda whole, pair: whole * pair[0] ** pair[1], zip(bases, found, strict=True), DIMENSIONLESS) == wanted
    )


def test_no_exponents_are_found_where_a_base_unit_is_missing() -> None:
    assert solve_exponents([Dimension.of(m=1), Dimension.of(m=2)], Dimension.of(s=1)) is None


def test_an_unknown_base_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="'N' is no base unit"):
        Dimension.of(N=1)
    assert len(BASE_UNITS) == len(DIMENSIONLESS.exponents)
