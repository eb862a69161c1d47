"""Laws drawn from a grammar: laws that are on no list, to measure what a part of the search brings.

The laws of a set have depths 3 to 6 and 2 to 7 variables (or one), all combinations equally often, and 0 to 4
constants. The depth is that of the tree in the operators of the table, where 1/(1 + exp(-a)) is one operator. The tree
has one branch of exactly that depth, each variable at one leaf at least, and no function directly inside a function.
Each variable is uniform in its own range, positive or of both signs; constants have two decimals.

A drawn tree becomes a law if on 1,000 points of the ranges of its variables (its box) it

- is finite (also on 20,000 further points and the corners of the box) and of the size of a measurement (at most 1e4,
  the largest value at most 100 times the median);
- is not constant, and none of its parts is;
- has no part with the values of another part, such as abs(x) for a positive x, or x*y/y: such a tree is less deep than
  it looks;
- depends on all its variables: drawing one of them anew moves the law by 3% of its spread or more;
- depends on all its constants: 1% more of one of them moves the law by 1e-4 of its spread or more.

No condition is about how easy a law is to find. There are five sets, drawn with different seeds: of several variables
one for development and one for final tables only, one of laws of a single variable, for development, and two of deep
laws for final tables, without constants and with one to three.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from symenum.bench.problems.problem import Array, Problem, law_values
from symenum.expressions import Apply, Constant, Expression, Variable, apply, fold, walk
from symenum.operators import OPERATORS, Kind, Role

__all__ = ["DEPTHS", "DEVELOPMENT", "EVERY_OPERATOR", "FINAL", "LAW_SETS", "ONE_VARIABLE", "LawSet", "random_law"]

DEPTHS = range(3, 7)
"""The depths of laws."""
EVERY_OPERATOR = tuple(
    operator.sign if operator.sign is not None and operator.arity == 2 else operator.name
    for operator in OPERATORS.values()
    if operator.kind is not Kind.TRIANGLED or operator.commutative
)
"""What a system may use: all operators of the table but semisub and semidiv, which are half of - and /."""

_UNARY = tuple(
    operator for operator in OPERATORS.values() if operator.arity == 1 and operator.role is not Role.IDENTITY
)
_BINARY = tuple(OPERATORS[name] for name in ("add", "sub", "mul", "div"))

# These numbers define the sets: with any other value other laws are drawn.
_SAME_SHAPE = 10  # laws of each depth and number of variables
_ROWS = 200  # rows of a sample
_RANGES = ((0.5, 3.0), (1.0, 5.0), (-2.0, 2.0), (-1.0, 3.0))  # of a variable, one drawn for each
_MAX_CONSTANTS = 4  # in one law
_FUNCTION_SHARE = 0.35  # chance of a function where a function and a binary operator are both possible
_ARITHMETIC_SHARE = 0.9  # chance of one of + - * / among binary operators; the rest is a**b
_POINTS = 1000  # points of the box on which the conditions are tested
_DENSE_POINTS = 20_000  # further points on which a law must be finite, beside the corners of the box
_MAX_VALUE = 1e4  # of |y|
_MAX_RATIO = 100.0  # of the largest |y| to the median
_MIN_SPREAD = 1e-3  # standard deviation of a part over its largest value: below, the part is a constant
_MIN_DIFFERENCE = 1e-9  # largest difference of two parts over their size: below, both are one part
_MIN_VARIABLE_EFFECT = 0.03  # change of y over its spread, where one variable is drawn anew
_MIN_CONSTANT_EFFECT = 1e-4  # change of y over its spread, where one constant is 1% larger
_MIN_FRESH_POINTS = 500  # of 1,000 in a box twice as wide on which the law must be defined, so that it can be judged


@dataclass(frozen=True)
class LawSet:
    """A set of random laws, the same every time: ten of each depth and of each number of variables in `variables`.

    `prefix` begins the names of its laws, which count from 1; `seed` is that of all draws. `depths`: of the laws;
    `constants`: the least and the largest number that is drawn for one.
    """

    name: str
    title: str
    prefix: str
    seed: int
    variables: range
    depths: range = DEPTHS
    constants: tuple[int, int] = (0, _MAX_CONSTANTS)

    def __len__(self) -> int:
        return _SAME_SHAPE * len(self.depths) * len(self.variables)

    def shape(self, number: int) -> tuple[int, int]:
        """The depth and the number of variables of law `number`: the first laws have all shapes in turn."""
        at = number - 1
        return self.depths[at % len(self.depths)], self.variables[at // len(self.depths) % len(self.variables)]

    def names(self) -> tuple[str, ...]:
        """The names of all laws, without drawing one."""
        return tuple(f"{self.prefix}{number}" for number in range(1, len(self) + 1))

    def number(self, name: str) -> int:
        """The number of the law of that name."""
        return int(name.removeprefix(self.prefix))

    def law(self, name: str) -> Problem:
        """The law of that name."""
        return random_law(self, self.number(name))

    def laws(self) -> tuple[Problem, ...]:
        """All laws of the set."""
        return tuple(map(self.law, self.names()))


DEVELOPMENT = LawSet("random", "Laws drawn from a grammar, for development", "Random-", 1701, range(2, 8))
FINAL = LawSet("random_final", "Laws drawn from a grammar, for final tables", "Random-F", 2903, range(2, 8))
ONE_VARIABLE = LawSet("random_single", "Laws of one variable drawn from a grammar", "Random-S", 3301, range(1, 2))
DEEP = LawSet(
    "random_deep", "Random laws of depth 5 and 6 without constants, for final tables", "Random-D", 4409, range(2, 8),
    range(5, 7), (0, 0),
)  # fmt: skip
DEEP_WITH_CONSTANTS = LawSet(
    "random_deep_constants", "Random laws of depth 5 and 6 with one to three constants, for final tables", "Random-C",
    5503, range(2, 8), range(5, 7), (1, 3),
)  # fmt: skip
LAW_SETS = {one.name: one for one in (DEVELOPMENT, FINAL, ONE_VARIABLE, DEEP, DEEP_WITH_CONSTANTS)}
"""The sets of random laws by name."""


@cache
def random_law(laws: LawSet, number: int) -> Problem:
    """Law `number` of a set, counted from 1: the first drawn tree that fulfils all conditions. The same every time."""
    depth, count = laws.shape(number)
    rng = np.random.default_rng([laws.seed, number])
    names = tuple(f"x{i + 1}" for i in range(count))
    while True:
        ranges = [_RANGES[i] for i in rng.integers(len(_RANGES), size=count)]
        low, high = (np.array(ends) for ends in zip(*ranges, strict=True))
        tree = _tree(rng, names, depth, laws.constants)
        points = rng.uniform(low, high, (_POINTS, count))
        if not _is_law(tree, names, points, rng.uniform(low, high, (_POINTS, count))):
            continue
        ends = tuple(low.tolist()), tuple(high.tolist())
        law = Problem(f"{laws.prefix}{number}", str(tree), names, *ends, _ROWS)
        dense = rng.uniform(low, high, (_DENSE_POINTS, count))
        corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
        if np.isfinite(law.values(np.concatenate([dense, corners]))).all() and len(law.fresh()[1]) >= _MIN_FRESH_POINTS:
            return law


def _tree(
    rng: np.random.Generator, names: tuple[str, ...], depth: int, bounds: tuple[int, int] = (0, _MAX_CONSTANTS)
) -> Expression:
    """A random tree of that depth with all names at its leaves, and a number of constants within these bounds."""
    max_leaves = 2**depth
    least, most = bounds
    constants = int(rng.integers(least, min(most, max_leaves - len(names)) + 1))
    needed = max(0, _min_leaves(depth) - len(names) - constants)
    repeated = needed + int(rng.integers(min(2, max_leaves - len(names) - constants - needed) + 1))
    leaves: list[Expression] = [Variable(name) for name in names]
    leaves += [Variable(str(rng.choice(names))) for _ in range(repeated)]
    leaves += [Constant(_constant(rng)) for _ in range(constants)]
    order = iter([leaves[i] for i in rng.permutation(len(leaves))])
    return _grown(rng, order, len(leaves), depth, full=True, inside_function=False)


def _min_leaves(depth: int, *, inside_function: bool = False) -> int:
    """The fewest leaves of a tree of that depth: functions and binary operators take turns in it."""
    return (depth + 2 + inside_function) // 2


def _constant(rng: np.random.Generator) -> float:
    """A number of two decimals and of size 0.2 to 3: the paper's range of constants, without numbers near zero."""
    return float(rng.choice([-1, 1]) * round(rng.uniform(0.2, 3.0), 2))


