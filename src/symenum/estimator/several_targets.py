"""Several targets: Y (rows, targets) is one search for each column, and each result is that of a model of its own.

A model that was fitted on several targets holds the models of the columns in `estimators_`. Its attributes and what its
methods return are then lists, one entry for each column, as in PySR.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["Targets", "index_of_each", "of_each_target", "one_target_only", "split_targets"]

Method = TypeVar("Method", bound=Callable[..., Any])


class Targets:
    """The columns of Y (rows, targets) with their names, and those of the validation rows."""

    def __init__(self, y: Any, validation: Any) -> None:
        labels = getattr(y, "columns", None)
        values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
        count = values.shape[1]
        self.columns = [values[:, i] for i in range(count)]
        self.names = tuple(f"y{i + 1}" for i in range(count)) if labels is None else tuple(map(str, labels))
        self.validation: list[Any] = [None] * count
        if validation is not None:
            if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
                raise ValueError("validation must be a pair (X, y) or a triple (X, y, sample_weight)")
            held = validation[1].to_numpy() if hasattr(validation[1], "to_numpy") else np.asarray(validation[1])
            if held.ndim != 2 or held.shape[1] != count:
                raise ValueError(f"validation: y must have {count} columns, as the y of fit, not shape {held.shape}")
            self.validation = [(validation[0], held[:, i], *validation[2:]) for i in range(count)]


def split_targets(y: Any, validation: object) -> Targets | None:
    """The columns of a y with several of them; None for a y of one target, (rows,) or (rows, 1)."""
    shape = getattr(y, "shape", None)
    if shape is None and _is_list(y) and len(y) and _is_list(y[0]):
        shape = (len(y), len(y[0]))
    if shape is None or len(shape) != 2 or shape[1] < 2:
        return None
    return Targets(y, validation)


def _is_list(value: object) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)


def of_each_target(method: Method) -> Method:
    """Makes a method of a model with several targets return a list: its value for the model of each column.

    `index` may then be a list, one row of `equations_` for each column.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
        models = getattr(self, "estimators_", None)
        if models is None:
            return method(self, *arguments, **options)
        given = signature.bind(self, *arguments, **options).arguments
        indices = index_of_each(given.get("index"), len(models))
        rows = [{"index": row} if "index" in given else {} for row in indices]
        rest = {name: value for name, value in given.items() if name not in ("self", "index")}
        return [getattr(one, method.__name__)(**rest, **row) for one, row in zip(models, rows, strict=True)]

    return wrapped  # type: ignore[return-value]


def index_of_each(index: Any, count: int) -> list[Any]:
    """The rows of `equations_` for so many targets, from one row for all, None, or a list with one for each."""
    if not isinstance(index, (list, tuple)):
        return [index] * count
    if len(index) != count:
        raise ValueError(f"index must have one row for each of the {count} targets, not {index!r}")
    return list(index)


def one_target_only(method: Method) -> Method:
    """Makes a method refuse a model with several targets, and say what to do instead."""

    @functools.wraps(method)
    def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(self, "estimators_", None) is not None:
            name = method.__name__
            raise ValueError(f"{name} is for one target: call estimators_[i].{name}, the model of column i of y")
        return method(self, *arguments, **options)

    return wrapped  # type: ignore[return-value]
