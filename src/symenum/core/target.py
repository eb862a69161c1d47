"""What a pass is given, checked and ready for the kernels: y with its weights and scale, slots and their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, loss_up_to

__all__ = ["Target", "Training", "check_slots", "check_target", "check_whole"]


_LARGEST = 1e140  # squares of larger numbers, or of the inverse of this, come too near to the ends of double precision


@dataclass(frozen=True)
class Target:
    """`y` and `weight` (rows,) float64; the weights sum to 1, so that a weighted sum of squares is a mean square."""

    y: Tensor
    weight: Tensor

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def mean_square(self) -> float:
        """The weighted mean of y², at least the smallest normal number."""
        y = self.y.numpy()
        return max(float(np.dot(self.weight.numpy() * y, y)), float(np.finfo(np.float64).tiny))

    @property
    def floor(self) -> float:
        """Two losses below this differ by rounding only: they are ties."""
        return loss_up_to(EXACTNESS.rounding, self.mean_square)

    def loss(self, values: Tensor) -> Tensor:
        """Weighted mean square error (N,) of rows of `values` (N, rows); of a row the same whatever is beside it."""
        return (values - self.y).square_().mul_(self.weight).sum(dim=1)

    def at(self, rows: Tensor) -> Target:
        """The same on a part of the rows (int64), weights summing to 1 again."""
        weight = self.weight[rows]
        return Target(self.y[rows], weight / weight.sum())


@dataclass(frozen=True)
class Training:
    """The rows that laws are judged on: columns (rows,) float64 by the names of formulas, and the target."""

    columns: Mapping[str, Tensor]
    target: Target

    @staticmethod
    def of(table: Tensor, names: Iterable[str], target: Target) -> Training:
        """The columns of a table (rows, features) by their names in laws."""
        return Training({name: table[:, i].contiguous() for i, name in enumerate(names)}, target)

    @property
    def variance(self) -> float:
        mean = (self.target.y * self.target.weight).sum()
        return float(((self.target.y - mean).square() * self.target.weight).sum())

    def at(self, rows: Tensor) -> Training:
        """The same on a part of the rows (int64), weights summing to 1 again."""
        return Training({name: column[rows] for name, column in self.columns.items()}, self.target.at(rows))


def check_whole(name: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")


def check_slots(values: object, inputs: int) -> Tensor:
    """Slot values as float64 (rows, inputs), or a clear error."""
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
    """The target without the rows of zero weight, and the indices (int64) of the rows that stay."""
    target = _as_float64("y", y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.shape != (rows,):
        raise ValueError(f"y must have shape ({rows},), one number for each row of values, not {tuple(target.shape)}")
    if not bool(torch.isfinite(target).all()):
        raise ValueError("y has NaN or infinite numbers: remove those rows")
    largest = float(target.abs().max())
    if largest > _LARGEST or 0 < largest < 1 / _LARGEST:
        raise ValueError(f"y has a largest absolute value of {largest:.3g}, whose square is out of range: rescale y")
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
    counted = torch.nonzero(weight > 0).flatten()  # a row that does not count must not poison either
    return Target(target[counted], weight[counted] / total), counted


def _plain(data: pandas.DataFrame | pandas.Series) -> object:
    """Columns of pandas' own number types ("Float64", "Int64"), which NumPy would take for objects, as floats."""
    types = data.dtypes if isinstance(data, pandas.DataFrame) else [data.dtype]
    if all(pandas.api.types.is_numeric_dtype(one) for one in types):
        return data.to_numpy(dtype=np.float64, na_value=np.nan)
    return data


def _as_float64(name: str, data: object) -> Tensor:
    if isinstance(data, Tensor):
        if data.is_complex():
            raise TypeError(f"{name} must be real, not complex")
        return data.detach().to(device="cpu", dtype=torch.float64)
    if isinstance(data, np.ma.MaskedArray) and bool(np.any(np.ma.getmaskarray(data))):
        raise ValueError(f"{name} has masked entries: remove those rows")
    if isinstance(data, (pandas.DataFrame, pandas.Series)):
        data = _plain(data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers with rows of one length: {error}") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    # A copy in torch's own memory, which is aligned: the last digits of some matrix products depend on that.
    copied = torch.empty(array.shape, dtype=torch.float64)
    copied.numpy()[...] = array
    return copied
