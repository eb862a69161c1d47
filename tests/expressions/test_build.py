"""Applying operators and replacing variables."""

import pytest

from symenum.expressions import Apply, Variable, apply, parse, substitute
from symenum.operators import OPERATORS

X, Y = Variable("x"), Variable("y")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("identity", "x"),
        ("inv", "1/x"),
        ("pow2", "x**2"),
        ("pow3", "x**3"),
        ("sigmoid", "1/(1 + exp(-x))"),
        ("sin", "sin(x)"),
    ],
)
def test_a_unary_operator_is_applied_in_its_form(name, text):
    assert apply(name, X) == parse(text)


def test_a_binary_operator_is_applied_in_its_form():
    assert apply("semisub", X, Y) == Apply(OPERATORS["sub"], (X, Y))
    assert apply("semidiv", Variable("b"), Variable("a")) == parse("b/a")


def test_operands_of_a_form_may_be_composite():
    assert apply("inv", parse("x + 1")) == parse("1/(x + 1)")


@pytest.mark.parametrize("name", ["inv", "sin", "semisub", "+"])
def test_a_wrong_number_of_operands_is_refused(name):
    with pytest.raises(ValueError, match="takes"):
        apply(name, X, X, X)


def test_an_operand_must_be_an_expression():
    with pytest.raises(TypeError, match="Expression"):
        apply("inv", 2)


def test_substitution_is_simultaneous_and_keeps_the_rest():
    assert substitute(parse("x + y*z"), {"x": Y, "y": X}) == parse("y + x*z")
    tree = parse("sin(x) + 1")
    assert substitute(tree, {"y": X}) is tree
