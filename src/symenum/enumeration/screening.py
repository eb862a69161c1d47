"""Many rows: scan on a few of them, judge what is left on more, the last on all (successive halving).

The scan itself is exact on the rows that it sees, so the one way to lose the best candidate is to be unlucky with them:
then more than `width` candidates fit the selection better than the best one does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["SCREEN_FROM", "SCREEN_ROWS", "screening_width", "successive_halving"]

SCREEN_FROM = 2000  # rows from which screening is the default
SCREEN_ROWS = 256
_FACTOR = 8  # in each round so many times the rows, and as many times fewer candidates


def screening_width(k: int) -> int:
    """How many candidates the scan keeps when k are wanted."""
    return max(1024, 32 * k)


def successive_halving(numbers: Tensor, rows: int, k: int, losses: Callable[[Tensor, int], Tensor]) -> Tensor:
    """The candidates (int64) that stay to the end, by their losses on all rows, ascending.

    `losses(numbers, count)` gives the losses (NaN or inf where a candidate fails) on the first `count` rows.
    """
    count = SCREEN_ROWS
    while True:
        count = min(count * _FACTOR, rows)
        loss = losses(numbers, count)
        alive = torch.nonzero(torch.isfinite(loss)).flatten()
        order = alive[torch.argsort(loss[alive], stable=True)]
        if count == rows:
            return numbers[order]
        numbers = numbers[order[: max(4 * k, len(numbers) // _FACTOR)]]
