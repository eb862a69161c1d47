"""Products of powers as expressions, flat: (x/y)²·y is x²/y, whatever it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce

from symenum.expressions.build import apply
from symenum.expressions.tree import Apply, Constant, Expression
from symenum.operators import MULTIPLICATIVE, Role

__all__ = ["Powers", "merged", "power_product", "powers_of"]

Powers = Mapping[Expression, Fraction]


def powers_of(expression: Expression) -> Powers:
    """The factors of a product and their exponents; the expression itself where it is none."""
    if isinstance(expression, Apply):
        role, operands = expression.operator.role, expression.operands
        if role in MULTIPLICATIVE:
            power = Fraction(1 if role is Role.PRODUCT else -1)
            return merged((powers_of(operands[0]), Fraction(1)), (powers_of(operands[1]), power))
        exponent = operands[-1]
        if role is Role.POWER and isinstance(exponent, Constant) and isinstance(exponent.value, int):
            return merged((powers_of(operands[0]), Fraction(exponent.value)))
    return {} if expression == Constant(1) else {expression: Fraction(1)}


def merged(*parts: tuple[Powers, Fraction]) -> Powers:
    """The product of the parts, each to its exponent; what cancels is gone."""
    total: dict[Expression, Fraction] = {}
    for powers, exponent in parts:
        for base, power in powers.items():
            total[base] = total.get(base, Fraction(0)) + power * exponent
    return {base: power for base, power in total.items() if power}


def power_product(powers: Powers) -> Expression:
    """Numerator over denominator.

    >>> from symenum.expressions import parse
    >>> print(power_product(merged((powers_of(parse("a/b")), Fraction(2)), (powers_of(parse("b")), Fraction(1)))))
    a**2/b
    """
    above = [_raised(base, power) for base, power in powers.items() if power > 0]
    below = [_raised(base, -power) for base, power in powers.items() if power < 0]
    numerator = _product(above) if above else Constant(1)
    return apply("div", numerator, _product(below)) if below else numerator


def _raised(base: Expression, power: Fraction) -> Expression:
    if power == 1:
        return base
    if power == Fraction(1, 2):
        return apply("sqrt", base)
    whole = power.denominator == 1
    return apply("pow", base, Constant(int(power) if whole else float(power)))


def _product(factors: list[Expression]) -> Expression:
    return reduce(lambda a, b: apply("mul", a, b), factors)
