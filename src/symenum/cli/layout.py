"""How a text file holds its table: encoding, delimiter, header, decimal sign; found from its first lines.

Only looks; `tables` reads. Nothing here imports pandas, so that a wrong file is refused at once.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symenum.cli.errors import InputError, did_you_mean

__all__ = ["Layout", "find_layout", "read_start"]

_START = 1 << 16  # bytes that are looked at, and more where lines are long
_MOST = 1 << 25
_LINES = 50
_WHITESPACE = r"\s+"
_DELIMITERS = ("\t", ";", "|", ",")
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": _WHITESPACE, " ": _WHITESPACE, "whitespace": _WHITESPACE}
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MISSING = {"", "na", "nan", "null", "none", "n/a", "-nan", "#n/a", "<na>"}
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
_DECIMAL_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Layout:
    """How to read a file. `names` is None without a header; `skip` is the number of lines before the first row."""

    encoding: str
    delimiter: str
    decimal: str
    names: tuple[str, ...] | None
    width: int
    skip: int
    comments: bool


def read_start(path: Path) -> bytes:
    """The first bytes of the file, unpacked; refuses what cannot be a table."""
    shown = f"'{path}'"
    if path.is_dir():
        raise InputError(f"{shown} is a folder: name the file in it that holds the table.")
    if not path.exists():
        raise InputError(f"There is no file {shown}.{_nearest_file(path)}")
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            start: bytes = file.read(_START)
            while start.count(b"\n") < _LINES and len(start) < _MOST and (more := file.read(_START)):
                start += more
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error.strerror or error}.") from error
    except (EOFError, lzma.LZMAError) as error:
        raise InputError(f"{shown} cannot be unpacked: {error}.") from error
    if not start.strip():
        raise InputError(f"{shown} is empty: it needs a column for the target, one for each variable, and rows.")
    if start.startswith(b"PK\x03\x04") or start.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError(f"{shown} is a workbook or an archive, not a text table: save the sheet as CSV.")
    return start


def _nearest_file(path: Path) -> str:
    try:
        return did_you_mean(path.name, [found.name for found in path.parent.iterdir()], 0.75)
    except OSError:
        return f" There is no folder '{path.parent}' either."


def find_layout(path: Path, start: bytes, *, header: bool | None, delimiter: str | None) -> Layout:
    """The layout of a text file from its first bytes; what the caller has fixed stays."""
    encoding, text = _decoded(path, start)
    lines = re.split("\r\n|\n|\r", text)
    if len(start) >= _START and len(lines) > 1:
        lines.pop()  # perhaps cut off in the middle
    numbered = [(i, line) for i, line in enumerate(lines) if line.strip()]
    comments = [(i, line) for i, line in numbered if line.lstrip().startswith("#")]
    content = [(i, line) for i, line in numbered if not line.lstrip().startswith("#")][:_LINES]
    if not content:
        raise InputError(f"'{path}' holds only comments: there is no row in it.")
    above = [line for i, line in comments if i < content[0][0]]
    sample = [line for _, line in content]
    delimiter = _find_delimiter(sample) if delimiter is None else _NAMED_DELIMITERS.get(delimiter, delimiter)
    if delimiter != _WHITESPACE and len(delimiter) != 1:
        raise InputError(f"--delimiter must be one character, 'tab' or 'space', not {delimiter!r}.")
    rows = [_split(line, delimiter) for line in sample]
    decimal = _find_decimal(rows, delimiter)
    names: tuple[str, ...] | None = None
    first = 0
    if header if header is not None else _has_header(rows, decimal):
        names, first = tuple(rows[0]), 1
        if len(rows) == 1:
            raise InputError(f"'{path}' has a header and no rows: the columns are {_listed(names)}.")
    elif above and header is None:
        # numpy.savetxt writes its header as a comment.
        found = _split(above[-1].lstrip("# \t"), delimiter)
        fits = len(found) == len(rows[0]) and not any(_is_number(cell, decimal) for cell in found)
        names = tuple(found) if fits else None
    width = Counter(len(row) for row in rows[first:]).most_common(1)[0][0]
    if names is not None and len(names) != width:
        names = _fitted_names(path, names, rows[first:], width)
    return Layout(encoding, delimiter, decimal, names, width, content[first][0], bool(comments))


def _decoded(path: Path, start: bytes) -> tuple[str, str]:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", start[: len(start) // 2 * 2].decode("utf-16", errors="ignore")
    if b"\0" in start:
        raise InputError(f"'{path}' is not a text table: it holds binary data.")
    try:
        # A character may be cut at the end of what was read.
        whole = start.rsplit(b"\n", 1)[0] if len(start) >= _START else start
        return "utf-8-sig", whole.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "latin-1", start.decode("latin-1")


def _find_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts the lines into equally many fields, and these into numbers, as far as that goes."""
    best, best_merit = _WHITESPACE, 0.0
    for delimiter in (*_DELIMITERS, _WHITESPACE):
        rows = [_split(line, delimiter) for line in lines]
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        decimal = _find_decimal(rows, delimiter)
        cells = [cell for row in rows for cell in row]
        numbers = sum(_is_number(cell, decimal) for cell in cells) / len(cells)
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


def _find_decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    if delimiter == ",":
        return "."
    cells = [cell for row in rows for cell in row]
    commas = any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return "," if commas and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells) else "."


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return cell.casefold() in _MISSING and cell != ""
    return True


def _has_header(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first line names the columns: no number in it, or words above numbers."""
    words = [bool(cell) and not _is_number(cell, decimal) for cell in rows[0]]
    if not any(words):
        return False
    numbers = [_is_number(cell, decimal) for cell in rows[0]]
    if not any(numbers):
        return True
    return any(
        word and i < len(row) and _is_number(row[i], decimal) for row in rows[1:] for i, word in enumerate(words)
    )


def _fitted_names(path: Path, names: tuple[str, ...], rows: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    if len(names) < width and not any(any(row[len(names) :]) for row in rows):
        return (*names, *[""] * (width - len(names)))  # lines that end in a delimiter
    if len(names) > width and not any(names[width:]):
        return names[:width]
    raise InputError(
        f"'{path}': the header names {len(names)} columns ({_listed(names)}), but the rows have {width} values. "
        "Correct the header, or say --delimiter if the columns were cut wrongly."
    )


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown
