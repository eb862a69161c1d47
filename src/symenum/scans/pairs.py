"""The best single rows and the best of all pairs of rows for a target, beyond a background.

Which pairs could be among the best is asked by matrix products (`pair_tests`, `device_pairs`); those are then judged by
their residual vectors, to the last digits. Any two sets of rows and any background will do: heads come with features,
with logarithms, and with y·v.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.threads import torch_threads
from symenum.scans.best_pairs import Pairs, certified_scan, pieces, scan_where_it_suits
from symenum.scans.cuda_pairs import PairScan, TwoTermPairs
from symenum.scans.pair_tests import TwoTermTest
from symenum.scans.projection import off_each, project_off

__all__ = ["best_pairs", "best_single", "rescore_pairs", "scan_pairs"]


def best_single(V: Tensor, t: Tensor, background: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The best single rows of V (N, n): indices and relative residuals, ascending. Arguments as in `best_pairs`."""
    target = _unit_target(t, background)
    C, left = project_off(V, background)
    along = C @ target
    loss = (1 - along.square()).masked_fill_(left <= EXACTNESS.left, float("inf"))
    # Exact ones are all alike here, and may be more than `width`: the first of them, the simplest, shall stay.
    which = torch.argsort(loss.clamp_min(EXACTNESS.squares), stable=True)[:width]
    which = which[torch.isfinite(loss[which])]
    residual = (target - along[which, None] * C[which]).norm(dim=1)
    order = torch.argsort(residual, stable=True)
    return which[order], residual[order]


def best_pairs(
    V: Tensor,
    t: Tensor,
    background: Tensor,
    W: Tensor | None = None,
    *,
    width: int = 4096,
    budget: Budget | None = None,
    device: str = "cpu",
) -> Pairs:
    """Pairs of a row of V (N, n) and one of W (M, n), or two of V, that explain t (n,) best beyond the background.

    All are float64, on the CPU and multiplied by the square roots of the row weights; `background` (k, n) is
    orthonormal. Rows inside the span of the background take no part. `device`: see `placement`.
    """
    return scan_where_it_suits(
        partial(_best_pairs, width=width, budget=budget or Budget()), V, t, background, W,
        work=len(V) * len(V if W is None else W) * len(t), device=device, head="two terms",
    )  # fmt: skip


@torch_threads(1)
def _best_pairs(V: Tensor, t: Tensor, background: Tensor, W: Tensor | None, *, width: int, budget: Budget) -> Pairs:
    """`best_pairs` on the device where the tensors lie."""
    target = _unit_target(t, background)
    C, left = project_off(V, background)
    alive_c = torch.nonzero(left > EXACTNESS.left).flatten()
    C = C[alive_c]
    D, alive_d = C, alive_c
    if W is not None:
        D, left = project_off(W, background)
        alive_d = torch.nonzero(left > EXACTNESS.left).flatten()
        D = D[alive_d]
    i, j = scan_pairs(C, D, target, same=W is None, width=width, budget=budget)
    residual = rescore_pairs(C, D, target, i, j)
    order = torch.argsort(residual, stable=True)
    order = order[torch.isfinite(residual[order])]
    return Pairs(alive_c[i[order]], alive_d[j[order]], residual[order])


def scan_pairs(
    C: Tensor, D: Tensor, target: Tensor, *, same: bool, width: int, budget: Budget
) -> tuple[Tensor, Tensor]:
    """Indices of the `width` best pairs of unit rows C and D (i < j if they are the `same`)."""

    def exact(i: Tensor, j: Tensor) -> Tensor:
        return rescore_pairs(C, D, target, i, j).square()

    if C.is_cuda:
        return PairScan(TwoTermPairs(C, D, target, same)).best(exact, width, diagonal=not same, budget=budget)
    return certified_scan(TwoTermTest(C, D, target), exact, width=width, same=same, diagonal=not same, budget=budget)


def rescore_pairs(C: Tensor, D: Tensor, target: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Residual norms (m,) of the unit target on the pairs, to the last digits: Gram–Schmidt, done twice.

    A pair of one direction (up to rounding) is judged as the single row that it is.
    """
    out = torch.empty(len(i), dtype=torch.float64, device=C.device)
    for part in pieces(len(i), C.shape[1], on_gpu=C.is_cuda):
        A, B = C[i[part]], D[j[part]]
        B = off_each(B, A)
        norm: Tensor = B.norm(dim=1, keepdim=True)
        B = torch.where(norm > EXACTNESS.rank, B / norm.clamp_min(1e-300), torch.zeros_like(B))
        B = off_each(B, A, times=1)  # a short B was short of digits too
        residual = target.expand_as(A)
        for _ in range(2):
            residual = off_each(residual, A, times=1)
            residual = residual - (B * residual).sum(dim=1, keepdim=True) * B / _square_norm(B)
        out[part] = residual.norm(dim=1)
    return out


def _square_norm(rows: Tensor) -> Tensor:
    square = rows.square().sum(dim=1, keepdim=True)
    return torch.where(square > 0, square, torch.ones_like(square))


def _unit_target(t: Tensor, background: Tensor) -> Tensor:
    return project_off(t[None], background)[0][0]
