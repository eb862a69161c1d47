"""A law as it is shown everywhere: one row of a front, and the words of its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from symenum.expressions import Expression

__all__ = ["MARK", "Front", "LawRow", "rows_of", "selected_row", "short_text"]

MARK = ">>>>"
"""Stands before the law to believe."""
_DIGITS = 5  # of constants on the screen; results hold them in full


class Front(Protocol):
    """The front of a search."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def scores(self) -> Sequence[float]: ...
    def rewards(self) -> Sequence[float]: ...
    def select(self, rule: str) -> int: ...


@dataclass(frozen=True)
class LawRow:
    """One law of a front with its numbers."""

    expression: Expression
    complexity: int
    loss: float
    score: float
    reward: float

    def numbers(self) -> tuple[str, str, str]:
        """Complexity, loss and score, as they are printed."""
        return f"{self.complexity}", f"{self.loss:.4g}", f"{self.score:.4g}"


def rows_of(front: Front) -> tuple[LawRow, ...]:
    """The rows of a front, by complexity ascending."""
    return tuple(
        LawRow(entry.expression, int(entry.complexity), float(entry.loss), float(score), float(reward))
        for entry, score, reward in zip(front, front.scores(), front.rewards(), strict=True)
    )


def selected_row(front: Front, rule: str) -> int | None:
    """The row that a rule picks, of a front that may be empty."""
    return front.select(rule) if len(front) else None


def short_text(expression: Expression, digits: int = _DIGITS) -> str:
    """The expression with its constants rounded: for the eye only."""
    from symenum.expressions import to_text

    return to_text(expression, digits)
