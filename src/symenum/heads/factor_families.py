"""The table of factor families: functions of one to three slots that no product of powers of the slots is.

Heads with fitted exponents know c·∏ x_i^p_i whatever the exponents are. What such products lack are functions: sin(θ),
exp(-x), log(a/b), cos(k·(x - x')). Each row of `FACTOR_FAMILIES` is one family u(s·argument)^power: which functions u
by their traits, which arguments, which scales s, and the algebra that makes it a family of its own. Two kinds of head
draw on it:

- companions (`exponents`): one function inside a sum of powers, or inside a power of a sum, to the power 1;
- products of factors (`product_of_factors`): up to three factors side by side, each with an exponent that is fitted.

This module makes expressions only; which of them have usable values on the data is the business of the heads.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from symenum.expressions import Constant, Expression, apply
from symenum.operators import Abilities, Kind, Operator
from symenum.operators.traits import Role

__all__ = [
    "FACTOR_FAMILIES",
    "Argument",
    "FactorFamily",
    "Functions",
    "companion_factors",
    "functions_that_are_no_power",
    "product_factors",
]


class Functions(enum.Enum):
    """Which operators a family takes, by their traits."""

    NONE = "the argument itself"
    EVERY = "every unary operator that is no power"
    PERIODIC = "those with a period"
    EXPONENTIAL = "the exponential"


class Argument(enum.Enum):
    """What the function is taken of; x, x' and x'' are different slots."""

    SLOT = "x"
    PRODUCT = "x*x'"
    QUOTIENT = "x/x' and x'/x"
    DIFFERENCE = "x - x'"
    DIFFERENCE_TIMES_SLOT = "(x - x')*x''"


class Scale(enum.Enum):
    """The number s that multiplies the argument inside the function."""

    ONE = "1"
    MINUS_ONE = "-1"
    HALF = "1/2"
    TWO = "2"

    def of(self, argument: Expression) -> Expression:
        """s·argument, as people write it."""
        if self is Scale.ONE:
            return argument
        if self is Scale.MINUS_ONE:
            return apply("neg", argument)
        two = Constant(2)
        return apply("div", argument, two) if self is Scale.HALF else apply("mul", two, argument)


@dataclass(frozen=True)
class FactorFamily:
    """u(s·argument)^power for all u of `functions`, all `arguments` and all `scales` s.

    `companion`, `product`: whether companions and products of factors draw on it. `reason`: why other rows, and powers
    of the slots, do not hold it already.
    """

    functions: Functions
    arguments: tuple[Argument, ...]
    reason: str
    scales: tuple[Scale, ...] = (Scale.ONE,)
    power: int = 1
    companion: bool = False
    product: bool = False

    def expressions(self, slots: Sequence[Expression], operators: Sequence[Operator]) -> Iterator[Expression]:
        """Its members on these slots that the operators can write: by argument, then by scale, then by function."""
        able = Abilities(tuple(operators))
        if self.power != 1 and not able.products:
            return
        functions = _functions(self.functions, operators)
        if self.functions is not Functions.NONE and not functions:
            return
        for argument in _arguments(slots, self.arguments, able):
            if self.functions is Functions.NONE:
                yield argument
            for scale, function in itertools.product(self.scales, functions):
                factor = apply(function, scale.of(argument))
                yield factor if self.power == 1 else apply("pow", factor, Constant(self.power))


