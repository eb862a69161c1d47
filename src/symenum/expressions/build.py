"""Building trees: operators applied by name, and variables replaced by expressions.

`apply` is the one place that knows of operators with a `form`: those are ways to enumerate, and a tree holds what they
stand for (inv(a) is 1/a). Nothing is simplified here; `canonical` puts operands in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from symenum.expressions.tree import Apply, Constant, Expression, Variable, fold
from symenum.operators import Operator, get_operator

__all__ = ["apply", "substitute"]

# The names that stand for the operands in Operator.form.
_PLACES = ("a", "b")


def apply(operator: Operator | str, *operands: Expression) -> Expression:
    """The operator on its operands; one that has a form is written out.

    >>> from symenum.expressions import Variable
    >>> print(apply("sin", Variable("x")), apply("inv", Variable("x")))
    sin(x) 1/x
    """
    record = get_operator(operator)
    for operand in operands:
        if not isinstance(operand, (Variable, Constant, Apply)):
            raise TypeError(f"an operand of {record.name} must be an Expression, not {type(operand).__name__}")
    if record.form is None:
        return Apply(record, operands)
    if len(operands) != record.arity:
        raise ValueError(f"{record.name} takes {record.arity} operands, not {len(operands)}")
    return substitute(_form(record.form), dict(zip(_PLACES, operands, strict=False)))


def substitute(expression: Expression, replacements: Mapping[str, Expression]) -> Expression:
    """The expression with the named variables replaced, all at once; the others stay.

    >>> from symenum.expressions import parse
    >>> print(substitute(parse("x - y"), {"x": parse("y"), "y": parse("x + 1")}))
    y - (x + 1)
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Variable):
            return replacements.get(node.name, node)
        if isinstance(node, Apply):
            unchanged = all(new is old for new, old in zip(operands, node.operands, strict=True))
            return node if unchanged else Apply(node.operator, operands)
        return node

    return fold(expression, visit)


@cache
def _form(text: str) -> Expression:
    # Imported late: the parser itself applies operators.
    from symenum.expressions.parse import parse

    return parse(text)
