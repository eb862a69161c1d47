"""Sums of terms as laws of motion: the library of terms, and which few of them explain a target best.

The library is a fixed family that knows nothing of any system: products of states, functions of states and of their
sums, quotients. A law that is no sum of them is left to the search of the estimator.

The best sets of terms are found for every total complexity, since these can stand on a front. They are found from the
normal equations alone, so the cost does not depend on the number of rows. All single terms and all pairs are judged;
larger sets grow from the best of each complexity, and each of them is improved by exchanging one term. One beam ordered
by fit alone would drop the simple truth, whose parts fit worse than more complex ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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

__all__ = ["Normal", "Subset", "best_subsets", "bounded_terms", "library", "normal_equations", "term_values"]

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_MAX_SIZE = 1e100  # largest absolute value of a term: its square must not overflow; its inverse is the least

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_DEGREE = 4  # of products of states
_MIN_DEGREE = 2  # of products of states, however many there are
_MAX_MONOMIALS = 220  # products of states; with more states the degree is lowered to this number
_MAX_TERMS = 1500  # terms of the library, the simplest first
_MAX_BOUNDED_VARIABLES = 4  # with more variables there are no terms that saturate: hundreds for each
_HALF_SATURATIONS = (0.1, 0.3, 1.0, 3.0)  # medians of a variable at which terms reach half of their range
_MIDDLES, _STEEPNESS = (0.2, 0.5, 0.8), (1.0, 3.0)  # of sigmoids: quantiles of a variable, and per standard deviation
_MAX_FUNCTION_VARIABLES = 8  # with more variables the library has no functions of them: there would be too many
_SETS_PER_COMPLEXITY = 3  # sets that are kept of each complexity and size
_TERMS_PER_COMPLEXITY = 3  # new terms of each complexity that are tried for a set, the best by fit
_FAR_WORSE = 4.0  # a set that leaves so many times what a cheaper one of its size leaves does not grow


def library(names: Sequence[str], operators: Sequence[Operator]) -> list[Expression]:
    """The terms in the variables `names` that the operators allow, by complexity; the constant 1 is not among them."""
    slots: list[Expression] = [Variable(name) for name in names]
    able = Abilities(tuple(operators))
    found: dict[Expression, None] = dict.fromkeys(slots)
    if not able.roles.isdisjoint((Role.PRODUCT, Role.SQUARE, Role.POWER)):
        found |= dict.fromkeys(_monomials(slots))
    if able.quotients:
        found |= dict.fromkeys(_quotients(slots))
    if len(slots) <= _MAX_FUNCTION_VARIABLES:
        found |= dict.fromkeys(_with_functions(slots, able))
    return sorted(found, key=lambda term: term.complexity)[:_MAX_TERMS]


def bounded_terms(columns: Mapping[str, Array], operators: Sequence[Operator]) -> list[Expression]:
    """Terms that saturate, each alone and times a variable: their inner constants are those of a coarse grid.

    v/(v + c) and 1/(v + c) for a variable that keeps its sign, v²/(v² + c) and 1/(v² + c), and 1/(1 + exp(b·v + a)).
    The grid follows the values of the variable. Whoever fits a sum of such terms sharpens the constants.
    """
    able = Abilities(tuple(operators))
    if not (able.quotients and able.sums) or len(columns) > _MAX_BOUNDED_VARIABLES:
        return []
    found: dict[Expression, None] = {}
    for name, values in columns.items():
        for term in _bounded(Variable(name), values, able):
            found[term] = None
            if able.products:
                found |= dict.fromkeys(apply("mul", Variable(other), term) for other in columns)
    return sorted(found, key=lambda term: term.complexity)


def _bounded(slot: Expression, values: Array, able: Abilities) -> Iterator[Expression]:
    """The bounded terms in one variable with these values (points,)."""
    size = float(np.median(np.abs(values)))
    spread = float(np.std(values))
    if not (size > 0 and spread > 0):
        return
    square = apply("mul", slot, slot)
    one_sign = bool((values > 0).all() or (values < 0).all())
    for share in _HALF_SATURATIONS:
        half = share * size
        if one_sign:
            below = apply("add", slot, Constant(half if values[0] > 0 else -half))
            yield apply("div", slot, below)
            yield apply("inv", below)
        below = apply("add", square, Constant(half**2))
        yield apply("div", square, below)
        yield apply("inv", below)
    if Role.EXPONENTIAL in able.roles:
        for middle, steepness in itertools.product(np.quantile(values, _MIDDLES).tolist(), _STEEPNESS):
            rate = steepness / spread
            inside = apply("add", apply("mul", Constant(rate), slot), Constant(-rate * middle))
            yield apply("inv", apply("add", apply("exp", inside), Constant(1)))


def term_values(terms: Sequence[Expression], columns: Mapping[str, Array]) -> tuple[list[Expression], Array]:
    """The terms whose values are finite and of ordinary size on all points, and their values (points, terms)."""
    finite: list[Expression] = []
    values: list[Array] = []
    with np.errstate(all="ignore"):
        for term in terms:
            column = np.asarray(evaluate(term, columns), dtype=np.float64)
            size = float(np.abs(column).max())  # NaN compares false
            if size < _MAX_SIZE and size > 1 / _MAX_SIZE:
                finite.append(term)
                values.append(column)
    points = len(next(iter(columns.values())))
    return finite, np.stack(values, axis=1) if values else np.empty((points, 0))


def _monomials(slots: Sequence[Expression]) -> list[Expression]:
    degree = _MAX_DEGREE
    while degree > _MIN_DEGREE and math.comb(len(slots) + degree, degree) > _MAX_MONOMIALS:
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
    """Whether the operator is a whole power: the library has those as products and quotients."""
    return operator.exponent is not None and float(operator.exponent).is_integer()


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
    """Indices of terms, ascending; the part of the target's variance that they leave; and their total complexity."""

    terms: tuple[int, ...]
    unexplained: float
    cost: int


