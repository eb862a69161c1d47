"""Reductions one after another: a symmetry that the slopes suggest is taken if y is predicted as well without it.

The judge is always what a surface misses of y, each row predicted from the others, never the slopes alone. So noise is
accounted for: what the data cannot tell from a symmetry may be taken for one, what they can, not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

from symenum.core.budget import Budget
from symenum.enumeration.seeds import some_rows
from symenum.heads.goal import Data
from symenum.heads.reductions.reduced import Reduced, reduce_by
from symenum.heads.reductions.surface import Surface, best_surface, fit_surface
from symenum.heads.reductions.symmetry import Symmetry, symmetries

__all__ = ["FEWEST_ROWS", "reductions"]

FEWEST_ROWS = 30
_ROWS = 1000  # a surface looks at no more
_TRIALS = 8  # symmetries of each size that are put to the test
_SUGGESTED = 0.5  # of a symmetry may be left in the slopes, which noise and misfit blur
_STANDARD_ERRORS = 2.0
_SLACK, _MOST_SLACK = 0.05, 0.4  # a surface of other slots misses another part of a smooth function
_CLEAR = 0.1  # with less left of it in the slopes, a symmetry is tested in all charts
_ALL = 1e-7  # of the variance: a surface that misses less has found all, and another need not equal it
_EXPLAINED = 0.5  # a surface that misses more of the variance of y says nothing
_MOST_MEMBERS = 3


def reductions(data: Data, budget: Budget) -> Iterator[Reduced]:
    """Ever further reductions of the data, as long as there are any."""
    if data.target.rows < FEWEST_ROWS:
        return
    looker = _Looker(Reduced.of(data))
    while not budget.over():
        further = looker.step(budget)
        if further is None:
            return
        yield further


class _Looker:
    """The problem as reduced so far, and the least that any surface has missed of y on the way."""

    def __init__(self, problem: Reduced) -> None:
        root = problem.root
        self._rows = some_rows(root.target.rows, _ROWS, root.seed, "rows that surfaces are fitted to")
        self._problem = problem
        self._missed: Tensor | None = None

    def step(self, budget: Budget) -> Reduced | None:
        """The problem with one more reduction, if the data allow one."""
        X, y, weight = self._part(self._problem)
        surface = best_surface(X, y, weight, budget)
        if surface is None or surface.loss > _EXPLAINED * _variance(y, weight):
            return None
        self._note(self._problem, surface)
        for members in range(1, min(_MOST_MEMBERS, len(X)) + 1):
            suggested = [one for one in symmetries(surface, X, weight, members, budget) if one.left < _SUGGESTED]
            for symmetry in suggested[:_TRIALS]:
                if budget.over():
                    return None
                reduced = self._tested(symmetry, surface, budget)
                if reduced is not None:
                    self._problem = reduced
                    return reduced
        return None

    def _part(self, problem: Reduced) -> tuple[Tensor, Tensor, Tensor]:
        weight = problem.weight[self._rows]
        return problem.values[:, self._rows], problem.y[self._rows], weight / weight.sum()

    def _tested(self, symmetry: Symmetry, surface: Surface, budget: Budget) -> Reduced | None:
        reduced = reduce_by(self._problem, symmetry)
        if reduced is None:
            return None
        part = self._part(reduced)
        found = fit_surface(*part, surface.chart, budget)
        if found is not None and self._as_good(self._in_units_of_y(reduced, found)):
            return reduced
        found = best_surface(*part, budget) if symmetry.left < _CLEAR else None
        if found is None:
            return None
        missed = self._in_units_of_y(reduced, found)
        y = reduced.root.target.y[self._rows]
        return reduced if self._as_good(missed) or self._loss(missed) < _ALL * _variance(y, self._row_weight) else None

    def _in_units_of_y(self, problem: Reduced, surface: Surface) -> Tensor:
        return surface.missed * problem.scale[self._rows]

    def _note(self, problem: Reduced, surface: Surface) -> None:
        missed = self._in_units_of_y(problem, surface)
        if self._missed is None or self._loss(missed) < self._loss(self._missed):
            self._missed = missed

    def _loss(self, missed: Tensor) -> float:
        return float((missed.square() * self._row_weight).sum())

    @property
    def _row_weight(self) -> Tensor:
        weight = self._problem.root.target.weight[self._rows]
        return weight / weight.sum()

    def _as_good(self, missed: Tensor) -> bool:
        """Whether it misses no more than the best so far, up to the error of that difference."""
        assert self._missed is not None  # noted before any test
        best = self._loss(self._missed)
        difference = (missed.square() - self._missed.square()) * self._row_weight * len(missed)
        error = float(difference.std()) / math.sqrt(len(missed))
        allowed = min(max(_STANDARD_ERRORS * error, _SLACK * best), _MOST_SLACK * best)
        return float(difference.mean()) <= allowed


def _variance(y: Tensor, weight: Tensor) -> float:
    return float(((y - (y * weight).sum()).square() * weight).sum())
