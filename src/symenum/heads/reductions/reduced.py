"""A reduced problem: fewer slots, made of the old ones, a y with its factors and shifts taken out, and the way back.

Weights are those of y times (dy/dy')², so that a loss of the reduced problem is one of y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.target import Target
from symenum.expressions import Constant, Expression, apply, simplify
from symenum.expressions.powers import Powers, merged, power_product, powers_of
from symenum.heads.goal import Data, make_data
from symenum.heads.reductions.symmetry import Symmetry

__all__ = ["Reduced", "reduce_by"]


@dataclass(frozen=True)
class Reduced:
    """`slots` in the stand-ins of `root`, with `values` (slots, rows), and y' (rows,).

    y = outer(factor · y'), and `scale` (rows,) is dy/dy'.
    """

    root: Data
    slots: tuple[Expression, ...]
    values: Tensor
    y: Tensor
    scale: Tensor
    factor: Powers
    outer: Callable[[Expression], Expression]

    @staticmethod
    def of(data: Data) -> Reduced:
        """Nothing reduced yet."""
        values = torch.stack([data.evaluate(slot) for slot in data.stand_ins])
        y = data.target.y
        return Reduced(data, data.stand_ins, values, y, torch.ones_like(y), {}, lambda inner: inner)

    @property
    def weight(self) -> Tensor:
        """(rows,), summing to 1."""
        weight = self.root.target.weight * (self.scale / self.scale.abs().max()).square()
        return weight / weight.sum()

    def data(self) -> Data:
        """As the heads take it; candidates on it are expressions in the stand-ins of the root."""
        return make_data(self.slots, self.values, Target(self.y, self.weight), len(self.root.scan_rows), self.root.seed)

    def back(self, inner: Expression) -> Expression:
        """From an expression for y' to one for y."""
        whole = apply("mul", power_product(self.factor), inner) if self.factor else inner
        return simplify(self.outer(whole))

    def candidate(self, found: Candidate) -> Candidate | None:
        """What was found for y', judged on y."""
        return self.root.candidate(self.back(found.expression))


def reduce_by(problem: Reduced, symmetry: Symmetry, pivot: int | None = None) -> Reduced | None:
    """The problem in the invariants of the symmetry; None where a number is not finite, or no slot would stay.

    The slot of the number `pivot` goes, the others of the symmetry are joined with it.
    """
    pivot = _simplest_pivot(symmetry) if pivot is None else pivot
    step = symmetry.direction[symmetry.members.index(pivot)]
    degree = symmetry.degree / step
    slots, values = list(problem.slots), list(problem.values)
    for place, other in zip(symmetry.members, symmetry.direction, strict=True):
        if place != pivot:
            powers = _invariant(step, other)
            slots[place], values[place] = _joined(problem, symmetry.scaling, (place, pivot), powers)
    del slots[pivot], values[pivot]
    if not slots or len(set(slots)) < len(slots):
        return None
    base, column = problem.slots[pivot], problem.values[pivot]
    y, scale, factor, outer = problem.y, problem.scale, problem.factor, problem.outer
    if degree and symmetry.scaling:
        power = column ** float(degree)
        y, scale = y / power, scale * power
        factor = merged((factor, Fraction(1)), (powers_of(base), degree))
    elif degree:
        y, factor, outer = y - float(degree) * column, {}, _shifted(problem, float(degree), base)
    reduced = Reduced(problem.root, tuple(slots), torch.stack(values), y, scale, factor, outer)
    fine = all(bool(torch.isfinite(part).all()) for part in (reduced.values, y, scale, reduced.weight))
    return reduced if fine and bool((y != y[0]).any()) else None


def _simplest_pivot(symmetry: Symmetry) -> int:
    """The one whose exponents come out smallest and whole."""

    def cost(at: int) -> tuple[int, int, int]:
        step = symmetry.direction[at]
        return (symmetry.degree / step).denominator, abs(step), at

    return symmetry.members[min(range(len(symmetry.members)), key=cost)]


def _invariant(step: int, other: int) -> tuple[int, int]:
    """Exponents of a slot and of the pivot that the symmetry leaves alone, the slot's above zero."""
    ratio = Fraction(-other, step)
    return ratio.denominator, ratio.numerator


def _joined(
    problem: Reduced, scaling: bool, places: tuple[int, int], powers: tuple[int, int]
) -> tuple[Expression, Tensor]:
    """The product of two slots to these powers, or their sum with these factors."""
    slots = [problem.slots[place] for place in places]
    columns = [problem.values[place] for place in places]
    if scaling:
        parts = [(powers_of(slot), Fraction(power)) for slot, power in zip(slots, powers, strict=True)]
        return power_product(merged(*parts)), columns[0] ** powers[0] * columns[1] ** powers[1]
    first, second = (
        slot if abs(power) == 1 else apply("mul", Constant(abs(power)), slot)
        for slot, power in zip(slots, powers, strict=True)
    )
    return apply("add" if powers[1] > 0 else "sub", first, second), powers[0] * columns[0] + powers[1] * columns[1]


def _shifted(problem: Reduced, degree: float, base: Expression) -> Callable[[Expression], Expression]:
    size = base if abs(degree) == 1 else apply("mul", Constant(abs(degree)), base)
    return lambda inner: problem.back(apply("add" if degree > 0 else "sub", inner, size))
