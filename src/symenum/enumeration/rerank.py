"""The losses of many candidates given by their numbers, on any rows: what a shortlist of another selection is worth."""

from __future__ import annotations

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.layer import apply_poisoned
from symenum.enumeration.target import Target

__all__ = ["losses_of"]

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
