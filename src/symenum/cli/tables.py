"""Reads a table from a file and takes variables, target and weights from it; an error says what is wrong with the file.

The checks are here and not in the estimator because only here the file, its rows and the options that would help are
known. The layout of a text file (encoding, delimiter, header, decimal sign) is found from its first lines, before
pandas is imported, so that a wrong file is refused at once. Names of columns that formulas cannot hold are changed in
the table; the file itself is never changed.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from symenum.cli.messages import InputError, did_you_mean
from symenum.cli.options import split_list
from symenum.estimator.saved_results import Encoding

if TYPE_CHECKING:
    import pandas

__all__ = [
    "DELIMITER_ADVICE",
    "EXAMPLES",
    "ColumnChoice",
    "Example",
    "Table",
    "as_dates",
    "choose_columns",
    "encoded_alike",
    "hold_out",
    "may_become_columns",
    "read_frame",
    "table_path",
]

Note = Callable[[str], None]
"""Called with a sentence that the user should read."""
_PARQUET = b"PAR1"  # the first bytes of a Parquet file
_JSON = re.compile(rb'\s*(?:\{\s*"|\[\s*[\[{])')  # how a table as JSON begins; a CSV may begin with [s] or {a}
_MAX_NAMES = 8  # names of columns in a message: about one line
_FEW_ROWS = 3  # laws of two constants, of which there are hundreds, pass through or near three points
_MAX_LISTED = 12  # names of columns in a message about the header, whose reader looks for one that is missing
_LAYOUT_LINES = 50  # lines from which the layout is found: one odd line among them is outvoted
_CHUNK = 1 << 16  # bytes read at a time to find these lines, 64 KiB: they are in the first chunk of most files
_MAX_START = 1 << 25  # bytes read in all to find these lines, 32 MiB: lines of some hundred thousand columns
_WHITESPACE = r"\s+"
_DELIMITERS = ("\t", ";", "|", ",")
_ONE_COLUMN = "\t"  # where nothing cuts the lines: a name such as "E (J)" stays whole
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": _WHITESPACE, " ": _WHITESPACE, "whitespace": _WHITESPACE}
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# In lower case: the words for a missing value that pandas reads as such and that tables have.
_DASH = "-"  # which pandas reads as text
_MISSING = {"", "na", "nan", "null", "none", "n/a", "-nan", "#n/a", "<na>", _DASH}
DELIMITER_ADVICE = ", or say --delimiter if the columns were cut wrongly"  # on the command line only
_MAX_CATEGORIES = 20  # different texts of a column that may become a column each: more would be names, not kinds
# Text that is a date, and how pandas reads it.
_DATE_FORMS = (
    (r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?", "ISO8601"),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
_DIGITS_AND_SIGNS = re.compile(r"[+-]?[0-9][0-9.,]*")  # a number, whatever its signs mean
_DECIMAL_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?")
# Numbers that are written so that they read as text: what they have is said, and the number in them is the first group.
_DECORATED = (
    (re.compile(r"([+-]?[0-9.,]*[0-9])\s*%"), "numbers with a percent sign"),
    (re.compile(r"[+-]?[$€£¥]\s*([+-]?[0-9.,]*[0-9])"), "amounts of money"),
    (re.compile(r"([+-]?[0-9.,]*[0-9])\s*[$€£¥]"), "amounts of money"),
    (re.compile(r"([+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?)"), "numbers with commas between thousands"),
    (re.compile(r"([+-]?[0-9.,]*[0-9])\s+[^\W\d_][^\d\s]*"), "numbers with units"),
)


@dataclass(frozen=True)
class Example:
    """A file of the package, what to search for in it, and the law that science knows."""

    file: str
    target: str
    drop: tuple[str, ...]
    settings: Mapping[str, object]
    """Used instead of the defaults of `symenum fit`."""
    story: str
    known: str
    law: str


# For --example, by name.
EXAMPLES = {
    "planets": Example(
        file="planets.csv",
        target="period_years",
        drop=("planet",),
        # The table is of mean orbits, in which Kepler's law holds to 0.06%, and has eight rows: laws that fit better do
        # so by chance. The rule "reward" weighs simplicity most and chooses Kepler's law.
        settings={"max_time": 2.0, "model_selection": "reward"},
        story="The eight planets: distance from the Sun (AU) and period (years). Which law gives the period?",
        known="Kepler's third law (1619) is period_years = distance_au**(3/2)",
        law="distance_au**(3/2)",
    )
}


# From a file to a DataFrame


@contextmanager
def table_path(data: Path | None, example: str = "") -> Iterator[Path]:
    """The file to read: `data`, or the file of an example.

    Standard input or a pipe is copied into a temporary file, since a table is read twice: its layout, then its rows.
    """
    if data is None:
        with as_file(files("symenum.data").joinpath(EXAMPLES[example].file)) as path:
            yield path
    elif str(data) == "-" or data.is_fifo():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "standard input"
            with click.open_file(str(data), "rb") as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            try:
                yield path
            except InputError as error:  # of a file that the user has never seen
                raise InputError(error.message.replace(f"'{path}'", f"'{path.name}'")) from error
    else:
        yield data


def read_frame(path: Path, note: Note, *, header: bool | None = None, delimiter: str | None = None) -> pandas.DataFrame:
    """The table of a file with the names of its columns; without a header they are called x1, x2, …"""
    start = read_start(path)
    if start.startswith(_PARQUET):
        return _read_parquet(path)
    layout = find_layout(path, start, header=header, delimiter=delimiter)
    frame = _read_text(path, layout)
    if layout.marks != _ENGLISH:
        note(f"Numbers are read with {layout.marks}.")
    if layout.units:
        note(f"The line below the header holds units ({_listed(layout.units)}) and no numbers: it is left out.")
    if layout.names is None:
        frame.columns = [f"x{i + 1}" for i in range(frame.shape[1])]
        note(f"No header found: the columns are x1 to x{frame.shape[1]}, in the order of the file.")
        return frame
    return _without_unnamed(frame, layout.names, note)


def read_start(path: Path) -> bytes:
    """The first bytes of the file, unpacked; an error if it cannot be a table."""
    shown = f"'{path}'"
    if path.is_dir():
        raise InputError(f"{shown} is a folder: name the file in it that holds the table.")
    if not path.exists():
        raise InputError(f"There is no file {shown}.{_nearest_file(path)}")
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            start: bytes = file.read(_CHUNK)
            while start.count(b"\n") < _LAYOUT_LINES and len(start) < _MAX_START and (more := file.read(_CHUNK)):
                start += more
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error.strerror or error}.") from error
    except (EOFError, lzma.LZMAError) as error:
        raise InputError(f"{shown} cannot be unpacked: {error}.") from error
    if not start.strip():
        raise InputError(f"{shown} is empty: it needs a column for the target, one for each variable, and rows.")
    if start.startswith(b"PK\x03\x04") or start.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError(f"{shown} is a workbook or an archive, not a text table: save the sheet as CSV.")
    if _JSON.match(start):
        raise InputError(f"{shown} is JSON, not a text table: save it as CSV, such as by pandas.read_json and to_csv.")
    return start


def _nearest_file(path: Path) -> str:
    try:
        return did_you_mean(path.name, [found.name for found in path.parent.iterdir()], 0.75)
    except OSError:
        return f" There is no folder '{path.parent}' either."


class Marks(NamedTuple):
    """The decimal sign, and the sign between thousands, if there is one: 2.143,88 is 2143.88."""

    decimal: str
    thousands: str | None

    def __str__(self) -> str:
        words = {",": "comma", ".": "point"}
        between = "" if self.thousands is None else f" and a {words[self.thousands]} between thousands"
        return f"a decimal {words[self.decimal]}{between}"

    def plain(self, cell: str) -> str:
        """The number in the cell as Python writes it; a cell that is no number is not one afterwards either."""
        if self.thousands is not None and _grouped(self.thousands, self.decimal).fullmatch(cell):
            cell = cell.replace(self.thousands, "")
        return cell.replace(",", ".") if self.decimal == "," else cell


_ENGLISH = Marks(".", None)


@dataclass(frozen=True)
class Layout:
    """How to read a text file.

    `names` is None without a header, `width` the number of columns, `skip` the number of lines before the first row.
    `comments`: there are lines that begin with #. `units`: the cells of a line below the header that holds units and is
    one of the lines before the first row; () without one.
    """

    encoding: str
    delimiter: str
    marks: Marks
    names: tuple[str, ...] | None
    width: int
    skip: int
    comments: bool
    units: tuple[str, ...] = ()


def find_layout(path: Path, start: bytes, *, header: bool | None, delimiter: str | None) -> Layout:
    """The layout of a text file from its first bytes; `header` and `delimiter` are found unless they are given."""
    encoding, text = _decoded(path, start)
    lines = re.split("\r\n|\n|\r", text)
    if len(start) >= _CHUNK and len(lines) > 1:
        lines.pop()  # may be cut off in the middle
    numbered = [(i, line) for i, line in enumerate(lines) if line.strip()]
    comments = [(i, line) for i, line in numbered if line.lstrip().startswith("#")]
    content = [(i, line) for i, line in numbered if not line.lstrip().startswith("#")][:_LAYOUT_LINES]
    if not content:
        raise InputError(f"'{path}' holds only comments: there is no row in it.")
    above = [line for i, line in comments if i < content[0][0]]
    sample = [line for _, line in content]
    delimiter = _find_delimiter(sample) if delimiter is None else _NAMED_DELIMITERS.get(delimiter, delimiter)
    if delimiter != _WHITESPACE and len(delimiter) != 1:
        raise InputError(f"--delimiter must be one character, 'tab' or 'space', not {delimiter!r}.")
    rows = [_split(line, delimiter) for line in sample]
    marks = _find_marks(rows, delimiter)
    names: tuple[str, ...] | None = None
    units: tuple[str, ...] = ()
    first = 0
    if header if header is not None else _has_header(rows, marks):
        names, first = tuple(rows[0]), 1
        if len(rows) == 1:
            raise InputError(f"'{path}' has a header and no rows: the columns are {_listed(names)}.")
        if _are_units(rows[1], rows[2:], marks):
            units, first = tuple(rows[1]), 2
    elif above and header is None:
        # numpy.savetxt writes its header as a comment.
        found = _split(above[-1].lstrip("# \t"), delimiter)
        fits = len(found) == len(rows[0]) and not any(_is_number(cell, marks) for cell in found)
        names = tuple(found) if fits else None
    width = Counter(len(row) for row in rows[first:]).most_common(1)[0][0]
    if names is not None and len(names) != width:
        names = _fitted_names(path, names, rows[first:], width)
    return Layout(encoding, delimiter, marks, names, width, content[first][0], bool(comments), units)


def _decoded(path: Path, start: bytes) -> tuple[str, str]:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", start[: len(start) // 2 * 2].decode("utf-16", errors="ignore")
    if b"\0" in start:
        raise InputError(f"'{path}' is not a text table: it holds binary data.")
    try:
        # The last character that was read may be cut off in the middle.
        whole = start.rsplit(b"\n", 1)[0] if len(start) >= _CHUNK else start
        return "utf-8-sig", whole.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "latin-1", start.decode("latin-1")


def _find_delimiter(lines: Sequence[str]) -> str:
    """The delimiter with the highest merit: the share of lines of the usual width × (1 + the share of numbers)."""
    best, best_merit = _ONE_COLUMN, 0.0
    for delimiter in (*_DELIMITERS, _WHITESPACE):
        rows = [_split(line, delimiter) for line in lines]
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        marks = _find_marks(rows, delimiter)
        cells = [cell for row in rows for cell in row]
        numbers = sum(_is_number(cell, marks) for cell in cells) / len(cells)
        merit = count / len(lines) * (1 + numbers) if width > 1 else 0.0
        if merit > best_merit:
            best, best_merit = delimiter, merit
    return best


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter == _WHITESPACE:
        return [cell.strip("\"'") for cell in line.split()]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
    except csv.Error as error:
        raise InputError(f"A line cannot be cut into columns: {error}.") from error


def _find_marks(rows: Sequence[Sequence[str]], delimiter: str) -> Marks:
    """The signs in the numbers: thousands have one only where a cell has both, and no cell has it in another place."""
    if delimiter == ",":
        return _ENGLISH
    cells = [cell for row in rows for cell in row]
    for decimal, thousands in ((",", "."), (".", ",")):
        grouped = _grouped(thousands, decimal)
        numbers = [cell for cell in cells if thousands in cell and _DIGITS_AND_SIGNS.fullmatch(cell)]
        if any(decimal in cell for cell in numbers) and all(grouped.fullmatch(cell) for cell in numbers):
            return Marks(decimal, thousands)
    commas = any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return Marks(",", None) if commas and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells) else _ENGLISH


def _grouped(thousands: str, decimal: str) -> re.Pattern[str]:
    """A number with groups of three digits: 2.143,88."""
    return re.compile(rf"[+-]?[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+(?:{re.escape(decimal)}[0-9]*)?")


def _is_number(cell: str, marks: Marks) -> bool:
    try:
        float(marks.plain(cell))
    except ValueError:
        return cell.casefold() in _MISSING and cell != ""
    return True


def _has_header(rows: Sequence[Sequence[str]], marks: Marks) -> bool:
    """Whether the first line names the columns: it holds no number, or it has a word above a number."""
    words = [bool(cell) and not _is_number(cell, marks) for cell in rows[0]]
    if not any(words):
        return False
    numbers = [_is_number(cell, marks) for cell in rows[0]]
    if not any(numbers):
        return True
    return any(word and i < len(row) and _is_number(row[i], marks) for row in rows[1:] for i, word in enumerate(words))


def _are_units(cells: Sequence[str], rows: Sequence[Sequence[str]], marks: Marks) -> bool:
    """Whether a line below the header holds units: words and no number, in a table that has only numbers below it.

    A table with a column of text has texts in its first row too: there nothing tells units from a row.
    """
    words = [cell for cell in cells if cell.casefold() not in _MISSING]
    if not words or any(_is_number(cell, marks) for cell in words):
        return False
    below = [cell for row in rows for cell in row if cell]
    return bool(below) and all(_is_number(cell, marks) for cell in below)


def _fitted_names(path: Path, names: tuple[str, ...], rows: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    if len(names) < width and not any(any(row[len(names) :]) for row in rows):
        return (*names, *[""] * (width - len(names)))  # lines that end in a delimiter
    if len(names) > width and not any(names[width:]):
        return names[:width]
    raise InputError(
        f"'{path}': the header names {len(names)} columns ({_listed(names)}), but the rows have {width} values. "
        f"Correct the header{DELIMITER_ADVICE}."
    )


def _listed(names: Sequence[str], limit: int = _MAX_LISTED) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown}, … ({len(names)} in all)" if len(names) > limit else shown


def _read_parquet(path: Path) -> pandas.DataFrame:
    import pandas

    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise InputError(
            f"'{path}' is a Parquet file, which needs the package pyarrow: pip install pyarrow, or save it as CSV."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' cannot be read as Parquet: {str(error).rstrip('.')}.") from error
    frame.columns = [str(column) for column in frame.columns]
    return frame


def _read_text(path: Path, layout: Layout) -> pandas.DataFrame:
    import pandas

    options: dict[str, Any] = {
        "sep": layout.delimiter,
        "decimal": layout.marks.decimal,
        "thousands": layout.marks.thousands,
        "header": None,
        "names": list(range(layout.width)),
        "index_col": False,
        "skiprows": layout.skip,
        "skipinitialspace": True,
        "low_memory": False,
        "comment": "#" if layout.comments else None,
        "na_values": [_DASH],
    }
    if tuple(int(part) for part in pandas.__version__.split(".")[:2]) < (3, 1):
        # Later ones read every digit; before, the default could be off in the last one, which a law can tell.
        options["float_precision"] = "round_trip"
    try:
        with warnings.catch_warnings():
            # It warns, and goes on, where a row has values that no column takes.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                return pandas.read_csv(path, encoding=layout.encoding, **options)
            except UnicodeDecodeError:
                return pandas.read_csv(path, encoding="latin-1", **options)
    except pandas.errors.ParserWarning as error:
        raise InputError(
            f"'{path}' has rows with more than {layout.width} values. Correct them{DELIMITER_ADVICE}."
        ) from error
    except pandas.errors.EmptyDataError as error:
        raise InputError(f"'{path}' has no rows.") from error
    except pandas.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise InputError(
            f"'{path}' cannot be cut into columns: {what}. Correct that line{DELIMITER_ADVICE}."
        ) from error
    except (OSError, EOFError) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _without_unnamed(frame: pandas.DataFrame, names: Sequence[str], note: Note) -> pandas.DataFrame:
    """The frame with its names; a column without one is left out if it is empty or counts the rows, else called xN."""
    import numpy

    places, called = [], []
    for i, name in enumerate(names):
        column = frame[i]
        if not name and column.isna().all():
            continue
        counts = numpy.arange(len(frame))
        if not name and i == 0 and column.dtype.kind == "i" and (column == counts + column.iloc[0]).all():
            note("The first column has no name and counts the rows: it is left out.")
            continue
        places.append(i)
        called.append(name or _free_name(f"x{i + 1}", names))
        if not name:
            note(f"Column {i + 1} has no name: it is called {called[-1]}.")
    frame = frame[places]
    frame.columns = called
    return frame


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


# From a DataFrame to variables, target and weights


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that the user has named; without names the last column is the target, all others are variables."""

    target: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    missing: str = "drop"
    """What becomes of rows with missing or infinite values: "drop", "impute" or "error"."""
    y_error: str | None = None
    """A column, or a number as text."""
    x_error: tuple[str, ...] = ()
    """NAME=COLUMN or NAME=NUMBER for each variable that has errors."""
    one_hot: tuple[str, ...] = ()
    """Columns of text that become columns of 0 and 1."""
    groups: str | None = None
    """The column that says of which group a row is."""
    units_in_names: bool = False
    """Whether laws call a column "speed [m/s]" speed."""


