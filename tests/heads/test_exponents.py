"""What heads with fitted exponents share: companions, recognised exponents, products of powers as trees."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from symenum.expressions import Constant, Variable, evaluate
from symenum.heads.exponents import make_companions, monomial, snapped_exponent
from symenum.operators import get_operators

KOZA = get_operators("koza")


def test_companions_are_defined_on_every_row_and_use_permitted_operators() -> None:
    slots = [Variable("x1"), Variable("x2")]
    values = ([0.5, 1.0, 2.0, 3.0], [-1.0, 0.0, 1.0, 2.0])
    columns = {slot.name: torch.tensor(row, dtype=torch.float64) for slot, row in zip(slots, values, strict=True)}
    names = {str(e) for e in make_companions(slots, columns, KOZA).expressions}
    assert {"1", "x2", "cos(x1)", "sin(x1 - x2)"} <= names
    assert not names & {"log(x2)", "x1"}
    arithmetic = make_companions(slots, columns, get_operators("arithmetic"))
    assert {str(e) for e in arithmetic.expressions} == {"1", "x2"}


@given(st.fractions(-8, 8, max_denominator=6), st.floats(-1e-8, 1e-8))
def test_an_exponent_of_an_exact_fit_is_its_fraction(exponent: float, off: float) -> None:
    assert snapped_exponent(float(exponent) + off, exact=True) == pytest.approx(float(exponent), abs=1e-15)


def test_other_exponents_are_halves_and_large_ones_none() -> None:
    assert snapped_exponent(1.4, exact=False) == 1.5
    assert snapped_exponent(1.4142135, exact=True) is None
    assert snapped_exponent(20.0, exact=False) is None


@settings(max_examples=30)
@given(st.lists(st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), min_size=3, max_size=3))
def test_a_monomial_has_the_value_of_its_powers(exponents: list[float]) -> None:
    slots = [Variable(name) for name in "abc"]
    columns = {name: torch.tensor([0.5, 1.7, 3.0], dtype=torch.float64) + i for i, name in enumerate("abc")}
    expected = torch.stack([columns[name] ** exponent for name, exponent in zip("abc", exponents, strict=True)])
    value = torch.as_tensor(evaluate(monomial(slots, exponents, Constant(1)), columns))
    torch.testing.assert_close(value.expand(3).double(), expected.prod(dim=0))
