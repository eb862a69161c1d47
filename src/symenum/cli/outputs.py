"""The folder of `--out`, and the files that the command line writes beside those of `saved_results`.

These are report.html, and the labels of the table beside a checkpoint (`table_labels`). A file appears under its name
only when it is whole: it is written under another name, flushed to the disk and renamed. While the search runs, the
estimator writes its steps and laws to the same folder (`symenum.run_directory`).
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from symenum.cli.messages import InputError, say
from symenum.cli.tables import Table
from symenum.estimator import table_labels
from symenum.estimator.saved_results import (
    CHECKPOINT,
    Result,
    RunSummary,
    error_lines,
    files_of_a_run,
    fitted_numbers,
    front_csv,
    model_json,
    read_result,
    stated_confidence,
    write_results,
)
from symenum.estimator.table_labels import TableLabels

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "CHECKPOINT",
    "REPORT",
    "Model",
    "Result",
    "RunSummary",
    "Search",
    "error_lines",
    "fit_report",
    "fitted_numbers",
    "front_csv",
    "model_json",
    "prepare_folder",
    "read_model",
    "stated_confidence",
    "write_labels",
    "write_results",
]

REPORT = "report.html"
_TRIAL_BYTES = 1 << 16  # written to try a folder: 64 KiB, about the size of the results


class Model(Protocol):
    """The fitted estimator, as far as the command line reads it."""

    front_: Any
    interrupted_: bool
    stop_reason_: str
    selected_index_: int
    elapsed_: float
    n_iter_: int
    scored_: int
    plan_: str
    schedule_: Any
    constants_: Any

    def uncertainties(self, index: int | None = None) -> Any: ...

    def confidence(self) -> list[str]: ...

    def shape_lines(self, index: int | None = None) -> list[str]: ...

    def unit_lines(self, index: int | None = None) -> list[str]: ...


class Search(Protocol):
    """An estimator that is not fitted yet, or a checkpoint to go on from."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> Model: ...


def prepare_folder(folder: Path, *, overwrite: bool = False) -> Path:
    """Make the folder for results, and try it: an error here is better than one at the end of the search.

    A folder that holds files of a run, or others of the same names, stays as it is unless `overwrite`: the results go
    to a new folder beside it. Returns the folder to write to.
    """
    try:
        if not overwrite and (taken := files_of_a_run(folder)):
            chosen = _new_folder_beside(folder)
            say(
                f"--out: '{folder}' holds {taken[0]} already, so the results go to '{chosen}'. With --overwrite they "
                f"would replace those in '{folder}'."
            )
            folder = chosen
        folder.mkdir(parents=True, exist_ok=True)
        _try_to_write(folder)
    except OSError as error:
        raise InputError(
            f"--out: the folder '{folder}' cannot be written ({error.strerror or error}): name another one."
        ) from error
    return folder


def _new_folder_beside(folder: Path) -> Path:
    """Make the first of results-2, results-3, … that is not there; two commands at the same time get different ones."""
    if folder.name in ("", ".."):
        raise InputError(f"--out: '{folder}' holds a run already: name another folder, or add --overwrite.")
    for number in count(2):
        new = folder.with_name(f"{folder.name}-{number}")
        try:
            new.mkdir()
        except FileExistsError:
            continue
        return new
    raise AssertionError("count does not end")


def _try_to_write(folder: Path) -> None:
    trial = folder / f".probe-{os.getpid()}"
    try:
        with trial.open("wb") as file:
            file.write(bytes(_TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        trial.unlink(missing_ok=True)


def read_model(path: Path) -> Result:
    """The result that a model.json holds; an error says what is wrong with any other file."""
    try:
        return read_result(path)
    except ValueError as error:
        raise InputError(f"{error}.") from error


def fit_report(result: Result, table: Table, summary: RunSummary) -> str:
    """The report page: the result, the data, and how the search went."""
    from symenum.display.figures import DataSummary
    from symenum.display.report import ReportContent, report_page, run_facts

    X, names, columns = _data_of_report(result, table)
    data = DataSummary.of(
        X,
        table.y.to_numpy(dtype=float),
        names,
        columns,
        result.target,
        None if table.row_weights is None else table.row_weights.to_numpy(dtype=float),
    )
    run = {"command": shlex.join(["symenum", *sys.argv[1:]]), "data": result.source}
    run |= run_facts(result.stop_reason, summary.elapsed, summary.steps, summary.scored, summary.plan)
    squared = result.settings.get("loss", "mse") == "mse"
    content = ReportContent(
        result.target,
        result.laws,
        result.selected,
        data,
        run,
        result.settings,
        squared=squared,
        errors=None if result.errors is None else [(one.constant, one.standard_error) for one in result.errors],
        confidence=(*(result.confidence or ()), *_group_lines(result)),
        weighted_by_errors=table.y_error is not None,
    )
    return report_page(content)


def _data_of_report(result: Result, table: Table) -> tuple[npt.NDArray[np.float64], Sequence[str], Sequence[str]]:
    """X (rows, features), the names of the features in laws, and in the table.

    With groups the constants of the chosen law stand in the place of the column that says which group a row is of.
    """
    if result.groups is None:
        return table.X.to_numpy(dtype=float), list(table.X.columns), table.columns
    import numpy as np

    law = result.groups["laws"][result.selected]
    group = result.groups["column"]
    codes = table.X[group].map({label: code for code, label in enumerate(result.groups["labels"])})
    constants = np.array(law["values"], dtype=float).reshape(-1, len(law["names"]))[codes.to_numpy(dtype="int64")]
    kept = [(name, column) for name, column in zip(table.X.columns, table.columns, strict=True) if name != group]
    X = np.column_stack([table.X[[name for name, _ in kept]].to_numpy(dtype=float), constants])
    names, columns = [name for name, _ in kept], [column for _, column in kept]
    return X, [*names, *law["names"]], [*columns, *law["names"]]


def _group_lines(result: Result) -> list[str]:
    """The constants of the groups in lines; none without groups."""
    if result.groups is None:
        return []
    from symenum.estimator.grouped_files import group_lines

    return group_lines(result.groups, result.selected)


def write_labels(checkpoint: Path, labels: TableLabels) -> None:
    """Write the labels beside the checkpoint; an error if the folder cannot be written."""
    try:
        table_labels.write_labels(checkpoint, labels)
    except OSError as error:
        path, why = table_labels.labels_path(checkpoint), error.strerror or error
        raise InputError(f"--checkpoint: '{path}' cannot be written ({why}): name another one.") from error