@dataclass(frozen=True)
class Table:
    """Numbers ready for `fit`: X (rows, features) with names that formulas can hold, y and weights (rows,).

    `y_error` (rows,) and `x_error` (rows,) by names of columns of X are standard errors.
    """

    X: pandas.DataFrame
    y: pandas.Series
    weights: pandas.Series | None
    target: str
    columns: tuple[str, ...]
    """What the variables are called in the file."""
    y_error: pandas.Series | None = None
    x_error: pandas.DataFrame | None = None
    encoding: Encoding = field(default_factory=Encoding)
    group: str | None = None
    """The column of X that says of which group a row is."""

    @property
    def row_weights(self) -> pandas.Series | None:
        """What each row counts in the loss, up to a factor: the weights times 1/y_error²; None: all count alike."""
        if self.y_error is None:
            return self.weights
        precision = (self.y_error.min() / self.y_error) ** 2
        return precision if self.weights is None else precision * self.weights

    @property
    def fit_arguments(self) -> dict[str, Any]:
        """The keywords of `fit` for the errors that the table has."""
        named = {"y_error": self.y_error, "x_error": self.x_error}
        return {name: value for name, value in named.items() if value is not None}


def choose_columns(
    frame: pandas.DataFrame, choice: ColumnChoice, note: Note, where: str, encoding: Encoding | None = None
) -> Table:
    """Take target, variables, weights and errors from a frame; `where` names the file in messages.

    `encoding`: that of another table, where this one must be encoded alike.
    """
    first_table = encoding is None
    names = [str(name) for name in frame.columns]
    dropped = {names[place] for place in _find_all(choice.drop, names, "--drop")}
    y_error = None if choice.y_error is None else _column_or_number(choice.y_error, names, "--y-error")
    x_errors = _x_errors(choice.x_error, names)
    of_errors = [source for source in (y_error, *x_errors.values()) if isinstance(source, str)]
    remaining = [name for name in names if name not in dropped and name not in of_errors]
    if not remaining:
        raise InputError(f"--drop leaves no column of {where}.")
    target = remaining[-1] if choice.target is None else names[_find(choice.target, names, "--target")]
    weights = None if choice.weights is None else names[_find(choice.weights, names, "--weights")]
    if weights == target:
        raise InputError(f"Column '{target}' cannot be both the target and the weights.")
    if target in of_errors:
        raise InputError(f"Column '{target}' cannot be both the target and an error: choose another with --target.")
    if choice.features is None:
        features = [name for name in remaining if name not in (target, weights)]
    else:
        features = list(dict.fromkeys(names[place] for place in _find_all(choice.features, names, "--features")))
        if target in features:
            hint = " Say which column is the target with --target." if choice.target is None else ""
            raise InputError(f"Column '{target}' is the target and cannot be one of --features too.{hint}")
        features = [name for name in features if name not in dropped and name not in (weights, *of_errors)]
    if not features:
        raise InputError(
            f"There is no column left for a variable in {where}: the target is '{target}'"
            f"{'' if weights is None else f', the weights are {weights!r}'}. A law needs at least one variable."
        )
    without_use = [name for name in x_errors if name not in features]
    if without_use:
        raise InputError(f"--x-error: '{without_use[0]}' is no variable. The variables are: {_listed(features)}.")
    used = list(dict.fromkeys([*features, target, *([weights] if weights is not None else []), *of_errors]))
    repeated = [name for name in used if names.count(name) > 1]
    if repeated:
        raise InputError(
            f"{where} has more than one column called {_quoted(repeated)}: give each its own name in the header, "
            "or leave them out with --drop."
        )
    group = _group_column(choice, names, features)
    one_hot = [names[place] for place in _find_all(choice.one_hot, names, "--one-hot")]
    if group in one_hot:
        raise InputError(f"--group: '{group}' cannot be one of --one-hot too: its labels may be texts as they are.")
    frame, labels = _numbered_groups(frame, group, choice.missing)
    encoded, encoding = _encoded(frame[used], features, one_hot, note, where, encoding or Encoding())
    features = [column for name in features for column in encoding.columns_of(name)]
    numbers = _numbers(encoded, target, where)
    numbers = _finite_rows(numbers, choice.missing, features, target, encoding, note, where)
    _check_rows(numbers, target, weights, where)
    if bool((numbers[features] == numbers[features].iloc[0]).all(axis=None)):
        raise InputError(
            f"Every variable of {where} has one value in all {len(numbers):,} rows: there is nothing to explain "
            f"'{target}' with. Choose other columns with --features."
        )
    if first_table:
        _note_weak_columns(numbers, [name for name in features if name != group], target, note)
    _check_errors(numbers, y_error, x_errors, where)
    table = _named(numbers, features, target, weights, choice.units_in_names, note)
    if group is not None:
        table = replace(table, group=str(table.X.columns[features.index(group)]))
    if labels is not None:
        table.X[table.group] = labels.loc[numbers.index].to_numpy(dtype=object)
    return _with_errors(table, numbers.reset_index(drop=True), y_error, x_errors, encoding)


