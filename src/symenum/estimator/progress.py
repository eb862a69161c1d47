"""What `verbose=True` prints: a line whenever the best law changes."""

from __future__ import annotations

from symenum.expressions import to_text
from symenum.search import StepReport

__all__ = ["PrintProgress"]

_DIGITS = 5


class PrintProgress:
    """A callback; it never asks to stop."""

    def __init__(self) -> None:
        self._last: str | None = None

    def __call__(self, report: StepReport) -> None:
        if self._last is None:
            print(f"symenum: {report.message}")
            self._last = ""
        if not report.front:  # nothing yet that the user's constraints allow
            return
        best = report.front[-1]
        text = to_text(best.expression, _DIGITS)
        if text != self._last:
            print(f"{report.elapsed:7.1f} s  {report.stage:<26} loss {best.loss:.4g}  {text}")
        self._last = text
