"""Values of an expression in extended precision, for what doubles cannot tell: one point at a time, with mpmath."""

from __future__ import annotations

from collections.abc import Mapping

import mpmath

from symenum.expressions import Constant, Expression, Variable, fold

__all__ = ["DIGITS", "extended_value"]

DIGITS = 60
_NAMED = {"pi": lambda: +mpmath.pi, "E": lambda: +mpmath.e}


def extended_value(expression: Expression, point: Mapping[str, float]) -> mpmath.mpf | None:
    """The value to 60 digits; None where it is not a finite real number, or an operator has no extended form.

    A decimal constant is taken as it is printed: 0.1 is one tenth, not the nearest double.
    """

    def visit(node: Expression, operands: tuple[object, ...]) -> object:
        if isinstance(node, Variable):
            return mpmath.mpf(point[node.name])
        if isinstance(node, Constant):
            return _NAMED[node.name]() if node.name else mpmath.mpf(repr(node.value))
        if node.operator.mpmath is None:
            raise ValueError(f"{node.operator.name} has no extended form")
        value = getattr(mpmath, node.operator.mpmath)(*operands)
        if isinstance(value, mpmath.mpc):  # real numbers only, on the way too: sqrt(x)**2 has no value at -1
            raise ValueError(f"{node.operator.name} leaves the real numbers")
        return value

    with mpmath.workdps(DIGITS):
        try:
            value = fold(expression, visit)
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        return value if mpmath.isfinite(value) else None
