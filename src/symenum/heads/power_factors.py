"""One factor base**exponent as a tree."""

from __future__ import annotations

from dataclasses import replace

from symenum.expressions import Apply, Constant, Expression, apply
from symenum.fitting import Number, scaled
from symenum.operators import Role

__all__ = ["raised"]


def raised(base: Expression, exponent: Number) -> Expression:
    """base to the absolute value of the exponent."""
    size = abs(exponent.value)
    if size == 1:
        return base
    if isinstance(base, Apply) and base.operator.role is Role.EXPONENTIAL:
        return apply("exp", scaled(replace(exponent, value=size), base.operands[0]))
    if size == 0.5:
        return apply("sqrt", base)
    # x**1.5 rather than x**(3/2): a division would count as an operator.
    short = size == round(size, 3)
    return apply("pow", base, Constant(size) if short and size != int(size) else exponent.magnitude)
