"""The result of `symenum fit` as plain values, and its files: how they are written and read back.

The files of a folder: front.csv, model.json, law.txt, law.tex and report.html; front.partial.csv while the search runs;
the labels of the table beside a checkpoint. A file appears under its name only when it is whole: it is written under
another name, flushed to the disk and renamed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from symenum import __version__
from symenum.cli.messages import InputError
from symenum.cli.tables import Table
from symenum.core.files import write_whole
from symenum.display.table import LawRow

__all__ = [
    "CHECKPOINT",
    "FORMAT",
    "FORMAT_VERSION",
    "PARTIAL",
    "REPORT",
    "Labels",
    "Model",
    "Result",
    "RunSummary",
    "Search",
    "error_lines",
    "fit_report",
    "front_csv",
    "model_json",
    "prepare_folder",
    "read_labels",
    "read_model",
    "write_labels",
    "write_results",
]

FORMAT = "symenum model"
FORMAT_VERSION = 1
"""Of model.json; a change that older versions cannot read raises it."""
CHECKPOINT = "checkpoint.json"
"""The checkpoint in a folder of results."""
REPORT = "report.html"
PARTIAL = "front.partial.csv"
"""The front while the search is running; removed once the results are written."""
_LABELS_FORMAT = "symenum labels"
_LABELS_VERSION = 1  # of the labels beside a checkpoint, like FORMAT_VERSION
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

    def uncertainties(self, index: int | None = None) -> Any: ...


class Search(Protocol):
    """An estimator that is not fitted yet, or a checkpoint to go on from."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> Model: ...


@dataclass(frozen=True)
class RunSummary:
    """How a search went: seconds, steps, candidates that the network scored, the plan of the network.

    `floor`: a loss up to it is zero up to rounding.
    """

    elapsed: float
    steps: int
    scored: int
    plan: str
    floor: float

    @staticmethod
    def of(model: Model | None, last: Any) -> RunSummary:
        """The summary of a fitted model; without one, of the last report of a search that failed."""
        if model is not None:
            return RunSummary(model.elapsed_, model.n_iter_, model.scored_, model.plan_, model.front_.floor)
        return RunSummary(last.elapsed, last.iteration, last.scored, last.message, last.front.floor)


@dataclass(frozen=True)
class Result:
    """The result of a run. `names` are the names of the variables in the laws, `columns` those in the file."""

    target: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    laws: tuple[LawRow, ...]
    selected: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    stop_reason: str = ""
    interrupted: bool = False
    rows: int = 0
    source: str = ""

    @property
    def law(self) -> LawRow:
        """The chosen law."""
        return self.laws[self.selected]


def error_lines(uncertainties: Any) -> list[str]:
    """Lines that show the constants of a law, from left to right, with their standard errors."""
    if not len(uncertainties):
        return ["The law has no fitted constants."]
    pairs = zip(uncertainties["constant"], uncertainties["standard_error"], strict=True)
    return ["Its constants and their standard errors:", *(f"  {value:.8g} ± {error:.2g}" for value, error in pairs)]


