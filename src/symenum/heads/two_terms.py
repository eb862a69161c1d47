"""Two terms: a·v_i + b·w_j + a background, every pair judged with its best coefficients.

With unit rows c_i, d_j off the background, r = c·t and g = c·d (DESIGN.md, "The last layer as matrix products"):

    R² = (r_i² + r_j² - 2 g r_i r_j) / (1 - g²)

How all pairs are tested for it by matrix products stands in `pair_tests`. The kernel takes any two sets of rows and any
background; other heads use it with logarithms and with y·v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.threads import torch_threads
from symenum.expressions import Constant, Expression
from symenum.heads.best_pairs import Pairs, pieces
from symenum.heads.certified import certified_scan
from symenum.heads.device_ladder import PairScan
from symenum.heads.device_pairs import TwoTermPairs
from symenum.heads.features import Features
from symenum.heads.goal import Goal
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.pair_tests import TwoTermTest
from symenum.heads.placement import scan_where_it_suits
from symenum.heads.projection import orthonormal, project_off

__all__ = ["Pairs", "TwoTerms", "best_pairs", "best_single", "rescore_pairs", "scan_pairs"]


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
        for _ in range(2):
            B = B - (A * B).sum(dim=1, keepdim=True) * A
        norm: Tensor = B.norm(dim=1, keepdim=True)
        B = torch.where(norm > EXACTNESS.rank, B / norm.clamp_min(1e-300), torch.zeros_like(B))
        B = B - (A * B).sum(dim=1, keepdim=True) * A  # a short B was short of digits too
        residual = target.expand_as(A)
        for _ in range(2):
            residual = residual - (A * residual).sum(dim=1, keepdim=True) * A
            residual = residual - (B * residual).sum(dim=1, keepdim=True) * B / _square_norm(B)
        out[part] = residual.norm(dim=1)
    return out


def _square_norm(rows: Tensor) -> Tensor:
    square = rows.square().sum(dim=1, keepdim=True)
    return torch.where(square > 0, square, torch.ones_like(square))


def _unit_target(t: Tensor, background: Tensor) -> Tensor:
    return project_off(t[None], background)[0][0]


@dataclass(frozen=True)
class TwoTerms:
    """a·v_i + b·v_j + the terms of `background`, on the `cap` simplest features that differ by more than a·v + b."""

    background: tuple[Expression, ...] = (Constant(1),)
    cap: int = 6000
    width: int = 4096
    device: str = "cpu"  # see `placement`

    @property
    def name(self) -> str:
        return f"two terms on {len(self.background)}"

    def scan(self, features: Features, goal: Goal, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        data = goal.data
        t, root = goal.scanned()
        if len(t) <= len(self.background):
            return []
        beside = torch.stack([data.evaluate(term)[data.scan_rows] for term in self.background]) * root
        if not bool(torch.isfinite(beside).all()):  # monomials of very large numbers
            return []
        background = orthonormal(beside)
        chosen = features.up_to_affine(budget)
        chosen = chosen.take(torch.arange(min(self.cap, len(chosen))))
        rounding = rounding_of(goal)
        V = chosen.values * root
        single, residual = best_single(V, t * root, background, self.width)
        single_choice = choose(residual, chosen.complexity[single], k, rounding)
        out = fit_chosen(
            goal, single_choice, lambda at: [goal.fit((*self.background, chosen.expression(int(single[at]))))], budget
        )
        if any(data.is_law(candidate) for candidate in out):
            return out
        # A row that is exact alone is exact with any partner: those pairs would fill the shortlist and say nothing.
        partial = torch.ones(len(chosen), dtype=torch.bool)
        partial[single[residual < 1e2 * rounding]] = False
        rest = torch.nonzero(partial).flatten()
        pairs = best_pairs(V[rest], t * root, background, width=self.width, budget=budget, device=self.device)
        i, j = rest[pairs.i], rest[pairs.j]

        def fit(at: int) -> list[Candidate | None]:
            terms = (chosen.expression(int(side[at])) for side in (i, j))
            return [goal.fit((*self.background, *terms))]

        return out + fit_chosen(
            goal, choose(pairs.residual, chosen.complexity[i] + chosen.complexity[j], k, rounding), fit, budget
        )