def _group_column(choice: ColumnChoice, names: Sequence[str], features: Sequence[str]) -> str | None:
    """The column that says of which group a row is."""
    if choice.groups is None:
        return None
    group = names[_find(choice.groups, names, "--group")]
    if group not in features:
        raise InputError(f"--group: '{group}' is not among the variables: choose another column, or see --features.")
    return group


def _numbered_groups(
    frame: pandas.DataFrame, group: str | None, missing: str
) -> tuple[pandas.DataFrame, pandas.Series | None]:
    """The frame with numbers in the place of labels that are texts, and these labels, called as their column."""
    if group is None or frame[group].dtype.kind in "iufb":
        return frame, None
    labels = frame[group].map(_category).where(frame[group].notna())
    if missing == "impute" and labels.isna().any():
        raise InputError(f"--group: '{group}' has no label in some rows, and labels cannot be imputed.")
    codes = {label: code for code, label in enumerate(labels.dropna().unique())}
    return frame.assign(**{group: labels.map(codes)}), labels


def _column_or_number(text: str, names: Sequence[str], option: str) -> str | float:
    """A column that is named, or a number that is no column's name."""
    if text in names:
        return text
    try:
        number = float(text)
    except ValueError:
        return names[_find(text, names, option)]
    return number


def _x_errors(words: Sequence[str], names: Sequence[str]) -> dict[str, str | float]:
    """For each variable with errors, the column of these errors, or one number."""
    found: dict[str, str | float] = {}
    for word in words:
        name, sign, source = word.partition("=")
        if not sign or not name.strip() or not source.strip():
            raise InputError(f"--x-error: {word!r} must be a variable and its error, such as x=x_error or x=0.1.")
        column = names[_find(name.strip(), names, "--x-error")]
        found[column] = _column_or_number(source.strip(), names, "--x-error")
    return found


