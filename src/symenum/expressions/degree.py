"""The degree of an expression in a variable, as it is written: 0 without it, 1 for a straight line a + b·x, else more.

So whatever is no polynomial counts as curved, and x**2/x does too. One rule for trees and for tables of features.
"""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

from symenum.expressions.tree import Apply, Expression, Variable, fold
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["degree_in", "joined_degree"]

_CURVED = 1e6  # times the degree of an operand: of sin(x), and of 1/x

Degree = TypeVar("Degree", float, Tensor)


def joined_degree(role: Role, a: Degree, b: Degree) -> Degree:
    """The degree of what an operator of that role makes of operands of these; b is 0 where there is one operand."""
    if role in ADDITIVE:
        return (a + b + abs(a - b)) / 2  # the larger one, of numbers and of tensors alike
    if role is Role.PRODUCT:
        return a + b
    if role is Role.QUOTIENT:
        return a + _CURVED * b
    return a if role in (Role.NEGATION, Role.IDENTITY) else _CURVED * (a + b)


def degree_in(expression: Expression, name: str) -> float:
    """The degree of an expression in the variable of that name.

    >>> from symenum.expressions import parse
    >>> degree_in(parse("(x + 2)*y - x/z"), "x"), degree_in(parse("y*z"), "x"), degree_in(parse("1/x"), "x") > 1
    (1.0, 0.0, True)
    """

    def visit(node: Expression, operands: tuple[float, ...]) -> float:
        if not isinstance(node, Apply):
            return float(isinstance(node, Variable) and node.name == name)
        return joined_degree(node.operator.role, *(*operands, 0.0)[:2])

    return fold(expression, visit)
