"""What becomes of rows with missing cells before a fit: left out, filled in, or an error.

A cell is missing where pandas calls it so: NaN, None, NaT, pandas.NA. Infinite numbers are not missing: they are an
error in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas

from symenum.core.user_warnings import warn_user

__all__ = ["MISSING_RULES", "Kept", "handle_missing"]

MISSING_RULES = ("auto", "error", "drop", "impute")
"""What `PSERegressor(missing=...)` may be; "auto": "drop" for a DataFrame, "error" for anything else."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Kept:
    """X and y without missing cells; `rows` (all rows,) says which rows are left, None if all are."""

    X: Any
    y: Any
    rows: Flags | None = None

    def of(self, name: str, values: object) -> object:
        """The values of the rows that are left; `name` is that of the argument, for the error message.

        Values that are None or one number stay as they are.
        """
        if self.rows is None or values is None or np.ndim(values) == 0:  # type: ignore[arg-type]
            return values
        array = np.asarray(values)
        if len(array) != len(self.rows):
            raise ValueError(f"{name} must have {len(self.rows)} numbers, one for each row, not {len(array)}")
        return array[self.rows]


def handle_missing(rule: str, X: Any, y: Any) -> Kept:
    """X (rows, features) and y (rows,) by one of MISSING_RULES; a warning counts the rows that are left out.

    "impute" puts the median of its column in place of a missing cell of X; rows without y are left out. What is no
    table of numbers is given back as it is: the checks that follow have messages for it.
    """
    if rule == "auto":
        rule = "drop" if isinstance(X, pandas.DataFrame) else "error"
    cells, targets = _missing(X), _missing(y)
    usable = cells is not None and targets is not None and cells.ndim == 2 and len(cells) == len(targets)
    if rule == "error" or not usable:
        return Kept(X, y)
    assert cells is not None
    assert targets is not None
    without_y = targets.reshape(len(targets), -1).any(axis=1)
    if rule == "impute":
        if cells.any():
            X = _imputed(X, cells)
            _warn(f"{int(cells.sum())} missing cells of X are filled in with the medians of their columns")
        cells = np.zeros_like(cells)
    dropped: Flags = np.asarray(cells.any(axis=1) | without_y)
    if not dropped.any():
        return Kept(X, y)
    if dropped.all():
        raise ValueError("X and y: every row has a missing cell; leave out the columns that are empty, or impute")
    count = int(dropped.sum())
    _warn(f"{count} of {len(dropped)} rows {'has a missing cell' if count == 1 else 'have missing cells'}: left out")
    rows = ~dropped
    return Kept(_rows(X, rows), _rows(y, rows), rows)


def _imputed(X: Any, cells: Flags) -> Any:
    """X with the median of its column in place of each missing cell."""
    frame = X if isinstance(X, pandas.DataFrame) else pandas.DataFrame(np.asarray(X))
    columns = np.flatnonzero(cells.any(axis=0))
    empty = [str(frame.columns[i]) for i in np.flatnonzero(cells.all(axis=0))]
    if empty:
        raise ValueError(f"X has no value in the column {', '.join(empty[:3])}: leave it out")
    filled = frame.copy()
    for i in columns:
        name = frame.columns[i]
        numbers = pandas.to_numeric(frame[name], errors="coerce")
        filled[name] = numbers.fillna(numbers.median())
    return filled if isinstance(X, pandas.DataFrame) else filled.to_numpy(dtype=np.float64)


def _missing(values: Any) -> Flags | None:
    """Which cells are missing; None for what is no table."""
    if values is None or hasattr(values, "sparse") or type(values).__module__.startswith("scipy."):
        return None
    try:
        found = pandas.isna(values if isinstance(values, (pandas.DataFrame, pandas.Series)) else np.asarray(values))
    except (TypeError, ValueError):
        return None
    array = np.asarray(found)
    return array if array.ndim else None


def _rows(values: Any, rows: Flags) -> Any:
    return values[rows] if isinstance(values, (pandas.DataFrame, pandas.Series)) else np.asarray(values)[rows]


def _warn(text: str) -> None:
    warn_user(text)
