"""Measured tables, whose laws nobody knows: 48 regression tables of PMLB and 14 of public data.

The tables are not shipped. $SYMENUM_DATA/pmlb holds one NAME.tsv.gz each, with names of columns, the last one the
target; $SYMENUM_DATA/pmlb/published.csv holds what SRBench has published for other methods on them.
$SYMENUM_DATA/real_tables.json holds the other tables by name: columns, target, X and y.

A seed splits a table: a quarter of the rows is held out, as in SRBench, and the laws are judged on it.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from symenum.bench.problems.problem import Array, MissingDataError, data_file

__all__ = ["MeasuredTable", "PublishedTable", "pmlb", "published_tables", "real"]

_PMLB_SOURCE = "https://github.com/EpistasisLab/pmlb, datasets/*; published.csv from the results of SRBench (2021)"
_REAL_SOURCE = "tables of R's packages, https://vincentarelbundock.github.io/Rdatasets, as JSON"
_HELD_OUT = 0.25  # part of the rows
_SPLIT_STREAM = 61  # of the random numbers that split a table
_PMLB_END = ".tsv.gz"
_FRIEDMAN = "_fri_"  # in the names of the tables that were made from Friedman's functions


@dataclass(frozen=True)
class MeasuredTable:
    """A table, read when it is needed; `group` is the part of its set that reports also show for itself ("" for none).

    `read` gives X (rows, columns) and y (rows,), float64.
    """

    name: str
    group: str
    read: Callable[[], tuple[Array, Array]] = field(compare=False, repr=False)

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        X, y = self.read()
        if X.ndim != 2 or y.shape != (len(X),) or not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError(f"{self.name}: the table must hold finite numbers, as many in each row")
        return X, y

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(f"x{i + 1}" for i in range(self._table[0].shape[1]))

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """Three quarters of the rows."""
        X, y = self._table
        rows = self._shuffled(seed)[self._held_out_rows :]
        return X[rows], y[rows]

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        """The other quarter."""
        X, y = self._table
        rows = self._shuffled(seed)[: self._held_out_rows]
        return X[rows], y[rows]

    @property
    def _held_out_rows(self) -> int:
        return round(_HELD_OUT * len(self._table[1]))

    def _shuffled(self, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """All row numbers; the split of a seed is the same for every table of as many rows."""
        return np.random.default_rng([seed, _SPLIT_STREAM]).permutation(len(self._table[1]))


def pmlb() -> tuple[MeasuredTable, ...]:
    """The tables of the folder pmlb, by name; those of Friedman's functions are a group, and the others another."""
    folder = data_file("pmlb", "pmlb", _PMLB_SOURCE)
    names = sorted(path.name.removesuffix(_PMLB_END) for path in folder.glob(f"*{_PMLB_END}"))
    if not names:
        raise MissingDataError(
            f"the problem set pmlb needs tables {folder}/*{_PMLB_END}. The public original: {_PMLB_SOURCE}"
        )
    return tuple(
        MeasuredTable(name, "Friedman" if _FRIEDMAN in name else "others", _pmlb_reader(name)) for name in names
    )


def _pmlb_reader(name: str) -> Callable[[], tuple[Array, Array]]:
    def read() -> tuple[Array, Array]:
        path = data_file(f"pmlb/{name}{_PMLB_END}", "pmlb", _PMLB_SOURCE)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            table = np.loadtxt(lines, delimiter="\t", skiprows=1, ndmin=2)
        return table[:, :-1], table[:, -1]

    return read


def real() -> tuple[MeasuredTable, ...]:
    """The tables of real_tables.json, by name."""
    path = data_file("real_tables.json", "real", _REAL_SOURCE)
    records = json.loads(path.read_text(encoding="utf-8"))

    def reader(name: str) -> Callable[[], tuple[Array, Array]]:
        record = records[name]
        return lambda: (np.asarray(record["X"], dtype=np.float64), np.asarray(record["y"], dtype=np.float64))

    return tuple(MeasuredTable(name, "", reader(name)) for name in records)


@dataclass(frozen=True)
class PublishedTable:
    """What a method has reached on a table, as published: medians of test R², size and seconds over ten trials."""

    table: str
    method: str
    r2: float
    size: float
    seconds: float


def published_tables() -> tuple[PublishedTable, ...]:
    """The published figures for the tables of PMLB; none where the file is not there."""
    try:
        path = data_file("pmlb/published.csv", "pmlb", _PMLB_SOURCE)
    except MissingDataError:
        return ()
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(
            PublishedTable(
                row["dataset"],
                row["method"],
                float(row["median_test_r2"]),
                float(row["median_size"]),
                float(row["median_seconds"]),
            )
            for row in csv.DictReader(lines)
        )
