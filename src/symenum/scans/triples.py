"""The best triples of rows for a target, beyond a background: for each third row, the best pairs beside it.

With one row in the background the pair's scan finds the best two more (DESIGN.md, "The last layer as matrix products").
So all triples of a hundred rows are a hundred small scans of pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.scans.pairs import best_pairs
from symenum.scans.projection import off, orthonormal

__all__ = ["Triples", "best_triples"]


@dataclass(frozen=True)
class Triples:
    """`third` (m,): the row that the pair stands beside; the `pair` (m, 2), int64; and the residual (m,) relative to t.

    In the order of `third`, and of one third row the best first.
    """

    third: Tensor
    pair: Tensor
    residual: Tensor

    def __len__(self) -> int:
        return len(self.third)


def best_triples(
    V: Tensor,
    t: Tensor,
    background: Tensor,
    thirds: Tensor | None = None,
    *,
    width: int,
    budget: Budget,
    work: float = math.inf,
) -> Triples:
    """For each row of `thirds` (M, n) the `width` pairs of rows of V (N, n) that explain t (n,) best beside it.

    Without `thirds`: triples of rows of V, third < pair[0] < pair[1]. All are float64, on the CPU and multiplied by the
    square roots of the row weights; `background` (k, n) is orthonormal. When so much `work` is done (multiplications,
    pairs times rows), no further third row is taken.
    """
    third = [torch.empty(0, dtype=torch.int64)]
    pair = [torch.empty(0, 2, dtype=torch.int64)]
    residual = [torch.empty(0, dtype=torch.float64)]
    size, done = t.norm(), 0
    for number, row in enumerate(V[:-2] if thirds is None else thirds):
        if budget.over() or done > work:
            break
        first = number + 1 if thirds is None else 0
        done += (len(V) - (number if thirds is None else 0)) ** 2 // 2 * len(t)
        beside = orthonormal(torch.cat([background, row[None]]))
        pairs = best_pairs(V[first:], t, beside, width=width, budget=budget)
        third.append(torch.full_like(pairs.i, number))
        pair.append(torch.stack([pairs.i, pairs.j], dim=1) + first)
        # Relative to t as a whole: each third row leaves another part of it.
        residual.append(pairs.residual * (off(t, beside).norm() / size))
    return Triples(torch.cat(third), torch.cat(pair), torch.cat(residual))
