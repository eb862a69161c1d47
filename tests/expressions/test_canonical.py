"""The order of operands."""

import itertools

import numpy as np
import pytest
import torch
from expressions.strategies import any_tree, tame_tree
from hypothesis import given
from hypothesis import strategies as st

from symenum.expressions import Apply, canonical, evaluate, parse, sort_key, to_text, walk
from symenum.operators import make_operator


@given(any_tree)
def test_canonical_is_idempotent(tree):
    once = canonical(tree)
    assert canonical(once) == once
    assert once.complexity == tree.complexity


@given(tame_tree)
def test_canonical_keeps_the_values(tree):
    columns = {
        name: torch.tensor([0.7, -1.3, 2.1], dtype=torch.float64).roll(i) for i, name in enumerate(["x1", "x2", "x10"])
    }
    parts = torch.stack([evaluate(node, columns) for node in walk(tree)])
    moderate = (parts.isfinite() & ((parts == 0) | ((parts.abs() > 1e-3) & (parts.abs() < 1e3)))).all(0)
    values = evaluate(canonical(tree), columns)
    torch.testing.assert_close(values[moderate], parts[-1][moderate], rtol=1e-6, atol=1e-6)


@given(any_tree, st.randoms(use_true_random=False))
def test_order_of_operands_does_not_matter(tree, random):
    def shuffle(node):
        if not isinstance(node, Apply):
            return node
        operands = [shuffle(operand) for operand in node.operands]
        if node.operator.commutative:
            random.shuffle(operands)
        return Apply(node.operator, tuple(operands))

    assert canonical(shuffle(tree)) == canonical(tree)


@pytest.mark.parametrize("sign", ["+", "*"])
def test_all_orders_and_associations_print_alike(sign):
    texts = set()
    for a, b, c in itertools.permutations(["x2", "sin(x)", "3"]):
        texts |= {to_text(canonical(parse(text.replace("o", sign)))) for text in (f"({a}o{b})o{c}", f"{a}o({b}o{c})")}
    assert texts == {{"+": "x2 + sin(x) + 3", "*": "3*x2*sin(x)"}[sign]}


@pytest.mark.parametrize("text", ["a - b", "b - a", "a/b", "b/a", "a**b", "b**a"])
def test_what_does_not_commute_keeps_its_order(text):
    assert to_text(canonical(parse(text))) == text


def test_names_are_in_natural_order():
    assert to_text(canonical(parse("x10 + x2 + x1 + a"))) == "a + x1 + x2 + x10"


def test_own_commutative_operators_are_ordered_but_not_regrouped():
    mine = make_operator("mine", torch.hypot, arity=2, commutative=True)
    assert to_text(canonical(parse("mine(mine(3, y), x)", [mine]))) == "mine(x, mine(y, 3))"


@given(any_tree, any_tree)
def test_sort_key_is_equal_for_equal_trees_only_and_always_comparable(a, b):
    assert (sort_key(a) == sort_key(b)) == (a == b)
    assert (sort_key(a) < sort_key(b)) + (sort_key(b) < sort_key(a)) == (a != b)


def test_long_sums_are_ordered():
    names = [f"x{i}" for i in np.random.default_rng(0).permutation(2_000)]
    assert to_text(canonical(parse(" + ".join(names)))) == " + ".join(f"x{i}" for i in range(2_000))
