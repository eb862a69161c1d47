"""Many rows: scan some of them, judge the survivors on more, and the last survivors on all (successive halving).

The scan is exact on the rows that it sees, so the best candidate is lost only if it is not among the best there. That
happens where a few rows decide the mean square error (laws with poles), or where noise makes thousands of candidates
fit nearly alike. So the scan keeps not a fixed number of candidates but all whose loss is near the best one. And rows
far from the mean of y are drawn more often and weighted less, so that the loss on the drawn rows estimates the loss on
all rows without bias.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from symenum.core.target import Target
from symenum.engine.architecture import Architecture
from symenum.engine.layer import apply_poisoned
from symenum.engine.shortlist import Pool

__all__ = ["SCREEN_FROM", "SCREEN_ROWS", "losses_of", "screening_pool", "select_rows", "successive_halving"]


# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
SCREEN_FROM = 2000  # rows from which screening is the default
SCREEN_ROWS = 256  # rows of the scan
_ROW_GROWTH = 8  # each round judges on so many times the rows of the round before
_MIN_POOL = 256  # candidates that the scan keeps at least,
_POOL_PER_K = 32  # or so many for each of the k that are wanted
_SURVIVORS_PER_K = 8  # candidates that go on to the next round at least, for each of the k that are wanted
# The best of M candidates fits the noise of m rows better than it should by a part of 2·ln(M)/m of its loss: 0.16 for
# the 1.3e9 candidates of koza on 5 inputs and 256 rows. One that is much further from the best is hardly the best on
# all.
_SLACK = 0.25
_ROUND_VALUES = 1 << 27  # candidates times rows that a round evaluates, which bounds its time
_OPERAND_VALUES = 1 << 23  # values of operands in memory at a time: 64 MiB
_CANDIDATE_VALUES = 1 << 16  # values of candidates in memory at a time: 512 KiB, which a core keeps in its cache


def screening_pool(k: int, target: Target) -> Pool:
    """The pool of the scan on the drawn rows, for k candidates in the end."""
    least = max(_MIN_POOL, _POOL_PER_K * k)
    return Pool(least, target, most=max(least, _ROUND_VALUES // (_ROW_GROWTH * SCREEN_ROWS)), slack=_SLACK)


def select_rows(target: Target, count: int) -> tuple[Tensor, Target]:
    """The indices (int64) of at most `count` rows, and the target on them, with weights for the unequal chances.

    Half of a row's chance is its weight, the other half grows with the square of its distance from the mean of y. The
    same target gives the same rows.
    """
    if count >= target.rows:
        return torch.arange(target.rows), target
    distance = (target.y - (target.weight * target.y).sum()).square()
    spread = (target.weight * distance).sum().clamp_min(torch.finfo(torch.float64).tiny)
    chance = _chances(target.weight * (0.5 + 0.5 * distance / spread), count)
    # Systematic sampling: equal steps along the cumulated chances. With rows ordered by y all its values are covered.
    order = torch.argsort(target.y, stable=True)
    steps = torch.arange(count, dtype=torch.float64) + 0.5
    hit = torch.searchsorted(chance[order].cumsum(0), steps).clamp_(max=target.rows - 1)
    rows = torch.unique(order[hit])
    weight = target.weight[rows] / chance[rows]
    return rows, Target(target.y[rows], weight / weight.sum())


def _chances(size: Tensor, count: int) -> Tensor:
    """Each row's chance (rows,) to be among `count` drawn ones: proportional to `size`, but at most 1."""
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
    """The numbers (int64) of the candidates that survive all rounds, ordered by their losses on all rows.

    `numbers` (int64) come in the order of the scan. `losses(numbers, rows, target)` gives the losses on some rows, NaN
    or inf where a candidate fails. Once `hurry()` is true, only 8·k candidates go on.
    """
    count = SCREEN_ROWS
    while True:
        count *= _ROW_GROWTH
        if hurry():
            numbers = numbers[: _SURVIVORS_PER_K * k]
        # On all rows as soon as that is no more work than a round: no selection is as good.
        if count >= target.rows or len(numbers) * target.rows <= _ROUND_VALUES:
            count = target.rows
        loss = losses(numbers, *select_rows(target, count))
        alive = torch.nonzero(torch.isfinite(loss)).flatten()
        order = alive[torch.argsort(loss[alive], stable=True)]
        if count == target.rows:
            return numbers[order]
        room = _ROUND_VALUES // min(_ROW_GROWTH * count, target.rows)
        numbers = numbers[order[: max(_SURVIVORS_PER_K * k, room)]]


def losses_of(architecture: Architecture, stand_in: Tensor, numbers: Tensor, values: Tensor, target: Target) -> Tensor:
    """The losses (float64) of the candidates `numbers` (int64) on slot values (inputs, rows); NaN where one fails.

    `stand_in` (classes,) int64 is the output that represents each class, see `Bank`. Candidates share operands: each
    operand is computed once, on a part of the rows at a time.
    """
    out = torch.zeros(len(numbers), dtype=torch.float64)
    blocks = list(architecture.last_layer.decode(numbers))
    if not blocks:
        return out
    classes = torch.unique(torch.cat([side for _, _, *sides in blocks for side in sides if side is not None]))
    place = torch.empty_like(stand_in)
    place[classes] = torch.arange(len(classes))
    row_step = max(1, _OPERAND_VALUES // len(classes))
    for start in range(0, target.rows, row_step):
        rows = slice(start, start + row_step)
        columns = architecture.values(values[:, rows], stand_in[classes])
        step = max(1, _CANDIDATE_VALUES // columns.shape[1])
        for block, where, left, right in blocks:
            for part in range(0, len(where), step):
                which = slice(part, part + step)
                a = columns[place[left[which]]]
                b = None if right is None else columns[place[right[which]]]
                error = apply_poisoned(block.operator, a, b).sub_(target.y[rows]).square_()
                out[where[which]] += error @ target.weight[rows]
    return out
