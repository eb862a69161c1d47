"""Checks of the data that `fit` gets: X, y, weights and validation rows become float64 arrays and tensors, or an error.

An error names the argument that is wrong; those of scikit-learn's checks do not always do so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
import torch
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight, validate_data

from symenum.core.seeds import sample_rows
from symenum.core.target import Target, Training, check_errors, check_target, refuse_dates_and_masks
from symenum.core.user_warnings import warn_user
from symenum.estimator.missing_cells import Kept, handle_missing
from symenum.estimator.unit_text import FROM_NAMES, without_unit
from symenum.expressions.parse import formula_names
from symenum.fitting.effective_variance import MeasurementErrors
from symenum.fitting.losses import make_loss

__all__ = [
    "FitData",
    "check_fit_data",
    "check_rows",
    "check_validation",
    "column_names",
    "make_training",
    "target_name",
]

Array = npt.NDArray[np.float64]

_LEAST_OTHERS = 1e-6  # part of the weight that all rows but the heaviest must have together, to count at all
_LARGE_OUTLIER = 1e6  # times the second largest |y - median|: a law with such a value in one row has a pole there
_ALIGNED = 8  # numbers in 64 bytes
_NUMBERS_BESIDE_A_ROW = 4  # y, its weight, its index, and the values of a law
_LEAST_SAMPLE = 100  # rows: fewer than these say little of a law
_COPIED = 1 << 18  # numbers that are copied at once: 2 MiB
_DIFFERENT_ROWS = re.compile(r"inconsistent numbers of samples: \[(\d+), (\d+)\]")  # in a message of scikit-learn
_TEXT_CELL = re.compile(r"could not convert string to float: (?:np\.str_\()?('[^']{0,40}')")  # the same of NumPy
_ARGUMENT_NAME = re.compile(r"\b(X|y|feature names|sample_weight)\b")  # in a message of scikit-learn


@dataclass(frozen=True)
class FitData:
    """The data of a fit: X (rows, features), y and weight (rows,), all float64, with rows of weight zero.

    `y_error` (rows,) and `x_error` (rows, features) are standard errors, float64; 0 for an input that is exact.
    """

    X: Array
    y: Array
    weight: Array | None
    columns: tuple[str, ...] | None  # names of the columns of a DataFrame; None for an array
    y_error: Array | None = None
    x_error: Array | None = None
    names: tuple[str, ...] | None = None  # names that the user has given to the columns of an array
    target: str = "y"
    units_in_names: bool = False  # whether a column "speed [m/s]" is called speed in formulas

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the columns as the user wrote them; None where there are none."""
        return self.names if self.columns is None else self.columns

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns in formulas."""
        labels = self.labels
        if labels is not None and self.units_in_names:
            labels = tuple(map(without_unit, labels))
        return column_names(labels, self.X.shape[1])

    def frame(self) -> Any:
        """X as it was given: an array, or a DataFrame with its names."""
        return self.X if self.columns is None else pandas.DataFrame(self.X, columns=list(self.columns))

    @property
    def total_weight(self) -> Array | None:
        """The weights times 1/y_error², up to one factor for all rows; None where all rows count alike."""
        if self.y_error is None:
            return self.weight
        precision: Array = np.square(self.y_error.min() / self.y_error)
        if self.weight is not None:
            precision *= self.weight
        return precision

    def errors(self, names: Sequence[str], rows: npt.NDArray[np.int64]) -> MeasurementErrors | None:
        """The errors of these rows; `names` are those of the features in laws. None where no errors were given."""
        if self.y_error is None:
            return None
        inputs = self.x_error
        x = (
            {}
            if inputs is None
            else {name: torch.tensor(inputs[rows, i]) for i, name in enumerate(names) if inputs[:, i].any()}
        )
        return MeasurementErrors(torch.tensor(self.y_error[rows]), x)

    def weighted_rows(self, room: int, seed: int) -> tuple[torch.Tensor, Target, npt.NDArray[np.int64]]:
        """The rows of weight above zero, float64 (rows, features) on the CPU, their target, and their numbers.

        Where they take more than `room` bytes, as many of them as fit, drawn at random by `seed`, and a warning. Fewer
        than two rows are an error.
        """
        weight, argument = self.total_weight, "sample_weight" if self.y_error is None else "y_error"
        target, rows = check_target(self.y, weight, len(self.X))
        if len(rows) < 2:
            raise ValueError(f"{argument} leaves {len(rows)} row of weight above zero: at least 2 are needed")
        _warn_of_outlier(target.y.numpy(), rows.numpy())
        heaviest = int(target.weight.argmax())
        if float(target.weight.sum() - target.weight[heaviest]) < _LEAST_OTHERS:
            raise ValueError(
                f"{argument} gives row {int(rows[heaviest])} (the first is 0) nearly all of the weight, so that no law "
                "could be told from a constant: make the weights less unequal"
            )
        row_bytes = 8 * (self.X.shape[1] + _NUMBERS_BESIDE_A_ROW)
        fitting = room // row_bytes
        if fitting >= len(rows):
            return _table(self.X, None if weight is None else rows), target, rows.numpy()
        size = (
            f"X has {len(rows):,} rows and {self.X.shape[1]:,} columns, which take {len(rows) * row_bytes / 1e9:.3g} GB"
        )
        limit = f"more than the quarter of max_memory that is for the data ({room / 1e9:.3g} GB)"
        if fitting < _LEAST_SAMPLE:
            raise ValueError(
                f"{size}, {limit}; not even {_LEAST_SAMPLE} rows fit: leave out columns, or raise max_memory"
            )
        warn_user(
            f"{size}, {limit}: the search works on {fitting:,} rows drawn at random, and losses are those on them; "
            "raise max_memory for more",
            UserWarning,
        )
        part = sample_rows(len(rows), fitting, seed, "rows that fit into memory")
        return _table(self.X, rows[part]), target.at(part), rows[part].numpy()


def check_fit_data(
    estimator: Any,
    X: object,
    y: object,
    sample_weight: object,
    y_error: object = None,
    x_error: object = None,
    variable_names: object = None,
) -> FitData:
    """X (rows, features), y, weights and errors (rows,) as float64; sets `n_features_in_` and `feature_names_in_`.

    Rows with missing cells are treated as the estimator's `missing` says. `variable_names`: names for the columns of an
    array.
    """
    _check_columns(X)
    for name, data in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        refuse_dates_and_masks(name, data)
    _check_text(X)
    kept = handle_missing(estimator.missing, X, y)
    sample_weight = kept.of("sample_weight", sample_weight)
    X, y = kept.X, kept.y
    with _naming_arguments(y):
        values, target = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        target = np.asarray(target, dtype=np.float64)
    weight = None if sample_weight is None else _check_weights(sample_weight, values)
    labels = getattr(estimator, "feature_names_in_", None)
    columns = None if labels is None else tuple(map(str, labels))
    names = _check_variable_names(variable_names, columns, values.shape[1])
    data = FitData(
        values, target, weight, columns, names=names, target=target_name(y), units_in_names=_in_names(estimator)
    )
    return _with_errors(data, y_error, x_error, kept, estimator.loss)


def check_rows(estimator: Any, X: object) -> Array:
    """The rows (rows, features) that a fitted estimator is to predict; ValueError says what is wrong with them."""
    refuse_dates_and_masks("X", X)
    try:
        rows: Array = validate_data(estimator, X, dtype=np.float64, reset=False)
    except ValueError as error:
        if "contains NaN" in str(error):  # what follows in scikit-learn's message recommends other estimators
            first = str(error).splitlines()[0].rstrip(".")
            raise ValueError(f"{first}: leave those rows out, or fill them in") from error
        raise
    return rows


def _check_weights(sample_weight: object, values: Array) -> Array:
    try:
        weight: Array = _check_sample_weight(sample_weight, values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        if "weight" in str(error):
            raise
        raise type(error)(f"sample_weight must be a number for each row: {error}") from error
    return weight


def _in_names(estimator: Any) -> bool:
    """Whether the names of the columns hold their units; other estimators have no such parameter."""
    return bool(getattr(estimator, "units", None) == FROM_NAMES)


def _warn_of_outlier(y: Array, numbers: npt.NDArray[np.int64]) -> None:
    """Warn where one value of y (rows,) is so far out that laws would follow it alone; `numbers` are the rows' own."""
    if len(y) < 3:
        return
    deviation = np.abs(y / 2 - np.median(y / 2))  # halves: the difference of two large numbers may overflow
    row = int(deviation.argmax())
    second = float(np.partition(deviation, -2)[-2])
    if deviation[row] > _LARGE_OUTLIER * second > 0:
        warn_user(
            f"y has {y[row]:.3g} in row {numbers[row]} (the first is 0), more than {_LARGE_OUTLIER:g} times as far out "
            "as any other row: laws will follow this row alone. Leave it out if it is an error",
            UserWarning,
        )


