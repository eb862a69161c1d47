"""The search in a notebook: an output under the cell that is renewed after each step. Nothing else uses IPython."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from symenum.display.html import Table, html_table
from symenum.display.progress import LossHistory, Report, Title, status_line
from symenum.display.table import LawRow, rows_of, selected_row, short_text

__all__ = ["NotebookTable", "front_html", "in_notebook"]

_STYLE = (
    "<style>.symenum .chosen { font-weight: bold } .symenum table td, .symenum table th { text-align: left }</style>"
)
_MIN_INTERVAL = 0.25  # seconds between two renewals, as on a terminal: quick steps must not flood the notebook


def in_notebook() -> bool:
    """Whether this process is a kernel of Jupyter, which can show HTML; IPython in a terminal is none."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


class NotebookTable:
    """The front as an HTML table under the cell."""

    def __init__(self, title: Title, rule: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title = title
        self._rule = rule
        self._clock = clock
        self._shown_at = -_MIN_INTERVAL
        self._last: Report | None = None
        self._history = LossHistory()
        self._handle: Any = None

    def __enter__(self) -> NotebookTable:
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._show(self._last)

    def __call__(self, report: Report) -> None:
        self._history.add(report, self._title(report))
        self._last = report
        if self._clock() - self._shown_at >= _MIN_INTERVAL:
            self._show(report)

    def _show(self, report: Report) -> None:
        from IPython.display import HTML, display

        self._shown_at = self._clock()
        page = HTML(self.html(report))
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def html(self, report: Report) -> str:
        """The output: status, fall of the best loss, and the table of laws."""
        head = f"<p>{escape(status_line(report))}</p><code>{escape(self._history.text())}</code>"
        chosen = selected_row(report.front, self._rule)
        return front_html(rows_of(report.front), chosen, self._title(report), head)


def front_html(laws: Sequence[LawRow], chosen: int | None, target: str, head: str = "") -> str:
    """The front as an HTML table for the output of a cell, the chosen law bold; `head` is HTML that stands above it."""
    table = Table(
        "",
        "",
        ("complexity", "loss", "score", target),
        tuple((*law.numbers(), short_text(law.expression)) for law in laws),
        chosen,
    )
    return f'<div class="symenum">{_STYLE}{head}{html_table(table)}</div>'
