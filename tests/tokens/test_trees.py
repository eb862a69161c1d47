"""Changed trees keep height, variables and operators; values equal those of one tree at a time; picked ones differ."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens.contexts import make_context

from symenum.expressions import Apply, evaluate, parse, variables, walk
from symenum.tokens.trees import (
    Evaluator,
    composite_parts,
    crossover,
    mutate,
    nodes,
    pick_distinct,
    random_constant,
    random_tree,
    random_trees,
    replaced,
)

TREE = parse("sin(x1*x2) + x1/x2")
seeds = st.integers(0, 10_000)


def test_nodes_are_the_root_and_then_its_operands() -> None:
    assert [*map(str, nodes(TREE))] == ["sin(x1*x2) + x1/x2", "sin(x1*x2)", "x1*x2", "x1", "x2", "x1/x2", "x1", "x2"]


@given(st.integers(0, 7))
def test_replacing_changes_that_node_and_nothing_else(position: int) -> None:
    new = replaced(TREE, position, parse("x3"))
    assert nodes(new)[position] == parse("x3")
    assert replaced(new, position, nodes(TREE)[position]) == TREE


def test_replacing_beyond_the_tree_is_refused() -> None:
    with pytest.raises(IndexError, match="position 8"):
        replaced(TREE, 8, parse("x1"))


@given(seeds)
def test_crossover_exchanges_nodes(seed: int) -> None:
    other = parse("exp(x3)*cos(x4)")
    a, b = crossover(TREE, other, np.random.default_rng(seed), 10)
    if isinstance(a, Apply) and a != TREE and b != other:
        before = sorted(str(node) for tree in (TREE, other) for node in walk(tree) if not isinstance(node, Apply))
        after = sorted(str(node) for tree in (a, b) for node in walk(tree) if not isinstance(node, Apply))
        assert before == after


@settings(max_examples=30)
@given(seeds)
def test_mutants_stay_within_height_variables_and_operators(seed: int) -> None:
    data = make_context(constant_range=(-1.0, 1.0))
    rng = np.random.default_rng(seed)
    tree = TREE
    for _ in range(20):
        tree = mutate(tree, data, rng, 4, [parse("x2*x2")])
        assert isinstance(tree, Apply)
        assert tree.depth <= 4
        assert set(variables(tree)) <= {"x1", "x2"}


def test_all_four_mutations_happen() -> None:
    rng = np.random.default_rng(0)
    sizes = {len(nodes(mutate(TREE, make_context(), rng, 10))) - len(nodes(TREE)) for _ in range(200)}
    assert min(sizes) < 0 < max(sizes)
    assert 0 in sizes


@given(seeds, st.integers(1, 4))
def test_random_trees_keep_their_depth_and_their_operators(seed: int, depth: int) -> None:
    data = make_context(operators="semikoza", constant_range=(-3.0, 3.0))
    tree = random_tree(data, np.random.default_rng(seed), depth)
    assert isinstance(tree, Apply)
    assert tree.depth <= depth + 1  # 1/(…) and the like are written out
    assert set(variables(tree)) <= {"x1", "x2"}


@given(seeds)
def test_constants_come_from_the_range(seed: int) -> None:
    value = random_constant(make_context(constant_range=(0.17, 0.19)), np.random.default_rng(seed)).value
    assert 0.17 <= value <= 0.19


def test_without_operators_there_are_no_trees() -> None:
    assert [*random_trees(make_context(operators=("identity",)), np.random.default_rng(0), 3, 2)] == []


TEXTS = ["x1", "2", "x1*x2", "log(x1 - 5)", "exp(exp(exp(x1*x2)))", "sin(x1)/x2 + 1", "x1 - x1", "1/exp(1/(x1 - x1))"]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(TEXTS), min_size=1))
def test_values_equal_those_of_evaluate_and_nothing_stands_for_not_finite(texts: list[str]) -> None:
    data = make_context()
    evaluator = Evaluator(data)
    for text in texts:
        value = evaluator.values(parse(text))
        plain = evaluate(parse(text), data.columns)
        if text in ("log(x1 - 5)", "exp(exp(exp(x1*x2)))", "1/exp(1/(x1 - x1))"):
            assert value is None  # the last is 0, but a part of it is not finite
        else:
            assert torch.equal(value, plain)  # type: ignore[arg-type]


def test_only_composite_varying_finite_expressions_are_usable() -> None:
    evaluator = Evaluator(make_context())
    usable = [text for text in TEXTS if evaluator.usable(parse(text))]
    assert usable == ["x1*x2", "sin(x1)/x2 + 1"]


def test_a_row_of_nan_stands_for_no_values() -> None:
    rows = Evaluator(make_context()).matrix([parse("x1"), parse("log(x1 - 5)")])
    assert torch.isfinite(rows[0]).all()
    assert torch.isnan(rows[1]).all()
    assert Evaluator(make_context()).matrix([]).shape == (0, 40)


def test_equal_functions_and_negatives_are_picked_once_and_multiples_stay() -> None:
    data = make_context()
    texts = ["x1 + x2 - x2", "x1*x2", "x2*x1", "-(x1*x2)", "2*x1*x2", "log(exp(x2))", "sin(x1)", "cos(x1)"]
    picked = pick_distinct(Evaluator(data), data, map(parse, texts), 3)
    assert [*map(str, picked)] == ["x1*x2", "2*x1*x2", "sin(x1)"]
    again = pick_distinct(Evaluator(data), data, map(parse, texts), 2, [parse("x2*x1")])
    assert [*map(str, again)] == ["x2*x1", "2*x1*x2"]


def test_parts_are_composite_and_small_ones_come_first() -> None:
    parts = [str(part) for part in composite_parts(parse("sin(x1*x2) + x1*x2"))]
    assert parts == ["x1*x2", "sin(x1*x2)", "sin(x1*x2) + x1*x2"]
