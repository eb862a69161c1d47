"""What `verbose=True` prints: a line whenever the best law of an equation changes."""

from __future__ import annotations

from symenum.dynamics.discover import SystemReport
from symenum.expressions import to_text

__all__ = ["PrintSystemProgress"]

_DIGITS = 5


class PrintSystemProgress:
    """A callback; it never asks to stop."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def __call__(self, report: SystemReport) -> None:
        best = report.front[-1]
        text = to_text(best.expression, _DIGITS)
        if text != self._last.get(report.state):
            print(f"{report.state}: {report.elapsed:6.1f} s  {report.stage:<26} loss {best.loss:.4g}  {text}")
        self._last[report.state] = text
