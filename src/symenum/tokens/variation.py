"""How trees change: crossover and the four mutations of genetic programming, on immutable trees.

Positions are those of `nodes`: the root first, then the operands from left to right. Results above the height limit
are given up for the parent, which keeps heights bounded without a bias towards small trees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symenum.expressions import Apply, Expression, apply
from symenum.tokens.generator import Material
from symenum.tokens.trees import random_leaf, random_tree

__all__ = ["crossover", "mutate", "nodes", "replaced"]

_NEW_DEPTH = 2  # of the sub-trees that mutations plant
_POOL_SHARE = 0.5  # how often a planted sub-tree is one that has proved itself, where there are any


def nodes(expression: Expression) -> list[Expression]:
    """All nodes, the root first."""
    out: list[Expression] = []
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        out.append(node)
        if isinstance(node, Apply):
            stack.extend(reversed(node.operands))
    return out


def replaced(expression: Expression, position: int, new: Expression) -> Expression:
    """The expression with the node at that position (as in `nodes`) replaced."""
    if position == 0:
        return new
    # The path from the root down: at each node, the operand whose sub-tree holds the position.
    path: list[tuple[Apply, int]] = []
    node, offset = expression, position
    while offset:
        if not isinstance(node, Apply):
            raise IndexError(f"the tree has no position {position}")
        offset -= 1
        for place, operand in enumerate(node.operands):
            size = len(nodes(operand))
            if offset < size:
                path.append((node, place))
                node = operand
                break
            offset -= size
        else:
            raise IndexError(f"the tree has no position {position}")
    for parent, place in reversed(path):
        new = Apply(parent.operator, (*parent.operands[:place], new, *parent.operands[place + 1 :]))
    return new


def crossover(a: Expression, b: Expression, rng: np.random.Generator, max_height: int) -> tuple[Expression, Expression]:
    """Two trees that exchanged a sub-tree."""
    nodes_a, nodes_b = nodes(a), nodes(b)
    i, j = int(rng.integers(len(nodes_a))), int(rng.integers(len(nodes_b)))
    new_a, new_b = replaced(a, i, nodes_b[j]), replaced(b, j, nodes_a[i])
    return (
        new_a if _allowed(new_a, max_height) else a,
        new_b if _allowed(new_b, max_height) else b,
    )


def mutate(
    tree: Expression,
    material: Material,
    rng: np.random.Generator,
    max_height: int,
    pool: Sequence[Expression] = (),
) -> Expression:
    """The tree after one of four changes at a random node, each as likely: sub-tree, node, insertion, shrinking."""
    everything = nodes(tree)
    position = int(rng.integers(len(everything)))
    node = everything[position]
    kind = int(rng.integers(4))
    if kind == 0:
        new = _planted(material, rng, pool)
    elif kind == 1:
        new = _other_node(node, material, rng)
    elif kind == 2:
        new = _inserted(node, material, rng, pool)
    else:
        new = node.operands[int(rng.integers(len(node.operands)))] if isinstance(node, Apply) else node
    changed = replaced(tree, position, new)
    return changed if _allowed(changed, max_height) else tree


def _allowed(tree: Expression, max_height: int) -> bool:
    return isinstance(tree, Apply) and tree.depth <= max_height


def _planted(material: Material, rng: np.random.Generator, pool: Sequence[Expression]) -> Expression:
    """A proven sub-tree, a leaf or a small random tree."""
    if pool and rng.random() < _POOL_SHARE:
        return pool[int(rng.integers(len(pool)))]
    depth = int(rng.integers(_NEW_DEPTH + 1))
    return random_tree(material, rng, depth) if depth else random_leaf(material, rng)


def _other_node(node: Expression, material: Material, rng: np.random.Generator) -> Expression:
    """The same operands under another operator of that arity; another leaf for a leaf."""
    if not isinstance(node, Apply):
        return random_leaf(material, rng)
    same = [operator for operator in material.working if operator.arity == node.operator.arity]
    if not same:
        return node
    operands = node.operands if rng.random() < 0.5 else node.operands[::-1]
    return apply(same[int(rng.integers(len(same)))], *operands)


def _inserted(node: Expression, material: Material, rng: np.random.Generator, pool: Sequence[Expression]) -> Expression:
    """The node as one operand of a new operator."""
    operator = material.working[int(rng.integers(len(material.working)))]
    if operator.arity == 1:
        return apply(operator, node)
    other = _planted(material, rng, pool)
    return apply(operator, node, other) if rng.random() < 0.5 else apply(operator, other, node)
