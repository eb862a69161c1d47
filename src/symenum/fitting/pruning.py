"""Laws with a part taken out: under noise a term too many fits a little better, and hides the simple law beside it."""

from __future__ import annotations

from symenum.expressions import Apply, Constant, Expression, apply, fold, simplify, variables
from symenum.operators import ARITHMETIC, Role

__all__ = ["with_one_less"]


def with_one_less(expression: Expression) -> list[Expression]:
    """The expression in all ways without one operand of a sum, a difference, a product or a quotient.

    >>> from symenum.expressions import parse
    >>> print(*with_one_less(parse("2*sin(x + y) - 3")), sep="; ")
    2*sin(x) - 3; 2*sin(y) - 3; sin(x + y) - 3; 2*sin(x + y)
    """
    variants = dict.fromkeys(simplify(variant) for variant in fold(expression, _shortened))
    return [variant for variant in variants if variables(variant) and variant.complexity < expression.complexity]


def _shortened(node: Expression, below: tuple[list[Expression], ...]) -> list[Expression]:
    """The node without one operand of its own, after those without one further down."""
    if not isinstance(node, Apply):
        return []
    operands = node.operands
    found = [
        apply(node.operator, *operands[:at], variant, *operands[at + 1 :])
        for at, variants in enumerate(below)
        for variant in variants
    ]
    role = node.operator.role
    if role not in ARITHMETIC:
        return found
    first, second = operands
    left = second
    if role is Role.DIFFERENCE:
        left = apply("neg", second)
    elif role is Role.QUOTIENT:
        left = apply("div", Constant(1), second)
    return [*found, first, left]
