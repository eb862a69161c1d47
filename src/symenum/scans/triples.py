"""The triples of rows that explain a target best, beyond a background: for each third row the best pairs besides it.

With the third row added to the background, the scan of pairs finds the best two more (DESIGN.md, "The last layer as
matrix products"). So all triples of a hundred rows are a hundred small scans of pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.scans.pairs import best_pairs
from symenum.scans.projection import orthogonal_part, orthonormal

__all__ = ["Triples", "best_triples"]


@dataclass(frozen=True)
class Triples:
    """m triples, ordered by their third row, and for one third row by their residual."""

    third: Tensor  # (m,) int64
    pair: Tensor  # (m, 2) int64
    residual: Tensor  # (m,) float64, relative to the norm of t

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
    """For each row of `thirds` (M, n) the `width` pairs of rows of V (N, n) that explain t (n,) best together with it.

    Without `thirds`: triples of rows of V, third < pair[0] < pair[1]. All tensors are float64 on the CPU, multiplied by
    the square roots of the row weights; `background` (k, n) is orthonormal. The scan ends when the budget is over, or
    after more than `work` multiplications (pairs times rows).
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
        with_third = orthonormal(torch.cat([background, row[None]]))
        pairs = best_pairs(V[first:], t, with_third, width=width, budget=budget)
        third.append(torch.full_like(pairs.i, number))
        pair.append(torch.stack([pairs.i, pairs.j], dim=1) + first)
        # Relative to all of t, to compare triples: `pairs` has it relative to what the third row leaves of t.
        residual.append(pairs.residual * (orthogonal_part(t, with_third).norm() / size))
    return Triples(torch.cat(third), torch.cat(pair), torch.cat(residual))
