"""A feature times a polynomial: t = P(x) + f(x)·Q(x) for a feature f and polynomials P and Q of low degree.

For all features at once the normal equations are matrix products: with monomials p of P and q of Q, the sums over rows
of p·f·q are F·(p·q)ᵀ, and those of f²·q·q' are F²·(q·q')ᵀ, where F holds the features. What is left of t then follows
from one small system for each feature. It covers a product of a simple feature and a linear form, as x1·(x2 + x3)/x4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.threads import available_cores, run_jobs
from symenum.expressions import Expression, apply, simplify
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.polynomial import monomials
from symenum.heads.response import Response

__all__ = ["FeatureTimesPolynomial"]

_BLOCK = 2048  # features that one thread scans between two looks at the clock
_RIDGE = 1e-13  # added to the unit diagonal of normal equations, so that dependent columns do no harm
_LARGEST = 1e75  # of |f| in units of its root mean square, so that squares of squares are finite
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_WIDTH = 64  # features, the best by normal equations, that are judged again by their residuals
_ROWS_PER_TERM = 3  # rows for each coefficient


@dataclass(frozen=True)
class FeatureTimesPolynomial:
    """`inner` and `outer`: the degrees of Q and P; P of degree 0 is the offset."""

    outer: int = 0
    inner: int = 1

    @property
    def name(self) -> str:
        return "feature times a polynomial"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        data = response.data
        outer, inner = (monomials(data.stand_ins, degree) for degree in (self.outer, self.inner))
        if (len(outer) + len(inner)) * _ROWS_PER_TERM > len(data.scan_rows):
            return []
        t, root = response.scanned()
        P, Q = (torch.stack([data.evaluate(one)[data.scan_rows] for one in terms]) for terms in (outer, inner))
        lost = _lost_by_all(features.values, P, Q, t, root, budget)
        best = torch.argsort(lost, stable=True)[:_WIDTH]
        best = best[torch.isfinite(lost[best])]
        residual = torch.tensor([_residual(features.values[i], P, Q, t, root) for i in best.tolist()])
        choice = choose(residual.double(), features.complexity[best], k, rounding_of(response))

        def fit(at: int) -> list[Candidate | None]:
            feature = features.expression(int(best[at]))
            terms = [*outer, *(apply("mul", feature, one) for one in inner)]
            return [response.fit(terms, write=partial(_written, outer, inner, feature))]

        return fit_chosen(response, choice, fit, budget)


def _written(
    outer: Sequence[Expression], inner: Sequence[Expression], feature: Expression, numbers: Sequence[Number]
) -> Expression:
    """Q·f + P with f written once, simplified."""
    P = linear_combination(numbers[: len(outer)], outer)
    Q = linear_combination(numbers[len(outer) :], inner)
    return simplify(apply("add", apply("mul", Q, feature), P))


def _lost_by_all(F: Tensor, P: Tensor, Q: Tensor, t: Tensor, root: Tensor, budget: Budget) -> Tensor:
    """The part (N,) of Σ w t² that the best P + f·Q leaves, for features F (N, n); inf where it was not computed.

    P (p, n), Q (q, n): monomials; `root` (n,): roots of the row weights; float64.
    """
    weight = root.square()
    lost = torch.full((len(F),), float("inf"), dtype=torch.float64)
    background = (P * weight) @ P.T
    across = ((P[:, None] * Q[None]) * weight).flatten(0, 1).T.contiguous()  # (n, p·q)
    inside = ((Q[:, None] * Q[None]) * weight).flatten(0, 1).T.contiguous()  # (n, q·q)
    right_P, right_Q = P @ (weight * t), (Q * (weight * t)).T.contiguous()
    size = float((weight * t.square()).sum())
    if not size > 0:
        return lost

    def work(start: int, _: Budget) -> int:
        f = F[start : start + _BLOCK]
        scale = (f.square() @ weight).sqrt()
        fine = (scale > 0) & torch.isfinite(scale) & (f.abs().amax(dim=1) <= _LARGEST * scale)
        f = torch.where(fine[:, None], f / scale[:, None], torch.zeros_like(f))
        p, q = len(P), len(Q)
        normal = torch.empty(len(f), p + q, p + q, dtype=torch.float64)
        normal[:, :p, :p] = background
        normal[:, :p, p:] = (f @ across).view(-1, p, q)
        normal[:, p:, :p] = normal[:, :p, p:].transpose(1, 2)
        normal[:, p:, p:] = (f.square() @ inside).view(-1, q, q)
        right = torch.cat([right_P.expand(len(f), p), f @ right_Q], dim=1)
        unit = normal.diagonal(dim1=1, dim2=2).clamp_min(torch.finfo(torch.float64).tiny).rsqrt()
        normal.mul_(unit[:, :, None]).mul_(unit[:, None, :])
        normal.diagonal(dim1=1, dim2=2).add_(_RIDGE)
        factor, failed = torch.linalg.cholesky_ex(normal)
        solved = torch.linalg.solve_triangular(factor, (right * unit)[:, :, None], upper=False)
        left = (1 - solved.square().sum(dim=(1, 2)) / size).clamp_min(EXACTNESS.squares)
        fine &= (failed == 0) & torch.isfinite(left)
        lost[start : start + _BLOCK] = torch.where(fine, left, torch.full_like(left, float("inf")))
        return 1

    run_jobs([partial(work, start) for start in range(0, len(F), _BLOCK)], budget, available_cores())
    return lost


def _residual(f: Tensor, P: Tensor, Q: Tensor, t: Tensor, root: Tensor) -> float:
    """The root mean square of what the best P + f·Q leaves of t, in units of the spread of t; by orthogonal columns."""
    A = (torch.cat([P, f / f.abs().max() * Q]) * root).T
    weighted = t * root
    basis, _ = torch.linalg.qr(A)
    missed = weighted - basis @ (basis.T @ weighted)
    missed = missed - basis @ (basis.T @ missed)
    spread = float((weighted - root * float((weighted * root).sum())).norm())
    return float(missed.norm()) / spread if spread > 0 else 1.0
