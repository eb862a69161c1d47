"""Constants rounded as a protocol says, before a law is compared."""

from __future__ import annotations

from symenum.expressions import Apply, Constant, Expression, fold, simplify

__all__ = ["rounded"]


def rounded(expression: Expression, decimals: int) -> Expression:
    """The expression with its decimal numbers rounded; those that become whole are whole, and 0·f falls out.

    Whole numbers, fractions of them and pi stay as they are: they are meant exactly.

    >>> from symenum.expressions import parse
    >>> print(rounded(parse("1.0004*x**2.0001 + 0.0002*y + 2/3"), 3))
    x**2 + 2/3
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Apply):
            return Apply(node.operator, operands)
        if not isinstance(node, Constant) or node.name is not None or isinstance(node.value, int):
            return node
        value = round(node.value, decimals)
        return Constant(int(value)) if value.is_integer() and abs(value) < 1e15 else Constant(value)

    return simplify(fold(expression, visit))
