"""Laws on rows that they were not fitted on: another table (`on_rows`), or folds of the same one (`on_folds`).

Of laws that such rows cannot tell apart the simplest is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import torch_stream
from symenum.core.target import Training
from symenum.expressions import Expression, evaluate
from symenum.fitting import refine
from symenum.fitting.fit_under_loss import refit
from symenum.fitting.losses import Loss

__all__ = ["HELD_OUT", "HeldOut", "on_folds", "on_rows"]

HELD_OUT = ("validation", "kfold")
"""Rules that look at rows that the laws were not fitted on."""
_FOLDS = 5  # the usual number: each fit keeps four fifths of the rows


@dataclass(frozen=True)
class HeldOut:
    """The loss of each law on rows that it was not fitted on.

    `rows` (laws, rows): the loss of each row, None for a loss that is no mean over rows. `weight` (rows,) sums to 1.
    Losses up to `floor` are zero up to rounding.
    """

    losses: tuple[float, ...]
    rows: Tensor | None
    weight: Tensor
    floor: float

    def select(self) -> int | None:
        """The simplest law that is as good as the best; None where no law is finite on all of these rows.

        A law is as good as the best if it is worse by at most one standard error of the difference, row by row.
        """
        losses = [max(loss, self.floor) for loss in self.losses]
        best = min(range(len(losses)), key=lambda i: losses[i])
        if losses[best] == math.inf:
            return None
        return next(i for i, loss in enumerate(losses) if loss - losses[best] <= self._error(i, best))

    def _error(self, one: int, other: int) -> float:
        """The standard error of the difference of two losses, at least what counts as a tie."""
        tie = EXACTNESS.tie * abs(max(self.losses[other], self.floor))
        if self.rows is None or self.losses[one] == math.inf or len(self.weight) < 2:
            return tie
        difference = self.rows[one] - self.rows[other]
        deviation = (difference - (difference * self.weight).sum()) * self.weight
        count = len(self.weight)
        return max(tie, math.sqrt(float(deviation.square().sum()) * count / (count - 1)))


def on_rows(laws: Sequence[Expression], held: Training, loss: Loss, floor: float) -> HeldOut:
    """The losses of laws, as they are, on held-out rows. `floor`: of these losses."""
    target = held.target
    values = [evaluate(law, held.columns).to(torch.float64) for law in laws]
    losses = tuple(loss.total(target.y, value, target.weight) for value in values)
    rows = [row for value in values if (row := loss.rows(target.y, value)) is not None]
    return HeldOut(losses, torch.stack(rows) if rows else None, target.weight, floor)


def on_folds(
    laws: Sequence[Expression], training: Training, loss: Loss, floor: float, seed: int, budget: Budget = NO_LIMIT
) -> HeldOut | None:
    """The losses of laws on each fifth of the rows in turn, their constants fitted on the other four fifths.

    `seed` decides which rows form a fifth. When the time is over: on the fifths that were done, None without any.
    """
    count = training.target.rows
    order = torch.randperm(count, generator=torch_stream(seed, "folds"))
    rows = torch.empty(len(laws), count, dtype=torch.float64)
    losses = np.zeros(len(laws))
    done: list[Tensor] = []
    for fold in order.chunk(min(_FOLDS, count)):
        if budget.over():
            break
        inside = torch.ones(count, dtype=torch.bool)
        inside[fold] = False
        refitted = _fitted_on(laws, training.at(inside.nonzero().flatten()), loss, seed, budget)
        if budget.over():  # some constants are still those of all rows
            break
        done.append(fold)
        result = on_rows(refitted, training.at(fold), loss, floor)
        losses += float(training.target.weight[fold].sum()) * np.array(result.losses)
        if result.rows is not None:
            rows[:, fold] = result.rows
    if not done:
        return None
    held = torch.cat(done).sort().values
    weight = training.target.weight[held]
    losses /= float(weight.sum())
    by_row = None if loss.rows(training.target.y, training.target.y) is None else rows[:, held]
    return HeldOut(tuple(losses.tolist()), by_row, weight / weight.sum(), floor)


def _fitted_on(
    laws: Sequence[Expression], training: Training, loss: Loss, seed: int, budget: Budget
) -> list[Expression]:
    """The laws with their constants fitted on these rows under the loss."""
    columns, target = training.columns, training.target
    if loss.is_squared:
        results = refine(laws, columns, target.y, target.weight, starts=0, integers=False, seed=seed, budget=budget)
        return [result.expression for result in results]
    return [one.expression for one in refit(laws, columns, target.y, target.weight, loss, seed=seed, budget=budget)]
