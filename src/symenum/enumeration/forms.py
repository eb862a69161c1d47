"""The bilinear forms of the last layer, and the operators that write them.

On a bank that is stored up to sign, every sum, difference, product and quotient of two columns is one of five forms:
v_i + v_j, v_i - v_j, -(v_i + v_j), ±v_i·v_j, ±v_i/v_j. Each is scored by one matrix product, however many ways the
operator set has to write it: a - b, a + (-b) and (-b) + a are scored once. Operators that are not bilinear (pow, a
user's own) are no forms; they are evaluated directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from symenum.operators import ADDITIVE, Kind, Operator, Role

__all__ = ["Family", "Form", "Way", "forms_of"]


class Family(Enum):
    """The three shapes of a form; the value is the roles of the operators that can write it."""

    SUM = ADDITIVE
    PRODUCT = (Role.PRODUCT,)
    QUOTIENT = (Role.QUOTIENT,)


@dataclass(frozen=True)
class Way:
    """One way to write a form: `operator` on the operands ±v_i and ±v_j, or with the two exchanged."""

    operator: Operator
    first_sign: int  # of v_i
    second_sign: int  # of v_j
    exchanged: bool = False  # v_j is the left operand


@dataclass(frozen=True)
class Form:
    """first·v_i + second·v_j, first·v_i·v_j or first·v_i / v_j, with signs ±1."""

    family: Family
    first: int
    second: int
    ways: tuple[Way, ...]

    @property
    def symmetric(self) -> bool:
        """Whether (i, j) and (j, i) are the same candidate, so that i ≤ j is enough."""
        return self.family is Family.PRODUCT or (self.family is Family.SUM and self.first == self.second)

    def value(self, left: Tensor, right: Tensor) -> Tensor:
        """The form's values; shapes broadcast."""
        if self.family is Family.SUM:
            total = left + right if self.first == self.second else left - right
        else:
            total = left * right if self.family is Family.PRODUCT else left / right
        return total if self.first > 0 else -total

    def reachable(self, first_has_minus: bool, second_has_minus: bool) -> bool:
        """Whether any way exists when columns have always +v, and -v only where said."""
        return any(
            (way.first_sign > 0 or first_has_minus) and (way.second_sign > 0 or second_has_minus) for way in self.ways
        )


def forms_of(operators: Sequence[Operator]) -> tuple[Form, ...]:
    """The forms that these operators can write on columns of either sign."""
    signs = {
        Family.SUM: ((1, 1), (1, -1), (-1, -1)),  # (-1, 1) is (1, -1) with i and j exchanged
        Family.PRODUCT: ((1, 1), (-1, 1)),
        Family.QUOTIENT: ((1, 1), (-1, 1)),
    }
    forms = (
        Form(family, first, second, tuple(_ways(family, first, second, operators)))
        for family, pairs in signs.items()
        for first, second in pairs
    )
    return tuple(form for form in forms if form.ways)


def _ways(family: Family, first: int, second: int, operators: Sequence[Operator]) -> list[Way]:
    ways: list[Way] = []
    for operator in operators:
        if operator.role not in family.value:
            continue
        if operator.role is Role.SUM:
            ways.append(Way(operator, first, second))
        elif operator.role is Role.DIFFERENCE:
            ways += [Way(operator, first, -second), Way(operator, -first, second, exchanged=True)]
        else:  # a product or a quotient: only the product of the signs counts
            ways += [Way(operator, sign, first * sign) for sign in (1, -1)]
    return ways


def ordered(operator: Operator, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Operands in the order in which the layer numbers them, and which of the pairs it has at all.

    A triangled operator has i ≤ j only: a commutative one is turned round, semisub and semidiv lack the other half.
    """
    if operator.kind is Kind.SQUARED:
        return left, right, torch.ones_like(left, dtype=torch.bool)
    if operator.commutative:
        return torch.minimum(left, right), torch.maximum(left, right), torch.ones_like(left, dtype=torch.bool)
    return left, right, left <= right
