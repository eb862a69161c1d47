"""The numbers behind the pictures of a law: what it says at the rows, between them, and what it leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.expressions import Expression, evaluate, variables
from symenum.report.evidence import Evidence

__all__ = ["Fitted", "front_points", "make_fitted"]

Array = npt.NDArray[np.float64]

_CURVE = 300  # points of a law's line


@dataclass(frozen=True)
class Fitted:
    """A law on rows: measured, predicted and residual (measured - predicted), each (rows,).

    A law of one variable also has `x`, that variable's name and values, and `curve`, its values (points,) between them.
    `undefined` counts rows where the law has no finite value.
    """

    measured: Array
    predicted: Array
    residual: Array
    undefined: int
    x: tuple[str, Array] | None = None
    curve: tuple[Array, Array] | None = None


def make_fitted(law: Expression, evidence: Evidence) -> Fitted:
    """The law on the rows that were kept."""
    columns = evidence.columns
    predicted: Array = evaluate(law, columns)
    undefined = int(np.count_nonzero(~np.isfinite(predicted)))
    with np.errstate(invalid="ignore", over="ignore"):  # where the law is infinite, so is what it leaves
        residual = evidence.y - predicted
    used = variables(law)
    if len(used) != 1:
        return Fitted(evidence.y, predicted, residual, undefined)
    (name,) = used
    x = columns[name]
    low, high = float(x.min()), float(x.max())
    grid = low + np.linspace(0.0, 1.0, _CURVE) * (high / 2 - low / 2) * 2
    flat = {one: np.full(_CURVE, values[0]) for one, values in columns.items()}
    return Fitted(evidence.y, predicted, residual, undefined, (name, x), (grid, evaluate(law, {**flat, name: grid})))


def front_points(complexities: Sequence[int], losses: Sequence[float], floor: float) -> list[tuple[int, float]]:
    """Complexity and loss of each law for a logarithmic axis; a loss that is zero up to rounding is drawn at the floor.

    >>> front_points([1, 3], [0.5, 0.0], 1e-30)
    [(1, 0.5), (3, 1e-30)]
    """
    positive = [loss for loss in losses if loss > floor and math.isfinite(loss)]
    lowest = floor if floor > 0 else min(positive, default=1.0) / 10
    return [
        (complexity, max(loss, lowest))
        for complexity, loss in zip(complexities, losses, strict=True)
        if math.isfinite(loss)
    ]
