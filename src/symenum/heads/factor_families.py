"""The table of factor families: functions of one or two slots that no product of powers of the slots is.

Heads with fitted exponents know c·∏ x_i^p_i whatever the exponents are. What such products lack are functions: sin(θ),
exp(-x), log(x), cos(θ - θ'). Each row of `FACTOR_FAMILIES` is one family u(±argument)^power: which functions u by their
traits, which arguments, which sign, and the algebra that makes it a family of its own. Companions (`exponents`) draw on
it: one function inside a sum of powers, or inside a power of a sum, to the power 1.

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

__all__ = ["FACTOR_FAMILIES", "Argument", "FactorFamily", "Functions", "companion_factors"]


class Functions(enum.Enum):
    """Which operators a family takes, by their traits."""

    NONE = "the argument itself"
    EVERY = "every unary operator that is no power"
    PERIODIC = "those with a period"
    EXPONENTIAL = "the exponential"


class Argument(enum.Enum):
    """What the function is taken of; x and x' are different slots."""

    SLOT = "x"
    PRODUCT = "x*x'"
    DIFFERENCE = "x - x'"


@dataclass(frozen=True)
class FactorFamily:
    """u(argument)^power for all u of `functions` and all `arguments`; with `negated`, u(-argument)^power.

    `reason`: why other rows, and powers of the slots, do not hold it already.
    """

    functions: Functions
    arguments: tuple[Argument, ...]
    reason: str
    negated: bool = False
    power: int = 1

    def expressions(self, slots: Sequence[Expression], operators: Sequence[Operator]) -> Iterator[Expression]:
        """Its members on these slots that the operators can write: by argument, then by function."""
        able = Abilities(tuple(operators))
        if self.power != 1 and not able.products:
            return
        functions = _functions(self.functions, operators)
        for argument in _arguments(slots, self.arguments, able):
            if self.functions is Functions.NONE:
                yield argument
            for function in functions:
                factor = apply(function, apply("neg", argument) if self.negated else argument)
                yield factor if self.power == 1 else apply("pow", factor, Constant(self.power))


FACTOR_FAMILIES = (
    FactorFamily(
        Functions.NONE,
        (Argument.SLOT,),
        "A slot that changes its sign has no logarithm, so that no fitted exponent reaches it; a companion needs none. "
        "(Slots of one sign are bases of powers already: `exponents` leaves them out.)",
    ),
    FactorFamily(
        Functions.EVERY,
        (Argument.SLOT,),
        "A function that is no power has a logarithm that is not linear in log|x|.",
    ),
    FactorFamily(
        Functions.EXPONENTIAL,
        (Argument.SLOT,),
        "Decay: exp(-x) is exp(x)^-1, and a companion has the power 1.",
        negated=True,
    ),
    FactorFamily(
        Functions.PERIODIC,
        (Argument.SLOT,),
        "Intensities are squares of amplitudes, and a companion has the power 1.",
        power=2,
    ),
    FactorFamily(
        Functions.PERIODIC,
        (Argument.DIFFERENCE, Argument.PRODUCT),
        "Phases are differences of angles, or frequency times time. There are no other arguments of two slots: each "
        "companion costs random starts of its own.",
    ),
)
"""Rows in the order in which members are offered; where a head has room for some only, the first are taken."""


def companion_factors(slots: Sequence[Expression], operators: Sequence[Operator]) -> list[Expression]:
    """The factors of all rows, each once, in the order of the table."""
    rows = (row.expressions(slots, operators) for row in FACTOR_FAMILIES)
    return list(dict.fromkeys(itertools.chain.from_iterable(rows)))


def _functions(wanted: Functions, operators: Sequence[Operator]) -> list[Operator]:
    """The unary operators u with u(x) ≠ x^p that expressions hold as they are (an operator with a form is its form)."""
    if wanted is Functions.NONE:
        return []
    functions = [
        operator
        for operator in operators
        if operator.kind is Kind.UNARY and operator.exponent is None and operator.form is None
    ]
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
        if Argument.DIFFERENCE in wanted and able.differences:
            yield apply("sub", a, b)
