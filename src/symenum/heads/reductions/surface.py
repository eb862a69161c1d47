"""A smooth surface through the data: a polynomial of the slots, or of their logarithms, for y or for log|y|.

It is no law, but it knows two things that tell how variables enter one: how well y can be predicted from these slots
(each row without itself), and the slopes of y. What it misses is noise and misfit together, so a comparison of two
surfaces is fair whatever the noise is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS

__all__ = ["Chart", "Surface", "best_surface", "degree_of", "fit_surface"]

_MOST_TERMS = 240
_ROWS_PER_TERM = 5
_MOST_DEGREE = 10
_OWN_SHARE = 0.99  # of a row in its own prediction; beyond it, leaving it out says nothing
_CUT = 1e3  # of y² as a weight, above and below its median
_STEEPEST = 300.0


@dataclass(frozen=True)
class Chart:
    """Whether slots above zero are taken by their logarithms, and whether y is."""

    log_slots: bool
    log_y: bool


@dataclass(frozen=True)
class Surface:
    """`missed` (rows,): y less its prediction from the other rows; `values` (rows,); `slopes` (slots, rows), by x."""

    chart: Chart
    missed: Tensor
    values: Tensor
    slopes: Tensor
    loss: float


def degree_of(slots: int, rows: int) -> int:
    """The largest degree that has rows enough; below 2 there is none worth a look."""
    most = min(_MOST_TERMS, rows // _ROWS_PER_TERM)
    degree = 0
    while degree < _MOST_DEGREE and math.comb(slots + degree + 1, slots) <= most:
        degree += 1
    return degree


def best_surface(X: Tensor, y: Tensor, weight: Tensor, budget: Budget = NO_LIMIT) -> Surface | None:
    """The one that predicts y best of those that the data allow; X (slots, rows), all float64."""
    found = [fit_surface(X, y, weight, chart, budget) for chart in _charts(X, y)]
    return min((surface for surface in found if surface is not None), key=lambda surface: surface.loss, default=None)


def _charts(X: Tensor, y: Tensor) -> Iterator[Chart]:
    one_sign = bool((y > 0).all() or (y < 0).all())
    for log_slots in (False, True) if bool((X > 0).all(dim=1).any()) else (False,):
        for log_y in (False, True) if one_sign else (False,):
            yield Chart(log_slots, log_y)


def fit_surface(X: Tensor, y: Tensor, weight: Tensor, chart: Chart, budget: Budget = NO_LIMIT) -> Surface | None:
    """The polynomial of this chart; None where the rows are too few for degree 2, or y has no logarithm."""
    budget.check()
    slots, rows = X.shape
    degree = degree_of(slots, rows)
    if degree < 2 or (chart.log_y and not bool((y > 0).all() or (y < 0).all())):
        return None
    logs = (X > 0).all(dim=1) & chart.log_slots
    coordinates = torch.where(logs[:, None], X.clamp_min(torch.finfo(X.dtype).tiny).log(), X)
    low, high = coordinates.amin(dim=1, keepdim=True), coordinates.amax(dim=1, keepdim=True)
    if not bool((high > low).all()):
        return None
    half = (high - low) / 2
    basis = _Basis.of((coordinates - low) / half - 1, degree)
    t, root = y, weight.sqrt()
    if chart.log_y:
        square = y.square()
        middle = square.median()
        t, root = y.abs().log(), (weight * square.clamp(middle / _CUT, middle * _CUT)).sqrt()
    A = basis.columns()
    Q, R = torch.linalg.qr(A * root[:, None])
    diagonal = R.diagonal().abs()
    kept = diagonal > EXACTNESS.flat * diagonal.max()  # off those before it, another column does not vary
    if not bool(kept.all()):
        A = A[:, kept]
        Q, R = torch.linalg.qr(A * root[:, None])
    coefficients = torch.zeros(len(kept), dtype=X.dtype)
    coefficients[kept] = torch.linalg.solve_triangular(R, (Q.T @ (t * root))[:, None], upper=True)[:, 0]
    fitted = A @ coefficients[kept]
    own = Q.square().sum(dim=1).clamp_max(_OWN_SHARE)
    predicted = t - (t - fitted) / (1 - own)
    slopes = basis.slopes(coefficients) / half
    if chart.log_y:
        sign = y.sign()
        predicted, fitted = (sign * values.clamp(-_STEEPEST, _STEEPEST).exp() for values in (predicted, fitted))
        slopes = slopes * fitted
    slopes = torch.where(logs[:, None], slopes / X, slopes)
    missed = y - predicted
    return Surface(chart, missed, fitted, slopes, float((missed.square() * weight).sum()))


@dataclass(frozen=True)
class _Basis:
    """Products of Chebyshev polynomials: `powers` (terms, slots), `value` and `slope` (degree + 1, slots, rows)."""

    powers: Tensor
    value: Tensor
    slope: Tensor

    @staticmethod
    def of(u: Tensor, degree: int) -> _Basis:
        """On coordinates u (slots, rows) in [-1, 1], by total degree."""
        value, slope = [torch.ones_like(u), u], [torch.zeros_like(u), torch.ones_like(u)]
        for _ in range(2, degree + 1):
            value.append(2 * u * value[-1] - value[-2])
            slope.append(2 * value[-2] + 2 * u * slope[-1] - slope[-2])
        return _Basis(torch.tensor(list(_powers(len(u), degree))), torch.stack(value), torch.stack(slope))

    def columns(self, slope_of: int | None = None) -> Tensor:
        """(rows, terms); with `slope_of`, their derivatives by that coordinate."""
        slots, rows = self.value.shape[1:]
        product = torch.ones(len(self.powers), rows, dtype=self.value.dtype)
        for slot in range(slots):
            table = self.slope if slot == slope_of else self.value
            product *= table[self.powers[:, slot], slot]
        return product.T

    def slopes(self, coefficients: Tensor) -> Tensor:
        """(slots, rows), by the coordinates in [-1, 1]."""
        return torch.stack([self.columns(slot) @ coefficients for slot in range(self.value.shape[1])])


def _powers(slots: int, degree: int) -> Iterator[tuple[int, ...]]:
    if slots == 0:
        yield ()
        return
    for first in range(degree + 1):
        for rest in _powers(slots - 1, degree - first):
            yield (first, *rest)
