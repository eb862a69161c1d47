"""Targets: what a part of a law would have to be, t = g⁻¹(y, a) for one, two and more inverse steps.

A target is what some steps leave of y: log(y), (y - a)/b, log(y/a - b). A scan compares targets with functions up to
scale and offset: so of targets that are multiples of each other, up to an offset, there is one, the smallest. Its size
is the number of operators of the law around it.

Row weights of a target are (dy/dt)² times those of y, so that to first order the residual of a fit of t ranks like the
loss on y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import is_flat
from symenum.engine.distinct import representatives
from symenum.expressions import Expression
from symenum.heads.features import SAME_DIRECTION, Features, directions
from symenum.heads.inverse_steps import (
    Step,
    function_steps,
    joining_steps,
    monotone_step,
    power_steps,
    reciprocal_step,
    subtraction,
)
from symenum.heads.transforms import LARGEST_RESPONSE
from symenum.operators import Abilities, Operator
from symenum.operators.traits import ADDITIVE

__all__ = ["Targets", "build_targets", "inverse_steps"]

_AT_ONCE = 1 << 16  # targets that a step is taken from between two looks at the clock


@dataclass(frozen=True)
class Targets:
    """`values` (M, rows), `slope` = |dy/dt| (M, rows) and `size` (M,) int64, the smallest first; y itself is target 0.

    `step` (M,) int64: the number of the last of the `steps` to a target, and `parent` (M,) int64: where it was taken.
    """

    values: Tensor
    slope: Tensor
    size: Tensor
    parent: Tensor
    step: Tensor
    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.values)

    def last_step(self, number: int) -> Step | None:
        """The last step to a target; None for y."""
        return None if number == 0 else self.steps[int(self.step[number])]

    def back(self, number: int, inner: Expression) -> Expression:
        """The law for y of a law for that target."""
        while (step := self.last_step(number)) is not None:
            inner = step.back(inner)
            number = int(self.parent[number])
        return inner

    def on(self, number: int, y: Tensor, evaluate: Callable[[Expression], Tensor]) -> tuple[Tensor, Tensor]:
        """A target's values and slope (rows,) on other rows: those of y, on which `evaluate` has values of parts."""
        step = self.last_step(number)
        if step is None:
            return y, torch.ones_like(y)
        t, slope = self.on(int(self.parent[number]), y, evaluate)
        step = step.on(evaluate)
        new = step.undo(t)
        return new, slope * step.slope(t, new)

    def joined(self, others: Sequence[Targets]) -> Targets:
        """These and other targets by the same steps, which may have these for parents."""
        every = (self, *others)
        return Targets(
            torch.cat([one.values for one in every]),
            torch.cat([one.slope for one in every]),
            torch.cat([one.size for one in every]),
            torch.cat([one.parent for one in every]),
            torch.cat([one.step for one in every]),
            self.steps,
        )

    def take(self, which: Tensor) -> Targets:
        """The targets of these numbers (m,) int64, whose parents are numbered as before."""
        return Targets(
            self.values[which], self.slope[which], self.size[which], self.parent[which], self.step[which], self.steps
        )


def inverse_steps(operators: Sequence[Operator], parts: Features) -> tuple[Step, ...]:
    """All steps that the operators and parts allow, the smallest first."""
    able = Abilities(tuple(operators))
    steps = [*function_steps(able)]
    steps += [step for operator in operators if (step := monotone_step(operator)) is not None]
    if able.quotients:
        steps.append(reciprocal_step())
    for at, a in enumerate(parts.values):
        part = parts.expression(at)
        if not able.roles.isdisjoint(ADDITIVE):
            steps.append(subtraction(part, a))
        if bool((a != 0).all()):
            steps += [*joining_steps(able, part, a), *power_steps(able, part, a)]
    return tuple(sorted(steps, key=lambda step: step.size))


def build_targets(y: Tensor, steps: Sequence[Step], limit: int, budget: Budget) -> Targets:
    """About `limit` targets of y (rows,) float64, the smallest. CutShortError where the budget is over before."""
    none = torch.zeros(1, dtype=torch.int64)
    targets = Targets(y[None], torch.ones_like(y)[None], none, none, none, tuple(steps))
    size = 0
    while len(targets) < limit:
        size += 1
        made = list(_of_size(targets, size, limit - len(targets), budget))
        if not made and size > max((step.size for step in steps), default=0) + int(targets.size[-1]):
            break
        before = len(targets)
        targets = _distinct(targets.joined(made), before, limit, budget)
    return targets


def _of_size(targets: Targets, size: int, room: int, budget: Budget) -> Iterator[Targets]:
    """The targets that one step makes of smaller ones; about as many as there is room for, those of small steps."""
    count = 0
    for number, step in enumerate(targets.steps):
        parents = torch.nonzero(targets.size == size - step.size).flatten()
        for some in torch.split(parents, _AT_ONCE):
            budget.check()
            if len(some) and count < 2 * room:  # some of them are equal to others
                made = _stepped(targets, some, step, number)
                count += len(made)
                yield made


def _stepped(targets: Targets, parents: Tensor, step: Step, number: int) -> Targets:
    t = targets.values[parents]
    able = torch.nonzero(step.applies(t)).flatten()
    t, parents = t[able], parents[able]
    made = step.undo(t)
    slope = step.slope(t, made) * targets.slope[parents]
    which = torch.nonzero(_usable(made, slope)).flatten()
    size = targets.size[parents[which]] + step.size
    return replace(
        targets,
        values=made[which],
        slope=slope[which],
        size=size,
        parent=parents[which],
        step=torch.full_like(size, number),
    )


def _usable(t: Tensor, slope: Tensor) -> Tensor:
    """Which targets (m, rows) are finite, of moderate size, not constant, and matter to y."""
    largest = t.abs().amax(dim=1)
    finite = torch.isfinite(t).all(dim=1) & (slope > 0).any(dim=1) & ~torch.isnan(slope).any(dim=1)
    return finite & (largest < LARGEST_RESPONSE) & (largest > 1 / LARGEST_RESPONSE) & ~is_flat(t)


def _distinct(targets: Targets, old: int, limit: int, budget: Budget) -> Targets:
    """Of targets that are multiples of each other, but for an offset, the first; at most `limit`, or the `old` ones."""
    alive, marks = directions(targets.values, budget, affine=True)
    living = torch.nonzero(alive).flatten()
    leader = representatives(marks, torch.arange(len(living)), SAME_DIRECTION)
    kept = living[leader == torch.arange(len(living))]
    return targets.take(kept[: max(old, limit)])