def _with_errors(data: FitData, y_error: object, x_error: object, kept: Kept, loss: object) -> FitData:
    """The data with the errors that the user gives; those of rows that were left out are left out too."""
    if y_error is None:
        if x_error is not None:
            raise ValueError(
                "x_error needs y_error too: a row counts by 1/(y_error² + (slope·x_error)²). If y is exact, give a "
                "y_error that is small beside the errors of x"
            )
        return data
    if x_error is not None and loss != "mse":
        raise ValueError(f"x_error is for loss='mse' only, not for {loss!r}")
    rows = len(data.y)
    of_y = check_errors("y_error", kept.of("y_error", y_error), rows)
    return replace(data, y_error=of_y, x_error=_input_errors(x_error, data, kept))


def _input_errors(x_error: Any, data: FitData, kept: Kept) -> Array | None:
    """Errors (rows, features) from a mapping, or from an array for columns or for cells; None without any."""
    if x_error is None:
        return None
    rows, count = data.X.shape
    names = data.columns or data.variables
    if isinstance(x_error, pandas.DataFrame):
        x_error = {str(name): x_error[name] for name in x_error.columns}
    if isinstance(x_error, Mapping):
        unknown = [str(name) for name in x_error if name not in names]
        if unknown:
            raise ValueError(f"x_error names {unknown[0]!r}, and X has no such column: it has {', '.join(names[:8])}")
        by_name = {f"x_error[{name!r}]": (names.index(name), value) for name, value in x_error.items()}
    else:
        array = np.asarray(x_error)
        if array.shape == (count,):
            by_name = {f"x_error[{i}]": (i, array[i]) for i in range(count)}
        elif array.ndim == 2 and array.shape[1] == count:
            by_name = {f"column {i} of x_error": (i, array[:, i]) for i in range(count)}
        else:
            raise ValueError(
                f"x_error must have shape ({count},), one for each column, or ({rows}, {count}), or be a mapping such "
                f"as {{{names[0]!r}: 0.1}}, not of shape {array.shape}"
            )
    errors = np.zeros((rows, count))
    for name, (place, value) in by_name.items():
        errors[:, place] = check_errors(name, kept.of(name, value), rows, zero=True)
    return errors


