"""Checks of the data that `fit` gets: X, y, weights and validation rows become float64 arrays and tensors, or an error.

An error names the argument that is wrong; those of scikit-learn's checks do not always do so.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
import torch
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight, validate_data

from symenum.core.seeds import sample_rows
from symenum.core.target import Target, Training, check_target, refuse_dates_and_masks
from symenum.expressions.parse import formula_names
from symenum.fitting.losses import make_loss

__all__ = ["FitData", "check_fit_data", "check_validation", "column_names", "make_training", "target_name"]

Array = npt.NDArray[np.float64]

_ALIGNED = 8  # numbers in 64 bytes
_NUMBERS_BESIDE_A_ROW = 4  # y, its weight, its index, and the values of a law
_LEAST_SAMPLE = 100  # rows: fewer than these say little of a law
_COPIED = 1 << 18  # numbers that are copied at once: 2 MiB
_ARGUMENT_NAME = re.compile(r"\b(X|y|feature names|sample_weight)\b")  # in a message of scikit-learn


@dataclass(frozen=True)
class FitData:
    """The data of a fit: X (rows, features), y and weight (rows,), all float64, with rows of weight zero."""

    X: Array
    y: Array
    weight: Array | None
    columns: tuple[str, ...] | None  # names of the columns of a DataFrame; None for an array

    def frame(self) -> Any:
        """X as it was given: an array, or a DataFrame with its names."""
        return self.X if self.columns is None else pandas.DataFrame(self.X, columns=list(self.columns))

    def weighted_rows(self, room: int, seed: int) -> tuple[torch.Tensor, Target]:
        """The rows of weight above zero, float64 (rows, features) on the CPU, and their target.

        Where they take more than `room` bytes, as many of them as fit, drawn at random by `seed`, and a warning. Fewer
        than two rows are an error.
        """
        target, rows = check_target(self.y, self.weight, len(self.X))
        if len(rows) < 2:
            raise ValueError(f"sample_weight leaves {len(rows)} row of weight above zero: at least 2 are needed")
        row_bytes = 8 * (self.X.shape[1] + _NUMBERS_BESIDE_A_ROW)
        fitting = room // row_bytes
        if fitting >= len(rows):
            return _table(self.X, None if self.weight is None else rows), target
        size = (
            f"X has {len(rows):,} rows and {self.X.shape[1]:,} columns, which take {len(rows) * row_bytes / 1e9:.3g} GB"
        )
        limit = f"more than the quarter of max_memory that is for the data ({room / 1e9:.3g} GB)"
        if fitting < _LEAST_SAMPLE:
            raise ValueError(
                f"{size}, {limit}; not even {_LEAST_SAMPLE} rows fit: leave out columns, or raise max_memory"
            )
        warnings.warn(
            f"{size}, {limit}: the search works on {fitting:,} rows drawn at random, and losses are those on them; "
            "raise max_memory for more",
            UserWarning,
            stacklevel=5,
        )
        part = sample_rows(len(rows), fitting, seed, "rows that fit into memory")
        return _table(self.X, rows[part]), target.at(part)


def check_fit_data(estimator: Any, X: object, y: object, sample_weight: object) -> FitData:
    """X (rows, features), y and weights (rows,) as float64; sets `n_features_in_` and `feature_names_in_`."""
    _check_columns(X)
    for name, data in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        refuse_dates_and_masks(name, data)
    with _naming_arguments(y):
        values, target = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        target = np.asarray(target, dtype=np.float64)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
    labels = getattr(estimator, "feature_names_in_", None)
    return FitData(values, target, weight, None if labels is None else tuple(map(str, labels)))


def check_validation(estimator: Any, validation: object, names: Sequence[str]) -> Training | None:
    """The rows of `fit(validation=...)`; None where there are none.

    The estimator must have its `n_features_in_`; `names` are the names of the features in laws.
    """
    if validation is None:
        if estimator.model_selection == "validation":
            raise ValueError("model_selection='validation' needs rows to choose on: fit(X, y, validation=(X2, y2))")
        return None
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
        raise ValueError("validation must be a pair (X, y) or a triple (X, y, sample_weight)")
    try:
        for name, data in zip(("X", "y", "sample_weight"), validation, strict=False):
            refuse_dates_and_masks(name, data)
        values, y = validate_data(
            estimator, validation[0], validation[1], dtype=np.float64, y_numeric=True, reset=False
        )
        weight = validation[2] if len(validation) == 3 else None
        target, rows = check_target(np.asarray(y, dtype=np.float64), weight, len(values))
        make_loss(estimator.loss, target, weighted=weight is not None)  # an error if the loss cannot judge this y
    except (TypeError, ValueError) as error:
        raise ValueError(f"validation: {error}") from error
    return Training.of(_table(values, rows), names, target)


def make_training(X: object, y: object, sample_weight: object, names: tuple[str, ...] | None = None) -> Training:
    """The rows of X (rows, features), an array or a DataFrame, and y (rows,); rows of weight zero are left out.

    `names` are the names of the columns in formulas; None takes those of the DataFrame, or x1, x2, … for an array.
    """
    for name, data in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        refuse_dates_and_masks(name, data)
    labels = getattr(X, "columns", None)
    values, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    target, rows = check_target(np.asarray(y, dtype=np.float64), weight, len(values))
    names = names or column_names(labels, values.shape[1])
    return Training.of(_table(values, rows), names, target)


def _table(values: Array, rows: torch.Tensor | None) -> torch.Tensor:
    """The rows (int64; None: all) of values (rows, features) as a tensor whose columns are contiguous and aligned.

    So a column is a view of it, and the table is held once. Each column begins at a multiple of 64 bytes: the last
    digits of some sums depend on the alignment.
    """
    count = len(values) if rows is None else len(rows)
    aligned = -(-count // _ALIGNED) * _ALIGNED
    table = torch.empty(values.shape[1], aligned, dtype=torch.float64)[:, :count].T
    chosen = None if rows is None else rows.numpy()
    step = max(1, _COPIED // max(1, values.shape[1]))
    for start in range(0, count, step):  # in parts: to choose rows takes a copy of them
        part = slice(start, start + step)
        table.numpy()[part] = values[part] if chosen is None else values[chosen[part]]
    return table


def column_names(labels: Iterable[object] | None, count: int) -> tuple[str, ...]:
    """Names for formulas: x1, x2, … without labels; else the labels, changed where a formula could not hold them."""
    if labels is None:
        return tuple(f"x{i + 1}" for i in range(count))
    return tuple(formula_names([str(label) for label in labels]).values())


def target_name(y: object) -> str:
    """The name of y in outputs: that of a Series or of a DataFrame of one column, else "y".

    >>> target_name(pandas.Series([1.0], name="pressure")), target_name([1.0])
    ('pressure', 'y')
    """
    labels = list(y.columns) if isinstance(y, pandas.DataFrame) else [getattr(y, "name", None)]
    named = len(labels) == 1 and isinstance(labels[0], str) and labels[0].strip()
    return str(labels[0]) if named else "y"


def _check_columns(X: object) -> None:
    """Refuse a table with two columns of one name: a law could not say which of them it means."""
    names = [str(name) for name in getattr(X, "columns", ())]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        shown = ", ".join(f"{name!r:.40}" for name in repeated[:3]) + (", …" if len(repeated) > 3 else "")
        raise ValueError(f"X has more than one column of the name {shown}: rename them")


@contextmanager
def _naming_arguments(y: object) -> Iterator[None]:
    """Makes a ValueError or TypeError of the checks of X and y name the argument that is wrong."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if _ARGUMENT_NAME.search(str(error)):
            raise
        raise type(error)(f"{'X' if _is_finite(y) else 'y'}: {error}") from error


def _is_finite(y: object) -> bool:
    try:
        values = np.asarray(y)
        return not np.iscomplexobj(values) and bool(np.isfinite(values.astype(np.float64)).all())
    except (ValueError, TypeError):
        return False
