"""Many rows: scan on a few of them, judge what is left on more, the last on all (successive halving)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from symenum.core.target import Target
from symenum.engine.architecture import Architecture
from symenum.engine.layer import apply_poisoned
from symenum.engine.shortlist import Pool

__all__ = ["SCREEN_FROM", "SCREEN_ROWS", "losses_of", "screening_pool", "select_rows", "successive_halving"]


# --------------------------------------------------------------------------------------------------------------------
# Many rows: scan on a few of them, judge what is left on more, the last on all (successive halving).
#
# The scan itself is exact on the rows that it sees, so the one way to lose the best candidate is to be unlucky with
# them. Where a few rows decide the mean square error (laws with poles), noise drowns the rest, and thousands of
# candidates fit nearly alike; which of them comes first on a selection is chance. So the scan keeps not a fixed
# number but all whose loss is near the best, and the rows are not drawn evenly: those far from the mean are drawn
# more often and weighted less, so that a loss on the selection estimates the loss on all rows without bias.


SCREEN_FROM = 2000  # rows from which screening is the default
SCREEN_ROWS = 256
_FACTOR = 8  # in each round so many times the rows
_ROUND = 1 << 27  # values in a round: as many candidates stay as have room with the rows of the next
# The best of M candidates fits the noise of m rows better than it should by a part of 2·ln(M)/m: 0.16 for the 1.3e9
# candidates of koza-5. What is much further off than this on the selection is hardly the best on all rows.
_SLACK = 0.25


def screening_pool(k: int, target: Target) -> Pool:
    """The pool of the scan on a selection when k candidates are wanted."""
    least = max(256, 32 * k)
    return Pool(least, target, most=max(least, _ROUND // (_FACTOR * SCREEN_ROWS)), slack=_SLACK)


def select_rows(target: Target, count: int) -> tuple[Tensor, Target]:
    """At most `count` rows (int64), drawn half evenly and half by their distance from the mean, and their target.

    Always the same rows for the same target: nothing about a result is left to chance.
    """
    if count >= target.rows:
        return torch.arange(target.rows), target
    distance = (target.y - (target.weight * target.y).sum()).square()
    spread = (target.weight * distance).sum().clamp_min(torch.finfo(torch.float64).tiny)
    chance = _chances(target.weight * (0.5 + 0.5 * distance / spread), count)
    # Systematic sampling: equal steps along the cumulated chances. Ordered by y, each part of its range has its share.
    order = torch.argsort(target.y, stable=True)
    steps = torch.arange(count, dtype=torch.float64) + 0.5
    hit = torch.searchsorted(chance[order].cumsum(0), steps).clamp_(max=target.rows - 1)
    rows = torch.unique(order[hit])
    weight = target.weight[rows] / chance[rows]
    return rows, Target(target.y[rows], weight / weight.sum())


def _chances(size: Tensor, count: int) -> Tensor:
    """Chances (rows,) of at most 1 to be among `count` rows, in proportion to `size` but for those that are certain."""
    certain = torch.zeros_like(size, dtype=torch.bool)
    while True:
        rest = size.masked_fill(certain, 0.0)
        chance = torch.where(certain, 1.0, rest * ((count - int(certain.sum())) / rest.sum()))
        if not bool((chance > 1).any()):
            return chance
        certain |= chance >= 1


def successive_halving(
    numbers: Tensor,
    target: Target,
    k: int,
    losses: Callable[[Tensor, Tensor, Target], Tensor],
    hurry: Callable[[], bool],
) -> Tensor:
    """The candidates (int64) that stay to the end, by their losses on all rows, ascending.

    `numbers` come in the order of the scan. `losses(numbers, rows, target)` gives the losses (NaN or inf where a
    candidate fails) on a selection of the rows. Once `hurry()` is true, only the first few go on.
    """
    count = SCREEN_ROWS
    while True:
        count *= _FACTOR
        if hurry():
            numbers = numbers[: 8 * k]
        # All at once where they have room: no selection is as good as all rows.
        if count >= target.rows or len(numbers) * target.rows <= _ROUND:
            count = target.rows
        loss = losses(numbers, *select_rows(target, count))
        alive = torch.nonzero(torch.isfinite(loss)).flatten()
        order = alive[torch.argsort(loss[alive], stable=True)]
        if count == target.rows:
            return numbers[order]
        room = _ROUND // min(_FACTOR * count, target.rows)
        numbers = numbers[order[: max(8 * k, room)]]


# --------------------------------------------------------------------------------------------------------------------
# The losses of many candidates given by their numbers, on any rows: what a shortlist of another selection is worth.


_COLUMNS = 1 << 23  # values of operands in memory at a time: 64 MB
_CANDIDATES = 1 << 16  # values of candidates: 512 kB, which a core keeps in its cache


def losses_of(architecture: Architecture, stand_in: Tensor, numbers: Tensor, values: Tensor, target: Target) -> Tensor:
    """The losses (float64) of the candidates `numbers` (int64) on slot values (inputs, rows); NaN where one fails.

    `stand_in` (int64) is the output that stands for each class. Candidates share operands: each of these is computed
    once, for a part of the rows at a time.
    """
    out = torch.zeros(len(numbers), dtype=torch.float64)
    blocks = list(architecture.last_layer.decode(numbers))
    if not blocks:
        return out
    classes = torch.unique(torch.cat([side for _, _, *sides in blocks for side in sides if side is not None]))
    place = torch.empty_like(stand_in)
    place[classes] = torch.arange(len(classes))
    some = max(1, _COLUMNS // len(classes))
    for start in range(0, target.rows, some):
        rows = slice(start, start + some)
        columns = architecture.values(values[:, rows], stand_in[classes])
        step = max(1, _CANDIDATES // columns.shape[1])
        for block, where, left, right in blocks:
            for part in range(0, len(where), step):
                which = slice(part, part + step)
                a = columns[place[left[which]]]
                b = None if right is None else columns[place[right[which]]]
                error = apply_poisoned(block.operator, a, b).sub_(target.y[rows]).square_()
                out[where[which]] += error @ target.weight[rows]
    return out
