"""Which few of many terms explain a target best, for every total complexity: the sets that can stand on a front.

Works on the normal equations alone, so that its cost does not depend on the number of rows. All single terms and all
pairs are judged; larger sets grow from the best of each complexity, and each of them is improved by exchanging one
term. One beam ordered by fit alone would drop the simple truth, whose parts fit worse than fancier ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.scans.r_squared import pair_r_squared

__all__ = ["Normal", "Subset", "best_subsets", "normal_equations"]

Array = npt.NDArray[np.float64]
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
