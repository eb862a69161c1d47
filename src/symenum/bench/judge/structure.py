"""The same structure: two laws with the same terms, whatever their constants are, and an added constant for free.

One rule for every table that is judged by structure (SRBench with noise, chaotic systems, EMPS, random laws with
noise). The paper compares the skeletons that SymPy makes, which differ from one version of SymPy to the next; here our
own trees are compared:

- Terms: sums are multiplied out. A law becomes a sum of terms, and a term is a number times powers of factors. A factor
  is a variable, a function of such a sum, or a sum under a power that cannot be multiplied out, as in 1/(x + y).
- Constants: the number of a term is dropped with its sign, so 3*(y - x) is 2*x - 7*y. No number is too small to count:
  y + 0.003*x has two terms in any units. Only what cancels up to rounding (x*y - y*x) falls out.
- Bias: an added constant is free at the top, as in the paper, and inside a function: sin(2*x + 1) is sin(x). Under a
  power it counts: 1/(x + y + 1) has its pole elsewhere than 1/(x + y).
- Exponents belong to the structure: x**3 is not x**2. They are compared to two decimals, so a fitted 2.001 is 2.
- Functions are themselves: tanh(50*x) is not sign(x), cos is not sin, exp(x + y) is not exp(x)*exp(y). Only roots and
  powers are one: sqrt(x) is x**0.5, and x**y with variables in y is exp(y*log(x)).
- Equal terms are counted: sin(2*x) + sin(5*x) is not sin(x).
- Powers of products are taken apart as for positive numbers: sqrt(x**2*y) is x*sqrt(y).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from symenum.bench.judge.numeric import rounded_constant
from symenum.expressions import Apply, Constant, Expression, Variable, apply, evaluate, fold, simplify, variables
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["multiplied_out", "same_structure"]

# A factor is a variable's name, or (function, the terms of each argument with their constants).
Factor: TypeAlias = "str | tuple[str, tuple[FrozenSum, ...]]"
Monomial: TypeAlias = "frozenset[tuple[Factor, float]]"
FrozenSum: TypeAlias = "frozenset[tuple[Monomial, float]]"
Sum: TypeAlias = "dict[Monomial, float]"

_ONE: Monomial = frozenset()
_SUM = "sum"  # the name of a factor that is a sum under a power
_EXPONENT_DECIMALS = 2  # to which exponents are compared, as the paper trims constants
_CONSTANT_DIGITS = 9  # to which constants inside two factors must agree for the factors to be one: fewer than fits have
_CANCELLED = 1e-12  # relative size of what remains where terms cancel: _MAX_TERMS roundings of 1e-16 stay below it
_MAX_TERMS = 2000  # a product of sums with more terms is not multiplied out: it would take seconds
_MAX_POWER = 12  # to which a sum is multiplied out: (a + b + c)**12 has 91 terms
_MAX_DENOMINATOR = 12  # of an exponent that is a fraction, such as 1/3; other exponents are decimals


class _NoTermsError(ValueError):
    """The expression has no sum of terms: it would be thousands of them, or a number in it is not finite."""


def same_structure(found: Expression, law: Expression) -> bool:
    """Whether both are one law up to their constants and an added constant.

    >>> from symenum.expressions import parse
    >>> same_structure(parse("9.8*(y - x) + 0.07"), parse("10*y - 10*x"))
    True
    >>> same_structure(parse("9.8*y - 9.9*x + 0.1*x*y"), parse("10*y - 10*x"))
    False
    """
    rules = _Expansion(_EXPONENT_DECIMALS, positive=True)
    try:
        return rules.skeleton(rules.of(found)) == rules.skeleton(rules.of(law))
    except _NoTermsError:
        return False


def multiplied_out(expression: Expression, decimals: int) -> Expression | None:
    """The sum of its terms with their constants rounded; None where it has too many, or a function of two arguments.

    Systems that spread one constant over several factors, each in single precision, are judged by their product.

    >>> from symenum.expressions import parse
    >>> print(multiplied_out(parse("(2.5000001*x + 1)*(0.4*x)"), 3))
    0.4*x + x**2
    """
    rules = _Expansion(decimals, positive=False)
    try:
        return simplify(rules.tree(rules.of(expression)))
    except _NoTermsError:
        return None


@dataclass(frozen=True)
class _Expansion:
    """Expressions as sums of terms. `positive`: powers of products are taken apart as for positive numbers.

    An exponent that rounds to a whole number at `decimals` is that number.
    """

    decimals: int
    positive: bool

    def of(self, expression: Expression) -> Sum:
        return fold(expression, self._visit)

    def skeleton(self, terms: Sum, *, bias: bool = False) -> object:
        """The terms without their constants, each with its count; an added constant is one of them only with `bias`."""
        skeletons = [self._monomial_skeleton(monomial) for monomial in terms if bias or monomial != _ONE]
        return frozenset(Counter(skeletons).items())

    def _monomial_skeleton(self, monomial: Monomial) -> object:
        factors = [(self._factor_skeleton(factor), round(power, self.decimals)) for factor, power in monomial]
        return frozenset(Counter(factors).items())

    def _factor_skeleton(self, factor: Factor) -> object:
        if isinstance(factor, str):
            return factor
        name, arguments = factor
        return name, tuple(self.skeleton(dict(terms), bias=name == _SUM) for terms in arguments)

    def tree(self, terms: Sum) -> Expression:
        """The sum as an expression, its constants rounded."""
        total: Expression | None = None
        for monomial, coefficient in sorted(
            terms.items(), key=lambda term: (len(term[0]), str(sorted(map(str, term[0]))))
        ):
            constant = rounded_constant(coefficient, self.decimals)
            product: Expression = constant
            if constant.value:
                for factor, power in sorted(monomial, key=str):
                    product = apply("mul", product, self._power_tree(self._factor_tree(factor), power))
                total = product if total is None else apply("add", total, product)
        return Constant(0) if total is None else total

    def _factor_tree(self, factor: Factor) -> Expression:
        if isinstance(factor, str):
            return Variable(factor)
        name, arguments = factor
        if len(arguments) > 1:
            raise _NoTermsError
        argument = self.tree(dict(arguments[0]))
        return argument if name == _SUM else apply(name, argument)

    def _power_tree(self, base: Expression, power: float) -> Expression:
        if power == 1:
            return base
        if power.is_integer():
            return apply("pow", base, Constant(int(power)))
        simple = Fraction(power).limit_denominator(_MAX_DENOMINATOR)
        exact = abs(float(simple) - power) < 10.0**-_CONSTANT_DIGITS
        return apply("pow", base, Constant(power if exact else round(power, self.decimals)))

    def _visit(self, node: Expression, operands: tuple[Sum, ...]) -> Sum:
        if isinstance(node, Variable):
            return {frozenset({(node.name, 1.0)}): 1.0}
        if isinstance(node, Constant) or not variables(node):
            return _number(float(evaluate(node, {})))
        assert isinstance(node, Apply)
        role = node.operator.role
        if role in ADDITIVE:
            return _added([(operands[0], 1.0), (operands[1], 1.0 if role is Role.SUM else -1.0)])
        if role is Role.NEGATION:
            return _added([(operands[0], -1.0)])
        if role is Role.PRODUCT:
            return _multiplied(operands[0], operands[1])
        if role is Role.QUOTIENT:
            return _multiplied(operands[0], self._power(operands[1], -1.0))
        if role is Role.ROOT:
            return self._power(operands[0], 0.5)
        if role is Role.POWER:
            exponent = _value(operands[1])
            if exponent is not None:
                return self._power(operands[0], exponent)
            return _function("exp", _multiplied(operands[1], _function("log", operands[0])))
        return _function(node.operator.name, *operands)

    def _power(self, terms: Sum, exponent: float) -> Sum:
        if not terms and exponent < 0:
            raise _NoTermsError
        nearest = round(exponent)
        if abs(exponent - nearest) <= 0.5 * 10.0**-self.decimals:
            exponent = float(nearest)
        whole = exponent.is_integer()
        if exponent == 0:
            return {_ONE: 1.0}
        if not terms:
            return {}
        if len(terms) == 1:
            ((monomial, coefficient),) = terms.items()
            bare = len(monomial) <= 1 and coefficient > 0 and all(power == 1 for _, power in monomial)
            if whole or bare or self.positive:
                sign = math.copysign(1.0, coefficient) ** int(exponent) if whole else 1.0
                powers = frozenset((factor, power * exponent) for factor, power in monomial)
                return _scaled({powers: sign}, _finite_power(abs(coefficient), exponent))
        if whole and 0 < exponent <= _MAX_POWER and len(terms) > 1:
            result = terms
            for _ in range(int(exponent) - 1):
                result = _multiplied(result, terms)
            return result
        # The largest constant of the sum becomes a factor of the term: 1/(2*x + 2) is 0.5/(x + 1).
        size = max(map(abs, terms.values()))
        factor = (_SUM, (_frozen(_scaled(terms, 1 / size)),))
        return _scaled({frozenset({(factor, exponent)}): 1.0}, _finite_power(size, exponent))


def _number(value: float) -> Sum:
    if not math.isfinite(value):
        raise _NoTermsError
    return {_ONE: value} if value else {}


def _value(terms: Sum) -> float | None:
    """The value of a sum without variables; None where it has variables."""
    return terms.get(_ONE, 0.0) if not set(terms) - {_ONE} else None


def _finite_power(base: float, exponent: float) -> float:
    try:
        value = math.pow(base, exponent)
    except OverflowError:
        raise _NoTermsError from None
    if not 0 < value < math.inf:
        raise _NoTermsError
    return value


def _scaled(terms: Sum, factor: float) -> Sum:
    return {monomial: factor * coefficient for monomial, coefficient in terms.items()}


def _added(parts: list[tuple[Sum, float]]) -> Sum:
    """The sum of all sums, each times its number, without the terms that cancel up to rounding."""
    total: Sum = {}
    sizes: Sum = {}
    for terms, factor in parts:
        for monomial, coefficient in terms.items():
            total[monomial] = total.get(monomial, 0.0) + factor * coefficient
            sizes[monomial] = sizes.get(monomial, 0.0) + abs(factor * coefficient)
    return {monomial: value for monomial, value in total.items() if abs(value) > _CANCELLED * sizes[monomial]}


def _multiplied(a: Sum, b: Sum) -> Sum:
    if len(a) * len(b) > _MAX_TERMS:
        raise _NoTermsError
    return _added([({_merged(left, right): x * y}, 1.0) for left, x in a.items() for right, y in b.items()])


def _merged(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0.0) + power
    # The exponents of x**(1/3)*x**(-1/3) cancel up to rounding.
    return frozenset((factor, power) for factor, power in powers.items() if abs(power) > _CANCELLED)


def _function(name: str, *arguments: Sum) -> Sum:
    return {frozenset({((name, tuple(map(_frozen, arguments))), 1.0)}): 1.0}


def _frozen(terms: Sum) -> FrozenSum:
    return frozenset(
        (monomial, float(f"{coefficient:.{_CONSTANT_DIGITS}g}")) for monomial, coefficient in terms.items()
    )
