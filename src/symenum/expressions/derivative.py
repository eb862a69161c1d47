"""The derivative of an expression by a variable, as an expression; without SymPy, by the rules of the roles.

A unary operator's record says how its derivative is written (`Operator.slope_form`). Where it does not, there is no
derivative here (None).
"""

from __future__ import annotations

from symenum.expressions.algebra import simplify
from symenum.expressions.parse import parse
from symenum.expressions.tree import Apply, Constant, Expression, Variable, apply, fold, substitute, variables
from symenum.operators.traits import Role

__all__ = ["derivative"]

_ZERO, _ONE = Constant(0), Constant(1)


def derivative(expression: Expression, name: str) -> Expression | None:
    """∂/∂name, simplified; None where an operator of one's own has no derivative that is written.

    >>> from symenum.expressions import parse
    >>> print(derivative(parse("x**2*sin(y)"), "x"))
    2*x*sin(y)
    """

    def visit(node: Expression, operands: tuple[Expression | None, ...]) -> Expression | None:
        if name not in variables(node):
            return _ZERO
        if isinstance(node, Variable):
            return _ONE
        assert isinstance(node, Apply)  # a constant holds no variable
        if any(operand is None for operand in operands):
            return None
        slopes = [operand for operand in operands if operand is not None]
        return _of_unary(node, slopes[0]) if len(slopes) == 1 else _of_binary(node, slopes)

    found = fold(expression, visit)
    return None if found is None else simplify(found)


def _of_unary(node: Apply, slope: Expression) -> Expression | None:
    form = node.operator.slope_form
    if form is None:
        return None
    outer = substitute(parse(form), {"a": node.operands[0]})
    return apply("mul", outer, slope)


def _of_binary(node: Apply, slopes: list[Expression]) -> Expression | None:
    role, (a, b), (da, db) = node.operator.role, node.operands, slopes
    if role is Role.SUM:
        return _sum(da, db)
    if role is Role.DIFFERENCE:
        return da if db == _ZERO else apply("sub", da, db)
    if role is Role.PRODUCT:
        return _sum(_product(da, b), _product(a, db))
    if role is Role.QUOTIENT:
        first = da if da == _ZERO else apply("div", da, b)
        if db == _ZERO:
            return first
        return apply("sub", first, apply("div", _product(a, db), apply("pow", b, Constant(2))))
    if role is not Role.POWER:
        return None
    if db == _ZERO:
        lower = apply("pow", a, _less_one(b))
        return _product(_product(b, lower), da)
    of_exponent = _product(apply("mul", node, apply("log", a)), db)
    return of_exponent if da == _ZERO else _sum(of_exponent, _product(apply("div", apply("mul", node, b), a), da))


def _less_one(exponent: Expression) -> Expression:
    if isinstance(exponent, Constant) and exponent.name is None:
        return Constant(exponent.value - 1)
    return apply("sub", exponent, _ONE)


def _sum(a: Expression, b: Expression) -> Expression:
    return b if a == _ZERO else a if b == _ZERO else apply("add", a, b)


def _product(a: Expression, b: Expression) -> Expression:
    return _ZERO if _ZERO in (a, b) else b if a == _ONE else a if b == _ONE else apply("mul", a, b)