def _check_text(X: object) -> None:
    """Refuse a DataFrame with columns of text, and say which they are."""
    if not isinstance(X, pandas.DataFrame):
        return
    kinds = pandas.api.types
    numeric = [kinds.is_numeric_dtype(kind) or kinds.is_bool_dtype(kind) for kind in X.dtypes]
    numbers = [is_numeric or _all_numbers(X.iloc[:, i]) for i, is_numeric in enumerate(numeric)]
    bad = [str(name) for name, fine in zip(X.columns, numbers, strict=True) if not fine]
    if bad:
        shown = ", ".join(f"{name!r:.40}" for name in bad[:3]) + (", …" if len(bad) > 3 else "")
        raise ValueError(
            f"X has columns that hold no numbers: {shown}. Leave them out, or turn text into columns of 0 and 1 with "
            "pandas.get_dummies, and dates into numbers of days"
        )


def _all_numbers(column: pandas.Series) -> bool:
    """Whether a column of objects holds numbers only, or texts of numbers."""
    if column.dtype.kind in "mM":
        return False
    return bool((pandas.to_numeric(column, errors="coerce").notna() | column.isna()).all())


def _check_variable_names(names: object, columns: tuple[str, ...] | None, count: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if columns is not None:
        raise ValueError("variable_names is for arrays: this X has names of its own; rename its columns instead")
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"variable_names must be a list of names, one for each column of X, not {names!r}")
    listed = tuple(names)
    if len(listed) != count or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"variable_names must be {count} names, one for each column of X, not {listed!r:.200}")
    if len(set(listed)) < count:
        raise ValueError(f"variable_names must be different names, not {listed!r:.200}")
    return listed


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
        different = _DIFFERENT_ROWS.search(str(error))
        if different:
            rows, values = different.groups()
            raise ValueError(f"X has {rows} rows and y has {values} values: each row needs a value of y") from error
        text = _TEXT_CELL.search(str(error))
        if text:
            raise ValueError(f"{_culprit(y)} holds text ({text[1]}): give numbers") from error
        if "contains infinity" in str(error):
            raise ValueError(f"{str(error).rstrip('.')}: remove those rows") from error
        if "contains NaN" in str(error):  # what follows in scikit-learn's message recommends other estimators
            first = str(error).splitlines()[0].rstrip(".")
            named = first if _ARGUMENT_NAME.search(first) else f"{_culprit(y)}: {first}"  # of an array of objects
            raise ValueError(f"{named}: remove those rows, or say missing='drop' or missing='impute'") from error
        if _ARGUMENT_NAME.search(str(error)):
            raise
        raise type(error)(f"{_culprit(y)}: {error}") from error


def _culprit(y: object) -> str:
    """The argument that must be wrong where one of X and y is."""
    return "X" if _is_finite(y) else "y"


def _is_finite(y: object) -> bool:
    try:
        values = np.asarray(y)
        return not np.iscomplexobj(values) and bool(np.isfinite(values.astype(np.float64)).all())
    except (ValueError, TypeError):
        return False
