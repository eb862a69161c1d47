"""Ratios t = P/Q, linear after multiplying out: t = P - t·(Q - 1) is a regression on terms of P and t times terms of Q.

Two heads: ratios of full polynomials in the slots, and (a·f + b·g + c)/(1 + d·h) with features f, g, h. P has a term
free of t at least, since combinations of t·h alone can reproduce t identically (h₁ - h₂ constant) and say nothing; a
denominator that is near zero on a row is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination, plain_number, snap
from symenum.fitting.linear import Array, least_squares
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.polynomial import monomials
from symenum.heads.response import ONE, UNIT, Response
from symenum.scans.pairs import best_pairs
from symenum.scans.projection import orthonormal
from symenum.scans.triples import best_triples

__all__ = ["RatioOfPolynomials", "Rational"]

_SPARE_ROWS = 3  # rows beyond the unknowns: a fit without them says nothing
_UNKNOWNS = 4  # a, b, c and d of the head with features
_SMALLEST_SIZE = 1e-3  # of max|t|: rows are weighted by 1/t², and smaller ones count as if |t| were this
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_PASSES = 4  # of the iteration for the row weights


@dataclass(frozen=True)
class _Ratio:
    """The regression t = P c - t·Q d with P (n, p), Q (n, q) and t (n,).

    The row weights (n,) make its residual that of t itself, relative to |t|.
    """

    P: Array
    Q: Array
    t: Array
    weight: Array

    @property
    def columns(self) -> Array:
        return np.concatenate([self.P, -self.t[:, None] * self.Q], axis=1)


def _fit_ratio(
    response: Response, above: Sequence[Expression], below: Sequence[Expression], *, only_exact: bool = False
) -> Candidate | None:
    """The fit of t by a combination of the terms `above` over 1 plus one of the terms `below`; constants snapped.

    None where a term is not finite or the denominator is near zero on a row, and with `only_exact` where the fit is not
    exact up to rounding.

    Rows are weighted by 1/|Q|, found by iteration (Sanathanan and Koerner), so that the residual is that of t, and by
    1/|t|, since ratios range over decades.
    """
    data = response.data
    P = torch.stack([data.evaluate(term) for term in above], dim=1)
    Q = torch.stack([data.evaluate(term) for term in below], dim=1)
    if not bool(torch.isfinite(P).all() and torch.isfinite(Q).all()):
        return None
    ratio = _iterate(P.numpy(), Q.numpy(), response)
    if ratio is None:
        return None
    root = np.sqrt(ratio.weight)
    free = least_squares(ratio.columns * root[:, None], ratio.t * root).coefficients
    if only_exact and not _relative_error(ratio, free, response.weight.numpy()) <= EXACTNESS.law:
        return None
    snapped = snap(ratio.columns, ratio.t, ratio.weight)
    plain = [plain_number(float(value)) for value in free]
    return response.prefer_snapped(
        _judge(response, snapped.numbers, above, below), _judge(response, plain, above, below), len(above) + len(below)
    )


def _iterate(P: Array, Q: Array, response: Response) -> _Ratio | None:
    t = response.t.numpy()
    largest = float(np.abs(t).max())
    if largest == 0.0:
        return None
    base = response.weight.numpy() / np.maximum(np.abs(t), _SMALLEST_SIZE * largest) ** 2
    ratio = _Ratio(P, Q, t, base)
    for _ in range(_PASSES):
        root = np.sqrt(ratio.weight)
        with np.errstate(over="ignore", invalid="ignore"):
            columns = ratio.columns * root[:, None]
        if not np.isfinite(columns).all():  # monomials of very large numbers
            return None
        coefficients = least_squares(columns, t * root).coefficients
        denominator = 1 + Q @ coefficients[P.shape[1] :]
        if np.abs(denominator).min() <= EXACTNESS.fitted * np.abs(denominator).max():
            return None
        ratio = _Ratio(P, Q, t, base / denominator**2)
    return ratio


def _relative_error(ratio: _Ratio, coefficients: Array, weight: Array) -> float:
    count = ratio.P.shape[1]
    denominator = 1 + ratio.Q @ coefficients[count:]
    if np.abs(denominator).min() <= EXACTNESS.fitted * np.abs(denominator).max():
        return math.inf  # a pole on a row: no fit
    fitted = (ratio.P @ coefficients[:count]) / denominator
    error, size = (float(np.average(values**2, weights=weight)) for values in (fitted - ratio.t, ratio.t))
    return math.sqrt(error / size)


def _judge(
    response: Response, numbers: Sequence[Number], above: Sequence[Expression], below: Sequence[Expression]
) -> Candidate | None:
    numerator = linear_combination(numbers[: len(above)], above)
    denominators = numbers[len(above) :]
    if all(number.value == 0 for number in denominators):
        return response.candidate(numerator)
    return response.candidate(apply("div", numerator, linear_combination([UNIT, *denominators], [ONE, *below])))


@dataclass(frozen=True)
class RatioOfPolynomials:
    """P/Q with full polynomials in the slots, by rising sum of both degrees; the first that are exact."""

    max_numerator: int = 8
    max_denominator: int = 8
    max_total: int = 10  # beyond this, exp(x) is a ratio up to rounding: a fit would say nothing
    max_slots: int = 3
    name: str = "ratio of polynomials"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        slots = response.data.stand_ins
        if len(slots) > self.max_slots:
            return []
        for total in range(2, self.max_total + 1):
            found: list[Candidate] = []
            for q in range(max(1, total - self.max_numerator), min(total, self.max_denominator) + 1):
                p = total - q
                unknowns = math.comb(p + len(slots), p) + math.comb(q + len(slots), q) - 1
                if unknowns > len(response.t) - _SPARE_ROWS or budget.over():
                    continue
                below = monomials(slots, q)[1:]
                candidate = _fit_ratio(response, monomials(slots, p), below, only_exact=True)
                if candidate is not None:
                    found.append(candidate)
            if found:
                return found
        return []


@dataclass(frozen=True)
class Rational:
    """(a·f + c)/(1 + d·h) on the simplest features, or with two features `above` (a·f + b·g + c)/(1 + d·h) on fewer.

    `numerators` f, `denominators` h, `in_threes` of each for three features; `width` pairs are handed to the choice.
    `device`: see `AllHeads`.
    """

    above: int = 1
    numerators: int = 1500
    denominators: int = 600
    in_threes: int = 120
    width: int = 2048
    device: str = "cpu"
    name: str = "rational"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        t, root = response.scanned()
        if len(t) < _UNKNOWNS + _SPARE_ROWS:
            return []
        chosen = features.up_to_affine(budget)
        chosen = chosen.take(torch.arange(min(self.numerators, len(chosen))))
        F, H = chosen.values, chosen.values[: self.denominators] * t
        background = orthonormal(root[None])
        if self.above == 1:
            pairs = best_pairs(
                F * root, t * root, background, H * root, width=self.width, budget=budget, device=self.device
            )
            numerators, h, residual = pairs.i[:, None], pairs.j, pairs.residual
        else:
            some = slice(0, self.in_threes)
            threes = best_triples(F[some] * root, t * root, background, H[some] * root, width=4 * k, budget=budget)
            numerators, h, residual = threes.pair, threes.third, threes.residual
        complexity = chosen.complexity[numerators].sum(dim=1) + chosen.complexity[h]

        def fit(at: int) -> list[Candidate | None]:
            terms = [ONE, *(chosen.expression(index) for index in numerators[at].tolist())]
            return [_fit_ratio(response, terms, [chosen.expression(int(h[at]))])]

        return fit_chosen(response, choose(residual, complexity, k, rounding_of(response)), fit, budget)
