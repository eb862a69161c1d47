"""What a command has found, as plain values: shown, written to files, and read back.

The files: front.csv, model.json, law.txt, law.tex and report.html. A file appears under its name only when it is
whole: it is written under another name, flushed to the disk and renamed.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from symenum import __version__
from symenum.cli.errors import InputError
from symenum.cli.tables import Table
from symenum.core.files import write_whole
from symenum.display.table import LawRow

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "PARTIAL",
    "REPORT",
    "Course",
    "Model",
    "Result",
    "Search",
    "error_lines",
    "fit_report",
    "front_csv",
    "model_json",
    "prepare",
    "r_squared",
    "read_model",
    "write_results",
    "write_whole",
]

FORMAT = "symenum model"
FORMAT_VERSION = 1
PARTIAL = "front.partial.csv"
"""The front while the search is running; gone once the results are written."""
_PROBE = bytes(1 << 16)  # 64 KiB, about the size of the results
REPORT = "report.html"


class Model(Protocol):
    """The fitted estimator, as far as the command line needs it."""

    front_: Any
    interrupted_: bool
    stop_reason_: str
    selected_index_: int
    elapsed_: float
    n_iter_: int
    scored_: int
    plan_: str

    def uncertainties(self, index: int | None = None) -> Any: ...


class Search(Protocol):
    """What is to be fitted."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **held_out: Any) -> Model: ...


@dataclass(frozen=True)
class Course:
    """How a search went: time, steps, what its network scored and looks like; and the loss that is rounding only."""

    elapsed: float
    steps: int
    scored: int
    plan: str
    floor: float

    @staticmethod
    def of(model: Model | None, last: Any) -> Course:
        """Of a search that came to its end, which may be there before the first step, or of its last report."""
        if model is not None:
            return Course(model.elapsed_, model.n_iter_, model.scored_, model.plan_, model.front_.floor)
        return Course(last.elapsed, last.iteration, last.scored, last.message, last.front.floor)


@dataclass(frozen=True)
class Result:
    """All that is kept of a run. `names` are the variables' names in the laws, `columns` those in the file."""

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
        """The law to believe."""
        return self.laws[self.selected]


def r_squared(rest: float) -> str:
    """R² for the part of the variance that is left; where R² is nearly 1, the text shows what is missing."""
    return f"R² = {1 - rest:.4g}" if rest > 1e-3 or rest == 0 else f"R² = 1 - {rest:.2g}"


def error_lines(uncertainties: Any) -> list[str]:
    """The constants of a law with their standard errors, from left to right."""
    if not len(uncertainties):
        return ["The law has no fitted constants."]
    pairs = zip(uncertainties["constant"], uncertainties["standard_error"], strict=True)
    return ["Its constants and their standard errors:", *(f"  {value:.8g} ± {error:.2g}" for value, error in pairs)]


def prepare(folder: Path) -> None:
    """Make the folder and write into it, so that a search is not begun whose results could not be kept."""
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with probe.open("wb") as file:
                file.write(_PROBE)
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"--out: the folder '{folder}' cannot be written ({error.strerror or error}): name another one."
        ) from error


def write_results(folder: Path, result: Result) -> list[Path]:
    """The four files; raises OSError where the disk does not take them. The machine-readable one comes first."""
    texts = {
        "model.json": model_json(result),
        "front.csv": front_csv(result.laws),
        "law.txt": f"{result.target} = {result.law.expression}\n",
        "law.tex": law_tex(result),
    }
    for name, text in texts.items():
        write_whole(folder / name, text)
    (folder / PARTIAL).unlink(missing_ok=True)
    return [folder / name for name in texts]


def front_csv(laws: Sequence[LawRow]) -> str:
    """One line for each law; numbers in full."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["complexity", "loss", "score", "reward", "equation"])
    writer.writerows([law.complexity, law.loss, law.score, law.reward, str(law.expression)] for law in laws)
    return text.getvalue()


def law_tex(result: Result) -> str:
    """The law as a displayed equation."""
    from symenum.display.latex import latex_equation

    return f"\\begin{{equation}}\n{latex_equation(result.law.expression, result.target)}\n\\end{{equation}}\n"


def model_json(result: Result) -> str:
    """All of the result; the laws as text of our grammar, which `parse` reads."""
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
    """The result that `model_json` has written; a file that is not one is refused with what is wrong."""
    from symenum.expressions import parse

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: lists in lists in lists
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
        constants = named if isinstance(named, dict) else None  # True or False: whether there are any
        laws = tuple(
            LawRow(
                parse(entry["equation"], constants=constants),
                entry["complexity"],
                _python_number(entry["loss"]),
                _python_number(entry["score"]),
                _python_number(entry["reward"]),
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
    # JSON has no infinity: a perfect fit has an infinite score in some conventions.
    return value if math.isfinite(value) else repr(value)


def _python_number(value: Any) -> float:
    return float(value)


def fit_report(result: Result, table: Table, course: Course) -> str:
    """The page of a result, of the data behind it, and of how its search went."""
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
    run |= run_facts(result.stop_reason, course.elapsed, course.steps, course.scored, course.plan)
    squared = result.settings.get("loss", "mse") == "mse"
    content = ReportContent(
        result.target, result.laws, result.selected, data, course.floor, run, result.settings, squared=squared
    )
    return report_page(content)
