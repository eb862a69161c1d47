"""The search while it runs: a table that renews itself on a terminal, lines elsewhere, or nothing.

Three observers of one shape; whoever drives the search does not know which one it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from symenum.cli.results import Report, laws_of, short_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["LineProgress", "LiveProgress", "NoProgress", "Progress", "status_line"]

_REFRESH = 4.0  # a second
_SPARE_LINES = 8  # of the terminal, beside the rows of the front


class Progress(Protocol):
    """Opened around the search and told of each step."""

    def __enter__(self) -> Any: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def __call__(self, report: Report) -> None: ...


class NoProgress:
    """Says nothing."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, report: Report) -> None:
        return None


class LineProgress(NoProgress):
    """A line for each step that changes the front; for files, pipes and logs."""

    def __init__(self, stream: TextIO, rule: str) -> None:
        self._stream = stream
        self._rule = rule
        self._shown: object = None

    def __call__(self, report: Report) -> None:
        laws = laws_of(report.front)
        state = [(law.complexity, law.loss) for law in laws]
        if not laws or state == self._shown:
            return
        self._shown = state
        law = laws[report.front.select(self._rule)]
        print(
            f"{status_line(report)} | loss {law.loss:.3g}, complexity {law.complexity}: {short_text(law.expression)}",
            file=self._stream,
            flush=True,
        )


class LiveProgress:
    """The front as a table that renews itself, with candidates per second and the time left."""

    def __init__(
        self,
        console: Console,
        target: str,
        rule: str,
        max_time: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.live import Live

        self._console = console
        self._target = target
        self._rule = rule
        self._max_time = max_time
        self._clock = clock
        self._begin = clock()
        self._report: Report | None = None
        # Transient: the result is printed when the search is over, in full.
        self._live = Live(
            console=console, get_renderable=self.render, refresh_per_second=_REFRESH, transient=True, screen=False
        )

    def __enter__(self) -> LiveProgress:
        self._begin = self._clock()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, report: Report) -> None:
        self._report = report

    def render(self) -> RenderableType:
        """What the screen shows now; called from the thread that renews it."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        elapsed = self._clock() - self._begin
        left = None if self._max_time is None else max(0.0, self._max_time - elapsed)
        report = self._report
        if report is None:
            return Text(f"{_time(elapsed, left)} | the first step is running | Ctrl-C ends the search", style="dim")
        laws = laws_of(report.front)
        selected = report.front.select(self._rule) if laws else 0
        table = Table(box=None, expand=True, pad_edge=False)
        for title, width in (("", 4), ("complexity", 10), ("loss", 10), ("score", 8)):
            table.add_column(title, justify="right", no_wrap=True, min_width=width)
        table.add_column(Text(self._target), overflow="ellipsis", no_wrap=True, ratio=1)
        room = max(3, self._console.height - _SPARE_LINES)
        first = max(0, min(len(laws) - room, selected))
        for i, law in list(enumerate(laws))[first : first + room]:
            mark, style = (">>>>", "bold") if i == selected else ("", "")
            cells = (mark, str(law.complexity), f"{law.loss:.4g}", f"{law.score:.3g}", short_text(law.expression))
            table.add_row(*(Text(cell) for cell in cells), style=style)
        head = Text(f"{_time(elapsed, left)} | {_work(report)}", style="bold")
        foot = Text(f"{report.message}\nCtrl-C ends the search and keeps what was found.", style="dim")
        return Group(head, table, foot)


def status_line(report: Report) -> str:
    """Where the search stands, in one line."""
    return f"{_time(report.elapsed, report.time_left)} | {_work(report)}"


def _time(elapsed: float, left: float | None) -> str:
    return f"{elapsed:.1f} s" if left is None else f"{elapsed:.1f} s, {left:.0f} s left"


def _work(report: Report) -> str:
    count = f" | {report.scored:.3g} candidates, {report.rate:.3g} a second" if report.scored else ""
    return f"step {report.iteration} ({report.stage}){count}"
