"""The search while it runs: the protocol of observers, those that need no screen, and the choice of one.

An observer is opened around the search and called with a report after each step. It only shows: it never ends the
search, and whoever drives the search does not know which observer it has. The observer of a terminal is in
`symenum.display.terminal`, that of a notebook in `symenum.display.notebook`. Nothing here imports torch at once: the
command line says what is wrong with a request before it waits for that.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, TextIO

from symenum.display.table import rows_of, selected_row, short_text

__all__ = [
    "LossHistory",
    "NoProgress",
    "Observer",
    "ProgressLines",
    "Report",
    "Title",
    "clock_text",
    "observer_for_command",
    "observer_for_estimator",
    "sparkline",
    "status_line",
    "work_text",
]

_BARS = "▁▂▃▄▅▆▇█"
_SPARKLINE_WIDTH = 30  # characters
_LEAST_LOSS = 1e-32  # a smaller loss is drawn as this: about the square of the relative rounding error of a double
_MAX_HISTORY = 10_000  # steps whose losses are held for the sparkline, about 300 kB


class Report(Protocol):
    """What the search says after each step."""

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
"""The name of the quantity that the laws of a report explain: "y", or "v'" for a state of a system."""


class Observer(Protocol):
    """Opened around the search, and called with the report of each step."""

    def __enter__(self) -> Any: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def __call__(self, report: Any) -> None: ...


def observer_for_command(
    title: Title, rule: str, max_time: float | None, *, quiet: bool, several: bool = False
) -> Observer:
    """The observer of a command, whose results go to stdout and all else to stderr: a live table, or lines.

    `rule` marks the chosen law. `several`: there are laws of several states, so each line names its state.
    """
    if quiet:
        return NoProgress()
    on_screen = all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
    return _observer_on(sys.stderr, on_screen, title, rule, max_time, several)


def observer_for_estimator(
    title: Title, rule: str, max_time: float | None, *, verbose: bool | int, several: bool = False
) -> Observer:
    """The observer of an estimator: an output in a notebook, a live table on a terminal, lines elsewhere."""
    from symenum.display.notebook import NotebookTable, in_notebook

    if not verbose:
        return NoProgress()
    if in_notebook():
        return NotebookTable(title, rule)
    on_screen = sys.stdout is not None and sys.stdout.isatty()
    return _observer_on(sys.stdout, on_screen, title, rule, max_time, several)


def _observer_on(
    stream: TextIO | None, on_screen: bool, title: Title, rule: str, max_time: float | None, several: bool
) -> Observer:
    if stream is None:  # closed by the shell
        return NoProgress()
    if not on_screen:
        return ProgressLines(stream, rule, title if several else None)
    from rich.console import Console

    from symenum.display.terminal import LiveTable

    return LiveTable(Console(file=stream, highlight=False), title, rule, max_time)


class NoProgress:
    """Shows nothing."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, report: Report) -> None:
        return None


class ProgressLines(NoProgress):
    """A line for each step that changes the chosen law, or the workers: for files, pipes and logs.

    A stream that nobody reads any more does not end the search.
    """

    def __init__(self, stream: TextIO, rule: str, title: Title | None = None) -> None:
        self._stream = stream
        self._rule = rule
        self._title = title
        self._last = ("", "")  # the law and the workers of the last line

    def __call__(self, report: Report) -> None:
        rows = rows_of(report.front)
        name = "" if self._title is None else f"{self._title(report)}: "
        if not rows:
            return
        row = rows[selected_row(report.front, self._rule) or 0]
        law = f"loss {row.loss:.3g}, complexity {row.complexity}: {short_text(row.expression)}"
        where = getattr(report, "where", "")
        if (name + law, where) == self._last:
            return
        self._last = (name + law, where)
        try:
            print(f"{name}{status_line(report)} | {law}", file=self._stream, flush=True)
        except OSError:  # the reader of a pipe has gone; the search goes on for the result
            self._stream = io.StringIO()


def status_line(report: Report) -> str:
    """Where the search stands, in one line: time and work."""
    return f"{clock_text(report.elapsed, report.time_left)} | {work_text(report)}"


def clock_text(elapsed: float, time_left: float | None) -> str:
    """Seconds since the start, and seconds to the limit if there is one."""
    return f"{elapsed:.1f} s" if time_left is None else f"{elapsed:.1f} s, {time_left:.0f} s left"


def work_text(report: Report) -> str:
    """Number and kind of the step, the candidates that the network has scored, if any, and the workers of a cluster."""
    count = f" | {report.scored:.3g} candidates, {report.rate:.3g} a second" if report.scored else ""
    where = getattr(report, "where", "")  # laws of motion are found on one machine
    return f"step {report.iteration} ({report.stage}){count}{where and ' | '}{where}"


class LossHistory:
    """How the best loss has fallen, step by step: what the sparkline draws.

    Holds the best loss of the laws of one name; laws of another name begin a new history. The sparkline is drawn by
    decimal logarithms, unless a loss is negative.
    """

    def __init__(self) -> None:
        self._name = ""
        self._losses: list[float] = []

    def add(self, report: Report, name: str) -> None:
        """Append the best loss of a report."""
        if name != self._name:
            self._name, self._losses = name, []
        best = min((entry.loss for entry in report.front), default=math.inf)
        if math.isfinite(best):
            self._losses.append(best)
        if len(self._losses) > _MAX_HISTORY:
            del self._losses[::2]

    def text(self) -> str:
        """A line with first loss, sparkline and last loss; "" before there are two steps to compare."""
        if len(self._losses) < 2:
            return ""
        heights = self._losses
        if min(self._losses) >= 0:
            heights = [math.log10(max(loss, _LEAST_LOSS)) for loss in self._losses]
        first, last = (
            f"{loss:.2g}" if abs(loss) > _LEAST_LOSS else "0" for loss in (self._losses[0], self._losses[-1])
        )
        return f"best loss {first} {sparkline(heights)} {last}"


def sparkline(values: Sequence[float], width: int = _SPARKLINE_WIDTH) -> str:
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
