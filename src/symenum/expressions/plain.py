"""The form that people would write for positive quantities: x*sqrt(y/x**2) is sqrt(y), exp(log(x)/2) is sqrt(x).

Roots of products become products of roots and sums are multiplied out, as if all that stands under a root or a
logarithm were positive. So the result is another function where it is not: whoever asks must judge it by the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from symenum.expressions.build import apply
from symenum.expressions.powers import Powers, merged, power_product
from symenum.expressions.simplify import as_product, as_sum, simplify
from symenum.expressions.tree import Apply, Constant, Expression
from symenum.operators import ADDITIVE, Role

__all__ = ["plain"]

_FINEST = 12  # the largest denominator of an exponent that is a fraction
_E = Constant(math.e, "E")
_Term = tuple[Fraction | float, Powers]  # a number and the factors


def plain(expression: Expression) -> Expression:
    """The sum of products that it is where all bases are positive.

    >>> from symenum.expressions import parse
    >>> print(plain(parse("x*(5*exp(1 - z)/(2*E) + exp(log(y/x**2)/2))")))
    5*x*exp(-z)/2 + sqrt(y)
    """
    total: Expression = Constant(0)
    for number, powers in _terms(expression):
        total = apply("add", total, apply("mul", _constant(number), power_product(powers)))
    return simplify(total)


def _terms(expression: Expression) -> Iterator[_Term]:
    total = as_sum(simplify(expression))
    if total.number:
        yield _exact(total.number), {}
    for added, term in total.terms:
        number, powers = _factors(term)
        yield from _multiplied_out(number if added else -number, powers)


def _multiplied_out(number: Fraction | float, powers: Powers) -> Iterator[_Term]:
    """A sum among the factors is multiplied out, if it is one."""
    sums = [base for base, power in powers.items() if power == 1 and _is_sum(base)]
    if len(sums) != 1:
        yield number, powers
        return
    rest = merged((powers, Fraction(1)), ({sums[0]: Fraction(1)}, Fraction(-1)))
    for inner, factors in _terms(sums[0]):
        yield number * inner, merged((rest, Fraction(1)), (factors, Fraction(1)))


def _is_sum(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.operator.role in ADDITIVE


def _factors(expression: Expression) -> _Term:
    """The number and the factors of a product, or of what is raised to a power."""
    product = as_product(simplify(expression))
    number = _exact(product.numerator) / product.denominator
    parts: list[tuple[Powers, Fraction]] = []
    for factors, sign in ((product.factors, 1), (product.divisors, -1)):
        for factor in factors:
            own, powers = _factor(factor)
            number *= own**sign
            parts.append((powers, Fraction(sign)))
    return number, merged(*parts)


def _factor(factor: Expression) -> _Term:
    if isinstance(factor, Apply):
        role, operands = factor.operator.role, factor.operands
        exponent = Fraction(1, 2) if role is Role.ROOT else _exponent(operands[-1]) if role is Role.POWER else None
        if exponent is not None:
            return _raised(_factors(operands[0]), exponent)
        if role is Role.EXPONENTIAL:
            return _exponential(operands[0])
    return Fraction(1), {factor: Fraction(1)}


def _raised(term: _Term, exponent: Fraction) -> _Term:
    number, powers = term
    if number < 0:
        whole = power_product(powers)
        return Fraction(1), {simplify(apply("mul", _constant(number), whole)): exponent}
    value = float(number) ** float(exponent)
    if exponent.denominator == 1 or value == round(value):
        return (number ** int(exponent) if exponent.denominator == 1 else Fraction(round(value))), merged(
            (powers, exponent)
        )
    return Fraction(1), merged((powers, exponent), ({_constant(number): Fraction(1)}, exponent))


def _exponential(argument: Expression) -> _Term:
    """Logarithms in the argument become powers, a whole number a power of E."""
    total = as_sum(simplify(argument))
    number: Fraction | float = Fraction(1)
    whole = isinstance(total.number, int)
    parts: list[tuple[Powers, Fraction]] = [({_E: Fraction(1)}, Fraction(total.number))] if whole else []
    rest: Expression = Constant(0) if whole else Constant(total.number)
    for added, term in total.terms:
        product = as_product(term)
        power = _exponent(Constant(product.number))
        factor = product.factors[0] if len(product.factors) == 1 and not product.divisors else None
        if power is not None and isinstance(factor, Apply) and factor.operator.role is Role.LOGARITHM:
            own, powers = _raised(_factors(factor.operands[0]), power if added else -power)
            number *= own
            parts.append((powers, Fraction(1)))
        else:
            rest = apply("add" if added else "sub", rest, term)
    rest = simplify(rest)
    return number, merged(*parts, ({} if rest == Constant(0) else {apply("exp", rest): Fraction(1)}, Fraction(1)))


def _exponent(expression: Expression) -> Fraction | None:
    """The small fraction that a constant is, if it is one."""
    if isinstance(expression, Apply):
        parts = as_product(expression)
        if parts.factors or parts.divisors:
            return None
        return Fraction(parts.number).limit_denominator(_FINEST)
    if not isinstance(expression, Constant) or expression.name is not None:
        return None
    near = Fraction(expression.value).limit_denominator(_FINEST)
    return near if abs(float(near) - expression.value) <= 1e-15 * abs(expression.value) else None


def _exact(number: float) -> Fraction | float:
    return Fraction(number) if isinstance(number, int) else number


def _constant(number: Fraction | float) -> Expression:
    if isinstance(number, float):
        return Constant(number)
    above, below = Constant(Fraction(number).numerator), Fraction(number).denominator
    return above if below == 1 else apply("div", above, Constant(below))
