"""A file to variables, target and weights, or to a message that says what is wrong with it.

Checks what a search cannot check so well: it knows the file, its rows and the options that would help. The names of
columns are made fit for formulas here; the file itself is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symenum.cli.errors import InputError, did_you_mean
from symenum.cli.layout import Layout, find_layout, read_start
from symenum.cli.options import split_list

if TYPE_CHECKING:
    import pandas

__all__ = ["Choice", "Table", "choose", "read_frame"]

Note = Callable[[str], None]
_PARQUET = b"PAR1"
_SHOWN = 8


@dataclass(frozen=True)
class Choice:
    """What of a file is wanted; None: the last column is the target, all others are variables."""

    target: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    drop_nan: bool = False


@dataclass(frozen=True)
class Table:
    """Numbers ready for `fit`: X (rows, features) with the names of formulas, y and weights (rows,)."""

    X: pandas.DataFrame
    y: pandas.Series
    weights: pandas.Series | None
    target: str
    columns: tuple[str, ...]
    """What the variables are called in the file."""


def read_frame(path: Path, note: Note, *, header: bool | None = None, delimiter: str | None = None) -> pandas.DataFrame:
    """The file as it is, with the names of its columns; those of a file without a header are x1, x2, …"""
    start = read_start(path)
    if start.startswith(_PARQUET):
        return _read_parquet(path)
    layout = find_layout(path, start, header=header, delimiter=delimiter)
    frame = _read_text(path, layout)
    if layout.decimal == ",":
        note("Numbers are read with a decimal comma.")
    if layout.names is None:
        frame.columns = [f"x{i + 1}" for i in range(frame.shape[1])]
        note(f"No header found: the columns are x1 to x{frame.shape[1]}, in the order of the file.")
        return frame
    return _without_unnamed(frame, layout.names, note)


def _read_parquet(path: Path) -> pandas.DataFrame:
    import pandas

    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise InputError(
            f"'{path}' is a Parquet file, which needs the package pyarrow: pip install pyarrow, or save it as CSV."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' cannot be read as Parquet: {error}.") from error
    frame.columns = [str(column) for column in frame.columns]
    return frame


def _read_text(path: Path, layout: Layout) -> pandas.DataFrame:
    import pandas

    options: dict[str, Any] = {
        "sep": layout.delimiter,
        "decimal": layout.decimal,
        "header": None,
        "names": list(range(layout.width)),
        "index_col": False,
        "skiprows": layout.skip,
        "skipinitialspace": True,
        "low_memory": False,
        "comment": "#" if layout.comments else None,
    }
    if tuple(int(part) for part in pandas.__version__.split(".")[:2]) < (3, 1):
        # Later ones read every digit; before, the default could be off in the last one, which a law can tell.
        options["float_precision"] = "round_trip"
    try:
        try:
            return pandas.read_csv(path, encoding=layout.encoding, **options)
        except UnicodeDecodeError:
            return pandas.read_csv(path, encoding="latin-1", **options)
    except pandas.errors.EmptyDataError as error:
        raise InputError(f"'{path}' has no rows.") from error
    except pandas.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise InputError(
            f"'{path}' cannot be cut into columns: {what}. Correct that line, or say --delimiter."
        ) from error
    except (OSError, EOFError) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _without_unnamed(frame: pandas.DataFrame, names: Sequence[str], note: Note) -> pandas.DataFrame:
    """The frame with its names; columns without one are empty, a row number, or named by their place."""
    import numpy

    kept, called = [], []
    for i, name in enumerate(names):
        column = frame[i]
        if not name and column.isna().all():
            continue
        counts = numpy.arange(len(frame))
        if not name and i == 0 and column.dtype.kind == "i" and (column == counts + column.iloc[0]).all():
            note("The first column has no name and counts the rows: it is left out.")
            continue
        kept.append(i)
        called.append(name or f"x{i + 1}")
        if not name:
            note(f"Column {i + 1} has no name: it is called x{i + 1}.")
    frame = frame[kept]
    frame.columns = called
    return frame


def choose(frame: pandas.DataFrame, choice: Choice, note: Note, where: str) -> Table:
    """Target, variables and weights out of a frame; `where` names the file in messages."""
    names = [str(name) for name in frame.columns]
    dropped = {names[place] for place in _find_all(choice.drop, names, "--drop")}
    left = [name for name in names if name not in dropped]
    if not left:
        raise InputError(f"--drop leaves no column of {where}.")
    target = left[-1] if choice.target is None else names[_find(choice.target, names, "--target")]
    weights = None if choice.weights is None else names[_find(choice.weights, names, "--weights")]
    if weights == target:
        raise InputError(f"Column '{target}' cannot be both the target and the weights.")
    if choice.features is None:
        features = [name for name in left if name not in (target, weights)]
    else:
        features = list(dict.fromkeys(names[place] for place in _find_all(choice.features, names, "--features")))
        if target in features:
            hint = " Say which column is the target with --target." if choice.target is None else ""
            raise InputError(f"Column '{target}' is the target and cannot be one of --features too.{hint}")
        features = [name for name in features if name not in dropped and name != weights]
    if not features:
        raise InputError(
            f"There is no column left for a variable in {where}: the target is '{target}'"
            f"{'' if weights is None else f', the weights are {weights!r}'}. A law needs at least one variable."
        )
    used = [*features, target, *([weights] if weights is not None else [])]
    repeated = [name for name in dict.fromkeys(used) if names.count(name) > 1]
    if repeated:
        raise InputError(
            f"{where} has more than one column called {_quoted(repeated)}: give each its own name in the header, "
            "or leave them out with --drop."
        )
    numbers = _numbers(frame[used], target, where)
    numbers = _finite_rows(numbers, choice.drop_nan, note, where)
    _check_rows(numbers, target, weights, where)
    return _named(numbers, features, target, weights, note)


def _find_all(words: Sequence[str], names: Sequence[str], option: str) -> list[int]:
    """The places of columns; a word that is no name itself is cut at its commas."""
    cut = [part for word in words for part in ([word] if word in names else split_list([word]))]
    return [_find(name, names, option) for name in cut]


def _find(name: str, names: Sequence[str], option: str) -> int:
    """The place of a column that is given by name or by number, counted from 1."""
    if name in names:
        return list(names).index(name)
    try:
        number = int(name)
    except ValueError:
        shown = ", ".join(names[:_SHOWN]) + (f", … ({len(names)} in all)" if len(names) > _SHOWN else "")
        raise InputError(
            f"{option}: there is no column '{name}'.{did_you_mean(name, names)} The columns are: {shown}."
        ) from None
    if number == 0 or abs(number) > len(names):
        raise InputError(
            f"{option}: there is no column number {number}: columns are counted from 1 to {len(names)} "
            f"(or from the end, from -1)."
        )
    return number - 1 if number > 0 else len(names) + number


def _numbers(frame: pandas.DataFrame, target: str, where: str) -> pandas.DataFrame:
    """The frame as doubles; all columns that hold anything else are named in one message."""
    import pandas

    columns: dict[str, Any] = {}
    faults: list[str] = []
    bad: list[str] = []
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
        what = "holds text" if count > len(column) / 2 else f"holds {some}"
        faults.append(f"'{name}' {what} (row {first + 1}: {str(column.iloc[first])[:40]!r})")
        bad.append(name)
    if not faults:
        return pandas.DataFrame(columns)
    if target in bad:
        advice = (
            f"The target must be a number in every row: choose another column with --target, or correct '{target}'."
        )
    else:
        advice = f"Leave out with --drop {_shell(bad)}, or name the variables with --features."
    raise InputError(f"Column{'s' * (len(bad) > 1)} {'; '.join(faults)} in {where}. {advice}")


def _finite_rows(frame: pandas.DataFrame, drop_nan: bool, note: Note, where: str) -> pandas.DataFrame:
    import numpy

    bad = ~numpy.isfinite(frame.to_numpy())
    rows = bad.any(axis=1)
    count = int(rows.sum())
    if not count:
        return frame
    first = int(rows.argmax())
    columns = [name for name, is_bad in zip(frame.columns, bad.any(axis=0), strict=True) if is_bad]
    empty = [name for name, is_bad in zip(frame.columns, bad.all(axis=0), strict=True) if is_bad]
    have = "rows have" if count > 1 else "row has"
    what = f"{count:,} of {len(frame):,} {have} missing or infinite values, the first of them row {first + 1}"
    if empty:
        raise InputError(
            f"Column {_quoted(empty)} of {where} has no finite value: leave out with --drop {_shell(empty)}."
        )
    if not drop_nan:
        raise InputError(
            f"{what} (column {_quoted(columns[:_SHOWN])}). Fill them in, or leave these rows out with --drop-nan."
        )
    note(f"{what}: left out.")
    return frame[~rows]


def _check_rows(frame: pandas.DataFrame, target: str, weights: str | None, where: str) -> None:
    if len(frame) < 2:
        rows = "1 row" if len(frame) == 1 else "no rows"
        raise InputError(f"{where} has {rows} to learn from: a law needs at least 2, and better 10 or more.")
    y = frame[target]
    if (y == y.iloc[0]).all():
        raise InputError(
            f"The target '{target}' is {y.iloc[0]:g} in all {len(y):,} rows: there is nothing to explain. "
            "Choose another column with --target."
        )
    if weights is None:
        return
    weight = frame[weights]
    if (weight < 0).any():
        first = int((weight < 0).to_numpy().argmax())
        raise InputError(f"The weights '{weights}' must not be negative; row {first + 1} has {weight.iloc[first]:g}.")
    if int((weight > 0).sum()) < 2:
        raise InputError(f"The weights '{weights}' must be above zero in at least 2 rows.")


def _named(frame: pandas.DataFrame, features: Sequence[str], target: str, weights: str | None, note: Note) -> Table:
    from symenum.expressions import formula_names

    called = formula_names(features)
    renamed = {name: new for name, new in called.items() if new != name}
    if renamed:
        pairs = ", ".join(f"'{name}' is {new}" for name, new in list(renamed.items())[:_SHOWN])
        note(f"Names that formulas cannot use are changed: {pairs}{', …' if len(renamed) > _SHOWN else ''}.")
    frame = frame.reset_index(drop=True)
    X = frame[list(features)].rename(columns=called)
    return Table(X, frame[target], None if weights is None else frame[weights], target, tuple(features))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _shell(names: Sequence[str]) -> str:
    joined = ",".join(names)
    return joined if joined.replace(",", "").replace("_", "").isalnum() else f'"{joined}"'