def _check_errors(
    frame: pandas.DataFrame, y_error: str | float | None, x_errors: Mapping[str, str | float], where: str
) -> None:
    """Refuse errors that are no standard errors, with the row of the file."""
    for option, source, zero in (
        ("--y-error", y_error, False),
        *((f"--x-error {name}", source, True) for name, source in x_errors.items()),
    ):
        if source is None:
            continue
        least = "at least 0" if zero else "above 0"
        if not isinstance(source, str):
            if not (source > 0 or (zero and source == 0)) or source == float("inf"):
                raise InputError(f"{option}: the error must be a number {least}, not {source:g}.")
            continue
        bad = frame[source] < 0 if zero else frame[source] <= 0
        if bad.any():
            first = int(bad.to_numpy().argmax())
            row, value = frame.index[first] + 1, frame[source].iloc[first]
            raise InputError(f"The errors '{source}' of {where} must be {least}; row {row} has {value:g}.")


def _with_errors(
    table: Table,
    frame: pandas.DataFrame,
    y_error: str | float | None,
    x_errors: Mapping[str, str | float],
    encoding: Encoding,
) -> Table:
    """The table with its errors; the rows of the frame are those of the table."""
    import pandas

    def values(source: str | float) -> pandas.Series:
        return frame[source] if isinstance(source, str) else pandas.Series([source] * len(frame))

    called = dict(zip(table.columns, table.X.columns, strict=True))
    x = pandas.DataFrame({called[name]: values(source) for name, source in x_errors.items()}) if x_errors else None
    y = None if y_error is None else values(y_error)
    return replace(table, y_error=y, x_error=x, encoding=encoding)


