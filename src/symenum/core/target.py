"""Checked data: y with its weights, and the values of slots, as float64 tensors on the CPU.

Users' arrays, tables and lists are checked and converted here once; no later code checks them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pandas
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, loss_up_to

__all__ = [
    "LARGEST",
    "Target",
    "Training",
    "check_errors",
    "check_slots",
    "check_target",
    "check_whole",
    "rates_in_range",
    "refuse_dates",
    "refuse_dates_and_masks",
]


# Bound of |y| and of 1/|y|: with 1e-140 even the loss of an exact law, 1e-280 times 1e-26, is still a normal double.
LARGEST = 1e140
"""Of a number whose square is summed; one below 1/LARGEST is as far out."""


@dataclass(frozen=True)
class Target:
    """`y` and `weight` (rows,) float64 on the CPU; the weights sum to 1, so sums of squares are mean squares."""

    y: Tensor
    weight: Tensor

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def mean_square(self) -> float:
        """The weighted mean of y², at least the smallest normal double."""
        y = self.y.numpy()
        return max(float(np.dot(self.weight.numpy() * y, y)), float(np.finfo(np.float64).tiny))

    @property
    def floor(self) -> float:
        """The loss of a law that is exact up to rounding: two losses below it are equal."""
        return loss_up_to(EXACTNESS.rounding, self.mean_square)

    def loss(self, values: Tensor) -> Tensor:
        """Weighted mean square error (N,) of `values` (N, rows) float64; of a row the same bits in any batch."""
        return (values - self.y).square_().mul_(self.weight).sum(dim=1)

    def at(self, rows: Tensor) -> Target:
        """The same on a part of the rows (int64), weights summing to 1 again."""
        weight = self.weight[rows]
        return Target(self.y[rows], weight / weight.sum())


@dataclass(frozen=True)
class Training:
    """The rows that laws are judged on: columns (rows,) float64 by their names in formulas, and the target."""

    columns: Mapping[str, Tensor]
    target: Target

    @staticmethod
    def of(table: Tensor, names: Iterable[str], target: Target) -> Training:
        """From a table (rows, features) float64 and the names of its columns in formulas."""
        return Training({name: table[:, i].contiguous() for i, name in enumerate(names)}, target)

    @property
    def variance(self) -> float:
        """The weighted variance of y."""
        mean = (self.target.y * self.target.weight).sum()
        return float(((self.target.y - mean).square() * self.target.weight).sum())

    def at(self, rows: Tensor) -> Training:
        """The same on a part of the rows (int64), weights summing to 1 again."""
        return Training({name: column[rows] for name, column in self.columns.items()}, self.target.at(rows))


def check_whole(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless the value is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")


def check_slots(values: object, inputs: int) -> Tensor:
    """The slots' values (rows, inputs) float64 on the CPU; TypeError or ValueError for what cannot be used."""
    slots = _as_float64("values", values)
    if slots.ndim == 1 and inputs == 1:
        slots = slots[:, None]
    if slots.ndim != 2 or slots.shape[1] != inputs:
        raise ValueError(
            f"values must have shape (rows, {inputs}), one column for each input, not {tuple(slots.shape)}"
        )
    if slots.shape[0] == 0:
        raise ValueError("values is empty: at least one row is needed")
    bad = torch.nonzero(~torch.isfinite(slots).all(dim=0)).flatten()
    if len(bad):
        raise ValueError(
            f"values has NaN or infinite numbers in column {int(bad[0])} (the first is 0): remove those rows"
        )
    return slots


