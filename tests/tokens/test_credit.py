"""A token is found in the laws that were made with it, however fits and rewriting have changed them."""

from __future__ import annotations

import pytest

from symenum.expressions import parse, simplify
from symenum.fitting import free_constants, with_coefficients, with_constants
from symenum.tokens.credit import PartsOfLaws, form


@pytest.mark.parametrize(
    ("token", "law"),
    [
        ("x1*x2", "sin(x1*x2)"),
        ("x1*x2", "x1**2*x2"),
        ("x1*x2", "2.1*x1*(x2 + 0.7)"),
        ("x1*x2", "3/(x2*x1)"),
        ("x1/x2", "x3*x1/(x2 + 1)"),
        ("x2/x1", "x3*x1/(x2 + 1)"),
        ("x1 - x2", "x3 - 2.5*x2 + 0.1*x1"),
        ("cos(1.7*x1)", "x2*cos(1.66*x1 + 0.02)"),
        ("exp(-x1)", "exp(-0.5*x1)/x2"),
        ("x1**1.5 + x2", "log(x2 + x1**1.37 - 4)"),
        ("2*x1*x2", "-x1*x2"),
    ],
)
def test_a_token_is_found_in_a_law_that_is_written_otherwise(token: str, law: str) -> None:
    assert PartsOfLaws([parse(law)]).hold(parse(token))


@pytest.mark.parametrize(
    ("token", "law"),
    [
        ("x1*x2", "x1 + x2"),
        ("x1*x2", "x1/x2"),
        ("x1**2", "x1*x2"),
        ("sin(x1)", "sin(x1*x2)"),
        ("x1 + x2 + x3", "x1 + x2"),
        ("2*x1 + 1", "x1"),
        ("3*x1", "3*x1*x2"),
    ],
)
def test_what_a_law_does_not_hold_is_not_found(token: str, law: str) -> None:
    assert not PartsOfLaws([parse(law)]).hold(parse(token))


@pytest.mark.parametrize("law", ["x1*x2*sin(x1*x2 + x3)", "exp(x1*x2)/(x3 + x1*x2)", "log(x1*x2 - x3)*x1"])
def test_coefficients_and_their_values_hide_no_token(law: str) -> None:
    family = with_coefficients(parse(law))
    values = [value + 0.3 + 0.1 * i for i, value in enumerate(free_constants(family))]
    assert PartsOfLaws([simplify(with_constants(family, values))]).hold(parse("x1*x2"))


def test_no_law_holds_nothing() -> None:
    assert not PartsOfLaws([]).hold(parse("x1*x2"))


def test_forms_ignore_order_signs_and_constants_that_are_fitted() -> None:
    assert form(parse("x1 - 2*x2")) == form(parse("3*x2 + x1 + 1"))
    assert form(parse("x1*(x2/x3)")) == form(parse("x1*x2/x3"))
    assert form(parse("x1**2")).key == form(parse("x1*x1")).key
    assert form(parse("x1**2")).key != form(parse("x1**3")).key
    assert form(parse("sin(2)")).simple