def prepare_folder(folder: Path) -> None:
    """Make the folder and write a trial file into it: an error here is better than one at the end of the search."""
    trial = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with trial.open("wb") as file:
                file.write(bytes(_TRIAL_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            trial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"--out: the folder '{folder}' cannot be written ({error.strerror or error}): name another one."
        ) from error


def write_results(folder: Path, result: Result) -> list[Path]:
    """Write the four files, model.json first, since it holds everything; OSError if the disk does not take them."""
    texts = {
        "model.json": model_json(result),
        "front.csv": front_csv(result.laws),
        "law.txt": f"{result.target} = {result.law.written}\n",
        "law.tex": law_tex(result),
    }
    for name, text in texts.items():
        write_whole(folder / name, text)
    (folder / PARTIAL).unlink(missing_ok=True)
    return [folder / name for name in texts]


def front_csv(laws: Sequence[LawRow]) -> str:
    """The front as CSV, one line for each law, numbers with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["complexity", "loss", "score", "reward", "equation"])
    writer.writerows([law.complexity, law.loss, law.score, law.reward, str(law.written)] for law in laws)
    return text.getvalue()


def law_tex(result: Result) -> str:
    """The law as a displayed equation."""
    from symenum.display.latex import latex_equation

    return f"\\begin{{equation}}\n{latex_equation(result.law.expression, result.target)}\n\\end{{equation}}\n"


def model_json(result: Result) -> str:
    """The whole result as JSON; laws are text that `symenum.expressions.parse` reads."""
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "symenum": __version__,
        "source": result.source,
        "rows": result.rows,
        "target": result.target,
        "variables": [
            {"name": name, "column": column} for name, column in zip(result.names, result.columns, strict=True)
        ],
        "settings": dict(result.settings),
        "stop_reason": result.stop_reason,
        "interrupted": result.interrupted,
        "front": [
            {
                "equation": str(law.expression),
                "complexity": law.complexity,
                "loss": _json_number(law.loss),
                "score": _json_number(law.score),
                "reward": _json_number(law.reward),
            }
            for law in result.laws
        ],
        "selected": result.selected,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def read_model(path: Path) -> Result:
    """The result that `model_json` has written; an error says what is wrong with any other file."""
    from symenum.expressions import parse

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: lists nested too deeply
        raise InputError(f"'{path}' cannot be read as a model: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"'{path}' is not a model of symenum.")
    if document.get("version") != FORMAT_VERSION:
        raise InputError(
            f"'{path}' was written by symenum {document.get('symenum', 'of an unknown version')!s:.20} with version "
            f"{document.get('version')!r:.20} of the format, and this is symenum {__version__}, which reads version "
            f"{FORMAT_VERSION}: read it with the symenum that wrote it, or run symenum fit again."
        )
    try:
        named = document["settings"].get("constants")
        constants = named if isinstance(named, dict) else None  # else True or False: whether laws may hold constants
        laws = tuple(
            LawRow(
                parse(entry["equation"], constants=constants),
                entry["complexity"],
                float(entry["loss"]),
                float(entry["score"]),
                float(entry["reward"]),
            )
            for entry in document["front"]
        )
        return Result(
            document["target"],
            tuple(variable["name"] for variable in document["variables"]),
            tuple(variable["column"] for variable in document["variables"]),
            laws,
            document["selected"],
            document["settings"],
            document["stop_reason"],
            document["interrupted"],
            document["rows"],
            document["source"],
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"'{path}' is damaged: {type(error).__name__}: {error}.") from error


def _json_number(value: float) -> float | str:
    # JSON has no infinity, and the score of a perfect fit is infinite.
    return value if math.isfinite(value) else repr(value)


def fit_report(result: Result, table: Table, summary: RunSummary) -> str:
    """The report page: the result, the data, and how the search went."""
    from symenum.display.figures import DataSummary
    from symenum.display.report import ReportContent, report_page, run_facts

    data = DataSummary.of(
        table.X.to_numpy(dtype=float),
        table.y.to_numpy(dtype=float),
        result.names,
        result.columns,
        result.target,
        None if table.weights is None else table.weights.to_numpy(dtype=float),
    )
    run = {"command": shlex.join(["symenum", *sys.argv[1:]]), "data": result.source}
    run |= run_facts(result.stop_reason, summary.elapsed, summary.steps, summary.scored, summary.plan)
    squared = result.settings.get("loss", "mse") == "mse"
    content = ReportContent(
        result.target, result.laws, result.selected, data, summary.floor, run, result.settings, squared=squared
    )
    return report_page(content)


@dataclass(frozen=True)
class Labels:
    """The names of a table, written beside a checkpoint, which holds numbers only.

    The name of the target, the names of the variables' columns in the file, and the file that the table came from.
    """

    target: str
    columns: tuple[str, ...]
    source: str


def write_labels(checkpoint: Path, labels: Labels) -> None:
    """Write the labels beside the checkpoint; an error if the folder cannot be written."""
    path = _labels_path(checkpoint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"format": _LABELS_FORMAT, "version": _LABELS_VERSION, **asdict(labels)}))
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"--checkpoint: '{path}' cannot be written ({why}): name another one.") from error


def read_labels(checkpoint: Path) -> Labels:
    """The labels that `write_labels` has written; an error for any other file."""
    path = _labels_path(checkpoint)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (
        _LABELS_FORMAT,
        _LABELS_VERSION,
    ):
        raise InputError(f"'{path}' does not belong to a checkpoint of this symenum.")
    target, columns, source = document.get("target"), document.get("columns"), document.get("source")
    named = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not isinstance(target, str) or not isinstance(source, str) or not named:
        raise InputError(f"'{path}' is damaged: it names no target, columns and source.")
    return Labels(target, tuple(columns or ()), source)


def _labels_path(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.stem}.labels.json")
