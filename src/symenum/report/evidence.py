"""The data of a fit as far as a report needs them: a summary of all rows, and some of the rows themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["ColumnSummary", "Evidence"]

Array = npt.NDArray[np.float64]

_MOST_ROWS = 1000  # more dots than that hide each other
_MOST_NUMBERS = 100_000  # a model with very many columns should not grow by its data


@dataclass(frozen=True)
class ColumnSummary:
    """A column in numbers; `name` is its name in laws, `column` that in the data."""

    name: str
    column: str
    least: float
    median: float
    most: float
    distinct: int


@dataclass(frozen=True)
class Evidence:
    """`rows` counts all; `variance` is the weighted one of all targets.

    X (kept, features) and y (kept,) are evenly spaced rows, all where they are few.
    """

    rows: int
    variance: float
    variables: tuple[ColumnSummary, ...]
    target: ColumnSummary
    X: Array
    y: Array

    @staticmethod
    def of(
        X: Array, y: Array, names: Sequence[str], columns: Sequence[str], target: str = "y", weight: Array | None = None
    ) -> Evidence:
        """The evidence of X (rows, features), y (rows,) and weights (rows,)."""
        most = max(1, min(_MOST_ROWS, _MOST_NUMBERS // (X.shape[1] + 1)))
        kept = np.unique(np.linspace(0, len(y) - 1, min(len(y), most)).round().astype(int))
        described = zip(X.T, names, columns, strict=True)
        return Evidence(
            len(y),
            _variance(y, weight),
            tuple(_summary(values, name, column) for values, name, column in described),
            _summary(y, target, target),
            X[kept].copy(),
            y[kept].copy(),
        )

    @property
    def columns(self) -> dict[str, Array]:
        """The kept rows as columns, by their names in laws."""
        return {one.name: np.ascontiguousarray(self.X[:, i]) for i, one in enumerate(self.variables)}


def _variance(y: Array, weight: Array | None) -> float:
    with np.errstate(over="ignore"):  # infinite where squares are no doubles any more
        return float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))


def _summary(values: Array, name: str, column: str) -> ColumnSummary:
    ordered = np.sort(values)
    distinct = int(np.count_nonzero(np.diff(ordered))) + 1
    # One of the values, so that no sum of two can overflow.
    return ColumnSummary(
        name, column, float(ordered[0]), float(ordered[len(ordered) // 2]), float(ordered[-1]), distinct
    )
