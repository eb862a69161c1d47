"""What an observer is, what it is told, and what all observers show.

Nothing here imports torch at once: the command line says what is wrong with a request before it waits for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from symenum.expressions import Expression

__all__ = [
    "FrontLike",
    "Observer",
    "Quiet",
    "Report",
    "Row",
    "Title",
    "clock_text",
    "rows_of",
    "short_text",
    "sparkline",
    "status_line",
    "work_text",
]

_DIGITS = 5  # of constants on the screen; results hold them in full
_BARS = "▁▂▃▄▅▆▇█"


class FrontLike(Protocol):
    """The front of a search."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def scores(self) -> Sequence[float]: ...
    def rewards(self) -> Sequence[float]: ...
    def select(self, rule: str) -> int: ...


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


@dataclass(frozen=True)
class Row:
    """A law as it is shown; `chosen` is the one to believe."""

    complexity: int
    loss: float
    score: float
    law: str
    chosen: bool


def rows_of(front: FrontLike, rule: str) -> list[Row]:
    """The rows of a front, by complexity ascending."""
    selected = front.select(rule) if len(front) else None
    return [
        Row(int(entry.complexity), float(entry.loss), float(score), short_text(entry.expression), i == selected)
        for i, (entry, score) in enumerate(zip(front, front.scores(), strict=True))
    ]


def short_text(expression: Expression, digits: int = _DIGITS) -> str:
    """The expression with its constants rounded: for the eye only."""
    from symenum.expressions import to_text

    return to_text(expression, digits)


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
