"""Trees that may be tokens: random ones, crossover and four mutations, their values, and the choice of distinct ones.

Trees are immutable. Their values are those on the rows of the context; the pass has its own, batched way to compute.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from symenum.core.exactness import is_flat
from symenum.expressions import Apply, Constant, Expression, Variable, apply, walk
from symenum.tokens.generator import TokenContext

__all__ = [
    "RANDOM_DEPTH",
    "Evaluator",
    "composite_parts",
    "crossover",
    "mutate",
    "nodes",
    "pick_distinct",
    "random_constant",
    "random_leaf",
    "random_tree",
    "random_trees",
    "replaced",
]

_MAX_SUM_OF_SQUARES = 1e150  # of a token's values: the product of two tokens must not overflow
_SAME_COLUMN = 1e-9  # columns whose distance is below this part of their norm are equal up to rounding
_MUTATIONS = 4  # kinds: a new sub-tree, another node, an insertion, a shrinking

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
RANDOM_DEPTH = 3
"""Largest depth of random tokens, in operators from root to leaf: D_rand_max of the paper's Algorithm 5."""
_CONSTANT_LEAVES = 0.2  # chance that a leaf is a constant, where constants are wanted
_EARLY_LEAF = 0.3  # chance that a branch ends before its full depth
_TRIES = 200  # draws at most for each constant that is not 0, and for each token
_PLANTED_DEPTH = 2  # largest depth of the sub-trees that mutations plant
_POOL_SHARE = 0.5  # chance that a planted sub-tree comes from the pool, where there is one


# Random trees over variables and constants


def random_constant(context: TokenContext, rng: np.random.Generator) -> Constant:
    """A constant of the range, not 0, rounded to at least sixty steps of its width: the fit finds the other digits."""
    low, high = context.constant_range or (1.0, 1.0)
    decimals = max(0, 1 - math.floor(math.log10((high - low) / 6))) if high > low else 15
    for _ in range(_TRIES):
        value = min(max(round(float(rng.uniform(low, high)), decimals), low), high)
        if value:
            return Constant(value)
    return Constant(high or low)


def random_leaf(context: TokenContext, rng: np.random.Generator) -> Expression:
    """A variable, or with chance 0.2 a constant, where constants are wanted."""
    if context.constant_range is not None and rng.random() < _CONSTANT_LEAVES:
        return random_constant(context, rng)
    return context.variables[int(rng.integers(len(context.variables)))]


def random_tree(context: TokenContext, rng: np.random.Generator, depth: int) -> Expression:
    """A tree of at most `depth` operators from root to leaf, all operators equally likely.

    The context must have an operator beside the identity.
    """
    operators = context.working
    operator = operators[int(rng.integers(len(operators)))]
    operands = []
    for _ in range(operator.arity):
        ends = depth <= 1 or rng.random() < _EARLY_LEAF
        operands.append(random_leaf(context, rng) if ends else random_tree(context, rng, depth - 1))
    return apply(operator, *operands)


def random_trees(context: TokenContext, rng: np.random.Generator, count: int, depth: int) -> Iterator[Expression]:
    """200·`count` random trees of depth 1 to `depth`: enough that `count` of them should be usable as tokens."""
    if not context.working:
        return
    for _ in range(_TRIES * count):
        yield random_tree(context, rng, int(rng.integers(1, depth + 1)))


# Crossover and mutations. Positions are those of `nodes`. A result above the height limit is given up for its parent,
# which bounds heights without a bias towards small trees.


def nodes(expression: Expression) -> list[Expression]:
    """All nodes: the root first, then those of its operands from left to right."""
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
    context: TokenContext,
    rng: np.random.Generator,
    max_height: int,
    pool: Sequence[Expression] = (),
) -> Expression:
    """The tree after one of four changes at a random node, each as likely: sub-tree, node, insertion, shrinking."""
    everything = nodes(tree)
    position = int(rng.integers(len(everything)))
    node = everything[position]
    kind = int(rng.integers(_MUTATIONS))
    if kind == 0:
        new = _planted(context, rng, pool)
    elif kind == 1:
        new = _other_node(node, context, rng)
    elif kind == 2:
        new = _inserted(node, context, rng, pool)
    else:
        new = node.operands[int(rng.integers(len(node.operands)))] if isinstance(node, Apply) else node
    changed = replaced(tree, position, new)
    return changed if _allowed(changed, max_height) else tree


def _allowed(tree: Expression, max_height: int) -> bool:
    return isinstance(tree, Apply) and tree.depth <= max_height


def _planted(context: TokenContext, rng: np.random.Generator, pool: Sequence[Expression]) -> Expression:
    """A sub-tree of the pool, a leaf or a small random tree."""
    if pool and rng.random() < _POOL_SHARE:
        return pool[int(rng.integers(len(pool)))]
    depth = int(rng.integers(_PLANTED_DEPTH + 1))
    return random_tree(context, rng, depth) if depth else random_leaf(context, rng)


