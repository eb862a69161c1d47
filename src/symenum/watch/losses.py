"""How the best loss has fallen, step by step: what the sparkline draws."""

from __future__ import annotations

import math

from symenum.watch.observer import Report, sparkline

__all__ = ["Losses"]

_LEAST = 1e-32  # an exact law is drawn as this
_MOST = 10_000  # steps that are kept


class Losses:
    """Collects the decimal logarithms of the best loss, of the laws of one name at a time."""

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
