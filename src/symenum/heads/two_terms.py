"""Two terms: a·v_i + b·w_j + a background, every pair judged with its best coefficients.

With unit rows c_i, d_j off the background, r = c·t and g = c·d (DESIGN.md, "The last layer as matrix products"):

    R² = (r_i² + r_j² - 2 g r_i r_j) / (1 - g²)

How the best of all pairs are found stands in `scans.pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from symenum.core.budget import Budget
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.response import ONE, Response
from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.projection import orthonormal

__all__ = ["TwoTerms"]

_EXACT_ALONE = 1e2  # times the rounding of t: a single feature with a smaller residual is exact


@dataclass(frozen=True)
class TwoTerms:
    """a·v_i + b·v_j + a combination of the terms of `background`, on the `cap` simplest features up to a·v + b.

    `counts`: whether single features (1), pairs (2) or both are candidates. `width`: how many of each a scan hands to
    the choice. `device`: see `AllHeads`.
    """

    background: tuple[Expression, ...] = (ONE,)
    cap: int = 6000
    counts: tuple[int, ...] = (1, 2)
    width: int = 4096
    device: str = "cpu"

    @property
    def name(self) -> str:
        return f"two terms on {len(self.background)}"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        data = response.data
        t, root = response.scanned()
        if len(t) <= len(self.background):
            return []
        beside = tuple(term for term in self.background if response.suits(term))
        background = torch.zeros(0, len(t), dtype=torch.float64)
        if beside:
            background = torch.stack([data.evaluate(term)[data.scan_rows] for term in beside]) * root
        if not bool(torch.isfinite(background).all()):  # monomials of very large numbers
            return []
        background = orthonormal(background)
        chosen = features.of_dimension(response.dimension_of_terms).up_to_affine(budget)
        if not len(chosen):
            return []
        chosen = chosen.take(torch.arange(min(self.cap, len(chosen))))
        rounding = rounding_of(response)
        V = chosen.values * root
        single, residual = best_single(V, t * root, background, self.width)
        out: list[Candidate] = []
        if 1 in self.counts:
            single_choice = choose(residual, chosen.complexity[single], k, rounding)
            out = fit_chosen(
                response,
                single_choice,
                lambda at: [response.fit((*beside, chosen.expression(int(single[at]))))],
                budget,
            )
        if 2 not in self.counts or any(data.is_law(candidate) for candidate in out):
            return out
        # A feature that is exact alone is exact with any partner: those pairs would fill the shortlist and say nothing.
        inexact = torch.ones(len(chosen), dtype=torch.bool)
        inexact[single[residual < _EXACT_ALONE * rounding]] = False
        rest = torch.nonzero(inexact).flatten()
        pairs = best_pairs(V[rest], t * root, background, width=self.width, budget=budget, device=self.device)
        i, j = rest[pairs.i], rest[pairs.j]

        def fit(at: int) -> list[Candidate | None]:
            terms = (chosen.expression(int(side[at])) for side in (i, j))
            return [response.fit((*beside, *terms))]

        return out + fit_chosen(
            response, choose(pairs.residual, chosen.complexity[i] + chosen.complexity[j], k, rounding), fit, budget
        )
