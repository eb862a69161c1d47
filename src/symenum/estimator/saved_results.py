"""The result of a search as plain values, and the files of it: what `symenum fit --out` writes and `load` reads.

The files of a folder: model.json, which holds everything; front.csv, law.txt, law.tex and law.py for people and other
programs. Laws are text that our own parser reads; nothing in a file is ever run. Nothing here imports torch at once:
the command line starts with this module.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symenum.core.files import write_whole
from symenum.display.table import LawRow
from symenum.run_directory.layout import EVENTS, FRONT, RUN
from symenum.version import __version__

if TYPE_CHECKING:
    from symenum.operators import Operator

__all__ = [
    "CHECKPOINT",
    "FORMAT",
    "FORMAT_VERSION",
    "MODEL",
    "MOTION_MODEL",
    "RUN_FILES",
    "Encoding",
    "FittedNumber",
    "Origin",
    "Result",
    "RunSummary",
    "error_lines",
    "files_of_a_run",
    "fitted_numbers",
    "front_csv",
    "holds_laws_of_motion",
    "model_json",
    "read_result",
    "stated_confidence",
    "write_results",
]

FORMAT = "symenum model"
FORMAT_VERSION = 1
"""Of model.json; a change that older versions cannot read raises it."""
MODEL = "model.json"
"""The file that holds the whole result."""
CHECKPOINT = "checkpoint.json"
"""The checkpoint in a folder of results."""
MOTION_MODEL = "motion.json"
"""The file that holds laws of motion whole, in the folder of their run."""
_MOTION_FILES = (
    "laws.txt",
    "fronts.csv",
    "system.py",
    "system.tex",
    MOTION_MODEL,
    "trajectories.png",
)  # only of `symenum fit-ode`
_LAW_FILES = (MODEL, "front.csv", "law.txt", "law.tex", "law.py", "constants.csv")  # only of `symenum fit`
RUN_FILES = (
    *_LAW_FILES,
    *("report.html", CHECKPOINT, "checkpoint.labels.json"),
    *(RUN, EVENTS, FRONT),
    *_MOTION_FILES,
)
"""All that `symenum fit` and `symenum fit-ode` write: a folder with one of these names in it is taken."""
_FUNCTION = "law"  # the name of the function in law.py
_ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})")  # from which days count
_NON_FINITE = ("inf", "-inf", "nan")  # how JSON, which has no such numbers, holds them: as text


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
    def of(model: Any, last: Any = None) -> RunSummary:
        """The summary of a fitted model; without one (None), of the last report of a search that failed."""
        if model is not None:
            return RunSummary(model.elapsed_, model.n_iter_, model.scored_, model.plan_, model.front_.floor)
        return RunSummary(last.elapsed, last.iteration, last.scored, last.message, last.front.floor)


@dataclass(frozen=True)
class FittedNumber:
    """A number of the chosen law that is no integer, and its standard error; inf where the data do not determine it."""

    constant: float
    standard_error: float


@dataclass(frozen=True)
class Encoding:
    """How columns of a table that hold no numbers became numbers; another table of the same columns is encoded alike.

    `dates`: the time from which a column of dates counts its days (ISO 8601, UTC). `categories`: all texts of a column
    of texts, in order. Old files hold one of two texts only.
    """

    dates: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.dates or name in self.categories

    @staticmethod
    def read(record: object) -> Encoding:
        """From JSON; ValueError where it is none. None is that of a table of numbers."""
        if record is None:
            return Encoding()
        try:
            dates, categories = record["dates"], record["categories"]  # type: ignore[index]
            found = Encoding(dict(dates), {str(name): tuple(texts) for name, texts in categories.items()})
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(f"no encoding of a table: {error}") from error
        words = [*found.dates.values(), *(text for texts in found.categories.values() for text in texts)]
        if not all(isinstance(word, str) for word in words):
            raise ValueError("no encoding of a table: it holds other things than texts")
        wrong = [day for day in found.dates.values() if not _ISO_TIME.fullmatch(day)]
        if wrong:
            raise ValueError(f"no encoding of a table: {wrong[0][:40]!r} is no time")
        return found

    def indicators(self, name: str) -> dict[str, str]:
        """The columns of 0 and 1 that a column becomes, each with its text; of two the first text is what remains."""
        texts = self.categories.get(name, ())
        return {f"{name}_{text}": text for text in (texts[1:] if len(texts) == 2 else texts)}

    def knows_all(self, name: str) -> bool:
        """Whether all texts of the column are known; not of a file of an old version, which left out one of two."""
        return len(self.categories[name]) > 1

    def columns_of(self, name: str) -> list[str]:
        """The columns that a column of the file has become."""
        return list(self.indicators(name)) or [name]

    def file_columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of the file from which these were made, each once."""
        sources = {column: name for name in self.categories for column in self.indicators(name)}
        return tuple(dict.fromkeys(sources.get(column, column) for column in columns))


@dataclass(frozen=True)
class Origin:
    """What a file knows beside the laws, and a fit cannot tell: a model that was loaded keeps it for `save`.

    `source`: the file of the table. `errors`: those of the chosen law, for which the rows of the fit would be needed.
    `encoding`: how dates and texts of the table became numbers.
    """

    source: str = ""
    errors: tuple[FittedNumber, ...] | None = None
    encoding: Encoding = Encoding()


