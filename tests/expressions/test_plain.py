"""Laws of positive quantities as people would write them."""

from __future__ import annotations

import numpy as np
import pytest
from expressions.strategies import tame_tree
from hypothesis import given

from symenum.expressions import evaluate, parse, variables
from symenum.expressions.algebra import plain


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x*(5*exp(1 - z)/(2*E) + exp(log(y/x**2)/2))", "5*x*exp(-z)/2 + sqrt(y)"),
        ("x*sqrt(4*y/x)/2", "sqrt(x)*sqrt(y)"),
        ("exp(2*log(x) - 1)*E", "x**2"),
        ("x**1.5/sqrt(x)", "x"),
        ("exp(0.3*x + 0.1)", "exp(0.3*x + 0.1)"),
        ("2.5*x*(y - 1)*(z + 1)", "2.5*x*(y - 1)*(z + 1)"),
        ("sqrt(x*x + y)/x", "sqrt(x*x + y)/x"),
        ("sqrt(-2*x)", "sqrt(-2*x)"),
    ],
)
def test_the_plain_form(text: str, wanted: str) -> None:
    assert str(plain(parse(text))) == wanted


@given(tame_tree)
def test_it_is_the_same_where_everything_is_positive(tree) -> None:
    columns = {name: np.linspace(1.1, 1.9, 7) + 0.01 * i for i, name in enumerate(variables(tree))}
    if not columns:
        return
    with np.errstate(all="ignore"):
        before, after = evaluate(tree, columns), evaluate(plain(tree), columns)
    both = np.isfinite(before) & np.isfinite(after)
    if not any(word in str(tree) for word in ("sqrt", "log", "**")):  # no base that could be negative
        assert np.allclose(before[both], after[both], rtol=1e-6, atol=1e-6 * np.abs(before[both]).max(initial=1.0))
