"""Rows that the search does not see: a second table, or a part of the one that there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from symenum.cli.errors import InputError
from symenum.cli.tables import Choice, Table, choose, read_frame

__all__ = ["hold_out"]


def hold_out(
    table: Table,
    choice: Choice,
    note: Callable[[str], None],
    path: Path | None,
    fraction: float | None = None,
    seed: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
) -> tuple[Table, Table | None]:
    """The rows to search on, and those to choose the law on, if there are any."""
    if path is not None and fraction is not None:
        raise click.UsageError("Name a file with --validation, or a part with --validation-fraction, not both.")
    if path is not None:
        frame = read_frame(path, note, header=header, delimiter=delimiter)
        wanted = replace(choice, target=choice.target or table.target, features=choice.features or table.columns)
        return table, choose(frame, wanted, note, f"'{path.name}'")
    if fraction is None:
        return table, None
    import numpy

    rows = len(table.y)
    order = numpy.random.default_rng(seed).permutation(rows)  # without a seed other rows in every run
    count = round(fraction * rows)
    if count < 1 or rows - count < 2:
        raise InputError(f"--validation-fraction {fraction:g} of {rows} rows leaves too few on one side.")
    note(f"{count} of {rows} rows are held out to choose the law on.")
    return _rows(table, sorted(order[count:].tolist())), _rows(table, sorted(order[:count].tolist()))


def _rows(table: Table, rows: list[int]) -> Table:
    weights = None if table.weights is None else table.weights.iloc[rows].reset_index(drop=True)
    X, y = (part.iloc[rows].reset_index(drop=True) for part in (table.X, table.y))
    return replace(table, X=X, y=y, weights=weights)
