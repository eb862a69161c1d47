"""A line for each step that changes the front: for files, pipes and logs."""

from __future__ import annotations

import io
from typing import TextIO

from symenum.watch.observer import Quiet, Report, Title, rows_of, status_line

__all__ = ["Lines"]


class Lines(Quiet):
    """Writes to a stream; one that nobody reads any more does not end the search."""

    def __init__(self, stream: TextIO, rule: str, title: Title | None = None) -> None:
        self._stream = stream
        self._rule = rule
        self._title = title
        self._shown: object = None

    def __call__(self, report: Report) -> None:
        rows = rows_of(report.front, self._rule)
        name = "" if self._title is None else f"{self._title(report)}: "
        state = (name, [(row.complexity, row.loss) for row in rows])
        if not rows or state == self._shown:
            return
        self._shown = state
        (row,) = [row for row in rows if row.chosen]
        fit = f"loss {row.loss:.3g}, complexity {row.complexity}: {row.law}"
        try:
            print(f"{name}{status_line(report)} | {fit}", file=self._stream, flush=True)
        except OSError:  # whoever read this has gone; the search goes on for the result
            self._stream = io.StringIO()
