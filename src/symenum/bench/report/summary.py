"""Rows to figures: how many solved, with an interval, how fast, how accurate, how complex."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from symenum.bench.rows import Row

__all__ = ["Group", "by_problem", "by_set", "wilson"]

_Z95 = 1.959963984540054
_ACCURATE = 0.99


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share: honest also for 20 of 20, where the usual ± would be nothing.

    >>> [round(end, 3) for end in wilson(20, 20)]
    [0.839, 1.0]
    """
    if not total:
        return 0.0, 1.0
    share, spread = hits / total, _Z95**2 / total
    middle = (share + spread / 2) / (1 + spread)
    half = _Z95 * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Group:
    """Runs of one system on one set or problem, at one level of noise."""

    set: str
    problem: str
    system: str
    noise: float
    rows: tuple[Row, ...]

    @property
    def solved(self) -> int:
        return sum(row.solved for row in self.rows)

    @property
    def recovery(self) -> float:
        return self.solved / len(self.rows)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.solved, len(self.rows))

    @property
    def accurate(self) -> float:
        """The share of runs whose chosen law has R² > 0.99 on clean test points."""
        return sum(row.r2 is not None and row.r2 > _ACCURATE for row in self.rows) / len(self.rows)

    @property
    def seconds(self) -> float | None:
        """The median time of a run, solved or not; one that failed counts with its limit."""
        return statistics.median(_seconds(row) for row in self.rows) if self.rows else None

    @property
    def seconds_solved(self) -> float | None:
        """The median time to a solution, of those runs that have one."""
        times = [_seconds(row) for row in self.rows if row.solved]
        return statistics.median(times) if times else None

    @property
    def complexity(self) -> float | None:
        """The median complexity of the laws that were judged."""
        values = [row.law.complexity for row in self.rows if row.law is not None]
        return statistics.median(values) if values else None

    @property
    def failed(self) -> int:
        return sum(row.ended != "done" for row in self.rows)

    @property
    def disagreements(self) -> int:
        return sum(row.disagree for row in self.rows)

    def solved_by(self, seconds: float) -> float:
        """The share of runs that were solved within so many seconds."""
        return sum(row.solved and _seconds(row) <= seconds for row in self.rows) / len(self.rows)


def by_set(rows: Sequence[Row]) -> list[Group]:
    """One group for each set, noise and system, in the order in which they come."""
    return _groups(rows, lambda row: (row.job.set, "", row.job.system, row.job.noise))


def by_problem(rows: Sequence[Row]) -> list[Group]:
    """One group for each problem, noise and system."""
    return _groups(rows, lambda row: (row.job.set, row.job.problem, row.job.system, row.job.noise))


def _groups(rows: Iterable[Row], key: Callable[[Row], tuple[str, str, str, float]]) -> list[Group]:
    found: dict[tuple[str, str, str, float], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [Group(*names, tuple(members)) for names, members in found.items()]


def _seconds(row: Row) -> float:
    return row.seconds if row.seconds is not None else max(row.max_time, row.wall)