def check_target(y: object, sample_weight: object, rows: int) -> tuple[Target, Tensor]:
    """The target without its rows of weight zero, and the indices (int64) of the rows that remain."""
    target = _as_float64("y", y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.shape != (rows,):
        raise ValueError(f"y must have shape ({rows},), one number for each row of values, not {tuple(target.shape)}")
    if not bool(torch.isfinite(target).all()):
        raise ValueError("y has NaN or infinite numbers: remove those rows")
    largest = float(target.abs().max())
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        row = int(target.abs().argmax())
        raise ValueError(
            f"y has a largest absolute value of {largest:.3g}, whose square is out of range: rescale y, or leave out "
            f"row {row} (the first is 0) if it is an outlier"
        )
    if sample_weight is None:
        return Target(target, torch.full((rows,), 1.0 / rows, dtype=torch.float64)), torch.arange(rows)
    weight = _as_float64("sample_weight", sample_weight)
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight must have shape ({rows},), one for each row, not {tuple(weight.shape)}")
    if not bool(torch.isfinite(weight).all()) or bool((weight < 0).any()):
        raise ValueError("sample_weight must be finite and not negative")
    total = float(weight.sum())
    if total == 0.0 or not np.isfinite(total):
        raise ValueError(f"sample_weight must have a finite sum above zero, not {total}")
    counted = torch.nonzero(weight > 0).flatten()  # a row of weight zero must not exclude a candidate that fails there
    return Target(target[counted], weight[counted] / total), counted


def check_errors(name: str, value: object, rows: int, *, zero: bool = False) -> npt.NDArray[np.float64]:
    """Standard errors (rows,) float64 from one number for all rows, or one for each row; `zero`: 0 is allowed."""
    errors = _as_float64(name, value)
    if errors.ndim == 2 and errors.shape[1] == 1:
        errors = errors[:, 0]
    if errors.shape not in ((), (rows,)):
        raise ValueError(f"{name} must be one number, or {rows}, one for each row, not of shape {tuple(errors.shape)}")
    errors = errors.expand(rows).clone()
    bad = ~torch.isfinite(errors) | (errors < 0 if zero else errors <= 0)
    if bool(bad.any()):
        row = int(bad.to(torch.uint8).argmax())
        least = "finite and not below 0" if zero else "finite and above 0: it is a standard deviation, in the unit of y"
        raise ValueError(f"{name} must be {least}; row {row} (the first is 0) has {float(errors[row]):g}")
    return errors.numpy()


def rates_in_range(change: float, span: float, step: float, order: int) -> bool:
    """Whether squares of derivatives of this order are doubles, of what changes by so much along steps of a span."""
    if change <= 0:
        return True
    far, near = (math.log(change) - order * math.log(way) for way in (span, step))  # powers may be out of range
    return far > -math.log(LARGEST) and near < math.log(LARGEST)


def refuse_dates_and_masks(name: str, data: object) -> None:
    """Raise ValueError for masked entries, which NumPy would read as numbers, and for dates."""
    if isinstance(data, np.ma.MaskedArray) and bool(np.any(np.ma.getmaskarray(data))):
        raise ValueError(f"{name} has masked entries: remove those rows")
    refuse_dates(name, data)


def refuse_dates(name: str, data: object) -> None:
    """Raise ValueError for dates and durations, which NumPy would read as a count of microseconds or the like."""
    if isinstance(data, pandas.DataFrame):
        for place, column in enumerate(data.columns):
            if _holds_dates(data.iloc[:, place]):
                raise ValueError(f"{name} has dates in column {str(column)!r}: {_AS_NUMBERS}")
    elif _holds_dates(data):
        raise ValueError(f"{name} has dates: {_AS_NUMBERS}")


_AS_NUMBERS = "give numbers in a unit of your own, such as days since the first, (d - d.min()) / pandas.Timedelta('1D')"


def _holds_dates(data: object) -> bool:
    """Whether an array, a column of pandas or a list holds dates or durations, or objects the first of which is one."""
    kind = getattr(data, "dtype", None)
    if isinstance(kind, (pandas.DatetimeTZDtype, pandas.PeriodDtype)):
        return True
    if isinstance(kind, np.dtype) and kind.kind != "O":
        return kind.kind in "mM"
    first: object = None
    if isinstance(data, (list, tuple, pandas.Series, pandas.Index)) or (
        isinstance(data, np.ndarray) and data.ndim == 1
    ):
        first = next(iter(data), None)
    return isinstance(first, (date, timedelta, np.datetime64, np.timedelta64))


def _without_pandas_types(data: pandas.DataFrame | pandas.Series) -> object:
    """Numbers as float64: pandas' own types ("Float64", "Int64") would become objects in NumPy."""
    types = data.dtypes if isinstance(data, pandas.DataFrame) else [data.dtype]
    if all(pandas.api.types.is_numeric_dtype(one) for one in types):
        return data.to_numpy(dtype=np.float64, na_value=np.nan)
    return data


def _as_float64(name: str, data: object) -> Tensor:
    if isinstance(data, Tensor):
        if data.is_complex():
            raise TypeError(f"{name} must be real, not complex")
        return data.detach().to(device="cpu", dtype=torch.float64)
    refuse_dates_and_masks(name, data)
    if isinstance(data, (pandas.DataFrame, pandas.Series)):
        data = _without_pandas_types(data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers with rows of one length: {error}") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    # Copied into torch's memory, which is aligned: the last digits of some matrix products depend on the alignment.
    copied = torch.empty(array.shape, dtype=torch.float64)
    copied.numpy()[...] = array
    return copied
