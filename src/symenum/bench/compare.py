"""Systems side by side on the same runs: recovered by groups of problems and by time, and two systems paired.

Tables are made of rows (`jobs.Row`) that were run before; a pair is two rows that differ in the system alone. Reports
of a whole bench, with published figures, are in `report`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from scipy.stats import binomtest

from symenum.bench.jobs import Row
from symenum.bench.report import wilson
from symenum.display.html import Table

__all__ = ["TIMES", "Paired", "by_time_table", "group_table", "paired", "paired_table", "text_table"]

TIMES = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""The seconds after which a table by time counts what is recovered."""

Key = Callable[[Row], int]
"""The group of a row, such as the depth of its law."""


@dataclass(frozen=True)
class Paired:
    """Two systems A and B on the same runs: runs that both recover, only A, only B, and neither of them."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def first(self) -> int:
        """The runs that A recovers."""
        return self.both + self.only_first

    @property
    def second(self) -> int:
        """The runs that B recovers."""
        return self.both + self.only_second

    @property
    def ratio(self) -> float:
        """How many times as many A recovers as B; NaN where neither recovers one."""
        if self.second:
            return self.first / self.second
        return math.inf if self.first else math.nan

    @property
    def p_value(self) -> float:
        """The two-sided p-value of McNemar's exact test: were A and B equal, each would win half of the others' losses.

        >>> Paired(10, 6, 0, 4).p_value
        0.03125
        """
        differing = self.only_first + self.only_second
        return float(binomtest(self.only_first, differing).pvalue) if differing else 1.0


def paired(rows: Sequence[Row], first: str, second: str) -> Paired:
    """Two systems on the runs that both have done."""
    runs = [
        {(row.job.set, row.job.problem, row.job.seed, row.job.noise): row.solved for row in rows_of(rows, system)}
        for system in (first, second)
    ]
    pairs = [(runs[0][run], runs[1][run]) for run in runs[0] if run in runs[1]]
    counts = [pairs.count(outcome) for outcome in ((True, True), (True, False), (False, True), (False, False))]
    return Paired(*counts)


def rows_of(rows: Sequence[Row], system: str) -> list[Row]:
    """The rows of one system."""
    return [row for row in rows if row.job.system == system]


def group_table(rows: Sequence[Row], systems: Sequence[str], title: str, key: Key) -> Table:
    """Recovered of all by each system: a column for each group of runs, with Wilson's 95% interval in percent."""
    groups = sorted({key(row) for row in rows})
    cells = []
    for system in systems:
        own = rows_of(rows, system)
        parts = [_share([row for row in own if key(row) == group]) for group in groups]
        failed = sum(row.ended != "done" for row in own)
        cells.append((system, *parts, _share(own), str(failed)))
    note = "Recovered of all runs, with Wilson's 95% interval in percent; failed: crashed or killed."
    return Table(f"By {title}", note, ("system", *map(str, groups), "all", "failed"), tuple(cells))


def by_time_table(rows: Sequence[Row], systems: Sequence[str], times: Sequence[float] = TIMES) -> Table:
    """The runs of each system in which the law stood on the front after so many seconds, up to the time limit."""
    limit = max((row.max_time for row in rows), default=0.0)
    times = [seconds for seconds in times if seconds < limit]
    cells = []
    for system in systems:
        own = rows_of(rows, system)
        found = [row.found_at for row in own if row.solved and row.found_at is not None]
        counts = [sum(seconds <= after for seconds in found) for after in times]
        cells.append((system, *map(str, counts), str(sum(row.solved for row in own)), str(len(own))))
    note = "Runs in which the law stood on the front after so many seconds."
    return Table("By time", note, ("system", *(f"{after:g} s" for after in times), "the end", "runs"), tuple(cells))


def paired_table(rows: Sequence[Row], systems: Sequence[str]) -> Table:
    """All pairs of systems on the runs that both have done."""
    cells = []
    for first, second in combinations(systems, 2):
        pair = paired(rows, first, second)
        runs = pair.both + pair.only_first + pair.only_second + pair.neither
        figures = (runs, pair.first, pair.second, pair.only_first, pair.only_second)
        cells.append((first, second, *map(str, figures), f"{pair.ratio:.2f}", f"{pair.p_value:.2g}"))
    columns = ("A", "B", "runs", "by A", "by B", "only by A", "only by B", "A / B", "p")
    note = "On the runs that both have done; p is that of McNemar's exact test, two-sided."
    return Table("In pairs", note, columns, tuple(cells))


def text_table(table: Table) -> str:
    """A table as lines of text: the first column to the left, the others to the right."""
    lines = [table.columns, *table.cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    texts = [f"{table.title}. {table.note}".strip()]
    for line in lines:
        padded = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        texts.append("  ".join([line[0].ljust(widths[0]), *padded]))
    return "\n".join(texts)


def _share(rows: Sequence[Row]) -> str:
    """Recovered of all, with the interval, as in 3/10 (11-60)."""
    if not rows:
        return "-"
    solved = sum(row.solved for row in rows)
    low, high = wilson(solved, len(rows))
    return f"{solved}/{len(rows)} ({100 * low:.0f}-{100 * high:.0f})"
