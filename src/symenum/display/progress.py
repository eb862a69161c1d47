"""Observers of a search: what they are told, what all of them show, the silent one, and the one that writes lines.

Whoever drives the search does not know which observer it has. Observers only look: they never ask to stop. Nothing here
imports torch at once: the command line says what is wrong with a request before it waits for that.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, TextIO

from symenum.display.rows import rows_of, selected_row, short_text

__all__ = [
    "Lines",
    "Losses",
    "Observer",
    "Quiet",
    "Report",
    "Title",
    "clock_text",
    "sparkline",
    "status_line",
    "work_text",
]

_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 1e-32  # an exact law is drawn as this: below the square of the rounding of a double
_MOST = 10_000  # steps that are kept for the sparkline; it shows 30 of them


class Report(Protocol):
    """What the search tells after each step."""

    @property
    def iteration(self) -> int: ...
    @property
    def stage(self) -> str: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def time_left(self) -> float | None: ...
    @property
    def scored(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def front(self) -> Any: ...
    @property
    def message(self) -> str: ...


Title = Callable[[Report], str]
"""What the laws of a report are laws of."""


class Observer(Protocol):
    """Opened around the search and told of each step."""

    def __enter__(self) -> Any: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def __call__(self, report: Any) -> None: ...


class Quiet:
    """Says nothing."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, report: Report) -> None:
        return None


def status_line(report: Report) -> str:
    """Where the search stands, in one line."""
    return f"{clock_text(report.elapsed, report.time_left)} | {work_text(report)}"


def clock_text(elapsed: float, left: float | None) -> str:
    return f"{elapsed:.1f} s" if left is None else f"{elapsed:.1f} s, {left:.0f} s left"


def work_text(report: Report) -> str:
    count = f" | {report.scored:.3g} candidates, {report.rate:.3g} a second" if report.scored else ""
    return f"step {report.iteration} ({report.stage}){count}"


def sparkline(values: Sequence[float], width: int = 30) -> str:
    """The values as a line of bars, the least lowest; of more values than `width`, the last of each group.

    >>> sparkline([3, 2, 1, 0])
    '█▆▃▁'
    """
    if not values:
        return ""
    groups = min(width, len(values))
    shown = [values[(i + 1) * len(values) // groups - 1] for i in range(groups)]
    low, high = min(shown), max(shown)
    steps = len(_BARS) - 1
    return "".join(_BARS[round(steps * (value - low) / (high - low)) if high > low else 0] for value in shown)


class Losses:
    """How the best loss has fallen, step by step: what the sparkline draws.

    Collects the decimal logarithms of the best loss, of the laws of one name at a time.
    """

    def __init__(self) -> None:
        self._name = ""
        self._logs: list[float] = []

    def add(self, report: Report, name: str) -> None:
        if name != self._name:  # the laws of another state: their losses have nothing to do with those before
            self._name, self._logs = name, []
        best = min((entry.loss for entry in report.front), default=math.inf)
        if math.isfinite(best):
            self._logs.append(math.log10(max(best, _LEAST)))
        if len(self._logs) > _MOST:
            del self._logs[::2]  # half as fine, and no longer than before

    def text(self) -> str:
        """A line with the sparkline; nothing before there are two steps to compare."""
        if len(self._logs) < 2:
            return ""
        first, last = (f"{10**log:.2g}" if log > math.log10(_LEAST) else "0" for log in (self._logs[0], self._logs[-1]))
        return f"best loss {first} {sparkline(self._logs)} {last}"


class Lines(Quiet):
    """A line for each step that changes the front: for files, pipes and logs.

    Writes to a stream; one that nobody reads any more does not end the search.
    """

    def __init__(self, stream: TextIO, rule: str, title: Title | None = None) -> None:
        self._stream = stream
        self._rule = rule
        self._title = title
        self._shown: object = None

    def __call__(self, report: Report) -> None:
        rows = rows_of(report.front)
        name = "" if self._title is None else f"{self._title(report)}: "
        state = (name, [(row.complexity, row.loss) for row in rows])
        if not rows or state == self._shown:
            return
        self._shown = state
        row = rows[selected_row(report.front, self._rule) or 0]
        fit = f"loss {row.loss:.3g}, complexity {row.complexity}: {short_text(row.expression)}"
        try:
            print(f"{name}{status_line(report)} | {fit}", file=self._stream, flush=True)
        except OSError:  # whoever read this has gone; the search goes on for the result
            self._stream = io.StringIO()