def _grown(
    rng: np.random.Generator,
    leaves: Iterator[Expression],
    count: int,
    depth: int,
    *,
    full: bool,
    inside_function: bool,
) -> Expression:
    """A tree on the next `count` leaves of at most that depth; with `full` one of its branches has exactly it."""
    if depth == 0 or (count == 1 and (inside_function or (not full and rng.random() < 0.5))):
        return next(leaves)
    max_leaves = 2 ** (depth - 1)  # of an operand
    min_leaves = _min_leaves(depth - 1) if full else 1  # of the operand that has the full depth
    function_fits = count <= max_leaves and not inside_function
    if full:
        function_fits = function_fits and count >= _min_leaves(depth - 1, inside_function=True)
    binary_fits = count > min_leaves
    if not binary_fits or (function_fits and rng.random() < _FUNCTION_SHARE):
        operator = _UNARY[int(rng.integers(len(_UNARY)))]
        return apply(operator, _grown(rng, leaves, count, depth - 1, full=full, inside_function=True))
    deep = int(rng.integers(max(min_leaves, count - max_leaves), min(count - 1, max_leaves) + 1))
    parts = [(deep, full), (count - deep, False)]
    if rng.random() < 0.5:
        parts.reverse()
    operator = _BINARY[int(rng.integers(len(_BINARY)))] if rng.random() < _ARITHMETIC_SHARE else OPERATORS["pow"]
    operands = [_grown(rng, leaves, part, depth - 1, full=is_full, inside_function=False) for part, is_full in parts]
    return apply(operator, *operands)