# Dates and categories as numbers


def _encoded(
    frame: pandas.DataFrame,
    features: Sequence[str],
    one_hot: Sequence[str],
    note: Note,
    where: str,
    known: Encoding,
) -> tuple[pandas.DataFrame, Encoding]:
    """The frame with dates as numbers of days, and the columns of --one-hot as columns of 0 and 1.

    An empty cell stays empty in all columns that it becomes.
    """
    import pandas

    unused = [name for name in one_hot if name not in features]
    if unused:
        raise InputError(f"--one-hot: '{unused[0]}' is no variable. The variables are: {_listed(features)}.")
    dates, categories = dict(known.dates), dict(known.categories)
    parts: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if name in one_hot or name in categories:
            if name not in categories:
                categories[name] = _categories(column, name, where)
                shown = _listed(list(Encoding({}, categories).indicators(name)), _MAX_NAMES)
                note(f"Column '{name}' becomes {shown} (0 or 1).")
            indicators = _indicator_columns(column, Encoding({}, categories), name, where)
            repeated = [new for new in indicators if new in frame.columns or new in parts]
            if repeated:
                raise InputError(f"--one-hot {name}: {where} has a column '{repeated[0]}' already: rename one of them.")
            parts |= indicators
            continue
        days = as_dates(column) if name in features else None
        if days is None:
            if name in dates and column.notna().any():
                _refuse_what_is_no_date(column, name, dates[name], where)
            parts[name] = column
            continue
        if name not in dates:
            first = days.dropna().iloc[0]
            dates[name] = first.isoformat()
            note(f"Column '{name}' holds dates: it counts the days since {first:%Y-%m-%d %H:%M} (the first row).")
        parts[name] = (days - pandas.Timestamp(dates[name])) / pandas.Timedelta(days=1)
    return pandas.DataFrame(parts, index=frame.index), Encoding(dates, categories)


