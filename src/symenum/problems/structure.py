"""Whether two laws have the same structure: the same terms, whatever their coefficients, and a bias for free.

The question that the paper asks of laws of motion. Answered on our own trees: sums are multiplied out, numbers are
dropped, and what stands inside a function is compared by the same rule; no algebra system has a say in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from symenum.expressions import Constant, Expression, Variable, evaluate, fold, variables
from symenum.operators import Role

__all__ = ["same_structure", "structure"]

# A term: its factors, each with its whole exponent; the factors are variables' names or functions of structures.
Term = frozenset[tuple[object, float]]
Structure = frozenset[Term]

_ONE: Term = frozenset()
_MOST_TERMS = 400


def same_structure(one: Expression, other: Expression) -> bool:
    """Whether both have the same terms up to constants and a bias.

    >>> from symenum.expressions import parse
    >>> same_structure(parse("3.1*(y - x) + 0.2"), parse("2*x - y")), same_structure(parse("x**2"), parse("x*y"))
    (True, False)
    """
    return structure(one) - {_ONE} == structure(other) - {_ONE}


def structure(expression: Expression) -> Structure:
    """The terms of the multiplied-out expression without their coefficients."""
    return frozenset(_terms(expression))


def _terms(expression: Expression) -> Mapping[Term, float]:
    return fold(expression, _visit)


def _visit(node: Expression, operands: tuple[Mapping[Term, float], ...]) -> dict[Term, float]:
    if isinstance(node, Variable):
        return {frozenset({(node.name, 1.0)}): 1.0}
    if isinstance(node, Constant):
        return {_ONE: float(node.value)} if node.value else {}
    role = node.operator.role
    if role is Role.SUM:
        return _sum(operands[0], operands[1], 1.0)
    if role is Role.DIFFERENCE:
        return _sum(operands[0], operands[1], -1.0)
    if role is Role.NEGATION:
        return _sum({}, operands[0], -1.0)
    if role is Role.PRODUCT:
        return _product(operands[0], operands[1])
    if role is Role.QUOTIENT:
        return _product(operands[0], _power(operands[1], -1.0))
    if role is Role.POWER and not variables(node.operands[1]):
        return _power(operands[0], float(evaluate(node.operands[1], {})))
    if not variables(node):
        value = float(evaluate(node, {}))
        return {_ONE: value} if value else {}
    inside = tuple(frozenset(operand) - ({_ONE} if len(operand) > 1 else frozenset()) for operand in operands)
    return {frozenset({((node.operator.name, *inside), 1.0)}): 1.0}


def _sum(one: Mapping[Term, float], other: Mapping[Term, float], sign: float) -> dict[Term, float]:
    total = dict(one)
    for term, value in other.items():
        total[term] = total.get(term, 0.0) + sign * value
        if total[term] == 0.0:
            del total[term]
    return total


def _product(one: Mapping[Term, float], other: Mapping[Term, float]) -> dict[Term, float]:
    total: dict[Term, float] = {}
    for left, a in one.items():
        for right, b in other.items():
            total = _sum(total, {_merged(left, right): a * b}, 1.0)
    return total


def _merged(left: Term, right: Term) -> Term:
    powers: dict[object, float] = {}
    for factor, exponent in (*left, *right):
        powers[factor] = powers.get(factor, 0.0) + exponent
    return frozenset((factor, exponent) for factor, exponent in powers.items() if exponent)


def _power(base: Mapping[Term, float], exponent: float) -> dict[Term, float]:
    """Whole powers of sums are multiplied out; other powers of a sum are one factor."""
    if len(base) == 1:
        ((term, value),) = base.items()
        return {frozenset((factor, power * exponent) for factor, power in term): 1.0 if value else 0.0}
    if exponent > 0 and float(exponent).is_integer() and len(base) ** exponent <= _MOST_TERMS:
        total: dict[Term, float] = {_ONE: 1.0}
        for _ in range(int(exponent)):
            total = _product(total, base)
        return total
    return {frozenset({(("sum", frozenset(base)), exponent)}): 1.0}
