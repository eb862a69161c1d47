"""The data on which the runs of this folder are tried: few rows, many rows, many columns, noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["TABLES", "Table"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """X (rows, columns) and y (rows,), with noise, so that no law ends the search early."""

    X: Array
    y: Array


def _table(rows: int, columns: int, law: Callable[[Array], Array]) -> Table:
    rng = np.random.default_rng(rows + columns)
    X = rng.uniform(0.5, 3.0, (rows, columns))
    y = law(X)
    return Table(X, y + 0.02 * np.std(y) * rng.normal(size=rows))


def _curved(X: Array) -> Array:
    return np.sin(3 * X[:, 0]) / (X[:, 1] + np.exp(np.cos(X[:, 0] * X[:, 1]))) + np.tanh(X[:, 0] - X[:, -1])


TABLES: dict[str, Callable[[], Table]] = {
    "60 rows x 2": lambda: _table(60, 2, _curved),
    "200 rows x 4": lambda: _table(200, 4, _curved),
    "1,000 rows x 30": lambda: _table(1000, 30, _curved),
    "100,000 rows x 3": lambda: _table(100_000, 3, _curved),
    "1,000,000 rows x 3": lambda: _table(1_000_000, 3, _curved),
}
