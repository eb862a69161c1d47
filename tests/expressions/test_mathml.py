"""MathML: well formed for every tree, the same brackets as LaTeX, and nothing of a name is markup."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from expressions.strategies import any_tree
from hypothesis import given

from symenum.expressions import Apply, Constant, Variable, mathml_equation, parse, to_latex, to_mathml
from symenum.operators import get_operator


def words(markup: str) -> str:
    """What a reader sees, without the way it is set."""
    greek = markup.replace("&theta;", "θ")
    return "".join(ElementTree.fromstring(f"<math>{greek}</math>").itertext()).replace("\u2061", "")


@given(any_tree)
def test_every_tree_gives_well_formed_markup_with_the_brackets_of_latex(tree):
    markup = to_mathml(tree, 4)
    assert words(markup)
    assert markup.count("<mo>(</mo>") == to_latex(tree, 4).count(r"\left(")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a - (b - c)", "a−(b−c)"),
        ("-(a + b)*c", "−(a+b)·c"),
        ("a*(-2)", "a·(−2)"),
        ("sqrt(x1) + exp(-x2)", "x1+exp(−x2)"),
        ("abs(theta)*pi", "|θ|·π"),
        ("1.5e-7*x", "1.5·10−7·x"),
    ],
)
def test_what_is_seen(text, seen):
    assert words(to_mathml(parse(text))) == seen


def test_a_power_of_a_power_and_of_a_quotient_is_bracketed():
    assert words(to_mathml(parse("(x**2)**y"))) == "(x2)y"
    assert words(to_mathml(parse("(x/z)**2"))) == "(xz)2"


def test_a_name_is_never_markup():
    markup = mathml_equation("<script>alert(1)</script>", Apply(get_operator("sin"), (Variable("x"),)))
    assert "<script" not in markup
    assert "&lt;script&gt;" in markup


def test_precision_is_for_floats_only_and_checked():
    assert words(to_mathml(Constant(3.14159), 3)) == "3.14"
    assert words(to_mathml(Constant(314159), 3)) == "314159"
    with pytest.raises(ValueError, match="precision"):
        to_mathml(Constant(1.0), 0)
