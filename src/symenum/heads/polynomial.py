"""Polynomials in the slots: all terms up to a degree are fitted at once, and those that come out as zero are dropped.

Nothing is searched but the degree, from 1 on. Sums of a few terms out of many are the business of `sum_of_terms`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch

from symenum.core.budget import Budget
from symenum.core.exactness import is_exact_sum, row_rounding
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting.linear import least_squares
from symenum.heads.features import Features
from symenum.heads.response import Response

__all__ = ["Polynomial", "monomials", "power"]

_SPARE_ROWS = 3  # rows beyond the unknowns: a fit without them says nothing
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_TERMS = 120  # terms of a full polynomial
_MAX_INEXACT_TERMS = 12  # terms of one that is not exact and becomes a candidate all the same


def power(base: Expression, exponent: int) -> Expression:
    """base**exponent for a whole exponent of at least 1."""
    return base if exponent == 1 else apply("pow", base, Constant(exponent))


def monomials(slots: Sequence[Expression], degree: int) -> list[Expression]:
    """All products of powers of the slots of total degree up to `degree`, by degree, 1 first."""
    exponents = sorted(_exponents(len(slots), degree), key=lambda e: (sum(e), e[::-1]))
    out: list[Expression] = []
    for exponent in exponents:
        factors = [power(slot, e) for slot, e in zip(slots, exponent, strict=True) if e]
        out.append(reduce(lambda a, b: apply("mul", a, b), factors) if factors else Constant(1))
    return out


def _exponents(count: int, degree: int) -> Iterator[tuple[int, ...]]:
    for chosen in itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(count), total) for total in range(degree + 1)
    ):
        yield tuple(chosen.count(i) for i in range(count))


@dataclass(frozen=True)
class Polynomial:
    """The polynomial of lowest degree that is exact; for y itself, also the short ones of lower degree."""

    max_degree: int = 12  # beyond this, sin(x) on (-1, 1) is a polynomial up to rounding: a fit would say nothing

    @property
    def name(self) -> str:
        return "polynomial"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        root = response.weight.sqrt()
        t = (response.t * root).numpy()
        size = float(torch.from_numpy(t).norm())
        found: list[Candidate] = []
        for degree in range(1, self.max_degree + 1):
            count = math.comb(degree + len(data.stand_ins), degree)
            if count > min(len(t) - _SPARE_ROWS, _MAX_TERMS) or budget.over():
                break
            terms = [term for term in monomials(data.stand_ins, degree) if response.suits(term)]
            count = len(terms)
            if not terms:
                continue
            A = torch.stack([data.evaluate(term) for term in terms], dim=1)
            if not bool(torch.isfinite(A).all()):
                break
            different = _different_columns(A)
            terms, A = [terms[i] for i in different], A[:, different]
            scaled = (A * root[:, None]).numpy()
            fit = least_squares(scaled, t)
            residual = float(torch.from_numpy(fit.residual).norm())
            # Rows hold the roots of weights that sum to 1: a norm over all rows is a root mean square.
            rounding = row_rounding(float((abs(scaled) @ abs(fit.coefficients)).max()) * len(t) ** 0.5)
            exact = is_exact_sum(residual, size, rounding)
            if exact or (response.is_target and len(terms) <= _MAX_INEXACT_TERMS):
                candidate = response.fit(terms)
                if candidate is not None:
                    found.append(candidate)
            if exact:
                break
        return found


def _different_columns(A: torch.Tensor) -> list[int]:
    """The first of each set of equal columns of A (rows, terms): the square of a column of 0 and 1 is the column."""
    first: dict[bytes, int] = {}
    for i, column in enumerate(A.T.contiguous().numpy()):
        first.setdefault(column.tobytes(), i)
    return list(first.values())
