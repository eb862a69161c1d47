"""Trees are values: equality, hashing, limits of their leaves, walks, and building by operator names."""

import pickle

import numpy as np
import pytest
from expressions.strategies import any_tree
from hypothesis import given

from symenum.expressions import Apply, Constant, Variable, apply, fold, parse, substitute, to_text, variables, walk
from symenum.operators import OPERATORS

X = Variable("x")


@given(any_tree)
def test_a_copy_is_equal_hashes_alike_and_prints_alike(tree):
    copy = pickle.loads(pickle.dumps(tree))
    assert copy == tree
    assert hash(copy) == hash(tree)
    assert str(copy) == str(tree)


def test_constants_that_print_or_compute_differently_are_different():
    assert Constant(2) != Constant(2.0)
    assert Constant(0.0) != Constant(-0.0)
    assert Constant(3.141592653589793) != Constant(3.141592653589793, "pi")


def test_a_numpy_number_becomes_a_plain_one():
    assert repr(Constant(np.float64(2.5)).value) == "2.5"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, -(10**400)])
def test_a_constant_is_finite(value):
    with pytest.raises(ValueError, match="constant must"):
        Constant(value)


@pytest.mark.parametrize("value", [True, "2", None, 1j])
def test_a_constant_is_a_number(value):
    with pytest.raises(TypeError):
        Constant(value)


@pytest.mark.parametrize("name", ["", "a b", "2x", "lambda", "pi", "E"])
def test_a_variable_has_a_usable_name(name):
    with pytest.raises(ValueError, match="cannot name a variable"):
        Variable(name)


def test_unfit_operands_are_refused():
    with pytest.raises(ValueError, match="takes 2"):
        Apply(OPERATORS["add"], (X,))
    with pytest.raises(TypeError, match="tuple of expressions"):
        Apply(OPERATORS["sin"], (2.0,))
    with pytest.raises(TypeError, match="tuple of expressions"):
        Apply(OPERATORS["sin"], [X])
    with pytest.raises(ValueError, match="written as 1/a"):
        Apply(OPERATORS["inv"], (X,))


def test_complexity_and_depth_follow_the_operators():
    tree = parse("sin(x)*x + 1")
    assert (tree.complexity, tree.depth) == (5, 3)
    assert (X.complexity, X.depth) == (0, 0)


def test_walk_gives_children_before_parents_and_repeats_shared_ones():
    assert [to_text(node) for node in walk(parse("x + sin(x)"))] == ["x", "x", "sin(x)", "x + sin(x)"]


def test_fold_visits_equal_sub_trees_once():
    visited = []
    fold(parse("sin(x)*sin(x)"), lambda node, operands: visited.append(node))
    assert len(visited) == 3


def test_variables_are_in_natural_order():
    assert variables(parse("x10 + x2*x10 - a + 1")) == ("a", "x2", "x10")


def test_shared_and_deep_trees_are_cheap_to_compare_and_hash():
    a = b = X
    for _ in range(5_000):
        a, b = Apply(OPERATORS["add"], (a, a)), Apply(OPERATORS["add"], (b, b))
    assert a == b
    assert len({a, b}) == 1
    assert a.depth == 5_000
    assert variables(a) == ("x",)


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
