"""What the heads with continuous exponents share: logarithms of slots, extra factors, exponents as people write."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, is_flat
from symenum.expressions import Apply, Constant, Expression, apply, variables
from symenum.fitting import Number, nice_number, recognise, scaled
from symenum.heads.response import Response
from symenum.operators import Abilities, Kind, Operator
from symenum.operators.traits import Role

__all__ = [
    "EXACT",
    "Bases",
    "Companions",
    "fewer_rows",
    "make_bases",
    "make_companions",
    "monomial",
    "raised",
    "snapped_exponent",
]


# --------------------------------------------------------------------------------------------------------------------
# One factor base**exponent as a tree.


def raised(base: Expression, exponent: Number) -> Expression:
    """base to the absolute value of the exponent."""
    size = abs(exponent.value)
    if size == 1:
        return base
    if isinstance(base, Apply) and base.operator.role is Role.EXPONENTIAL:
        return apply("exp", scaled(replace(exponent, value=size), base.operands[0]))
    if size == 0.5:
        return apply("sqrt", base)
    # x**1.5 rather than x**(3/2): a division would count as an operator.
    short = size == round(size, 3)
    return apply("pow", base, Constant(size) if short and size != int(size) else exponent.magnitude)


# --------------------------------------------------------------------------------------------------------------------
# Functions of one slot, of a difference or of a product of two: the factors that no power of a slot is.
#
# Heads whose exponents are continuous know products of powers of the slots; one factor out of this short list makes
# x·sin(θ), a·b·cos(θ₁ - θ₂) or x·exp(-y) of them.


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


# --------------------------------------------------------------------------------------------------------------------
# What the heads with continuous exponents share: logarithms of slots, rows to work on, and exponents as people write.
#
# A product of powers is exp(p·log x): smooth in p, so that exponents of any size come out of a fit, with as many
# slots as there are, and whole ones are recognised afterwards.


EXACT = EXACTNESS.scanned**2  # of a relative loss: below it exponents must be small rationals
_MOST_EXPONENT = 8.5
_ROWS_PER_UNKNOWN = 3


@dataclass(frozen=True)
class Bases:
    """The slots without zeros, their logarithms (n, d) with mean 0, those means (d,), and the companions (G, n).

    `rows` (n,) int64: the rows of the data that these are on.
    """

    slots: tuple[Expression, ...]
    logs: Tensor
    means: Tensor
    companions: Companions
    rows: Tensor

    def at(self, which: Tensor) -> Bases:
        """The same on some of the rows (int64, of these)."""
        companions = Companions(self.companions.values[:, which], self.companions.expressions)
        return Bases(self.slots, self.logs[which], self.means, companions, self.rows[which])

    def suffice(self, unknowns: int, *, functions: bool) -> bool:
        """Whether there is something to fit, and rows enough for so many unknowns."""
        something = bool(self.slots) and (not functions or len(self.companions) > 1)
        return something and len(self.rows) >= _ROWS_PER_UNKNOWN * unknowns

    @property
    def inside(self) -> Tensor:
        """Which slots (G, d) a companion is made of, as 0 and 1, float64."""
        names = [variables(companion) for companion in self.companions.expressions]
        return torch.tensor([[float(variables(slot) <= inner) for slot in self.slots] for inner in names]).double()


def make_bases(response: Response, operators: Sequence[Operator], *, functions: bool) -> Bases:
    """The bases on the rows that scans look at; without `functions` the only companion is 1."""
    data = response.data
    rows = data.scan_rows
    slots = tuple(slot for slot in data.stand_ins if _of_one_sign(data.evaluate(slot)))
    values = torch.stack([data.evaluate(slot)[rows] for slot in data.stand_ins])
    logs = torch.stack([data.evaluate(slot)[rows].abs().log() for slot in slots], dim=1) if slots else values[:0].T
    means = logs.mean(dim=0)
    companions = make_companions(data.stand_ins, values, operators if functions else ())
    return Bases(slots, logs - means, means, companions, rows)


def fewer_rows(bases: Bases, most: int) -> Bases:
    """An even selection of the rows, where there are more than so many."""
    count = len(bases.rows)
    return bases if count <= most else bases.at(torch.linspace(0, count - 1, most).long())


def _of_one_sign(values: Tensor) -> bool:
    return bool((values > 0).all()) or bool((values < 0).all())


def snapped_exponent(value: float, *, exact: bool) -> float | None:
    """A small rational for the exponent of an exact fit, the nearest half elsewhere; None where there is none."""
    if abs(value) > _MOST_EXPONENT:
        return None
    if not exact:
        return round(2 * value) / 2
    number = recognise(value, 0.0, exact=True, rational=True, polished=False)
    return None if number is None else number.value


def monomial(slots: Sequence[Expression], exponents: Sequence[float], companion: Expression) -> Expression:
    """companion · ∏ slot^exponent: what is above the line over what is below it."""
    above = [] if companion == Constant(1) else [companion]
    below: list[Expression] = []
    for slot, exponent in zip(slots, exponents, strict=True):
        if exponent:
            (above if exponent > 0 else below).append(raised(slot, _number(exponent)))
    top = reduce(lambda a, b: apply("mul", a, b), above) if above else Constant(1)
    return apply("div", top, reduce(lambda a, b: apply("mul", a, b), below)) if below else top


def _number(exponent: float) -> Number:
    number = nice_number(exponent, 0.0, rational=True)
    assert number is not None  # it was snapped
    return number