def _is_law(tree: Expression, names: tuple[str, ...], X: Array, other: Array) -> bool:
    """Whether a tree fulfils the conditions on the points X (points, variables).

    `other` (points, variables) has the values of a variable that is drawn anew.
    """
    with np.errstate(all="ignore"):  # a tree that overflows is no law
        return _is_finite_and_varies(tree, names, X) and _depends_on_all(tree, names, X, other)


def _is_finite_and_varies(tree: Expression, names: tuple[str, ...], X: Array) -> bool:
    seen: list[Array] = []
    for part in dict.fromkeys(walk(tree)):
        values = law_values(part, names, X)
        if not np.isfinite(values).all():
            return False
        if isinstance(part, Constant):
            continue
        size = np.abs(values).max()
        flat = values.std() <= _MIN_SPREAD * size
        if flat or any(np.abs(values - other).max() <= _MIN_DIFFERENCE * size for other in seen):
            return False
        seen.append(values)
    y = law_values(tree, names, X)
    return bool(np.abs(y).max() <= min(_MAX_VALUE, _MAX_RATIO * float(np.median(np.abs(y)))))


def _depends_on_all(tree: Expression, names: tuple[str, ...], X: Array, other: Array) -> bool:
    y = law_values(tree, names, X)
    for at in range(len(names)):
        moved = X.copy()
        moved[:, at] = other[:, at]
        if not _differs(law_values(tree, names, moved), y, _MIN_VARIABLE_EFFECT):
            return False
    constants = [part for part in walk(tree) if isinstance(part, Constant)]
    return all(_differs(law_values(_nudged(tree, one), names, X), y, _MIN_CONSTANT_EFFECT) for one in constants)


def _differs(values: Array, y: Array, share: float) -> bool:
    """Whether the root mean square of values - y, where the values are finite, is at least that share of y's spread."""
    apart = values[np.isfinite(values)] - y[np.isfinite(values)]
    return len(apart) > 0 and bool(np.sqrt(np.mean(apart**2)) >= share * y.std())


def _nudged(tree: Expression, constant: Constant) -> Expression:
    """The tree with one constant 1% larger."""

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Apply):
            return Apply(node.operator, operands)
        return Constant(1.01 * float(node.value)) if isinstance(node, Constant) and node == constant else node

    return fold(tree, visit)
