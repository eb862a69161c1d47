"""A candidate: an expression and its loss on some rows."""

from __future__ import annotations

from dataclasses import dataclass

from symenum.expressions.tree import Expression

__all__ = ["Candidate"]


@dataclass(frozen=True)
class Candidate:
    """An expression and its loss (weighted mean square error) on the rows that it was asked for."""

    expression: Expression
    loss: float

    @property
    def complexity(self) -> int:
        return self.expression.complexity

    def __str__(self) -> str:
        return f"{self.loss:.6g}  {self.expression}"
