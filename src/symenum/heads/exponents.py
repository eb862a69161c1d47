"""What heads with fitted exponents share: the logarithms of the slots, companion factors, exponents as people write.

A product of powers is exp(p·log x): smooth in p, so that exponents of any size come out of a fit with as many slots as
there are, and rational ones are recognised afterwards. One companion out of `factor_families` makes x·sin(θ),
a·b·cos(θ₁ - θ₂) or x·exp(-y) of such a product. How exponents are fitted is the business of `sum_of_powers` and
`powers_of_sums`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, is_flat
from symenum.expressions import Apply, Constant, Expression, apply, evaluate, variables
from symenum.fitting import Number, nice_number, recognise, scaled
from symenum.heads.factor_families import companion_factors
from symenum.heads.response import ONE, Response
from symenum.operators import Operator
from symenum.operators.traits import Role

__all__ = [
    "EXACT",
    "Bases",
    "Companions",
    "fewer_rows",
    "fraction",
    "make_bases",
    "make_companions",
    "monomial",
    "raised",
    "snapped_exponent",
]

EXACT = EXACTNESS.scanned**2
"""A loss relative to that of zero, below which a fit is taken for exact: its exponents must be small rationals."""
_LARGEST = 1e8  # of |companion|, and of its inverse: the square of a larger one beside 1 takes all 16 digits
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_EXPONENT = 8.5  # an exponent beyond it is refused
_MAX_COMPANIONS = 64  # each has random starts of its own
_ROWS_PER_UNKNOWN = 3  # with fewer, a fit of that many exponents and coefficients says nothing


@dataclass(frozen=True)
class Companions:
    """`values` (G, n) float64 on n rows and their expressions; the first companion is 1."""

    values: Tensor
    expressions: tuple[Expression, ...]

    def __len__(self) -> int:
        return len(self.expressions)


def make_companions(
    slots: Sequence[Expression], columns: Mapping[str, Tensor], operators: Sequence[Operator]
) -> Companions:
    """1 and the companions of the table that the operators can write, on `columns` (n,) float64 by the slots' names.

    Their values are finite, of moderate size and not constant; of the slots themselves those that change their sign.
    """
    rows = [torch.ones(len(next(iter(columns.values()))), dtype=torch.float64)]
    expressions: list[Expression] = [ONE]
    for expression in companion_factors(slots, operators):
        if len(rows) == _MAX_COMPANIONS:
            break
        row = evaluate(expression, columns)
        if expression in slots and _of_one_sign(row):
            continue
        size = float(row.abs().max())
        if bool(torch.isfinite(row).all()) and 1 / _LARGEST < size < _LARGEST and not bool(is_flat(row)):
            rows.append(row)
            expressions.append(expression)
    return Companions(torch.stack(rows), tuple(expressions))


@dataclass(frozen=True)
class Bases:
    """The slots without zeros, their logarithms (n, d) with mean 0, those means (d,), and the companions (G, n).

    `rows` (n,) int64: the rows of the data that all of these are on. Everything else is float64, on the CPU.
    """

    slots: tuple[Expression, ...]
    logs: Tensor
    means: Tensor
    companions: Companions
    rows: Tensor

    def at(self, which: Tensor) -> Bases:
        """The same on some of the rows; `which` (m,) int64 counts within `rows`."""
        companions = Companions(self.companions.values[:, which], self.companions.expressions)
        return Bases(self.slots, self.logs[which], self.means, companions, self.rows[which])

    def suffice(self, unknowns: int, *, functions: bool) -> bool:
        """Whether there is a slot (and with `functions` a companion beside 1), and rows enough for the unknowns."""
        anything = bool(self.slots) and (not functions or len(self.companions) > 1)
        return anything and len(self.rows) >= _ROWS_PER_UNKNOWN * unknowns

    @property
    def inside(self) -> Tensor:
        """Which slots (G, d) each companion is made of, as 0 and 1, float64."""
        names = [variables(companion) for companion in self.companions.expressions]
        return torch.tensor([[float(variables(slot) <= inner) for slot in self.slots] for inner in names]).double()


def make_bases(response: Response, operators: Sequence[Operator], *, functions: bool) -> Bases:
    """The bases on the scanned rows; without `functions` the companions are 1 and the slots that change their sign."""
    data = response.data
    rows = data.scan_rows
    slots = tuple(slot for slot in data.stand_ins if _of_one_sign(data.evaluate(slot)))
    logs = torch.empty(len(rows), 0, dtype=torch.float64)
    if slots:
        logs = torch.stack([data.evaluate(slot)[rows].abs().log() for slot in slots], dim=1)
    means = logs.mean(dim=0)
    columns = {name: column[rows] for name, column in data.columns.items()}
    companions = make_companions(data.stand_ins, columns, operators if functions else ())
    return Bases(slots, logs - means, means, companions, rows)


def fewer_rows(bases: Bases, limit: int) -> Bases:
    """The bases on `limit` of their rows, evenly spaced, where they have more."""
    count = len(bases.rows)
    return bases if count <= limit else bases.at(torch.linspace(0, count - 1, limit).long())


def _of_one_sign(values: Tensor) -> bool:
    return bool((values > 0).all()) or bool((values < 0).all())


def snapped_exponent(value: float, *, exact: bool) -> float | None:
    """The small rational that the exponent of an exact fit is, elsewhere the nearest half; None where there is none."""
    if abs(value) > _MAX_EXPONENT:
        return None
    if not exact:
        return round(2 * value) / 2
    number = recognise(value, 0.0, exact=True, rational=True, polished=False)
    return None if number is None else number.value


def monomial(slots: Sequence[Expression], exponents: Sequence[float], companion: Expression) -> Expression:
    """companion · ∏ slot^exponent, written as a numerator over a denominator; the exponents are snapped."""
    above = [] if companion == ONE else [companion]
    below: list[Expression] = []
    for slot, exponent in zip(slots, exponents, strict=True):
        if exponent:
            number = nice_number(exponent, 0.0, rational=True)
            assert number is not None  # it was snapped
            (above if exponent > 0 else below).append(raised(slot, number))
    return fraction(above, below)


def fraction(above: Sequence[Expression], below: Sequence[Expression]) -> Expression:
    """The product of `above` over the product of `below`; a product of none is 1."""
    numerator = _product(above) if above else ONE
    return apply("div", numerator, _product(below)) if below else numerator


def _product(factors: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: apply("mul", a, b), factors)


def raised(base: Expression, exponent: Number) -> Expression:
    """base to the absolute value of the exponent: the caller writes it above or below the line."""
    size = abs(exponent.value)
    if size == 1:
        return base
    if isinstance(base, Apply) and base.operator.role is Role.EXPONENTIAL:
        return apply("exp", scaled(replace(exponent, value=size), base.operands[0]))
    if size == 0.5:
        return apply("sqrt", base)
    # x**1.5 and not x**(3/2): a division would count as an operator.
    short = size == round(size, 3)
    return apply("pow", base, Constant(size) if short and size != int(size) else exponent.magnitude)
