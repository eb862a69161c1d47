"""Structure: the same terms, whatever the coefficients, and a bias for free."""

from __future__ import annotations

import pytest

from symenum.expressions import parse
from symenum.problems.structure import same_structure


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3*(y - x)", "2*x - 7*y + 1"),
        ("x**2*y", "0.5*x*y*x"),
        ("(x + y)**2", "x**2 + x*y + y**2"),
        ("2", "0.1"),
        ("0.81", "0"),
        ("sin(2*x + 1)", "3*sin(x) - 4"),
        ("-x/3", "x"),
        ("x/y", "2*x*(1/y)"),
        ("exp(-x)", "2*exp(x)"),
        ("x*(1.5 - y) + 2*x*y", "x + x*y"),
        ("sqrt(x)*sqrt(x)", "sqrt(x)**2"),
        ("1/(x + y)", "3/(2*x - y)"),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert same_structure(parse(one), parse(other))
    assert same_structure(parse(other), parse(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "y"),
        ("x", "x + y"),
        ("x", "2"),
        ("x**2", "x**3"),
        ("sin(x)", "cos(x)"),
        ("sin(x)", "sin(x*y)"),
        ("x*y", "x/y"),
        ("x - x**3", "x - x**2"),
        ("sign(x)", "x"),
    ],
)
def test_not_the_same(one: str, other: str) -> None:
    assert not same_structure(parse(one), parse(other))


def test_terms_that_cancel_are_not_there() -> None:
    assert same_structure(parse("x*y - y*x + x"), parse("x"))
