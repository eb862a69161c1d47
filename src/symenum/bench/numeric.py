"""The numeric verdict: do two expressions agree on fresh points, inside and outside of the training range?

In doubles first. Where these differ by more than rounding may explain, or one of them has overflowed, the point is
judged in extended precision: a difference of nearly equal numbers costs no law its recovery.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np

from symenum.bench.precision import DIGITS, extended_value
from symenum.expressions import Expression, variables
from symenum.problems.problem import Array, Case, law_values

__all__ = ["agree", "constant_apart"]

_RELATIVE = 1e-9
_ABSOLUTE = 1e-12  # times the median of |y|
_MOST_EXTENDED = 60  # points; more than that, and it is no rounding
_FEWEST = 20  # points on which a law must be defined to be judged


@dataclass(frozen=True)
class _Points:
    X: Array
    y: Array


def _points(case: Case, seed: int) -> _Points:
    """Fresh points of the training range and of one twice as wide, those where the law is defined.

    What is positive in the data stays so: a length below zero is nothing that a law of lengths can be asked.
    """
    inside, outside = case.test(seed), case.fresh(seed)
    X, y = np.concatenate([inside[0], outside[0]]), np.concatenate([inside[1], outside[1]])
    signed = inside[0].min(axis=0) < 0
    defined = np.isfinite(y) & ((X > 0) | signed).all(axis=1)
    return _Points(X[defined], y[defined])


def agree(found: Expression, law: Expression, case: Case, seed: int = 0) -> bool:
    """Whether `found` equals `law` to 1e-9 on all fresh points of the case, and is defined on all of them."""
    if set(variables(found)) - set(case.variables):
        return False
    points = _points(case, seed)
    if len(points.y) < _FEWEST:
        raise ValueError(f"{case.name}: the law is defined on {len(points.y)} of the fresh points, too few to judge")
    y = law_values(law, case.variables, points.X)
    scale = float(np.median(np.abs(y)))
    apart = np.abs(law_values(found, case.variables, points.X) - y)
    doubtful = np.flatnonzero(~(apart <= _RELATIVE * np.abs(y) + _ABSOLUTE * scale))
    if len(doubtful) > _MOST_EXTENDED and not _cancels(found, law, case, points.X[doubtful]):
        return False
    chosen = doubtful[:: max(1, len(doubtful) // _MOST_EXTENDED)]
    return all(_extended_agree(found, law, case, points.X[i], scale) for i in chosen)


def constant_apart(found: Expression, law: Expression, case: Case, seed: int = 0) -> bool:
    """SRBench's rule in numbers: found - law is one constant on all points, or found/law is one other than zero."""
    if set(variables(found)) - set(case.variables):
        return False
    points = _points(case, seed)
    y = law_values(law, case.variables, points.X)
    values = law_values(found, case.variables, points.X)
    defined = np.isfinite(y)
    if not np.isfinite(values[defined]).all():
        return False
    y, values = y[defined], values[defined]
    scale = max(float(np.median(np.abs(y))), float(np.median(np.abs(values))))
    offset = values - y
    if np.abs(offset - np.median(offset)).max() <= _RELATIVE * scale + 8 * np.finfo(float).eps * np.abs(y).max():
        return True
    factor = float(np.median(values / y)) if (y != 0).all() else float(np.dot(values, y) / np.dot(y, y))
    if not np.isfinite(factor) or abs(factor) < np.finfo(float).tiny:
        return False
    return bool((np.abs(values - factor * y) <= _RELATIVE * np.abs(factor * y) + _ABSOLUTE * abs(factor) * scale).all())


def _cancels(found: Expression, law: Expression, case: Case, X: Array) -> bool:
    """Whether the first few doubtful points agree in extended precision after all."""
    return all(_extended_agree(found, law, case, row, 1.0) for row in X[:3])


def _extended_agree(found: Expression, law: Expression, case: Case, row: Array, scale: float) -> bool:
    point = {name: float(value) for name, value in zip(case.variables, row, strict=True)}
    a, b = extended_value(found, point), extended_value(law, point)
    if a is None or b is None:
        return False
    with mpmath.workdps(DIGITS):
        return bool(abs(a - b) <= _RELATIVE * abs(b) + _ABSOLUTE * scale)
