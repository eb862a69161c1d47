"""Tables that the page uploads: taken in bounded pieces, read by the command line's reader, and described for a choice.

A file from anywhere may be made to fill the memory: a workbook or an archive of a few kilobytes can hold gigabytes. So
everything is counted while it is unpacked, and refused beyond the limits.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symenum.cli.messages import InputError
from symenum.studio.answers import RequestError
from symenum.studio.security import inside

if TYPE_CHECKING:
    import pandas

__all__ = ["LIMITS", "Limits", "Tables", "read_table"]

_PREVIEW_ROWS = 20  # shown, as the page and the server have agreed
_MAX_CELL = 200  # characters of a cell in the preview
_KEPT = 40  # uploads that are kept: the older ones go, since a run has its own copy of its rows
_CHUNK = 1 << 20  # bytes that are unpacked at a time, 1 MiB
_WORKBOOK, _PARQUET = b"PK\x03\x04", b"PAR1"  # the first bytes of such files
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"  # .xls, of before 2007
_UNPACKERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".dat")
_TOO_LARGE = "Take a part of its rows, or search it with `symenum fit` on the command line."


@dataclass(frozen=True)
class Limits:
    """How large a table may be, packed and unpacked, and how much all that are kept may take together."""

    upload_bytes: int = 256 << 20  # a million rows of 20 columns; the whole table must fit into memory twice
    unpacked_bytes: int = 1 << 30
    columns: int = 5_000  # the page shows a line for each; `symenum fit` takes more
    cells: int = 50_000_000  # as float64 400 MB
    kept_bytes: int = 2 << 30  # of the user's disk that earlier uploads together may keep; the oldest go first


LIMITS = Limits()


class Tables:
    """The uploaded tables, each in a folder of its own."""

    def __init__(self, folder: Path, limits: Limits = LIMITS) -> None:
        self.folder = folder
        self.limits = limits

    def path(self, table: str) -> Path:
        """The file of a table that was uploaded; RequestError where it is not there."""
        try:
            folder = inside(self.folder, table)
            return next(path for path in folder.iterdir() if path.name.startswith("table."))
        except (ValueError, OSError, StopIteration) as error:
            raise RequestError(404, "This table is not here any more: choose the file again.") from error

    def name(self, table: str) -> str:
        """The name that the file had."""
        self.path(table)
        return (self.folder / table / "name").read_text(encoding="utf-8")

    async def take(self, name: str, declared: str | None, chunks: AsyncIterator[bytes]) -> str:
        """Take an upload in; returns its key. Refused by the length that it declares, and by what really comes."""
        limit = self.limits.upload_bytes
        too_large = RequestError(413, f"The file is larger than {limit >> 20} MB. {_TOO_LARGE}")
        if declared is not None and (not declared.isdigit() or int(declared) > limit):
            raise too_large
        self._remove_old()
        key = secrets.token_hex(8)
        folder = self.folder / key
        ending = "".join(re.findall(r"(?:\.[a-z]{2,7})(?:\.(?:gz|bz2|xz))?$", name.lower())) or ".csv"
        try:
            folder.mkdir(parents=True)
            taken = 0
            with (folder / f"table{ending}").open("wb") as file:
                async for chunk in chunks:
                    taken += len(chunk)
                    if taken > limit:
                        raise too_large
                    file.write(chunk)
            (folder / "name").write_text(name[:_MAX_CELL], encoding="utf-8")
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise RequestError(503, f"The table cannot be kept: {error.strerror or error}.") from error
            raise
        return key

    def _remove_old(self) -> None:
        if self.folder.is_dir():
            room = self.limits.kept_bytes
            newest_first = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for i, path in enumerate(newest_first):
                room -= sum(file.stat().st_size for file in path.iterdir())
                if i >= _KEPT or room < 0:
                    shutil.rmtree(path, ignore_errors=True)

    def describe(self, table: str) -> dict[str, Any]:
        """Rows, columns with their kinds and warnings, and the first rows as text."""
        path, notes = self.path(table), list[str]()
        frame = read_table(path, notes.append, self.limits)
        if frame.shape[1] < 2:
            raise RequestError(
                422,
                f"The table has one column, {str(frame.columns[0])[:60]!r}: a law needs a target and one other "
                "column at least. If its lines hold several values, separate them by commas or tabs.",
            )
        columns = [_describe_column(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
        numbers = [one["name"] for one in columns if one["kind"] == "number"]
        return {
            "table": table,
            "name": self.name(table),
            "rows": len(frame),
            "columns": columns,
            "preview": [[_cell(value) for value in row] for row in frame.head(_PREVIEW_ROWS).itertuples(index=False)],
            "warnings": notes,
            "suggested_target": numbers[-1] if numbers else None,
        }


def read_table(path: Path, note: Callable[[str], None], limits: Limits = LIMITS) -> pandas.DataFrame:
    """The table of an uploaded file: text, Parquet or the first sheet of a workbook; RequestError where it is none."""
    from symenum.cli.tables import DELIMITER_ADVICE, read_frame

    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start == _OLD_WORKBOOK:
            raise RequestError(422, "This is a workbook of before 2007: save it as .xlsx or CSV.")
        if path.suffix in _UNPACKERS:
            path = _unpacked(path, limits)
        elif start == _WORKBOOK:
            path = _sheet_as_text(path, note, limits)
        elif start == _PARQUET:
            _check_parquet(path, limits)
        frame = read_frame(path, note)
        _note_encoding(path, start, note)
    except InputError as error:
        said = str(error.message).replace(f"'{path}'", "The file").replace(DELIMITER_ADVICE, "")
        raise RequestError(422, said) from error
    except (MemoryError, RecursionError) as error:
        raise RequestError(413, f"The table does not fit into memory. {_TOO_LARGE}") from error
    if frame.shape[1] > limits.columns or frame.size > limits.cells:
        raise RequestError(
            413,
            f"The table has {frame.shape[1]:,} columns and {len(frame):,} rows; the page takes up to "
            f"{limits.columns:,} columns and {limits.cells:,} cells. {_TOO_LARGE}",
        )
    return frame


def _note_encoding(path: Path, start: bytes, note: Callable[[str], None]) -> None:
    if start == _PARQUET or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    try:
        with path.open(encoding="utf-8") as file:
            while file.read(_CHUNK):
                continue
    except UnicodeDecodeError:
        note("The file is not in UTF-8 throughout: it is read as Latin-1, and letters with accents may be wrong.")


def _unpacked(path: Path, limits: Limits) -> Path:
    """The file without its compression, in bounded pieces."""
    plain, taken = path.with_name("table.csv"), 0
    try:
        with _UNPACKERS[path.suffix](path, "rb") as packed, plain.open("wb") as file:
            while chunk := packed.read(_CHUNK):
                taken += len(chunk)
                if taken > limits.unpacked_bytes:
                    raise RequestError(413, f"The file unpacks to more than {limits.unpacked_bytes >> 20} MB.")
                file.write(chunk)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        plain.unlink(missing_ok=True)
        raise RequestError(422, f"The file cannot be unpacked: {error}.") from error
    except RequestError:
        plain.unlink(missing_ok=True)
        raise
    path.unlink()
    return plain


def _check_parquet(path: Path, limits: Limits) -> None:
    try:
        from pyarrow.parquet import ParquetFile

        about = ParquetFile(path).metadata
    except ImportError as error:
        raise RequestError(422, "Parquet files need the package pyarrow: pip install 'symenum[studio]'.") from error
    except (OSError, ValueError) as error:
        raise RequestError(422, f"The file cannot be read as Parquet: {str(error).rstrip('.')}.") from error
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if about.num_rows * about.num_columns > limits.cells or size > limits.unpacked_bytes:
        raise RequestError(
            413, f"The table has {about.num_rows:,} rows and {about.num_columns:,} columns. {_TOO_LARGE}"
        )


def _sheet_as_text(path: Path, note: Callable[[str], None], limits: Limits) -> Path:
    """The first sheet of a workbook as a CSV file; a workbook that unpacks to more than the limit is refused."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise RequestError(422, "Workbooks need the package openpyxl: pip install 'symenum[studio]'.") from error
    try:
        with zipfile.ZipFile(path) as archive:
            # zipfile hands out no more of an entry than the directory says, so the sum of these sizes is a bound.
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > limits.unpacked_bytes:
            raise RequestError(413, f"The workbook unpacks to {unpacked >> 20:,} MB, which is refused. {_TOO_LARGE}")
        book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            return _write_sheet(book, path.with_name("table.csv"), note, limits)
        finally:
            book.close()
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        zipfile.BadZipFile,
        zlib.error,
        SyntaxError,
    ) as error:
        raise RequestError(422, f"The file cannot be read as a workbook ({error}): save the sheet as CSV.") from error


