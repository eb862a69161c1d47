"""Complexity by weights of the user's own."""

from __future__ import annotations

from expressions.strategies import any_tree
from hypothesis import given

from symenum.expressions import Apply, Constant, Variable, parse, walk
from symenum.expressions.complexity import ComplexityWeights


@given(any_tree)
def test_without_weights_it_is_that_of_the_tree(tree) -> None:
    assert ComplexityWeights().of(tree) == tree.complexity


@given(any_tree)
def test_leaves_add_their_weights_as_often_as_they_occur(tree) -> None:
    nodes = list(walk(tree))
    constants = sum(isinstance(node, Constant) for node in nodes)
    variables = sum(isinstance(node, Variable) for node in nodes)
    assert len(nodes) == constants + variables + sum(isinstance(node, Apply) for node in nodes)
    assert ComplexityWeights(variable=3, constant=7).of(tree) == tree.complexity + 3 * variables + 7 * constants


def test_operators_and_variables_have_weights_by_name() -> None:
    weights = ComplexityWeights((("sin", 10),), (("mass", 5),), variable=1)
    tree = parse("sin(mass) + x*x")
    assert weights.of(tree) == tree.complexity - parse("sin(x)").complexity + 10 + 5 + 1 + 1
