"""Results to files: front.csv, model.json, law.txt and law.tex, and model.json back again.

A file appears under its name only when it is whole: it is written under another name, flushed to the disk and renamed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from symenum import __version__
from symenum.cli.errors import InputError
from symenum.cli.results import Law, Result
from symenum.files import write_whole

__all__ = ["FORMAT", "FORMAT_VERSION", "PARTIAL", "front_csv", "prepare", "read_model", "write_results", "write_whole"]

FORMAT = "symenum model"
FORMAT_VERSION = 1
PARTIAL = "front.partial.csv"
"""The front while the search is running; gone once the results are written."""
_PROBE = bytes(1 << 16)


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


def front_csv(laws: Sequence[Law]) -> str:
    """One line for each law; numbers in full."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["complexity", "loss", "score", "reward", "equation"])
    writer.writerows([law.complexity, law.loss, law.score, law.reward, str(law.expression)] for law in laws)
    return text.getvalue()


def law_tex(result: Result) -> str:
    """The law as a displayed equation."""
    from symenum.expressions.latex_table import latex_equation

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
        told = document["settings"].get("constants")
        constants = told if isinstance(told, dict) else None  # declared by name; otherwise only whether there are any
        laws = tuple(
            Law(
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
