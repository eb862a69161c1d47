"""The rows that the laws of a run are judged on, read from its folder: for loss, errors, fits and plots of a law.

`TableRows` are those of y = f(x). Those of laws of motion, in `motion_rows`, have the same methods.
"""

from __future__ import annotations

import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.estimator.data import FitData
from symenum.estimator.formulas import Form, constant_errors, fit_form
from symenum.estimator.persistence import read_rows, rows_file
from symenum.estimator.preparation import denoised
from symenum.estimator.saved_results import CHECKPOINT
from symenum.expressions import Expression, evaluate
from symenum.fitting.fit_under_loss import with_loss
from symenum.fitting.losses import Loss, make_loss
from symenum.run_directory import Run
from symenum.studio.answers import RequestError

__all__ = ["FIT_SECONDS", "LawRows", "RowsOfRuns", "TableRows", "check_unpacked_size", "table_rows"]

Array = npt.NDArray[np.float64]

FIT_SECONDS = 5.0
"""After these "fit again" answers with what it has: longer than that nobody waits."""
_REMEMBERED = 4  # runs whose rows are kept in memory: two tabs, each with a run, and the ones before
_MAX_BYTES = 2 << 30  # that the rows of a run may unpack to: those of a search that fits into 8 GB


class LawRows(Protocol):
    """Rows with a left side y (rows,), and points (points,) of the columns of a law with the left side there."""

    @property
    def y(self) -> Array: ...
    @property
    def columns(self) -> Mapping[str, Array]: ...
    @property
    def y_at_points(self) -> Array: ...
    @property
    def variance(self) -> float: ...
    def predicted(self, law: Expression, rows: npt.NDArray[np.int64] | None = None) -> Array:
        """The law on all rows, or on some of them."""
        ...

    def loss(self, law: Expression) -> float:
        """In the measure of the search; inf where the law is not finite on some row."""
        ...

    def mean_square(self, law: Expression) -> float: ...
    def errors(self, law: Expression) -> Sequence[float]:
        """Standard errors of the law's numbers that are not whole, as it is written, from left to right."""
        ...

    def fit(self, form: Expression, starts: Mapping[str, float]) -> dict[str, float]:
        """The values of least loss for the variables of the form that `starts` names."""
        ...

    def motion_plots(self, run: Run, law: Expression, points: int) -> dict[str, Any]:
        """Plots that only laws of motion have, simulated with this law."""
        ...


@dataclass(frozen=True)
class TableRows:
    """The rows of a search for y = f(x), with the loss of that search."""

    training: Training
    measure: Loss
    columns: Mapping[str, Array]

    @property
    def y(self) -> Array:
        return self.training.target.y.numpy()

    @property
    def y_at_points(self) -> Array:
        return self.y

    @property
    def variance(self) -> float:
        return self.training.variance

    def predicted(self, law: Expression, rows: npt.NDArray[np.int64] | None = None) -> Array:
        columns = self.columns if rows is None else {name: column[rows] for name, column in self.columns.items()}
        values: Array = evaluate(law, columns)
        return values

    def loss(self, law: Expression) -> float:
        target = self.training.target
        return with_loss(law, self.training.columns, target.y, target.weight, self.measure).loss

    def mean_square(self, law: Expression) -> float:
        return float(self.training.target.loss(evaluate(law, self.training.columns)[None]))

    def errors(self, law: Expression) -> Sequence[float]:
        found: list[float] = constant_errors(law, self.training, self.measure)["standard_error"].tolist()
        return found

    def fit(self, form: Expression, starts: Mapping[str, float]) -> dict[str, float]:
        found = fit_form(Form(form, dict(starts)), self.training, self.measure, budget=Budget(FIT_SECONDS))
        return dict(found.constants)

    def motion_plots(self, run: Run, law: Expression, points: int) -> dict[str, Any]:
        return {}


def table_rows(run: Run) -> TableRows:
    """The rows of a search for y = f(x); RequestError says what is missing in its folder."""
    path = run.folder / CHECKPOINT
    check_unpacked_size(rows_file(path, run.data_hash))
    names = [one.name for one in run.variables]
    try:
        data = read_rows(path, run.data_hash, names)
        return _rows_of(data, names, run.settings)
    except ValueError as error:
        raise RequestError(409, f"The rows of this search cannot be used: {error}.") from error


def _rows_of(data: FitData, names: Sequence[str], settings: Mapping[str, Any]) -> TableRows:
    """The rows as the search has them: without those of weight zero, and smoothed where it smooths them."""
    table, target, _ = data.weighted_rows(_MAX_BYTES, 0)
    if settings.get("denoise") is True:
        target = denoised(table, target)
    training = Training.of(table, names, target)
    loss = make_loss(settings.get("loss", "mse"), target, weighted=data.total_weight is not None)
    return TableRows(training, loss, {name: column.numpy() for name, column in training.columns.items()})


def check_unpacked_size(file: Path) -> None:
    """Refuse an npz file that is missing, or that would fill the memory: a folder may have come from anywhere."""
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except FileNotFoundError as error:
        raise RequestError(
            409,
            f"The rows of this search are not in its folder ('{file.name}' is missing): copy that file, too. Laws and "
            "front are shown without them.",
        ) from error
    except (OSError, zipfile.BadZipFile) as error:
        raise RequestError(409, f"'{file.name}' cannot be read ({error}): copy it again.") from error
    if size > _MAX_BYTES:
        raise RequestError(413, f"The rows of this search take {size >> 20:,} MB, more than the studio reads.")


class RowsOfRuns:
    """The rows of the runs that were looked at last. Methods may be called from several threads."""

    def __init__(self, read: Callable[[Run, str | None], LawRows]) -> None:
        self._read = read
        self._guard = threading.Lock()
        self._known: OrderedDict[tuple[str, str, str], LawRows] = OrderedDict()

    def of(self, run: Run, state: str | None) -> LawRows:
        """The rows of a run; for laws of motion those of a state."""
        key = (run.folder.name, run.data_hash or run.created, state or "")
        with self._guard:
            if key not in self._known:
                self._known[key] = self._read(run, state)
            self._known.move_to_end(key)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return self._known[key]