FACTOR_FAMILIES = (
    FactorFamily(
        Functions.NONE,
        (Argument.SLOT,),
        "A slot that changes its sign has no logarithm, so that no fitted exponent reaches it; a companion needs none. "
        "(Slots of one sign are bases of powers already: `exponents` leaves them out.)",
        companion=True,
    ),
    FactorFamily(
        Functions.NONE,
        (Argument.DIFFERENCE,),
        "log|x - x'| is no combination of log|x| and log|x'|. Sums and powers of sums hold differences themselves.",
        product=True,
    ),
    FactorFamily(
        Functions.EVERY,
        (Argument.SLOT,),
        "A function that is no power has a logarithm that is not linear in log|x|.",
        companion=True,
        product=True,
    ),
    FactorFamily(
        Functions.EXPONENTIAL,
        (Argument.SLOT,),
        "Decay: exp(-x) is exp(x)^-1, and a companion has the power 1. In products the exponent is fitted.",
        scales=(Scale.MINUS_ONE,),
        companion=True,
    ),
    FactorFamily(
        Functions.PERIODIC,
        (Argument.SLOT,),
        "Intensities are squares of amplitudes, and a companion has the power 1. In products the exponent is fitted.",
        power=2,
        companion=True,
    ),
    FactorFamily(
        Functions.PERIODIC,
        (Argument.DIFFERENCE, Argument.PRODUCT),
        "Phases are differences of angles, or frequency times time. Companions take no other arguments of two slots: "
        "each companion costs random starts of its own.",
        companion=True,
    ),
    FactorFamily(
        Functions.PERIODIC,
        (
            Argument.SLOT,
            Argument.PRODUCT,
            Argument.QUOTIENT,
            Argument.DIFFERENCE,
            Argument.DIFFERENCE_TIMES_SLOT,
        ),
        "Half angles make powers of sums: 1 - cos(v) = 2·sin(v/2)², 1 + cos(v) = 2·cos(v/2)². Double angles make one "
        "factor of two: cos(v)² - sin(v)² = cos(2v). A phase k·(x - x') is a difference times a slot.",
        scales=(Scale.ONE, Scale.HALF, Scale.TWO),
        product=True,
    ),
    FactorFamily(
        Functions.EVERY,
        (Argument.PRODUCT, Argument.QUOTIENT),
        "Arguments of functions have no unit: x/x' of two slots of one unit, or x·x' of rate and time. Differences are "
        "left out: exp(x - x') is a product of two other factors.",
        product=True,
    ),
)
"""Rows in the order in which members are offered; where a head has room for some only, the first are taken."""


def companion_factors(slots: Sequence[Expression], operators: Sequence[Operator]) -> list[Expression]:
    """The factors of all rows for companions, each once, in the order of the table."""
    rows = (row.expressions(slots, operators) for row in FACTOR_FAMILIES if row.companion)
    return list(dict.fromkeys(itertools.chain.from_iterable(rows)))


def product_factors(slots: Sequence[Expression], operators: Sequence[Operator]) -> list[Expression]:
    """The factors of all rows for products of factors, each once, in the order of the table."""
    rows = (row.expressions(slots, operators) for row in FACTOR_FAMILIES if row.product)
    return list(dict.fromkeys(itertools.chain.from_iterable(rows)))


def functions_that_are_no_power(operators: Sequence[Operator]) -> list[Operator]:
    """The unary operators u with u(x) ≠ x^p that expressions hold as they are (an operator with a form is its form)."""
    return [
        operator
        for operator in operators
        if operator.kind is Kind.UNARY and operator.exponent is None and operator.form is None
    ]


def _functions(wanted: Functions, operators: Sequence[Operator]) -> list[Operator]:
    if wanted is Functions.NONE:
        return []
    functions = functions_that_are_no_power(operators)
    if wanted is Functions.PERIODIC:
        return [operator for operator in functions if operator.periodic]
    if wanted is Functions.EXPONENTIAL:
        return [operator for operator in functions if operator.role is Role.EXPONENTIAL]
    return functions


def _arguments(slots: Sequence[Expression], wanted: Sequence[Argument], able: Abilities) -> Iterator[Expression]:
    """The arguments of these forms that the operators can write: slots first, then pair by pair."""
    if Argument.SLOT in wanted:
        yield from slots
    for a, b in itertools.combinations(slots, 2):
        if Argument.PRODUCT in wanted and able.products:
            yield apply("mul", a, b)
        if Argument.QUOTIENT in wanted and able.quotients:
            yield apply("div", a, b)
            yield apply("div", b, a)
        if not able.differences:
            continue
        difference = apply("sub", a, b)
        if Argument.DIFFERENCE in wanted:
            yield difference
        if Argument.DIFFERENCE_TIMES_SLOT in wanted and able.products:
            yield from (apply("mul", difference, c) for c in slots if c not in (a, b))