def encoded_alike(frame: pandas.DataFrame, encoding: Encoding, columns: Sequence[str], where: str) -> pandas.DataFrame:
    """The frame with those of these columns made that the encoding makes from columns of the frame.

    Other columns stay as they are, also those of 0 and 1 of a frame without the column of texts.
    """
    sources = [name for name in encoding.file_columns(columns) if name in frame.columns and name in encoding]
    if not sources:
        return frame
    twice = [name for name in sources if frame[name].ndim != 1]
    if twice:
        raise InputError(f"{where} has more than one column called '{twice[0]}': give each its own name.")
    made, _ = _encoded(frame[sources], sources, (), lambda message: None, where, encoding)
    return frame.assign(**{str(name): made[name] for name in made.columns})


def _indicator_columns(column: pandas.Series, encoding: Encoding, name: str, where: str) -> dict[str, pandas.Series]:
    """The columns of 0 and 1 of a column of texts; an error for a text that the first table did not have."""
    texts = column.map(_category).where(column.notna())
    known = encoding.categories[name]
    strange = (texts.notna() & ~texts.isin(known)).to_numpy()
    if strange.any() and encoding.knows_all(name):
        first = int(strange.argmax())
        raise InputError(
            f"Column '{name}' of {where} holds {texts.iloc[first][:40]!r} in row {first + 1}, and the rows of the "
            f"search had only {_listed(known, _MAX_NAMES)}: the law says nothing about it. Leave out such rows."
        )
    return {
        indicator: (texts == text).where(column.notna()).astype("float64")
        for indicator, text in encoding.indicators(name).items()
    }


def _refuse_what_is_no_date(column: pandas.Series, name: str, first_day: str, where: str) -> None:
    texts = [str(value).strip() for value in column]
    forms = [next((form for pattern, form in _DATE_FORMS if re.fullmatch(pattern, text)), None) for text in texts]
    places = [i for i, filled in enumerate(column.notna()) if filled]
    # The first that is no date, or a date of another form than the first one; or else a day that no calendar has.
    place = next((i for i in places if forms[i] is None or forms[i] != forms[places[0]]), places[0])
    raise InputError(
        f"Column '{name}' of {where} holds {texts[place][:40]!r} in row {place + 1}, which is no date like the "
        f"others. The law counts the days since {first_day[:10]}: write all dates as 2024-03-31, or all as 31.3.2024."
    )


def _category(value: object) -> str:
    """A value as the text of its category."""
    return f"{value:g}" if isinstance(value, float) else str(value).strip()


def _categories(column: pandas.Series, name: str, where: str) -> tuple[str, ...]:
    """The different texts of a column in their order."""
    texts = sorted({_category(value) for value in column.dropna()})
    if len(texts) < 2:
        raise InputError(f"--one-hot {name}: the column has {len(texts)} different values in {where}: leave it out.")
    if len(texts) > _MAX_CATEGORIES:
        raise InputError(
            f"--one-hot {name}: the column has {len(texts)} different values in {where}, more than {_MAX_CATEGORIES}: "
            f"leave it out with --drop {_shell([name])}, or join rare values."
        )
    return tuple(texts)


def may_become_columns(column: pandas.Series) -> bool:
    """Whether --one-hot takes a column of text: several kinds, but not a name for each row."""
    return 2 <= len({_category(value) for value in column.dropna()}) <= _MAX_CATEGORIES


def as_dates(column: pandas.Series) -> pandas.Series | None:
    """The times of a column that holds nothing else; None for another column.

    Text is read as ISO 8601 (2024-03-31, 2024-03-31T12:00) or as day.month.year. With slashes day and month could not
    be told apart: such text is none.
    """
    import pandas

    if column.dtype.kind == "M" or isinstance(column.dtype, pandas.DatetimeTZDtype):
        return pandas.to_datetime(column, utc=True)
    filled = column.dropna()
    if column.dtype.kind in "iufbc" or filled.empty or not filled.map(lambda value: isinstance(value, str)).all():
        return None
    for pattern, form in _DATE_FORMS:
        if filled.str.strip().str.fullmatch(pattern).all():
            days = pandas.to_datetime(column.str.strip(), format=form, errors="coerce", utc=True)
            return None if (days.isna() & column.notna()).any() else days
    return None


def _find_all(words: Sequence[str], names: Sequence[str], option: str) -> list[int]:
    """The indices of columns; a word that is no column's name is a list with commas."""
    cut = [part for word in words for part in ([word] if word in names else split_list([word]))]
    return [_find(name, names, option) for name in cut]


def _find(name: str, names: Sequence[str], option: str) -> int:
    """The index of a column that is named, or given by its number from 1, or from -1 at the end."""
    if name in names:
        return list(names).index(name)
    try:
        number = int(name)
    except ValueError:
        hint, shown = did_you_mean(name, names), _listed(names, _MAX_NAMES)
        raise InputError(f"{option}: there is no column '{name}'.{hint} The columns are: {shown}.") from None
    if number == 0 or abs(number) > len(names):
        raise InputError(
            f"{option}: there is no column number {number}: columns are counted from 1 to {len(names)} "
            f"(or from the end, from -1)."
        )
    return number - 1 if number > 0 else len(names) + number