@dataclass(frozen=True)
class Result:
    """The result of a run.

    `names` are the names of the variables in the laws, `columns` those in the table; None for a column of an array.
    `rows`: of the table. `source`: the file that it came from. `errors`: the numbers of the chosen law from left to
    right with their standard errors; None where they were not asked for. `run` is None in files of old versions.
    `confidence`: sentences on how sure the choice is; None where nothing is known of it (`stated_confidence`).
    `encoding`: how dates and texts of the table became numbers. `groups`: of laws with constants by group, which groups
    have which (`grouped_files`).
    """

    target: str
    names: tuple[str, ...]
    columns: tuple[str | None, ...]
    laws: tuple[LawRow, ...]
    selected: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    stop_reason: str = ""
    interrupted: bool = False
    rows: int = 0
    source: str = ""
    run: RunSummary | None = None
    errors: tuple[FittedNumber, ...] | None = None
    confidence: tuple[str, ...] | None = None
    encoding: Encoding = Encoding()
    groups: Mapping[str, Any] | None = None

    @property
    def origin(self) -> Origin:
        return Origin(self.source, self.errors, self.encoding)

    @property
    def law(self) -> LawRow:
        """The chosen law."""
        return self.laws[self.selected]


def fitted_numbers(uncertainties: Any) -> tuple[FittedNumber, ...]:
    """The rows of the table that `PSERegressor.uncertainties` returns."""
    pairs = zip(uncertainties["constant"], uncertainties["standard_error"], strict=True)
    return tuple(FittedNumber(float(value), float(error)) for value, error in pairs)


def error_lines(errors: Sequence[FittedNumber]) -> list[str]:
    """Lines that show the numbers of a law, from left to right, with their standard errors."""
    if not errors:
        return ["The law has no fitted constants."]
    lines = [f"  {one.constant:.8g} ± {one.standard_error:.2g}" for one in errors]
    return ["Its constants and their standard errors:", *lines]


def stated_confidence(model: Any, rule: str) -> tuple[str, ...] | None:
    """The sentences on how sure a fitted model's choice is that go with its law, on the terminal and into files.

    None unless `rule` is the default: the probabilities are those by which that rule has chosen, and another one may
    choose an improbable law.
    """
    from symenum.selection import DEFAULT_RULE

    return tuple(model.confidence()) if rule == DEFAULT_RULE else None


def files_of_a_run(folder: Path) -> list[str]:
    """The names of files in the folder that a run of symenum would write, or has written; [] without a folder."""
    return [name for name in RUN_FILES if (folder / name).exists()]


def holds_laws_of_motion(folder: Path) -> bool:
    """Whether the folder is one of `symenum fit-ode`, and of no `symenum fit`."""
    found = set(files_of_a_run(folder))
    return bool(found & set(_MOTION_FILES)) and not found & set(_LAW_FILES)


def write_results(folder: Path, result: Result) -> list[Path]:
    """Write the files, model.json first, since it holds everything; OSError if the disk does not take them.

    A law with operators of the user's own has no source code, and then there is no law.py.
    """
    texts = {
        MODEL: model_json(result),
        "front.csv": front_csv(result.laws),
        "law.txt": _law_text(result),
        "law.tex": _law_tex(result),
    }
    if result.groups is not None:
        from symenum.estimator.grouped_files import constants_csv

        texts["constants.csv"] = constants_csv(result.groups, result.selected)
    if _has_source(result):
        texts["law.py"] = _law_source(result)
    else:
        (folder / "law.py").unlink(missing_ok=True)  # that of the run before is of another law
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]


