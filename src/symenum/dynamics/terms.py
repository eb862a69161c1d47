"""The terms that laws of motion are made of, and which few of them explain a target best for each total complexity."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Constant, Expression, Variable, apply, evaluate
from symenum.heads.polynomial import monomials
from symenum.operators import Abilities, Kind, Operator
from symenum.operators.traits import Role
from symenum.scans.r_squared import pair_r_squared

__all__ = ["Normal", "Subset", "best_subsets", "library", "normal_equations", "term_values"]


# --------------------------------------------------------------------------------------------------------------------
# The terms that laws of motion are made of: products of states, functions of states and of their sums, quotients.
#
# A fixed family, from simple to dear, that knows nothing of any system: what no sum of them can write is left to the
# search of the estimator.


Array = npt.NDArray[np.float64]
_DEGREE = 4
_MOST_MONOMIALS = 220
_MOST_TERMS = 1500
_FUNCTIONS_UP_TO = 8  # variables: with more, there are too many functions of them
_LARGEST = 1e100  # a square must not overflow


def library(names: Sequence[str], operators: Sequence[Operator]) -> list[Expression]:
    """Terms in the variables `names` that the operators allow, by complexity, the constant 1 left out."""
    slots: list[Expression] = [Variable(name) for name in names]
    able = Abilities(tuple(operators))
    found: dict[Expression, None] = dict.fromkeys(slots)
    if not able.roles.isdisjoint((Role.PRODUCT, Role.SQUARE, Role.POWER)):
        found |= dict.fromkeys(_monomials(slots))
    if able.quotients:
        found |= dict.fromkeys(_quotients(slots))
    if len(slots) <= _FUNCTIONS_UP_TO:
        found |= dict.fromkeys(_with_functions(slots, able))
    return sorted(found, key=lambda term: term.complexity)[:_MOST_TERMS]


def term_values(terms: Sequence[Expression], columns: Mapping[str, Array]) -> tuple[list[Expression], Array]:
    """The terms that are finite on all points, and their values (points, terms)."""
    kept: list[Expression] = []
    values: list[Array] = []
    with np.errstate(all="ignore"):
        for term in terms:
            column = np.asarray(evaluate(term, columns), dtype=np.float64)
            size = float(np.abs(column).max())  # NaN compares false
            if size < _LARGEST and size > 1 / _LARGEST:
                kept.append(term)
                values.append(column)
    points = len(next(iter(columns.values())))
    return kept, np.stack(values, axis=1) if values else np.empty((points, 0))


def _monomials(slots: Sequence[Expression]) -> list[Expression]:
    degree = _DEGREE
    while degree > 2 and math.comb(len(slots) + degree, degree) > _MOST_MONOMIALS:
        degree -= 1
    return monomials(slots, degree)[1:]


def _quotients(slots: Sequence[Expression]) -> Iterator[Expression]:
    for below in slots:
        yield apply("inv", below)
        yield from (apply("div", above, below) for above in slots if above != below)


def _with_functions(slots: Sequence[Expression], able: Abilities) -> Iterator[Expression]:
    unary = [operator for operator in able.operators if operator.kind is Kind.UNARY and not _is_whole_power(operator)]
    alone = [apply(operator, slot) for operator in unary for slot in slots]
    if Role.EXPONENTIAL in able.roles:
        alone += [apply("exp", apply("neg", slot)) for slot in slots]
    yield from alone
    signs = [name for name, written in (("add", Role.SUM in able.roles), ("sub", able.differences)) if written]
    sums = [apply(sign, a, b) for sign in signs for a, b in itertools.combinations(slots, 2)]
    of_sums = [apply(operator, inside) for operator in unary for inside in sums]
    yield from of_sums
    if not able.products:
        return
    squares = [apply("pow", slot, Constant(2)) for slot in slots]
    for function, factor in itertools.product([*alone, *of_sums], [*slots, *squares]):
        yield apply("mul", factor, function)
    for first, second in itertools.combinations(alone, 2):
        yield apply("mul", first, second)


def _is_whole_power(operator: Operator) -> bool:
    """Those are products and quotients already."""
    return operator.exponent is not None and float(operator.exponent).is_integer()


def product(factors: Sequence[Expression]) -> Expression:
    """The factors multiplied, from left to right."""
    return reduce(lambda a, b: apply("mul", a, b), factors)


# --------------------------------------------------------------------------------------------------------------------
# Which few of many terms explain a target best, for every total complexity: the sets that can stand on a front.
#
# Works on the normal equations alone, so that its cost does not depend on the number of rows. All single terms and
# all pairs are judged; larger sets grow from the best of each complexity, and each of them is improved by exchanging
# one term. One beam ordered by fit alone would drop the simple truth, whose parts fit worse than fancier ones.


Whole = npt.NDArray[np.int64]
_PER_COMPLEXITY = 3  # sets kept of each complexity and size
_GROWN = 3  # new terms tried for each set and complexity: the best by fit
_FAR_WORSE = 4.0


@dataclass(frozen=True)
class Normal:
    """The normal equations of centred unit columns: `G` (p, p), `b` (p,), for a centred target of unit norm."""

    G: Array
    b: Array
    cost: Whole  # (p,) complexity that a term adds to a sum

    def __len__(self) -> int:
        return len(self.b)


@dataclass(frozen=True)
class Subset:
    """Indices of terms, ascending, the part of the target's variance they leave, and what they cost."""

    terms: tuple[int, ...]
    left: float
    cost: int


def normal_equations(A: Array, y: Array, cost: Whole) -> Normal:
    """For columns A (n, p) and y (n,), an intercept projected off; constant columns never explain anything."""
    A = A - A.mean(axis=0)
    y = y - y.mean()
    size = np.linalg.norm(A, axis=0)
    A = A / np.where(size > 0, size, 1.0)
    norm = float(np.linalg.norm(y))
    return Normal(A.T @ A, A.T @ (y / norm if norm > 0 else y), cost)


def best_subsets(normal: Normal, max_terms: int, max_cost: int, budget: Budget) -> list[Subset]:
    """The best sets found of each size and total complexity, by complexity."""
    best: dict[tuple[int, int], list[Subset]] = {}
    seen: set[tuple[int, ...]] = set()
    grown: set[tuple[int, ...]] = set()  # different sets share what is left when one term leaves

    def keep(found: Iterable[Subset]) -> None:
        for subset in found:
            if subset.terms in seen or subset.cost > max_cost:
                continue
            seen.add(subset.terms)
            place = best.setdefault((len(subset.terms), subset.cost), [])
            place.append(subset)
            place.sort(key=lambda one: one.left)
            del place[_PER_COMPLEXITY:]

    def grow(terms: tuple[int, ...]) -> None:
        if terms and terms not in grown:
            grown.add(terms)
            keep(_grow(normal, terms))

    keep(_singles(normal))
    keep(_pairs(normal, max_cost))
    for size in range(2, max_terms + 1):
        for subset in _layer(best, size, 1):
            if budget.over():
                return _sorted(best)
            for i in range(size):
                grow(subset.terms[:i] + subset.terms[i + 1 :])
        if size < max_terms:
            for subset in _layer(best, size, _PER_COMPLEXITY):
                if budget.over():
                    return _sorted(best)
                grow(subset.terms)
    return _sorted(best)


def _sorted(best: dict[tuple[int, int], list[Subset]]) -> list[Subset]:
    return sorted((s for place in best.values() for s in place), key=lambda one: (one.cost, one.left))


def _layer(best: dict[tuple[int, int], list[Subset]], size: int, count: int) -> list[Subset]:
    """The `count` best sets of each complexity of a size, but for those far worse than a cheaper one of that size."""
    kept: list[Subset] = []
    smallest = np.inf
    for _, place in sorted(((cost, place) for (k, cost), place in best.items() if k == size), key=lambda pair: pair[0]):
        kept += [subset for subset in place[:count] if subset.left <= _FAR_WORSE * smallest]
        smallest = min(smallest, place[0].left)
    return kept


def _singles(normal: Normal) -> list[Subset]:
    left = 1 - normal.b**2
    return [Subset((i,), float(left[i]), int(normal.cost[i])) for i in range(len(normal))]


def _pairs(normal: Normal, max_cost: int) -> list[Subset]:
    """The best pairs of each two complexities, of all pairs."""
    groups = {int(price): np.flatnonzero(normal.cost == price) for price in np.unique(normal.cost)}
    found: list[Subset] = []
    for first, rows in groups.items():
        for second, columns in groups.items():
            if second < first or first + second > max_cost:
                continue
            g, b, c = normal.G[np.ix_(rows, columns)], normal.b[rows][:, None], normal.b[columns][None, :]
            gain = pair_r_squared(*map(torch.from_numpy, (b, c, g))).numpy()
            gain = (np.where(rows[:, None] < columns, gain, 0.0) if first == second else gain).ravel()
            best = np.argpartition(-gain, min(_PER_COMPLEXITY, len(gain)) - 1)[:_PER_COMPLEXITY]
            for at in best[gain[best] > 0]:
                i, j = int(rows[at // len(columns)]), int(columns[at % len(columns)])
                found.append(Subset((min(i, j), max(i, j)), float(1 - gain[at]), first + second))
    return found


def _grow(normal: Normal, terms: tuple[int, ...]) -> list[Subset]:
    """The set with one more term: the best few of each complexity."""
    chosen = list(terms)
    base = normal.G[np.ix_(chosen, chosen)]
    try:
        factor = np.linalg.cholesky(base)
    except np.linalg.LinAlgError:
        return []
    rows = np.linalg.solve(factor, normal.G[chosen])
    along = np.linalg.solve(factor, normal.b[chosen])
    free = 1 - (rows**2).sum(axis=0)
    free[chosen] = 0.0
    usable = np.flatnonzero(free > EXACTNESS.left)
    gain = (normal.b[usable] - along @ rows[:, usable]) ** 2 / free[usable]
    left = 1 - float(along @ along)
    cost = int(normal.cost[chosen].sum())
    price = normal.cost[usable]
    order = np.lexsort((-gain, price))
    first = np.searchsorted(price[order], price[order])  # where each price begins
    order = order[np.arange(len(order)) - first < _GROWN]
    return [
        Subset(tuple(sorted((*terms, int(usable[at])))), left - float(gain[at]), cost + int(price[at])) for at in order
    ]