def normal_equations(A: Array, y: Array, cost: Whole) -> Normal:
    """The normal equations of columns A (n, p) and y (n,), all centred; a constant column explains nothing."""
    A = A - A.mean(axis=0)
    y = y - y.mean()
    size = np.linalg.norm(A, axis=0)
    A = A / np.where(size > 0, size, 1.0)
    norm = float(np.linalg.norm(y))
    return Normal(A.T @ A, A.T @ (y / norm if norm > 0 else y), cost)


def best_subsets(normal: Normal, max_terms: int, max_cost: int, budget: Budget) -> list[Subset]:
    """The best sets found of each size and total complexity, by complexity; single terms where there is no time."""
    best: dict[tuple[int, int], list[Subset]] = {}
    seen: set[tuple[int, ...]] = set()
    grown: set[tuple[int, ...]] = set()  # different sets may become the same one when a term leaves

    def keep(found: Iterable[Subset]) -> None:
        for subset in found:
            if subset.terms in seen or subset.cost > max_cost:
                continue
            seen.add(subset.terms)
            place = best.setdefault((len(subset.terms), subset.cost), [])
            place.append(subset)
            place.sort(key=lambda one: one.unexplained)
            del place[_SETS_PER_COMPLEXITY:]

    def grow(terms: tuple[int, ...]) -> None:
        if terms and terms not in grown:
            grown.add(terms)
            keep(_grow(normal, terms))

    keep(_singles(normal))
    if budget.over():
        return _sorted(best)
    keep(_pairs(normal, max_cost))
    for size in range(2, max_terms + 1):
        for subset in _layer(best, size, 1):
            if budget.over():
                return _sorted(best)
            for i in range(size):
                grow(subset.terms[:i] + subset.terms[i + 1 :])
        if size < max_terms:
            for subset in _layer(best, size, _SETS_PER_COMPLEXITY):
                if budget.over():
                    return _sorted(best)
                grow(subset.terms)
    return _sorted(best)


def _sorted(best: dict[tuple[int, int], list[Subset]]) -> list[Subset]:
    return sorted((s for place in best.values() for s in place), key=lambda one: (one.cost, one.unexplained))


def _layer(best: dict[tuple[int, int], list[Subset]], size: int, count: int) -> list[Subset]:
    """The `count` best sets of a size for each complexity, without those far worse than a cheaper one of the size."""
    layer: list[Subset] = []
    smallest = np.inf
    for _, place in sorted(((cost, place) for (k, cost), place in best.items() if k == size), key=lambda pair: pair[0]):
        layer += [subset for subset in place[:count] if subset.unexplained <= _FAR_WORSE * smallest]
        smallest = min(smallest, place[0].unexplained)
    return layer


def _singles(normal: Normal) -> list[Subset]:
    unexplained = 1 - normal.b**2
    return [Subset((i,), float(unexplained[i]), int(normal.cost[i])) for i in range(len(normal))]


def _pairs(normal: Normal, max_cost: int) -> list[Subset]:
    """The three best pairs for each two complexities of their terms, out of all pairs."""
    groups = {int(price): np.flatnonzero(normal.cost == price) for price in np.unique(normal.cost)}
    found: list[Subset] = []
    for first, rows in groups.items():
        for second, columns in groups.items():
            if second < first or first + second > max_cost:
                continue
            g, b, c = normal.G[np.ix_(rows, columns)], normal.b[rows][:, None], normal.b[columns][None, :]
            gain = pair_r_squared(*map(torch.from_numpy, (b, c, g))).numpy()
            gain = (np.where(rows[:, None] < columns, gain, 0.0) if first == second else gain).ravel()
            best = np.argpartition(-gain, min(_SETS_PER_COMPLEXITY, len(gain)) - 1)[:_SETS_PER_COMPLEXITY]
            for at in best[gain[best] > 0]:
                i, j = int(rows[at // len(columns)]), int(columns[at % len(columns)])
                found.append(Subset((min(i, j), max(i, j)), float(1 - gain[at]), first + second))
    return found


def _grow(normal: Normal, terms: tuple[int, ...]) -> list[Subset]:
    """The set with one more term: the best three for each complexity of that term."""
    chosen = list(terms)
    base = normal.G[np.ix_(chosen, chosen)]
    try:
        factor = np.linalg.cholesky(base)
    except np.linalg.LinAlgError:
        return []
    rows = np.linalg.solve(factor, normal.G[chosen])
    along = np.linalg.solve(factor, normal.b[chosen])
    remaining = 1 - (rows**2).sum(axis=0)  # of each unit column, off the columns of the set
    remaining[chosen] = 0.0
    usable = np.flatnonzero(remaining > EXACTNESS.remainder)
    gain = (normal.b[usable] - along @ rows[:, usable]) ** 2 / remaining[usable]
    unexplained = 1 - float(along @ along)
    cost = int(normal.cost[chosen].sum())
    price = normal.cost[usable]
    order = np.lexsort((-gain, price))
    first = np.searchsorted(price[order], price[order])  # where each price begins
    order = order[np.arange(len(order)) - first < _TERMS_PER_COMPLEXITY]
    return [
        Subset(tuple(sorted((*terms, int(usable[at])))), unexplained - float(gain[at]), cost + int(price[at]))
        for at in order
    ]
