"""The search on a terminal: the front as a table that is renewed in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from symenum.display.progress import LossHistory, Report, Title, clock_text, work_text
from symenum.display.table import MARK, rows_of, selected_row, short_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["LiveTable"]

_REFRESH_RATE = 4.0  # times a second: the clock is seen to run
# Lines of the terminal that are not rows of the front: status, history, head of the table and two lines below it, and
# four for lines that wrap and for the prompt.
_OTHER_LINES = 9
_MIN_ROWS = 3  # rows of the front on the smallest terminal


class LiveTable:
    """The front, the fall of the best loss, candidates per second and the time left."""

    def __init__(
        self,
        console: Console,
        title: Title,
        rule: str,
        max_time: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.live import Live

        self._console = console
        self._title = title
        self._rule = rule
        self._max_time = max_time
        self._clock = clock
        self._start = clock()
        self._report: Report | None = None
        self._name = ""
        self._history = LossHistory()
        # Transient: the table is wiped at the end, since the caller then prints the result in full.
        self._live = Live(
            console=console, get_renderable=self.render, refresh_per_second=_REFRESH_RATE, transient=True, screen=False
        )

    def __enter__(self) -> LiveTable:
        self._start = self._clock()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, report: Report) -> None:
        self._name = self._title(report)
        self._history.add(report, self._name)
        self._report = report

    def render(self) -> RenderableType:
        """What the screen shows now; called from rich's own thread."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        elapsed = self._clock() - self._start
        time_left = None if self._max_time is None else max(0.0, self._max_time - elapsed)
        clock = clock_text(elapsed, time_left)
        report = self._report
        if report is None:
            return Text(f"{clock} | the first step is running | Ctrl-C ends the search", style="dim")
        rows = rows_of(report.front)
        selected = selected_row(report.front, self._rule) or 0
        table = Table(box=None, expand=True, pad_edge=False)
        for title, width in (("", 4), ("complexity", 10), ("loss", 10), ("score", 8)):
            table.add_column(title, justify="right", no_wrap=True, min_width=width)
        table.add_column(Text(self._name), overflow="ellipsis", no_wrap=True, ratio=1)
        count = max(_MIN_ROWS, self._console.height - _OTHER_LINES)
        first = max(0, min(len(rows) - count, selected))  # the chosen row is always shown
        for i, row in enumerate(rows[first : first + count], start=first):
            mark, style = (MARK, "bold") if i == selected else ("", "")
            cells = (mark, *row.numbers(), short_text(row.expression))
            table.add_row(*(Text(cell) for cell in cells), style=style)
        head = Text(f"{clock} | {work_text(report)}", style="bold")
        history = Text(self._history.text(), style="cyan", no_wrap=True)
        foot = Text(f"{report.message}\nCtrl-C ends the search and keeps what was found.", style="dim")
        return Group(head, history, table, foot)