def _write_sheet(book: Any, plain: Path, note: Callable[[str], None], limits: Limits) -> Path:
    if not book.worksheets:
        raise RequestError(422, "The workbook has no sheet with cells: save the table as CSV.")
    sheet = book.worksheets[0]
    if len(book.worksheets) > 1:
        note(f"Of {len(book.worksheets)} sheets the first is read, {sheet.title[:60]!r}.")
    sheet.reset_dimensions()  # those in the file need not be true
    cells = 0
    with plain.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for row in sheet.iter_rows(values_only=True):
            cells += len(row)
            if cells > limits.cells or len(row) > limits.columns:
                raise RequestError(413, f"The sheet has more than {limits.columns:,} columns or too many cells.")
            if any(value is not None for value in row):
                writer.writerow([_sheet_cell(value) for value in row])
    return plain


def _sheet_cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat() if value.time() != datetime.min.time() else value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else value


def _describe_column(name: str, column: Any) -> dict[str, Any]:
    """Kind, range and warning of a column."""
    import pandas

    from symenum.cli.tables import as_dates, may_become_columns

    missing = int(column.isna().sum())
    shown: dict[str, Any] = {"name": name, "missing": missing, "min": None, "max": None, "warning": None}
    distinct = int(column.nunique())
    shown["distinct"] = distinct
    numbers = pandas.to_numeric(column, errors="coerce") if column.dtype.kind not in "mM" else None
    filled = len(column) - missing
    if filled == 0:
        return {**shown, "kind": "empty", "warning": "No cell is filled: leave it out."}
    if numbers is not None and int(numbers.isna().sum()) == missing:
        shown |= {"min": float(numbers.min()), "max": float(numbers.max())}
        if distinct == 1:
            return {**shown, "kind": "constant", "warning": "The same in all rows: it can explain nothing."}
        cells = "1 cell is" if missing == 1 else f"{missing:,} cells are"
        warning = f"{cells} missing: rows without a value are left out." if missing else None
        return {**shown, "kind": "number", "warning": warning}
    days = as_dates(column)
    if days is not None:
        shown |= {"min": _day(days.min()), "max": _day(days.max())}
        return {**shown, "kind": "date", "warning": "Becomes the number of days since the first row."}
    some = 0 if numbers is None else filled - int(numbers.isna().sum()) + missing
    if some > filled / 2:
        bad = filled - some
        what = "1 cell is no number: correct it" if bad == 1 else f"{bad:,} cells are no numbers: correct them"
        return {**shown, "kind": "text", "warning": f"{what}, or leave the column out."}
    if may_become_columns(column):
        return {
            **shown,
            "kind": "text",
            "one_hot": True,
            "warning": "Text: a column of 0 and 1 for each kind, if ticked.",
        }
    return {**shown, "kind": "text", "warning": "Text: it is left out."}


def _day(moment: Any) -> str:
    """A time as the day that it is, with minutes where it is not the first of the day."""
    return f"{moment:%Y-%m-%d}" if moment == moment.normalize() else f"{moment:%Y-%m-%d %H:%M}"


def _cell(value: object) -> str:
    text = "" if value is None or value != value else str(value)
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}…"
