"""Functions of one slot, of a difference or of a product of two: the factors that no power of a slot is.

Heads whose exponents are continuous know products of powers of the slots; one factor out of this short list makes
x·sin(θ), a·b·cos(θ₁ - θ₂) or x·exp(-y) of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.exactness import is_flat
from symenum.expressions import Constant, Expression, apply
from symenum.operators import Abilities, Kind, Operator, Role

__all__ = ["Companions", "make_companions"]

_LARGEST = 1e8
_MOST = 64


@dataclass(frozen=True)
class Companions:
    """`values` (G, n) float64 and what they are; the first is 1."""

    values: Tensor
    expressions: tuple[Expression, ...]

    def __len__(self) -> int:
        return len(self.expressions)


def make_companions(slots: Sequence[Expression], values: Tensor, operators: Sequence[Operator]) -> Companions:
    """1, the slots that change sign, and u(x), u(x - x'), u(x·x') for the unary operators; values (slots, n)."""
    rows = [torch.ones_like(values[0])]
    expressions: list[Expression] = [Constant(1)]
    for expression, row in _offers(slots, values, operators):
        size = float(row.abs().max())
        varies = not bool(is_flat(row))
        if len(rows) < _MOST and bool(torch.isfinite(row).all()) and 1 / _LARGEST < size < _LARGEST and varies:
            rows.append(row)
            expressions.append(expression)
    return Companions(torch.stack(rows), tuple(expressions))


def _offers(
    slots: Sequence[Expression], values: Tensor, operators: Sequence[Operator]
) -> Iterator[tuple[Expression, Tensor]]:
    able = Abilities(tuple(operators))
    unary = [operator for operator in operators if _is_function(operator)]
    single = list(zip(slots, values, strict=True))
    for slot, row in single:
        if bool((row <= 0).any()) and bool((row >= 0).any()):
            yield slot, row
    for slot, row in single:
        for operator in unary:
            yield apply(operator, slot), operator.function(row)
        if Role.EXPONENTIAL in able.roles:
            yield apply("exp", apply("neg", slot)), torch.exp(-row)
    periodic = [operator for operator in unary if operator.periodic]
    if able.products:
        for operator in periodic:
            for slot, row in single:
                yield apply("pow", apply(operator, slot), Constant(2)), operator.function(row).square()
    pairs = list(itertools.combinations(single, 2))
    for operator in periodic:
        if able.differences:
            for (a, u), (b, v) in pairs:
                yield apply(operator, apply("sub", a, b)), operator.function(u - v)
        if able.products:
            for (a, u), (b, v) in pairs:
                yield apply(operator, apply("mul", a, b)), operator.function(u * v)


def _is_function(operator: Operator) -> bool:
    """Products of powers of the slots hold the others already."""
    return operator.kind is Kind.UNARY and operator.exponent is None and operator.form is None
