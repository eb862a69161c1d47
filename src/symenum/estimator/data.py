"""The data that `fit` and its like are given, checked: a refusal names the argument that it is about.

scikit-learn's own checks do not always say which argument they are about.
"""

from __future__ import annotations

import re
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

from symenum.core.target import Target, Training, check_target
from symenum.expressions.parse import formula_names
from symenum.fitting.losses import make_loss

__all__ = ["FitData", "check_fit_data", "check_validation", "column_names", "make_training"]

Array = npt.NDArray[np.float64]

_NAMED = re.compile(r"\b(X|y|feature names|sample_weight)\b")


@dataclass(frozen=True)
class FitData:
    """The data of a fit as they came: X (rows, features), y and weight (rows,), float64."""

    X: Array
    y: Array
    weight: Array | None
    columns: tuple[str, ...] | None  # of a DataFrame

    def frame(self) -> Any:
        """X as `fit` takes it."""
        return self.X if self.columns is None else pandas.DataFrame(self.X, columns=list(self.columns))

    def counted(self) -> tuple[torch.Tensor, Target]:
        """The rows (rows, features) of weight above zero, and their target; refused where they are fewer than two."""
        target, rows = check_target(self.y, self.weight, len(self.X))
        if len(rows) < 2:
            raise ValueError(f"sample_weight leaves {len(rows)} row of weight above zero: at least 2 are needed")
        return torch.tensor(self.X)[rows], target


def check_fit_data(estimator: Any, X: object, y: object, sample_weight: object) -> FitData:
    """X, y and weights as numbers; the estimator learns how many features it has and what they are called."""
    _check_columns(X)
    with _naming_arguments(y):
        values, target = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        target = np.asarray(target, dtype=np.float64)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
    labels = getattr(estimator, "feature_names_in_", None)
    return FitData(values, target, weight, None if labels is None else tuple(map(str, labels)))


def check_validation(estimator: Any, validation: object, names: Sequence[str]) -> Training | None:
    """The rows of `fit(validation=...)`, for an estimator that knows its features, `names` in laws; or an error."""
    if validation is None:
        if estimator.model_selection == "validation":
            raise ValueError("model_selection='validation' needs rows to choose on: fit(X, y, validation=(X2, y2))")
        return None
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
        raise ValueError("validation must be a pair (X, y) or a triple (X, y, sample_weight)")
    try:
        values, y = validate_data(
            estimator, validation[0], validation[1], dtype=np.float64, y_numeric=True, reset=False
        )
        weight = validation[2] if len(validation) == 3 else None
        target, rows = check_target(np.asarray(y, dtype=np.float64), weight, len(values))
        make_loss(estimator.loss, target, weighted=weight is not None)  # only to refuse what it cannot judge
    except (TypeError, ValueError) as error:
        raise ValueError(f"validation: {error}") from error
    return Training.of(torch.tensor(values)[rows], names, target)


def make_training(X: object, y: object, sample_weight: object, names: tuple[str, ...] | None = None) -> Training:
    """The rows of an array or a DataFrame; those of weight zero are left out.

    `names` are the names of the columns in formulas; None: those of the frame, or x1, x2, …
    """
    labels = getattr(X, "columns", None)
    values, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    target, rows = check_target(np.asarray(y, dtype=np.float64), weight, len(values))
    names = names or column_names(labels, values.shape[1])
    return Training.of(torch.tensor(values)[rows], names, target)


def column_names(labels: Iterable[object] | None, count: int) -> tuple[str, ...]:
    """x1, x2, … for an array; the columns' own names for a DataFrame, made readable where they must be."""
    if labels is None:
        return tuple(f"x{i + 1}" for i in range(count))
    return tuple(formula_names([str(label) for label in labels]).values())


def _check_columns(X: object) -> None:
    """Refuse a table of which two columns have one name: a law could not say which of them it means."""
    names = [str(name) for name in getattr(X, "columns", ())]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        shown = ", ".join(f"{name!r:.40}" for name in twice[:3]) + (", …" if len(twice) > 3 else "")
        raise ValueError(f"X has more than one column of the name {shown}: rename them")


@contextmanager
def _naming_arguments(y: object) -> Iterator[None]:
    """Inside, a ValueError or TypeError of the checks of X and y names the one that it is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if _NAMED.search(str(error)):
            raise
        raise type(error)(f"{'X' if _is_numbers(y) else 'y'}: {error}") from error


def _is_numbers(y: object) -> bool:
    try:
        values = np.asarray(y)
        return not np.iscomplexobj(values) and bool(np.isfinite(values.astype(np.float64)).all())
    except (ValueError, TypeError):
        return False