def front_csv(laws: Sequence[LawRow]) -> str:
    """The front as CSV, one line for each law, numbers with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["complexity", "loss", "score", "reward", "equation"])
    writer.writerows([law.complexity, law.loss, law.score, law.reward, str(law.written)] for law in laws)
    return text.getvalue()


def _law_text(result: Result) -> str:
    """The law with every digit in the first line; below it how sure it is, and the standard errors, where known."""
    lines = [f"{result.target} = {result.law.written}", *(result.confidence or ())]
    if result.errors is not None:
        lines += error_lines(result.errors)
    return "\n".join(lines) + "\n"


def _law_tex(result: Result) -> str:
    """The law as a displayed equation."""
    from symenum.display.latex import latex_equation

    return f"\\begin{{equation}}\n{latex_equation(result.law.expression, result.target)}\n\\end{{equation}}\n"


def _has_source(result: Result) -> bool:
    """Whether every operator of the law can be written as source code."""
    from symenum.expressions import Apply, walk

    return all(node.operator.built_in for node in walk(result.law.expression) if isinstance(node, Apply))


def _law_source(result: Result) -> str:
    """The law as a Python function of numbers or NumPy arrays, which needs nothing of this package."""
    from symenum.expressions import to_numpy_source

    # Text of the user's own is quoted in ASCII: a name can hold a line break, and then the rest of it would be code.
    names = _arguments(result)
    about = f"# {_FUNCTION}({', '.join(names)}) is the law of {result.target!a}, found by symenum {__version__}\n"
    if result.source:
        about += f"# The table: {result.source!a}\n"
    if result.groups is not None:
        constants = result.groups["laws"][result.selected]["names"]
        about += f"# {', '.join(constants)}: of each group, in constants.csv\n" if constants else ""
    changed = [(n, c) for n, c in zip(result.names, result.columns, strict=True) if c is not None and c != n]
    about += "".join(f"# {name} is the column {column!a}\n" for name, column in changed)
    return f"{about}\n{to_numpy_source(result.law.written, names, _FUNCTION)}"


def _arguments(result: Result) -> tuple[str, ...]:
    """The columns, and of a law with constants by group its constants: those of other laws of the front are not its."""
    if result.groups is None:
        return result.names
    own = result.groups["laws"][result.selected]["names"]
    others = {name for law in result.groups["laws"] for name in law["names"]} - set(own)
    return tuple(name for name in result.names if name not in others)


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
    if result.run is not None:
        document["run"] = {name: _json_number(value) for name, value in asdict(result.run).items()}
    if result.errors is not None:
        document["standard_errors"] = [
            {"constant": one.constant, "standard_error": _json_number(one.standard_error)} for one in result.errors
        ]
    if result.confidence is not None:
        document["confidence"] = list(result.confidence)
    if result.groups is not None:
        document["groups"] = dict(result.groups)
    if result.encoding != Encoding():
        document["encoding"] = asdict(result.encoding)
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def read_result(path: Path, operators: Iterable[Operator] = ()) -> Result:
    """The result that `model_json` has written; ValueError says what is wrong with any other file.

    `operators`: the user's own ones, which laws of the file may hold.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: lists nested too deeply
        raise ValueError(
            f"'{path}' cannot be read as a model ({error}): give the folder of a result, its model.json, or a "
            "checkpoint"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"'{path}' is not a model of symenum")
    if document.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"'{path}' was written by symenum {document.get('symenum', 'of unknown version')!s:.20} with version "
            f"{document.get('version')!r:.20} of the format, and this is symenum {__version__}, which reads version "
            f"{FORMAT_VERSION}: read it with the symenum that wrote it, or run symenum fit again"
        )
    try:
        result = _result_of(document, tuple(operators))
        _check(result)
        return result
    except KeyError as error:
        raise ValueError(f"'{path}' is damaged: there is no {error} in it") from error
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"'{path}' is damaged: {type(error).__name__}: {error}") from error


def _result_of(document: Mapping[str, Any], operators: tuple[Operator, ...]) -> Result:
    from symenum.expressions import parse

    named = document["settings"].get("constants")
    constants = named if isinstance(named, dict) else None  # else True or False: whether laws may hold constants
    laws = tuple(
        LawRow(
            parse(entry["equation"], operators, constants),
            entry["complexity"],
            _number(entry["loss"]),
            _number(entry["score"]),
            _number(entry["reward"]),
        )
        for entry in document["front"]
    )
    run, errors, confidence = (document.get(name) for name in ("run", "standard_errors", "confidence"))
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
        None if run is None else _run_of(run),
        None if errors is None else tuple(_fitted_number(one) for one in errors),
        None if confidence is None else tuple(confidence),
        Encoding.read(document.get("encoding")),
        document.get("groups"),
    )


def _run_of(entry: Mapping[str, Any]) -> RunSummary:
    return RunSummary(
        _number(entry["elapsed"]),
        int(_number(entry["steps"])),
        int(_number(entry["scored"])),
        str(entry["plan"]),
        _number(entry["floor"]),
    )


def _fitted_number(entry: Mapping[str, Any]) -> FittedNumber:
    return FittedNumber(_number(entry["constant"]), _number(entry["standard_error"]))


def _check(result: Result) -> None:
    """Refuse what no search can have written: values of other types, and laws in unknown variables."""
    from symenum.expressions import variables

    texts = (result.target, result.source, result.stop_reason, *result.names, *(result.confidence or ()))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("target, source, stop_reason, the names of variables and confidence must be texts")
    if not all(column is None or isinstance(column, str) for column in result.columns):
        raise TypeError("the columns of variables must be texts or null")
    counts = (result.selected, result.rows, *(law.complexity for law in result.laws))
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in counts):
        raise TypeError("selected, rows and complexities must be whole numbers of at least 0")
    if result.selected >= len(result.laws):
        raise ValueError(f"law {result.selected} of {len(result.laws)} is selected")
    known = set(result.names)
    if len(known) < len(result.names):
        raise ValueError("two variables have the same name")
    unknown = sorted({name for law in result.laws for name in variables(law.expression)} - known)
    if unknown:
        raise ValueError(f"the laws hold {', '.join(unknown)}, which is no variable of the model")


def _number(value: Any) -> float:
    if value in _NON_FINITE or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return float(value)
    raise TypeError(f"{value!r:.60} is no number")


def _json_number(value: Any) -> Any:
    # JSON has no infinity, and the score of a perfect fit is infinite.
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
