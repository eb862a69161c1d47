"""Products of factors: c · ∏ x_i^p_i · ∏ f_j^q_j with up to three factors f_j out of `factor_families`.

On logarithms every exponent is linear. The list of factors is short, so that all single ones, all pairs, and all
triples of the simplest are judged; `product_of_powers` fits and recognises the exponents of the best. Factors that are
sums with coefficients of their own are not for this head, but for `powers_of_sums`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.heads.factor_families import product_factors
from symenum.heads.features import Features
from symenum.heads.head import choose
from symenum.heads.product_of_powers import damped, fit_products
from symenum.heads.response import Response
from symenum.operators import Operator
from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.projection import orthonormal
from symenum.scans.triples import best_triples

__all__ = ["ProductOfFactors"]

_SPARE_ROWS = 6  # rows beyond the exponents of the slots: three factors, and three rows that judge the fit
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_SLOTS = 8  # with so many the table has 1,940 factors for koza
_SHORTLIST = 400  # singles or pairs that a scan hands to the choice
_FACTORS_IN_PAIRS = 600  # the simplest, which are scanned in pairs
_FACTORS_IN_TRIPLES = 110  # the simplest, which are scanned in triples

Sets = list[tuple[int, ...]]


@dataclass(frozen=True)
class _Scan:
    """Logarithms of the factors times the roots of the weights (N, n), log|t| likewise (n,), and the background."""

    rows: Tensor
    complexity: Tensor
    target: Tensor
    background: Tensor

    def singles(self, k: int, budget: Budget) -> Sets:
        which, residual = best_single(self.rows, self.target, self.background, _SHORTLIST)
        return [(int(which[at]),) for at in choose(residual, self.complexity[which], k).indices]

    def pairs(self, k: int, budget: Budget) -> Sets:
        pairs = best_pairs(self.rows[:_FACTORS_IN_PAIRS], self.target, self.background, width=_SHORTLIST, budget=budget)
        choice = choose(pairs.residual, self.complexity[pairs.i] + self.complexity[pairs.j], k)
        return [(int(pairs.i[at]), int(pairs.j[at])) for at in choice.indices]

    def triples(self, k: int, budget: Budget) -> Sets:
        """For each of the simplest factors the best pairs of the others."""
        found = best_triples(self.rows[:_FACTORS_IN_TRIPLES], self.target, self.background, width=4 * k, budget=budget)
        if not len(found):
            return []
        sets = torch.cat([found.third[:, None], found.pair], dim=1)
        choice = choose(found.residual, self.complexity[sets].sum(dim=1), k)
        return [tuple(sets[at].tolist()) for at in choice.indices]


@dataclass(frozen=True)
class ProductOfFactors:
    """Products of powers of the slots and of up to three factors that the operators can write."""

    operators: tuple[Operator, ...]
    name: str = "product of factors"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        if bool((response.t == 0).any()) or len(data.stand_ins) > _MAX_SLOTS:
            return []
        t, root = response.scanned()
        weight = root.square() * damped(t)
        root = (weight / weight.sum()).sqrt()
        factors, logs = _logarithms(response, product_factors(data.stand_ins, self.operators))
        usable = [value for slot in data.stand_ins if bool(((value := data.evaluate(slot)) != 0).all())]
        background = torch.stack([torch.ones_like(t), *(value[data.scan_rows].abs().log() for value in usable)])
        if len(logs) < 3 or len(t) < len(background) + _SPARE_ROWS:
            return []
        complexity = torch.tensor([factor.complexity for factor in factors])
        scan = _Scan(logs * root, complexity, t.abs().log() * root, orthonormal(background * root))
        out: list[Candidate] = []
        for level in (scan.singles, scan.pairs, scan.triples):
            if budget.over() or any(data.is_law(candidate) for candidate in out):
                break
            out += fit_products(
                response, [tuple(factors[at] for at in chosen) for chosen in level(k, budget)], 1, budget
            )
        return out


def _logarithms(response: Response, offered: Sequence[Expression]) -> tuple[list[Expression], Tensor]:
    """The factors without a zero on any row, simplest first; log|f| (N, n) float64 on the scanned rows."""
    data = response.data
    factors: list[Expression] = []
    rows: list[Tensor] = []
    for factor in sorted(offered, key=lambda factor: factor.complexity):
        values = data.evaluate(factor)
        if bool(torch.isfinite(values).all()) and bool((values != 0).all()):
            factors.append(factor)
            rows.append(values[data.scan_rows].abs().log())
    return factors, torch.stack(rows) if rows else torch.empty(0, len(data.scan_rows), dtype=torch.float64)
