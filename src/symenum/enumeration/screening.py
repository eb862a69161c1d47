"""Many rows: scan on a few of them, judge what is left on more, the last on all (successive halving).

The scan itself is exact on the rows that it sees, so the one way to lose the best candidate is to be unlucky with them:
then more than `screening_width` candidates fit the selection better than the best one does. The rows are therefore not
drawn evenly. In heavy-tailed data a few rows far from the mean decide the mean square error, and they are drawn more
often and weighted less, so that a loss on the selection estimates the loss on all rows without bias.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from symenum.enumeration.target import Target

__all__ = ["SCREEN_FROM", "SCREEN_ROWS", "screening_width", "select_rows", "successive_halving"]

SCREEN_FROM = 2000  # rows from which screening is the default
SCREEN_ROWS = 256
_FACTOR = 8  # in each round so many times the rows, and as many times fewer candidates


def screening_width(k: int) -> int:
    """How many candidates the scan keeps when k are wanted."""
    return max(4096, 64 * k)


def select_rows(target: Target, count: int) -> tuple[Tensor, Target]:
    """At most `count` rows (int64), half drawn evenly and half by their distance from the mean, and their target.

    Always the same rows for the same target: nothing about a result is left to chance.
    """
    if count >= target.rows:
        return torch.arange(target.rows), target
    distance = (target.y - (target.weight * target.y).sum()).square()
    spread = (target.weight * distance).sum().clamp_min(torch.finfo(torch.float64).tiny)
    chance = target.weight * (0.5 + 0.5 * distance / spread)
    chance = chance / chance.sum()
    # Systematic sampling: `count` equal steps along the cumulated chances; a row wider than a step is hit repeatedly.
    steps = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    hit = torch.searchsorted(chance.cumsum(0), steps).clamp_(max=target.rows - 1)
    rows, times = torch.unique(hit, return_counts=True)
    weight = target.weight[rows] * times / chance[rows]
    return rows, Target(target.y[rows], weight / weight.sum())


def successive_halving(
    numbers: Tensor, target: Target, k: int, losses: Callable[[Tensor, Tensor, Target], Tensor]
) -> Tensor:
    """The candidates (int64) that stay to the end, by their losses on all rows, ascending.

    `losses(numbers, rows, target)` gives the losses (NaN or inf where a candidate fails) on a selection of the rows.
    """
    count = SCREEN_ROWS
    while True:
        count *= _FACTOR
        loss = losses(numbers, *select_rows(target, count))
        alive = torch.nonzero(torch.isfinite(loss)).flatten()
        order = alive[torch.argsort(loss[alive], stable=True)]
        if count >= target.rows:
            return numbers[order]
        numbers = numbers[order[: max(8 * k, len(numbers) // _FACTOR)]]