def _numbers(frame: pandas.DataFrame, target: str, where: str) -> pandas.DataFrame:
    """The frame as float64; one error names all columns that hold anything else."""
    import pandas

    columns: dict[str, Any] = {}
    faults: list[str] = []
    bad: list[str] = []
    plain: dict[str, str] = {}  # by a cell with a number that reads as text, how to write that number
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "iufb":
            columns[name] = column.astype("float64")
            continue
        values = pandas.to_numeric(column, errors="coerce")
        wrong = values.isna() & column.notna()
        if not wrong.any() and column.dtype.kind not in "mM":
            columns[name] = values.astype("float64")
            continue
        first = int(wrong.to_numpy().argmax()) if wrong.any() else 0
        count = int(wrong.sum()) or len(column)
        some = "1 value that is no number" if count == 1 else f"{count} values that are no numbers"
        cell = str(column.iloc[first]).strip()[:40]
        decorated = _decorated(column[wrong])
        if decorated is None:
            bad.append(name)
            what = "text" if count > len(column) / 2 else some
        else:
            what, plain[cell] = decorated
        faults.append(f"column '{name}' holds {what} (row {first + 1}: {cell!r})")
    if not faults:
        return pandas.DataFrame(columns)
    comma, point = _first_cell(frame, _DECIMAL_COMMA), _first_cell(frame, _DECIMAL_POINT)
    if comma is not None and point is not None:
        raise InputError(
            f"{where} has numbers with a decimal comma ({comma}) and others with a decimal point ({point}): write all "
            "of them in one way."
        )
    advice = ""
    if plain:
        cell, number = next(iter(plain.items()))
        advice += f" Write plain numbers, {number} instead of {cell!r}; a unit belongs in the header."
    if target in bad:
        advice += (
            f" The target must be a number in every row: choose another column with --target, or correct '{target}'."
        )
    elif bad:
        advice += (
            f" Turn text into columns of 0 and 1 with --one-hot {_shell(bad)}, leave out with --drop {_shell(bad)}, or "
            "name the variables with --features."
        )
    shown = "; ".join(faults)
    raise InputError(f"{shown[0].upper()}{shown[1:]} in {where}.{advice}")


def _decorated(cells: pandas.Series) -> tuple[str, str] | None:
    """What numbers these are that read as text, if all have one form, and the first of them written plainly."""
    texts = [str(cell).strip() for cell in cells]
    for pattern, words in _DECORATED:
        found = [pattern.fullmatch(text) for text in texts]
        if found and found[0] is not None and None not in found:
            return words, found[0].group(1).replace(",", "")
    return None


def _first_cell(frame: pandas.DataFrame, pattern: re.Pattern[str]) -> str | None:
    """Where the first cell is that has this form, in words; None without one."""
    for name in frame.columns:
        for row, cell in enumerate(frame[name]):
            if isinstance(cell, str) and pattern.fullmatch(cell.strip()):
                return f"row {row + 1} of '{name}': {cell.strip()[:40]!r}"
            if isinstance(cell, float) and pattern is _DECIMAL_POINT and not cell.is_integer() and cell == cell:
                return f"row {row + 1} of '{name}': {cell!r}"
    return None


def _finite_rows(
    frame: pandas.DataFrame,
    missing: str,
    features: Sequence[str],
    target: str,
    encoding: Encoding,
    note: Note,
    where: str,
) -> pandas.DataFrame:
    """The frame without missing and infinite values, by the rule of --missing; only variables are ever filled in."""
    import numpy

    bad = ~numpy.isfinite(frame.to_numpy())
    if not bad.any():
        return frame
    empty = [name for name, is_bad in zip(frame.columns, bad.all(axis=0), strict=True) if is_bad]
    if target in empty:
        raise InputError(f"The target '{target}' of {where} has no finite value: choose another column with --target.")
    if empty:
        raise InputError(
            f"Column {_quoted(empty)} of {where} has no finite value: leave out with --drop {_shell(empty)}."
        )
    if missing == "impute":
        frame = _imputed(frame, features, note)
        bad = ~numpy.isfinite(frame.to_numpy())
    rows = bad.any(axis=1)
    count = int(rows.sum())
    if not count:
        return frame
    first = int(rows.argmax())
    columns = [name for name, is_bad in zip(frame.columns, bad.any(axis=0), strict=True) if is_bad]
    have, which = ("has", "") if count == 1 else ("have", "the first of them ")
    what = f"{count:,} of {len(frame):,} rows {have} missing or infinite values, {which}row {first + 1}"
    if missing == "error":
        raise InputError(
            f"{what} (column {_quoted(columns[:_MAX_NAMES])}). Fill them in, leave these rows out with --missing drop, "
            "or fill in the medians of the columns with --missing impute."
        )
    if count > len(frame) / 2:
        emptiest = max(columns, key=lambda name: int(bad[:, list(frame.columns).index(name)].sum()))
        advice = f"'{emptiest}' is missing in most of them."
        if emptiest in features:
            advice = f"leave out the column with --drop {_shell(encoding.file_columns([emptiest]))}?"
        elif emptiest == target:
            advice = f"the target '{target}' is missing in most of them. Another column is chosen with --target."
        note(f"More than half of the rows are lost: {advice}")
    note(f"{what}: left out.")
    return frame[~rows]


