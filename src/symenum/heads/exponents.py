"""What the heads with continuous exponents share: logarithms of slots, rows to work on, and exponents as people write.

A product of powers is exp(p·log x): smooth in p, so that exponents of any size come out of a fit, with as many slots as
there are, and whole ones are recognised afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Constant, Expression, apply, variables
from symenum.fitting import Number, nice_number, recognise
from symenum.heads.companions import Companions, make_companions
from symenum.heads.goal import Goal
from symenum.heads.power_factors import raised
from symenum.operators import Operator

__all__ = ["EXACT", "Bases", "fewer_rows", "make_bases", "monomial", "snapped_exponent"]

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


def make_bases(goal: Goal, operators: Sequence[Operator], *, functions: bool) -> Bases:
    """The bases on the rows that scans look at; without `functions` the only companion is 1."""
    data = goal.data
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
