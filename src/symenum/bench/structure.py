"""The third verdict, for noisy data: the same structure, whatever the constants are, and a bias term is free.

The paper compares the skeletons that SymPy makes, which differ from one version of SymPy to the next. Here sums are
multiplied out by our own rules: an expression becomes a sum of products of powers of atoms, an atom being a variable, a
function of such a sum, or a sum to a power that cannot be multiplied out. Terms whose constant rounds to zero fall out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from symenum.expressions import Apply, Constant, Expression, Variable, apply, fold, simplify
from symenum.operators import ADDITIVE, Role

__all__ = ["multiplied_out", "same_structure"]

# An atom is a variable's name, or (function, the terms of its argument, with their constants).
Atom: TypeAlias = "str | tuple[str, frozenset[tuple[Monomial, float]]]"
Monomial: TypeAlias = "frozenset[tuple[Atom, float]]"
Sum: TypeAlias = "dict[Monomial, float]"

_ONE: Monomial = frozenset()
_DIGITS = 9  # to which constants inside atoms must agree to be the same atom
_MOST_TERMS = 2000
_MOST_POWER = 12
_WHOLE = 1e15


class _TooLongError(ValueError):
    """Multiplied out, the expression would have thousands of terms."""


def same_structure(found: Expression, law: Expression, decimals: int = 2) -> bool:
    """Whether both are one law up to their constants and an added constant.

    >>> from symenum.expressions import parse
    >>> same_structure(parse("9.8*(y - x) + 0.07"), parse("10*y - 10*x"))
    True
    >>> same_structure(parse("9.8*y - 9.9*x + 0.1*x*y"), parse("10*y - 10*x"))
    False
    """
    try:
        a, b = _expanded(found), _expanded(law)
    except _TooLongError:
        return False
    return _skeleton(a, decimals) == _skeleton(b, decimals)


def multiplied_out(expression: Expression, decimals: int) -> Expression | None:
    """The sum of its terms with their constants rounded; None where it has too many, or a function of two arguments.

    Systems that spread one constant over several factors, each in single precision, are judged by their product.

    >>> from symenum.expressions import parse
    >>> print(multiplied_out(parse("(2.5000001*x + 1)*(0.4*x)"), 3))
    0.4*x + x**2
    """
    try:
        return simplify(_as_tree(_expanded(expression), decimals))
    except _TooLongError:
        return None


def _as_tree(terms: Sum, decimals: int) -> Expression:
    total: Expression | None = None
    for monomial, coefficient in sorted(terms.items(), key=lambda term: (len(term[0]), str(sorted(map(str, term[0]))))):
        value = round(coefficient, decimals)
        product: Expression = Constant(int(value) if value.is_integer() and abs(value) < _WHOLE else value)
        if value:
            for atom, exponent in sorted(monomial, key=str):
                product = apply("mul", product, _power_tree(_atom_tree(atom, decimals), exponent))
            total = product if total is None else apply("add", total, product)
    return Constant(0) if total is None else total


def _atom_tree(atom: Atom, decimals: int) -> Expression:
    if isinstance(atom, str):
        return Variable(atom)
    argument = _as_tree(dict(atom[1]), decimals)
    if atom[0] == "sum":
        return argument
    if any(isinstance(inner, tuple) and inner[0][:-1] == atom[0] for one, _ in atom[1] for inner, _ in one):
        raise _TooLongError  # a function of two arguments
    return apply(atom[0], argument)


def _power_tree(base: Expression, exponent: float) -> Expression:
    if exponent == 1:
        return base
    whole = Constant(int(exponent)) if exponent.is_integer() else Constant(exponent)
    return apply("pow", base, whole)


def _skeleton(terms: Mapping[Monomial, float], decimals: int) -> object:
    """The terms without their constants; constant terms, and those that round to zero, are left out."""
    least = 0.5 * 10.0**-decimals
    return frozenset(
        frozenset((_atom_skeleton(atom, decimals), exponent) for atom, exponent in monomial)
        for monomial, coefficient in terms.items()
        if monomial != _ONE and abs(coefficient) >= least
    )


def _atom_skeleton(atom: Atom, decimals: int) -> object:
    return atom if isinstance(atom, str) else (atom[0], _skeleton(dict(atom[1]), decimals))


def _expanded(expression: Expression) -> Sum:
    return fold(expression, _visit)


def _visit(node: Expression, operands: tuple[Sum, ...]) -> Sum:
    if isinstance(node, Variable):
        return {frozenset({(node.name, 1.0)}): 1.0}
    if isinstance(node, Constant):
        return {_ONE: float(node.value)}
    assert isinstance(node, Apply)
    role = node.operator.role
    if role in ADDITIVE:
        return _added(operands[0], operands[1], 1.0 if role is Role.SUM else -1.0)
    if role is Role.NEGATION:
        return _added({}, operands[0], -1.0)
    if role is Role.PRODUCT:
        return _multiplied(operands[0], operands[1])
    if role is Role.QUOTIENT:
        return _multiplied(operands[0], _power(operands[1], -1.0))
    if role is Role.ROOT:
        return _power(operands[0], 0.5)
    if role is Role.POWER:
        exponent = _number(operands[1])
        # a**b with a law for exponent: exp(b·log a)
        if exponent is None:
            return _function("exp", _multiplied(operands[1], _function("log", operands[0])))
        return _power(operands[0], exponent)
    return _function(node.operator.name, *operands)


def _number(terms: Sum) -> float | None:
    return terms.get(_ONE, 0.0) if not set(terms) - {_ONE} else None


def _added(a: Sum, b: Sum, sign: float) -> Sum:
    total = dict(a)
    for monomial, coefficient in b.items():
        total[monomial] = total.get(monomial, 0.0) + sign * coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _multiplied(a: Sum, b: Sum) -> Sum:
    if len(a) * len(b) > _MOST_TERMS:
        raise _TooLongError
    total: Sum = {}
    for left, x in a.items():
        for right, y in b.items():
            powers = dict(left)
            for atom, exponent in right:
                powers[atom] = powers.get(atom, 0.0) + exponent
            monomial = frozenset((atom, exponent) for atom, exponent in powers.items() if exponent)
            total[monomial] = total.get(monomial, 0.0) + x * y
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _power(terms: Sum, exponent: float) -> Sum:
    exponent = round(exponent, 2) + 0.0
    if exponent == 0:
        return {_ONE: 1.0}
    if len(terms) == 1:
        ((monomial, coefficient),) = terms.items()
        scale = abs(coefficient) ** exponent
        whole = float(exponent).is_integer()
        sign = math.copysign(1.0, coefficient) ** int(exponent) if whole else 1.0
        return {frozenset((atom, round(power * exponent, 4)) for atom, power in monomial): sign * scale}
    if exponent.is_integer() and 0 < exponent <= _MOST_POWER:
        result = terms
        for _ in range(int(exponent) - 1):
            result = _multiplied(result, terms)
        return result
    # A sum that stays a factor: its own size goes to the constant, so that 1/(2x + 2) and 1/(x + 1) are one.
    return {frozenset({(("sum", _frozen(terms)), exponent)}): 1.0} if terms else {}


def _function(name: str, *arguments: Sum) -> Sum:
    if len(arguments) == 1:
        return {frozenset({((name, _frozen(arguments[0])), 1.0)}): 1.0}
    tagged = frozenset((frozenset({((f"{name}{i}", _frozen(one)), 1.0)}), 1.0) for i, one in enumerate(arguments))
    return {frozenset({((name, tagged), 1.0)}): 1.0}


def _frozen(terms: Sum) -> frozenset[tuple[Monomial, float]]:
    return frozenset((monomial, float(f"{coefficient:.{_DIGITS}g}")) for monomial, coefficient in terms.items())
