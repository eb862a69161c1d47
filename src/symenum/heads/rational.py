"""Ratios, linear after multiplying out: t·Q = P is a regression of t on the terms of P and t times those of Q.

Two heads: ratios of full polynomials in the slots, and (a·f + b·g + c)/(1 + d·h) with features. The terms of P are free
of t, so combinations of t·h alone, which reproduce t without saying anything, cannot arise; and a denominator that
comes out constant or near zero on the data is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination, nice_number, plain_number, snap
from symenum.fitting.linear import Array, least_squares
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.polynomial import monomials
from symenum.heads.response import Response
from symenum.scans.pairs import best_pairs
from symenum.scans.projection import orthonormal
from symenum.scans.triples import best_triples

__all__ = ["RatioOfPolynomials", "Rational", "fit_ratio"]

ONE = Constant(1)
_PASSES = 4
_SPARE_ROWS = 3
_SMALL = 1e-3  # rows with |t| below this part of the largest count as if they had that


@dataclass(frozen=True)
class _Ratio:
    """The regression t = P c - t·Q d with row weights that make its residual that of t, relative."""

    P: Array
    Q: Array
    t: Array
    weight: Array

    @property
    def columns(self) -> Array:
        return np.concatenate([self.P, -self.t[:, None] * self.Q], axis=1)


def fit_ratio(
    response: Response, above: Sequence[Expression], below: Sequence[Expression], *, only_exact: bool = False
) -> Candidate | None:
    """The fit of t by a combination of `above` over 1 plus one of `below`; constants snapped.

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
    own = response.weight.numpy() / np.maximum(np.abs(t), _SMALL * largest) ** 2
    ratio = _Ratio(P, Q, t, own)
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
        ratio = _Ratio(P, Q, t, own / denominator**2)
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
    one = nice_number(1.0, 0.0)
    assert one is not None  # 1 is nice
    numerator = linear_combination(numbers[: len(above)], above)
    denominators = numbers[len(above) :]
    if all(number.value == 0 for number in denominators):
        return response.candidate(numerator)
    return response.candidate(apply("div", numerator, linear_combination([one, *denominators], [ONE, *below])))


@dataclass(frozen=True)
class RatioOfPolynomials:
    """P/Q in the slots, by rising degree of both together; the first that is exact up to rounding."""

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
                candidate = fit_ratio(response, monomials(slots, p), below, only_exact=True)
                if candidate is not None:
                    found.append(candidate)
            if found:
                return found
        return []


@dataclass(frozen=True)
class Rational:
    """(a·f + c)/(1 + d·h) on the simplest features, and (a·f + b·g + c)/(1 + d·h) on fewer."""

    numerators: int = 1500
    denominators: int = 600
    in_threes: int = 120
    width: int = 2048
    device: str = "cpu"  # see `placement`
    name: str = "rational"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`."""
        t, root = response.scanned()
        if len(t) < 4 + _SPARE_ROWS:
            return []
        chosen = features.up_to_affine(budget)
        chosen = chosen.take(torch.arange(min(self.numerators, len(chosen))))
        F, H = chosen.values, chosen.values[: self.denominators] * t
        rounding = rounding_of(response)
        background = orthonormal(root[None])
        pairs = best_pairs(
            F * root, t * root, background, H * root, width=self.width, budget=budget, device=self.device
        )
        choice = choose(pairs.residual, chosen.complexity[pairs.i] + chosen.complexity[pairs.j], k, rounding)

        def fit(above: Sequence[int], h: int) -> list[Candidate | None]:
            terms = [ONE, *(chosen.expression(index) for index in above)]
            return [fit_ratio(response, terms, [chosen.expression(h)])]

        out = fit_chosen(response, choice, lambda at: fit([int(pairs.i[at])], int(pairs.j[at])), budget)
        if any(response.data.is_law(candidate) for candidate in out):
            return out
        some = slice(0, self.in_threes)
        threes = best_triples(F[some] * root, t * root, background, H[some] * root, width=4 * k, budget=budget)
        complexity = chosen.complexity[threes.pair].sum(dim=1) + chosen.complexity[threes.third]
        choice = choose(threes.residual, complexity, k, rounding)
        return out + fit_chosen(
            response, choice, lambda at: fit(threes.pair[at].tolist(), int(threes.third[at])), budget
        )
