"""Laws with round exponents in place of fitted ones: k·d²·sqrt(p/r) for d**2.03*p**0.477/r**0.532.

Each product of powers in a law gets exponents that are whole, halves or thirds, where the fitted ones are near to such;
roots are joined under one sign, since people write them so and it is simpler. A product that has changed gets a factor
of its own, which the caller fits: rounding an exponent moves the size of the product. Nothing is fitted or judged here.
Powers of products are written as products of powers, as if all bases were positive; the caller judges by the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from symenum.expressions import Apply, Constant, Expression, apply, simplify, variables
from symenum.expressions.algebra import as_product, product_of, with_factor
from symenum.operators.traits import MULTIPLICATIVE, Role

__all__ = ["with_round_exponents"]

_DENOMINATORS = (1, 2, 3)  # of the exponents that people write: wholes, halves and thirds
_FURTHEST = 0.2  # that an exponent may move, by definition; what it costs is judged by the data
_HALF = Fraction(1, 2)


def with_round_exponents(law: Expression) -> list[Expression]:
    """The law with exponents that are whole, with halves, and with thirds; only those that differ from the law.

    >>> from symenum.expressions import parse
    >>> print(*with_round_exponents(parse("0.9*d**2.03*p**0.477/r**0.532")), sep="; ")
    0.9*d**2*p**0.477/r**0.532; 0.9*d**2*sqrt(p/r)
    """
    if not _has_fitted_exponent(law):
        return []
    variants = dict.fromkeys(_rounded(law, denominator) for denominator in _DENOMINATORS)
    return [variant for variant in variants if variant != law]


def _has_fitted_exponent(law: Expression) -> bool:
    """Whether a power in the law has an exponent without variables that is no whole number: most laws have none."""
    stack = [law]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply):
            stack += node.operands
            if node.operator.role is Role.POWER:
                exponent = node.operands[1]
                whole = isinstance(exponent, Constant) and isinstance(exponent.value, int)
                if not whole and not variables(exponent):
                    return True
    return False


def _rounded(node: Expression, denominator: int) -> Expression:
    """The node with round exponents; a product of powers as a whole, before what is inside it.

    It recurses: laws of a front are not deep.
    """
    if not isinstance(node, Apply):
        return node
    if node.operator.role in (*MULTIPLICATIVE, Role.POWER):
        number, powers = _powers(node)
        nearest = {base: _nearest(power, denominator) for base, power in powers.items()}
        fitted = any(not isinstance(power, Fraction) for power in powers.values())
        if fitted and any(nearest.values()) and None not in nearest.values():
            exponents = {_inside(base, denominator): power for base, power in nearest.items() if power}
            # A float even where it is 1, so that it can be fitted.
            return with_factor(Constant(float(number)), _written(exponents))
    return _inside(node, denominator)


def _inside(node: Expression, denominator: int) -> Expression:
    """The node with round exponents in its operands; a power with a variable in its exponent is a base as it is."""
    if not isinstance(node, Apply):
        return node
    operands = tuple(_rounded(operand, denominator) for operand in node.operands)
    return node if operands == node.operands else Apply(node.operator, operands)


def _nearest(power: Fraction | float, denominator: int) -> Fraction | None:
    """The nearest fraction with that denominator; what is a fraction already stays; None where it is too far."""
    if isinstance(power, Fraction):
        return power
    near = Fraction(round(power * denominator), denominator)
    return near if abs(float(near) - power) <= _FURTHEST / denominator else None


def _powers(expression: Expression) -> tuple[float, Mapping[Expression, Fraction | float]]:
    """The number and the bases of a product, with their exponents: a fraction where it is one, a float where fitted."""
    product = as_product(simplify(expression))
    number, total = float(product.number), dict[Expression, Fraction | float]()
    for factors, sign in ((product.factors, 1), (product.divisors, -1)):
        for factor in factors:
            inner, exponent = _base_and_exponent(factor)
            if exponent == 1:
                own, powers = 1.0, {factor: Fraction(1)}
            else:
                own, powers = _powers(inner)  # type: ignore[assignment]
            number *= _power_of_number(own, float(exponent) * sign)
            for base, power in powers.items():
                total[base] = total.get(base, Fraction(0)) + power * exponent * sign
    return number, total


def _power_of_number(number: float, exponent: float) -> float:
    """number**exponent; 1 for a negative number, whose power the caller's fit of the factor must find."""
    return number**exponent if number > 0 else 1.0


def _base_and_exponent(factor: Expression) -> tuple[Expression, Fraction | float]:
    if isinstance(factor, Apply):
        if factor.operator.role is Role.ROOT:
            return factor.operands[0], _HALF
        exponent = factor.operands[-1]
        if factor.operator.role is Role.POWER and isinstance(exponent, Constant):
            value = exponent.value
            return factor.operands[0], Fraction(value) if isinstance(value, int) else float(value)
    return factor, Fraction(1)


def _written(exponents: Mapping[Expression, Fraction]) -> Expression:
    """The product: numerator over denominator, all halves under one root."""
    above, below = (_side(exponents, sign) for sign in (1, -1))
    roots_above, roots_below = (
        [base for base, power in exponents.items() if power * sign > 0 and power.denominator == 2] for sign in (1, -1)
    )
    if roots_above:
        root = product_of(roots_above)
        above.append(apply("sqrt", apply("div", root, product_of(roots_below)) if roots_below else root))
    elif roots_below:
        below.append(apply("sqrt", product_of(roots_below)))
    numerator = product_of(above) if above else Constant(1)
    return apply("div", numerator, product_of(below)) if below else numerator


def _side(exponents: Mapping[Expression, Fraction], sign: int) -> list[Expression]:
    """The factors of one side of the quotient, but for the roots."""
    factors: list[Expression] = []
    for base, power in exponents.items():
        size = power * sign
        if size <= 0:
            continue
        rest = size - _HALF if size.denominator == 2 else size
        if rest == 1:
            factors.append(base)
        elif rest:
            factors.append(apply("pow", base, _number(rest)))
    return factors


def _number(value: Fraction) -> Expression:
    if value.denominator == 1:
        return Constant(int(value))
    return apply("div", Constant(value.numerator), Constant(value.denominator))
