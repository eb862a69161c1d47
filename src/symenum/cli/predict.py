"""`symenum predict`: computes a law that was saved for the rows of another table. Nothing is searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symenum.cli.messages import Failure, InputError, did_you_mean, say, silent
from symenum.cli.tables import encoded_alike, read_frame, table_path
from symenum.core.files import write_whole
from symenum.display.table import r_squared_text
from symenum.estimator.saved_results import MOTION_MODEL

if TYPE_CHECKING:
    import pandas

    from symenum.estimator.persistence import SavedModel
    from symenum.estimator.saved_results import Encoding
    from symenum.expressions import Expression

__all__ = ["predict_command"]

Note = Callable[[str], None]

_SHOWN = 40  # characters of a cell or a name in a message


@click.command("predict", no_args_is_help=True)
@click.argument("result", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--index", type=int, help="Row of the front, counted from 0. [default: the chosen law]")
@click.option("--header/--no-header", default=None, help="Whether the first line names the columns. [default: detect]")
@click.option("--delimiter", help="Between columns: one character, 'tab' or 'space'. [default: detect]")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write. [default: stdout]")
@click.option("--overwrite", is_flag=True, help="Write to --out even if the file is there.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
def predict_command(
    result: Path,
    data: Path,
    index: int | None,
    header: bool | None,
    delimiter: str | None,
    out: Path | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Compute the law of RESULT for the rows of the table DATA (- for standard input).

    RESULT is a folder of symenum fit --out, its model.json, or a checkpoint. The output is the table as CSV, with the
    values of the law in a new last column. The columns that the law needs are found by their names; dates and
    texts become numbers as they did in the search, and a text that it has not seen is an error. Where a value is
    missing, or the law is not defined, the new column is empty.

    Of a folder of symenum fit-ode, or its motion.json, there is one new column for each state: its derivative there,
    or of a map its next value.
    """
    note = silent if quiet else say
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"--out: '{out}' is there already: name another file, or add --overwrite.")
    open_table = partial(_read, data, note, header, delimiter)
    if result.name == MOTION_MODEL or (result / MOTION_MODEL).exists():
        frame, added = _of_motion(result, index, open_table, note, f"'{data}'")
    else:
        frame, added = _of_law(result, index, open_table, note, f"'{data}'")
    text = frame.assign(**{_new_name(name, frame): values for name, values in added.items()}).to_csv(index=False)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        write_whole(out, text)
    except OSError as error:
        raise Failure(f"'{out}' could not be written ({error.strerror or error}).") from error
    note(f"Written to '{out}'.")


def _read(data: Path, note: Note, header: bool | None, delimiter: str | None) -> pandas.DataFrame:
    with table_path(data) as path:
        return read_frame(path, note, header=header, delimiter=delimiter)


def _new_name(name: str, frame: pandas.DataFrame) -> str:
    while name in frame.columns:
        name += "_"
    return name


def _of_law(
    result: Path, index: int | None, open_table: Callable[[], pandas.DataFrame], note: Note, where: str
) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """The table, and the values of a law as a column of it."""
    saved = _open(result)
    target, encoding = saved.target, saved.origin.encoding
    law = _law(saved, index)
    frame = open_table()
    columns = _columns(frame, law, saved, encoding, where)
    if saved.groups is not None:
        columns |= _constants_of_groups(frame, saved, index, where)
    predicted = _values(law, columns)
    note(f"{target} = {law}")
    _note_quality(frame, target, predicted, note)
    return frame, {f"{target}_predicted": predicted}


def _of_motion(
    result: Path, index: int | None, open_table: Callable[[], pandas.DataFrame], note: Note, where: str
) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """The table, and what laws of motion give as columns of it: derivatives, or of a map next values."""
    import numpy
    import pandas

    from symenum.dynamics import ODERegressor
    from symenum.dynamics.display import left_side
    from symenum.expressions import formula_names

    try:
        model = ODERegressor.load(result)
        laws = model.laws(index)
    except (ValueError, IndexError) as error:
        raise InputError(f"{error}.") from error
    frame = open_table()
    known = [str(label) for label in frame.columns]
    called = {formula: label for label, formula in formula_names(known).items()}
    given = {}
    for name in (*model.moving_names, *model.input_names_):
        if name not in called:
            raise InputError(
                f"{where} has no column '{name[:_SHOWN]}', which the laws are of."
                f"{did_you_mean(name, known)} Its columns are: {', '.join(known)[:400]}."
            )
        column = frame[called[name]]
        if column.ndim != 1:
            raise InputError(f"{where} has more than one column called '{called[name]}': give each its own name.")
        given[name] = _numbers(column, called[name], where)
    inputs = pandas.DataFrame({name: given[name] for name in model.input_names_}) if model.input_names_ else None
    rates = model.predict(pandas.DataFrame({name: given[name] for name in model.moving_names}), inputs, index)
    rates = numpy.where(numpy.isfinite(rates), rates, numpy.nan)
    left_sides = [left_side(name, model._kind) for name in laws]
    for left, law in zip(left_sides, laws.values(), strict=True):
        note(f"{left} = {law}")
    missing = int(numpy.isnan(rates).any(axis=1).sum())
    if missing:
        note(f"In {missing} of {len(frame)} rows a value is missing or a law is not defined: the cell is empty.")
    return frame, {left: pandas.Series(rates[:, i], index=frame.index) for i, left in enumerate(left_sides)}