def _imputed(frame: pandas.DataFrame, features: Sequence[str], note: Note) -> pandas.DataFrame:
    """The frame with the median of its column in place of each missing or infinite value of a variable."""
    import numpy

    filled = frame.copy()
    for name in features:
        column = frame[name]
        bad = ~numpy.isfinite(column)
        if not bad.any():
            continue
        median = float(column[~bad].median())
        filled[name] = column.where(~bad, median)
        count = f"{int(bad.sum()):,} missing or infinite values"
        note(f"Column '{name}': {count} are filled in with its median, {median:g}.")
    return filled


def _check_rows(frame: pandas.DataFrame, target: str, weights: str | None, where: str) -> None:
    if len(frame) < 2:
        rows = "1 row" if len(frame) == 1 else "no rows"
        raise InputError(f"{where} has {rows} to learn from: a law needs at least 2, and better 10 or more.")
    counted = frame
    if weights is not None:
        weight = frame[weights]
        if (weight < 0).any():
            first = int((weight < 0).to_numpy().argmax())
            row, value = frame.index[first] + 1, weight.iloc[first]
            raise InputError(f"The weights '{weights}' must not be negative; row {row} has {value:g}.")
        counted = frame[weight > 0]
        if len(counted) < 2:
            raise InputError(f"The weights '{weights}' must be above zero in at least 2 rows.")
    y = counted[target]
    if (y == y.iloc[0]).all():
        raise InputError(
            f"The target '{target}' is {y.iloc[0]:g} in all {len(y):,} rows: there is nothing to explain. "
            "Choose another column with --target."
        )


def _note_weak_columns(frame: pandas.DataFrame, features: Sequence[str], target: str, note: Note) -> None:
    """Say what the rows cannot tell: because they are few, or because a column has one value or those of another."""
    if len(frame) <= _FEW_ROWS:
        note(f"There are only {len(frame)} rows: so few that many laws fit them. Do not trust the one that is chosen.")
    constant = [name for name in features if (frame[name] == frame[name].iloc[0]).all()]
    if constant:
        values = ", ".join(f"'{name}' is {frame[name].iloc[0]:g}" for name in constant[:_MAX_NAMES])
        more = ", …" if len(constant) > _MAX_NAMES else ""
        note(f"The same in all rows: {values}{more}. The rows cannot tell how '{target}' depends on it.")
    first_of: dict[bytes, str] = {}
    firsts = ((name, first_of.setdefault(frame[name].to_numpy().tobytes(), name)) for name in features)
    pairs = [(name, first) for name, first in firsts if name != first and name not in constant]
    if pairs:
        equal = ", ".join(f"'{name}' equals '{other}'" for name, other in pairs[:_MAX_NAMES])
        more = ", …" if len(pairs) > _MAX_NAMES else ""
        note(f"Equal in all rows: {equal}{more}. Laws may hold either of them; leave out one with --drop.")


def _named(
    frame: pandas.DataFrame,
    features: Sequence[str],
    target: str,
    weights: str | None,
    units_in_names: bool,
    note: Note,
) -> Table:
    from symenum.estimator.unit_text import without_unit
    from symenum.expressions import formula_names

    bare = [without_unit(name) if units_in_names else name for name in features]
    bare = bare if len(set(bare)) == len(bare) else list(features)
    in_laws = formula_names(bare, other_names=[target])
    called = {name: in_laws[short] for name, short in zip(features, bare, strict=True)}  # by the name in the file
    renamed = {name: new for name, new in called.items() if new != name}
    if renamed:
        pairs = ", ".join(f"'{name}' is {new}" for name, new in list(renamed.items())[:_MAX_NAMES])
        note(f"Names that formulas cannot use are changed: {pairs}{', …' if len(renamed) > _MAX_NAMES else ''}.")
    frame = frame.reset_index(drop=True)
    X = frame[list(features)].rename(columns=called)
    return Table(X, frame[target], None if weights is None else frame[weights], target, tuple(features))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _shell(names: Sequence[str]) -> str:
    joined = ",".join(names)
    return joined if joined.replace(",", "").replace("_", "").isalnum() else f'"{joined}"'


def hold_out(
    table: Table,
    choice: ColumnChoice,
    note: Note,
    path: Path | None,
    fraction: float | None = None,
    seed: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
) -> tuple[Table, Table | None]:
    """The rows to search on, and the rows to choose the law on: those of a file, a fraction of the table, or None."""
    if path is not None and fraction is not None:
        raise click.UsageError("Name a file with --validation, or a part with --validation-fraction, not both.")
    if path is not None:
        frame = read_frame(path, note, header=header, delimiter=delimiter)
        features = choice.features or table.encoding.file_columns(table.columns)
        # The law is chosen by its loss on these rows, whatever their errors.
        wanted = replace(choice, target=choice.target or table.target, features=features, y_error=None, x_error=())
        return table, choose_columns(frame, wanted, note, f"'{path.name}'", table.encoding)
    if fraction is None:
        return table, None
    import numpy

    rows = len(table.y)
    order = numpy.random.default_rng(seed).permutation(rows)  # without a seed, other rows in every run
    count = round(fraction * rows)
    if count < 1 or rows - count < 2:
        raise InputError(f"--validation-fraction {fraction:g} of {rows} rows leaves too few on one side.")
    note(f"{count} of {rows} rows are held out to choose the law on.")
    return _rows(table, sorted(order[count:].tolist())), _rows(table, sorted(order[:count].tolist()))


def _rows(table: Table, rows: list[int]) -> Table:
    parts = {name: getattr(table, name) for name in ("X", "y", "weights", "y_error", "x_error")}
    chosen = {name: part.iloc[rows].reset_index(drop=True) for name, part in parts.items() if part is not None}
    return replace(table, **chosen)
