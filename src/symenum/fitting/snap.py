"""Coefficients of a linear fit, one after another fixed at nice numbers, the rest fitted anew each time.

Zero is a nice number, so this is also how terms that are not needed leave.

The rule, how far a coefficient may move and how much the residual may grow, is `recognise.Recognition`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.exactness import is_exact_fit, row_rounding
from symenum.fitting.least_squares import Array, Fit, least_squares
from symenum.fitting.recognise import RECOGNITION, Number, nice_number, plain_number

__all__ = ["Snapped", "snap"]

_BIAS = 2.0  # rounding errors of many rows may all have one sign: they do not average out
_ZERO_WINDOW = 0.05  # a term known worse than this part of y is not known to be nothing


@dataclass(frozen=True)
class Snapped:
    """`numbers` one for each column, and the root mean square of the weighted residual, relative to that of y."""

    numbers: tuple[Number, ...]
    relative_rms: float
    exact: bool  # up to rounding

    @property
    def unsnapped(self) -> int:
        """How many coefficients stayed floats."""
        return sum(not number.snapped for number in self.numbers)


@dataclass(frozen=True)
class _Rule:
    floor: float  # the rounding error of one row
    base: float  # the root mean square residual of the fit with all coefficients free
    size: float  # the root mean square of y
    rows: int
    columns: int
    exact: bool

    def limit(self, fixed: int) -> float:
        """The largest root mean square residual allowed with so many coefficients fixed."""
        return self.base * RECOGNITION.residual_growth(fixed, self.rows - self.columns, exact=self.exact)

    def means_zero(self, value: float, error: float, column: float) -> bool:
        """Whether a coefficient of a column of that size cannot be told from zero, and could be if it mattered."""
        return abs(value) <= error and (not self.exact or error * column <= _ZERO_WINDOW * self.size)

    def sigma(self, fit: Fit, free: int) -> float:
        total = math.sqrt(float((fit.residual**2).sum()) / max(self.rows - free, 1))
        return max(total, self.floor)


def snap(A: Array, y: Array, weight: Array | None = None, *, keep: bool = False) -> Snapped:
    """Fit y (n,) by the columns of A (n, k), float64, with row weights (n,), and fix what can be fixed.

    `keep`: no column may leave (0 is not offered). With fewer rows than columns nothing is fixed but what fits.
    """
    columns = A.shape[1]
    if weight is not None:
        root = np.sqrt(weight / weight.mean())
        A, y = A * root[:, None], y * root
    rows = len(y)
    rule = _rule(A, y)
    if rows > 2 * columns:
        A, y = _reduced(A, y)
    values = np.zeros(columns)
    numbers: list[Number | None] = [None] * columns
    free = list(range(columns))
    target = y
    fit = least_squares(A, target)
    while free:
        step = _fix_one(A, target, free, fit, rule, keep)
        if step is None:
            for position, j in enumerate(free):
                values[j] = fit.coefficients[position]
                numbers[j] = plain_number(float(values[j]))
            break
        j, number, fit = step
        values[j], numbers[j] = number.value, number
        free = [other for other in free if other != j]
        target = target - A[:, j] * number.value
    relative = _norm(y - A @ values) / math.sqrt(rows) / rule.size if rule.size > 0 else 0.0
    done = tuple(number for number in numbers if number is not None)
    return Snapped(done, relative, rule.exact)


def _reduced(A: Array, y: Array) -> tuple[Array, Array]:
    """As few rows as columns, and one, with the same normal equations and the same residual norms."""
    _, R = torch.linalg.qr(torch.from_numpy(np.column_stack([A, y])), mode="r")
    reduced: Array = R.numpy()
    return reduced[:, :-1], reduced[:, -1]


def _rule(A: Array, y: Array) -> _Rule:
    rows, columns = A.shape
    size = _norm(y) / math.sqrt(rows)
    fit = least_squares(A, y)
    floor = row_rounding(float(np.max(np.abs(A) @ np.abs(fit.coefficients) + np.abs(y), initial=0.0)))
    exact = is_exact_fit(fit.rms, size, floor)
    return _Rule(
        floor,
        max(fit.rms, floor),
        size,
        rows,
        columns,
        exact,
    )


def _fix_one(
    A: Array, target: Array, free: list[int], fit: Fit, rule: _Rule, keep: bool
) -> tuple[int, Number, Fit] | None:
    """The best determined free coefficient that has a nice number, if the others can make up for it."""
    if not fit.full_rank and len(free) > rule.rows:
        return None
    sigma = rule.sigma(fit, len(free))
    rarity = RECOGNITION.rarity(exact=rule.exact)
    offers: list[tuple[float, float, int, Number]] = []
    for position, j in enumerate(free):
        value = float(fit.coefficients[position])
        size = _norm(A[:, j]) / math.sqrt(rule.rows)
        error = RECOGNITION.window(value, sigma * float(fit.sensitivity[position]), exact=rule.exact)
        if rule.exact and size > 0:
            error = max(error, _BIAS * sigma / size)
        zero = not keep and rule.means_zero(value, error, size)
        number = nice_number(0.0, 0.0) if zero else nice_number(value, error, zero=False, rarity=rarity)
        if number is not None:
            relative = error / max(abs(value), 1e-3) if number.value else error
            offers.append((relative, number.cost, j, number))
    fixed = rule.columns - len(free) + 1
    for _, _, j, number in sorted(offers, key=lambda offer: offer[:3]):
        left = target - A[:, j] * number.value
        others = [other for other in free if other != j]
        rest = least_squares(A[:, others], left)
        if _norm(rest.residual) <= rule.limit(fixed) * math.sqrt(rule.rows):
            return j, number, rest
    return None


def _norm(values: Array) -> float:
    largest = float(np.max(np.abs(values), initial=0.0))  # squares of numbers near 1e200 would overflow
    return largest * float(np.sqrt(np.sum((values / largest) ** 2))) if largest > 0 else 0.0
