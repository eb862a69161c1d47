"""Which constants of an expression are free to be fitted, and the expression with other values in their places.

Constants count as often as they occur, from left to right: in 2.5*x + sin(2.5) there are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symenum.expressions import Apply, Constant, Expression
from symenum.operators import Role

__all__ = ["free_constants", "postfix", "rebuilt", "with_constants", "with_leaves"]


def postfix(expression: Expression, *, integers: bool = True) -> list[tuple[Expression, bool]]:
    """All nodes, operands before their operator, shared sub-trees as often as they occur; and whether each is free.

    Free is a number without a name, but not a whole number in an exponent: x**2 is a square, x**2.0 a power to be
    fitted. Without `integers` no whole number is free.
    """
    # Each operator before its operands, the last of them first: the reverse of what is wanted.
    reverse: list[tuple[Expression, bool]] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, exponent = stack.pop()
        if isinstance(node, Apply):
            reverse.append((node, False))
            operands = node.operands
            stack.append((operands[0], False))
            if len(operands) == 2:
                stack.append((operands[1], node.operator.role is Role.POWER))
        else:
            number = isinstance(node, Constant) and node.name is None
            whole = isinstance(node, Constant) and isinstance(node.value, int)
            reverse.append((node, number and not (whole and (exponent or not integers))))
    reverse.reverse()
    return reverse


def free_constants(expression: Expression, *, integers: bool = True) -> tuple[float, ...]:
    """The values of the free constants, from left to right.

    >>> from symenum.expressions import parse
    >>> free_constants(parse("2*x**2 + sin(1.5*pi*x)")), free_constants(parse("2*x + 1.5"), integers=False)
    ((2.0, 1.5), (1.5,))
    """
    return tuple(
        float(node.value)
        for node, free in postfix(expression, integers=integers)
        if free and isinstance(node, Constant)
    )


def with_constants(expression: Expression, values: Sequence[float], *, integers: bool = True) -> Expression:
    """The expression with its free constants replaced, from left to right; one that keeps its value stays as it is.

    >>> from symenum.expressions import parse
    >>> print(with_constants(parse("2*x + 3"), [2.0, 0.5]))
    2*x + 0.5
    """
    return with_leaves(expression, [Constant(float(value)) for value in values], integers=integers)


def with_leaves(expression: Expression, leaves: Sequence[Expression], *, integers: bool = True) -> Expression:
    """The same with any expressions in the places of the free constants."""
    return rebuilt(postfix(expression, integers=integers), leaves)


def rebuilt(nodes: Iterable[tuple[Expression, bool]], leaves: Sequence[Expression]) -> Expression:
    """The same for what `postfix` gave."""
    stack: list[Expression] = []
    given = iter(leaves)
    for node, free in nodes:
        if isinstance(node, Apply):
            at = len(stack) - len(node.operands)
            operands = tuple(stack[at:])
            del stack[at:]
            old = node.operands
            unchanged = operands[0] is old[0] and operands[-1] is old[-1]
            stack.append(node if unchanged else Apply(node.operator, operands))
        elif free and isinstance(node, Constant):
            leaf = next(given, None)
            if leaf is None:
                raise ValueError(f"{len(leaves)} values are too few for the free constants")
            same = isinstance(leaf, Constant) and leaf.name is None and leaf.value == node.value
            stack.append(node if same else leaf)
        else:
            stack.append(node)
    if next(given, None) is not None:
        raise ValueError(f"{len(leaves)} values are too many for the free constants of {stack[0]}")
    return stack[0]
