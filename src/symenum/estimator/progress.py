"""What `verbose=True` prints: a line whenever the best law changes."""

from __future__ import annotations

from symenum.search import StepReport

__all__ = ["PrintProgress"]


class PrintProgress:
    """A callback; it never asks to stop."""

    def __init__(self) -> None:
        self._last: str | None = None

    def __call__(self, report: StepReport) -> None:
        if self._last is None:
            print(f"symenum: {report.message}")
        best = report.front[-1]
        text = str(best.expression)
        if text != self._last:
            print(f"{report.elapsed:7.1f} s  {report.stage:<26} loss {best.loss:.4g}  {text}")
        self._last = text
