"""The best pairs of a scan: what comes back, and a running shortlist with a threshold, of fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["BestPairs", "Pairs", "pieces"]

_NUMBERS = 1 << 18  # in a piece: 2 MB, as a judgement holds several copies of it in every thread
_ON_GPU = 1 << 24  # where memory is plenty and each operation has its price


def pieces(count: int, rows: int, *, on_gpu: bool = False) -> Iterator[slice]:
    """Parts of `count` pairs to be judged on `rows` numbers each, whose memory is bounded."""
    step = max(1, (_ON_GPU if on_gpu else _NUMBERS) // max(1, rows))
    return (slice(start, start + step) for start in range(0, count, step))


@dataclass(frozen=True)
class Pairs:
    """Indices (m,) int64 and the residual (m,) float64 relative to what the background leaves of t, ascending."""

    i: Tensor
    j: Tensor
    residual: Tensor

    def cpu(self) -> Pairs:
        """The same on the CPU."""
        return Pairs(self.i.cpu(), self.j.cpu(), self.residual.cpu())


class BestPairs:
    """The `width` pairs (i, j) of smallest loss so far, of equal ones the first; NaN losses never enter.

    Which ones these are does not depend on the order in which they came, as long as each comes with the same loss.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.loss = torch.empty(0, dtype=torch.float64)
        self.i = torch.empty(0, dtype=torch.int64)
        self.j = torch.empty(0, dtype=torch.int64)
        self.threshold = float("inf")

    def add_tile(self, loss: Tensor, first: int, second: int) -> None:
        """Losses (a, b) of the pairs (first + row, second + column)."""
        hit = torch.nonzero(loss < self.threshold)
        if len(hit):
            self.add(loss[hit[:, 0], hit[:, 1]], hit[:, 0] + first, hit[:, 1] + second)

    def add(self, loss: Tensor, i: Tensor, j: Tensor) -> None:
        """Pairs with their losses, all (m,)."""
        if len(loss) > 4 * self._width:
            which = _smallest(loss, i, j, self._width)
            loss, i, j = loss[which], i[which], j[which]
        self.loss = torch.cat([self.loss, loss.double()])
        self.i, self.j = torch.cat([self.i, i]), torch.cat([self.j, j])
        if len(self.loss) > self._width:
            which = _smallest(self.loss, self.i, self.j, self._width)
            self.loss, self.i, self.j = self.loss[which], self.i[which], self.j[which]
            self.threshold = float(self.loss.max())


def _smallest(loss: Tensor, i: Tensor, j: Tensor, width: int) -> Tensor:
    """Where the `width` smallest losses are, int64 in no order; of those equal to the last one the first pairs."""
    edge = torch.topk(loss, width, largest=False, sorted=False).values.max()
    inside = torch.nonzero(loss < edge).flatten()
    tied = torch.nonzero(loss == edge).flatten()
    room = width - len(inside)
    if len(tied) > room:
        tied = tied[torch.argsort(j[tied], stable=True)]
        tied = tied[torch.argsort(i[tied], stable=True)][:room]
    return torch.cat([inside, tied])
