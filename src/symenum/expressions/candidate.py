"""A candidate: an expression and its loss on some rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from symenum.expressions.tree import Expression

__all__ = ["Candidate"]


@dataclass(frozen=True)
class Candidate:
    """An expression and its loss (weighted mean square error) on the rows that it was asked for.

    `weighted`: its complexity by weights of the user's own; None: that of the expression counts. It follows from the
    expression, so that two candidates that differ in nothing else are equal.
    """

    expression: Expression
    loss: float
    weighted: int | None = field(default=None, compare=False, repr=False)

    @property
    def complexity(self) -> int:
        return self.expression.complexity if self.weighted is None else self.weighted

    def __str__(self) -> str:
        return f"{self.loss:.6g}  {self.expression}"