def _other_node(node: Expression, context: TokenContext, rng: np.random.Generator) -> Expression:
    """The same operands under another operator of that arity; another leaf for a leaf."""
    if not isinstance(node, Apply):
        return random_leaf(context, rng)
    same = [operator for operator in context.working if operator.arity == node.operator.arity]
    if not same:
        return node
    operands = node.operands if rng.random() < 0.5 else node.operands[::-1]
    return apply(same[int(rng.integers(len(same)))], *operands)


def _inserted(
    node: Expression, context: TokenContext, rng: np.random.Generator, pool: Sequence[Expression]
) -> Expression:
    """The node as one operand of a new operator."""
    operator = context.working[int(rng.integers(len(context.working)))]
    if operator.arity == 1:
        return apply(operator, node)
    other = _planted(context, rng, pool)
    return apply(operator, node, other) if rng.random() < 0.5 else apply(operator, other, node)


# Values of many trees that share sub-trees: each sub-tree is computed once, so a tree costs its new nodes only


class Evaluator:
    """Values (rows,), float64 on the CPU, of expressions; remembers them, so it is made anew for each proposal."""

    def __init__(self, context: TokenContext) -> None:
        self._rows = context.rows
        self._known: dict[Expression, Tensor | None] = {
            Variable(name): column for name, column in context.columns.items()
        }
        self._usable: dict[Expression, bool] = {}

    def values(self, expression: Expression) -> Tensor | None:
        """The values; None where the expression or a part of it is not finite, or too large, on some row."""
        known = self._known
        if expression in known:
            return known[expression]
        stack: list[Expression] = [expression]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
            elif isinstance(node, Apply):
                missing = [operand for operand in node.operands if operand not in known]
                if missing:
                    stack.extend(missing)
                else:
                    known[node] = self._apply(node)
            elif isinstance(node, Constant):
                known[node] = torch.full((self._rows,), float(node.value), dtype=torch.float64)
            else:
                known[node] = None  # a variable without a column
        return known[expression]

    def _apply(self, node: Apply) -> Tensor | None:
        operands = []
        for operand in node.operands:
            value = self._known[operand]
            if value is None:
                return None
            operands.append(value)
        result = node.operator.function(*operands)
        # A NaN or an infinity among the values makes the sum of squares NaN or infinite.
        return result if float(torch.dot(result, result)) < _MAX_SUM_OF_SQUARES else None

    def usable(self, expression: Expression) -> bool:
        """Whether it may be a token: composite, finite and not constant on the rows."""
        known = self._usable.get(expression)
        if known is None:
            values = self.values(expression) if isinstance(expression, Apply) else None
            known = values is not None and not bool(is_flat(values))
            self._usable[expression] = known
        return known

    def matrix(self, expressions: Sequence[Expression]) -> Tensor:
        """Values (expressions, rows), float64; a row of NaN for an expression that has none."""
        if not expressions:
            return torch.empty(0, self._rows, dtype=torch.float64)
        nothing = torch.full((self._rows,), float("nan"), dtype=torch.float64)
        rows = (self.values(expression) for expression in expressions)
        return torch.stack([nothing if row is None else row for row in rows])


def pick_distinct(
    evaluator: Evaluator,
    context: TokenContext,
    stream: Iterable[Expression],
    count: int,
    start: Sequence[Expression] = (),
) -> list[Expression]:
    """The tokens `start`, then those of the stream that are usable and differ from all before: `count`, or fewer.

    They differ from the variables too. An expression and its negative count as one: the pass has both signs of each.
    """
    chosen = list(start)
    if len(chosen) >= count:
        return chosen[:count]
    taken = _Columns(context.rows)
    for expression in (*context.variables, *chosen):
        taken.add(evaluator.values(expression))
    for expression in stream:
        if evaluator.usable(expression) and taken.add(evaluator.values(expression)):
            chosen.append(expression)
            if len(chosen) == count:
                break
    return chosen


class _Columns:
    """Columns that differ, also by more than their signs.

    Only columns of nearly the same mark, |v·m| with a fixed unit vector m, are compared in full: equal columns have
    equal marks.
    """

    def __init__(self, rows: int) -> None:
        direction = torch.arange(1, rows + 1, dtype=torch.float64).cos()
        self._direction = direction / direction.norm()
        self._marks: list[float] = []  # in order
        self._columns: list[tuple[Tensor, float]] = []  # with their norms, in the order of the marks

    def add(self, column: Tensor | None) -> bool:
        """Take the column; False where it has no values, or is there already."""
        if column is None:
            return False
        mark, norm = abs(float(torch.dot(column, self._direction))), float(column.norm())
        slack = _SAME_COLUMN * norm
        for at in range(bisect_left(self._marks, mark - slack), bisect_right(self._marks, mark + slack)):
            other, size = self._columns[at]
            # The distance itself is compared: 1 - |cos| is half its square, which rounding would hide.
            if (
                abs(size - norm) <= slack
                and min(float((other - column).norm()), float((other + column).norm())) <= slack
            ):
                return False
        at = bisect_left(self._marks, mark)
        self._marks.insert(at, mark)
        self._columns.insert(at, (column, norm))
        return True


def composite_parts(expression: Expression) -> list[Expression]:
    """All sub-trees that are neither variables nor constants, each once, the smaller ones first."""
    return list(dict.fromkeys(node for node in walk(expression) if isinstance(node, Apply)))
