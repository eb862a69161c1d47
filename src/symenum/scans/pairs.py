"""The single rows and the pairs of rows that explain a target best, beyond a background.

Matrix products exclude the pairs that cannot be among the best (`pair_tests`, `cuda_pairs`); the others are judged by
their residual vectors, with nearly all digits. Rows may be anything: features, logarithms, or y times a feature.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.threads import torch_threads
from symenum.scans.best_pairs import Pairs, bounded_slices, certified_scan, scan_on_best_device
from symenum.scans.cuda_pairs import PairScan, TwoTermPairs
from symenum.scans.pair_tests import TwoTermTest
from symenum.scans.projection import orthogonal_part_each, unit_orthogonal_part

__all__ = ["best_pairs", "best_single", "rescore_pairs", "scan_pairs"]

_TINY = 1e-300  # least norm that is divided by; a smaller B is replaced by zero


def best_single(V: Tensor, t: Tensor, background: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` best single rows of V (N, n): indices (int64) and relative residuals (float64), ascending.

    Arguments as in `best_pairs`; on the device where the tensors are.
    """
    target = _unit_target(t, background)
    C, remainder = unit_orthogonal_part(V, background)
    along = C @ target
    loss = (1 - along.square()).masked_fill_(remainder <= EXACTNESS.remainder, float("inf"))
    # Losses below `squares` are rounding. More than `width` rows may have one: the first, which are simplest, stay.
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
    """The `width` pairs of a row of V (N, n) and a row of W (M, n) that explain t (n,) best beyond the background.

    Without W: pairs of two rows of V. All tensors are float64 on the CPU, multiplied by the square roots of the row
    weights; `background` (k, n) is orthonormal. Rows inside the span of the background are left out. `device`: "cpu",
    the name of a GPU, or "auto"; see `best_pairs.run_where_it_suits`. Over budget, the best so far come back.
    """
    return scan_on_best_device(
        partial(_best_pairs, width=width, budget=budget or Budget()), V, t, background, W,
        work=len(V) * len(V if W is None else W) * len(t), device=device, head="two terms",
    )  # fmt: skip


@torch_threads(1)
def _best_pairs(V: Tensor, t: Tensor, background: Tensor, W: Tensor | None, *, width: int, budget: Budget) -> Pairs:
    """`best_pairs` on the device where the tensors are."""
    target = _unit_target(t, background)
    C, remainder = unit_orthogonal_part(V, background)
    alive_c = torch.nonzero(remainder > EXACTNESS.remainder).flatten()
    C = C[alive_c]
    D, alive_d = C, alive_c
    if W is not None:
        D, remainder = unit_orthogonal_part(W, background)
        alive_d = torch.nonzero(remainder > EXACTNESS.remainder).flatten()
        D = D[alive_d]
    i, j = scan_pairs(C, D, target, same=W is None, width=width, budget=budget)
    residual = rescore_pairs(C, D, target, i, j)
    order = torch.argsort(residual, stable=True)
    order = order[torch.isfinite(residual[order])]
    return Pairs(alive_c[i[order]], alive_d[j[order]], residual[order])


def scan_pairs(
    C: Tensor, D: Tensor, target: Tensor, *, same: bool, width: int, budget: Budget
) -> tuple[Tensor, Tensor]:
    """Indices (int64) of the `width` best pairs of unit rows C and D; only i < j if they are the `same` rows."""

    def exact(i: Tensor, j: Tensor) -> Tensor:
        return rescore_pairs(C, D, target, i, j).square()

    if C.is_cuda:
        return PairScan(TwoTermPairs(C, D, target, same)).best(exact, width, diagonal=not same, budget=budget)
    return certified_scan(TwoTermTest(C, D, target), exact, width=width, same=same, diagonal=not same, budget=budget)


def rescore_pairs(C: Tensor, D: Tensor, target: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Norms (m,) float64 of the residuals of the unit target on the pairs: by Gram–Schmidt, done twice.

    Two rows of one direction, up to rounding, are judged as one row.
    """
    out = torch.empty(len(i), dtype=torch.float64, device=C.device)
    for part in bounded_slices(len(i), C.shape[1], on_gpu=C.is_cuda):
        A, B = C[i[part]], D[j[part]]
        B = orthogonal_part_each(B, A)
        norm: Tensor = B.norm(dim=1, keepdim=True)
        B = torch.where(norm > EXACTNESS.rank, B / norm.clamp_min(_TINY), torch.zeros_like(B))
        B = orthogonal_part_each(B, A, times=1)  # again: a short B had lost digits
        residual = target.expand_as(A)
        for _ in range(2):
            residual = orthogonal_part_each(residual, A, times=1)
            residual = residual - (B * residual).sum(dim=1, keepdim=True) * B / _square_norm(B)
        out[part] = residual.norm(dim=1)
    return out


def _square_norm(rows: Tensor) -> Tensor:
    square = rows.square().sum(dim=1, keepdim=True)
    return torch.where(square > 0, square, torch.ones_like(square))


def _unit_target(t: Tensor, background: Tensor) -> Tensor:
    return unit_orthogonal_part(t[None], background)[0][0]