def _open(path: Path) -> SavedModel:
    from symenum.estimator import PSERegressor
    from symenum.estimator.persistence import open_saved

    try:
        return open_saved(path, {}, PSERegressor._get_param_names())
    except ValueError as error:
        raise InputError(f"{error}.") from error


def _law(saved: SavedModel, index: int | None) -> Expression:
    count = len(saved.front)
    if index is not None and not -count <= index < count:
        raise InputError(f"--index: the front has the rows 0 to {count - 1}, and no row {index}.")
    return saved.front[saved.selected if index is None else index].expression


def _columns(
    frame: pandas.DataFrame, law: Expression, saved: SavedModel, encoding: Encoding, where: str
) -> dict[str, pandas.Series]:
    """The columns that the law needs, by the names of its variables, float64 with NaN for missing values.

    Dates and texts become numbers as they did for the search.
    """
    from symenum.expressions import variables

    in_table = {
        name: name if column is None else column
        for name, column in zip(saved.names, saved.columns or saved.names, strict=True)
    }
    known = [str(label) for label in frame.columns]
    by_group = () if saved.groups is None else {name for one in saved.groups["laws"] for name in one["names"]}
    needed_names = [name for name in variables(law) if name not in by_group]
    frame = encoded_alike(frame, encoding, [in_table[name] for name in needed_names], where)
    found = {}
    for name in needed_names:
        wanted = [label for label in (in_table[name], name) if label in frame.columns]
        if not wanted:
            (needed,) = encoding.file_columns([in_table[name]])
            raise InputError(
                f"{where} has no column '{needed[:_SHOWN]}', which the law needs."
                f"{did_you_mean(needed, known)} Its columns are: {', '.join(known)[:400]}."
            )
        column = frame[wanted[0]]
        if column.ndim != 1:
            raise InputError(f"{where} has more than one column called '{wanted[0]}': give each its own name.")
        found[name] = _numbers(column, wanted[0], where)
    return found


def _constants_of_groups(
    frame: pandas.DataFrame, saved: SavedModel, index: int | None, where: str
) -> dict[str, pandas.Series]:
    """The constants of the law that each group has its own of, in each row: those of the group of the row."""
    import pandas

    from symenum.estimator.grouped_files import read_groups
    from symenum.expressions import formula_names

    assert saved.groups is not None
    try:
        grouped = read_groups(saved.groups, saved.front)
    except ValueError as error:
        raise InputError(f"The result is damaged: {error}.") from error
    known_columns = [str(label) for label in frame.columns]
    in_file = [label for label, name in formula_names(known_columns).items() if grouped.column in (label, name)]
    if len(in_file) != 1 or frame[in_file[0]].ndim != 1:
        raise InputError(
            f"{where} has no single column '{grouped.column[:_SHOWN]}', which says of which group a row is."
            f"{did_you_mean(grouped.column, known_columns)}"
        )
    labels = frame[in_file[0]]
    codes = labels.map({label: code for code, label in enumerate(grouped.labels)})
    if codes.isna().any():
        first = int(codes.isna().to_numpy().argmax())
        known = ", ".join(map(str, grouped.labels[:20]))
        raise InputError(
            f"Row {first + 1} of {where} is of the group {str(labels.iloc[first])[:_SHOWN]!r}, which was "
            f"not in the fit: its constants are not known. The groups are: {known}."
        )
    chosen = saved.selected if index is None else index
    in_rows = grouped.in_rows(chosen, codes.to_numpy(dtype="int64"))
    return {name: pandas.Series(values.numpy(), index=frame.index) for name, values in in_rows.items()}


def _numbers(column: pandas.Series, name: str, where: str) -> pandas.Series:
    import pandas

    values = pandas.to_numeric(column, errors="coerce")
    wrong = (values.isna() & column.notna()).to_numpy()
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"Column '{name}' of {where} holds {str(column.iloc[first])[:_SHOWN]!r} in row {first + 1}, which is no "
            "number."
        )
    return values.astype("float64")


def _values(law: Expression, columns: Mapping[str, pandas.Series]) -> pandas.Series | float:
    """The law's values, NaN where they are not finite; one number for a law without variables."""
    import numpy
    import pandas

    from symenum.expressions import evaluate

    if not columns:
        return float(evaluate(law, {"row_": numpy.zeros(1)})[0])
    index = next(iter(columns.values())).index
    values = evaluate(law, {name: column.to_numpy() for name, column in columns.items()})
    return pandas.Series(numpy.where(numpy.isfinite(values), values, numpy.nan), index=index)


def _note_quality(frame: pandas.DataFrame, target: str, predicted: pandas.Series | float, note: Note) -> None:
    """Say how many rows have no value; and where the table holds the target, how well the law does there."""
    import numpy
    import pandas

    values = numpy.broadcast_to(numpy.asarray(predicted, dtype=float), (len(frame),))
    missing = int(numpy.isnan(values).sum())
    if missing:
        note(f"In {missing} of {len(frame)} rows a value is missing or the law is not defined: the cell is empty.")
    if target not in frame.columns or frame[target].ndim != 1:
        return
    y = pandas.to_numeric(frame[target], errors="coerce").to_numpy(dtype=float)
    both = numpy.isfinite(values) & numpy.isfinite(y)
    if both.sum() < 2 or not (variance := float(y[both].var())) > 0:
        return
    error = float(numpy.mean((values[both] - y[both]) ** 2))
    note(
        f"On {int(both.sum())} rows with '{target}': {r_squared_text(error / variance)}, root mean square error "
        f"{error**0.5:.4g}."
    )
