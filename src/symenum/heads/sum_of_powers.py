"""Sums of a few products of powers, t = Σ c_k·g_k·∏ x_i^p_ki, with exponents that are fitted and then recognised.

The exponents are continuous, so that eight slots and exponents of 4 or 1/2 cost no more than two slots and squares; the
coefficients are eliminated. Fits begin at many random exponents about those of the best single product of powers; most
fail, the best end in the law. The last term may have a companion out of `factor_families` as a factor g; all other g_k
are 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.seeds import torch_stream
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.fitting.linear import least_squares
from symenum.fitting.many_starts import EndPointsWithErrors, Starts, race, solve
from symenum.heads.exponents import EXACT, Bases, fewer_rows, make_bases, monomial, snapped_exponent
from symenum.heads.features import Features
from symenum.heads.response import ONE, Response
from symenum.operators import Operator

__all__ = ["SumOfPowers"]

_MAX_LOG_TERM = 60.0  # of log ∏x^p: beside e^60 = 1e26 other terms have no digit left in double precision
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MIN_ROWS, _ROWS_PER_UNKNOWN = 64, 4  # the starts look at the larger number of rows, the survivors at all scanned ones
_STARTS = 96  # random starts without functions, for each companion (1 and the slots that change their sign)
_STARTS_PER_COMPANION = 24  # random starts with functions
_STEPS = 50  # of the fit of the survivors
_SURVIVORS = 16  # starts that are fitted to the end
_SPREAD_NEAR, _SPREAD_FAR = 0.7, 1.0  # of exponents at the start: about those of the best single product, and about 0
_SMALLEST_SIZE = 1e-3  # of the median of |t|: in the logarithm smaller values count as this


@dataclass(frozen=True)
class _Sum:
    """The model of t: θ (B, terms·slots) holds the exponents; a member is the number of the last term's companion."""

    bases: Bases
    root: Tensor
    terms: int
    constant: bool

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """See `Model`."""
        logs = self.bases.logs
        P = theta.reshape(len(theta), self.terms, logs.shape[1])
        F = (P @ logs.T).clamp_(-_MAX_LOG_TERM, _MAX_LOG_TERM).exp_() * self.root  # (B, terms, n)
        F[:, -1] *= self.bases.companions.values[members]
        columns = F
        if self.constant:
            columns = torch.cat([F, self.root.expand(len(theta), 1, -1)], dim=1)

        def derivative(coefficients: Tensor) -> Tensor:
            weighted = F * coefficients[:, : self.terms, None]
            return (weighted[:, :, None] * logs.T).flatten(1, 2)

        return columns, derivative


@dataclass(frozen=True)
class SumOfPowers:
    """Sums of `terms` products of powers, with an offset if `constant`; `functions`: a companion in the last term."""

    operators: tuple[Operator, ...]
    terms: int
    constant: bool = False
    functions: bool = False

    @property
    def name(self) -> str:
        return f"sum of {self.terms} powers"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        bases = make_bases(response, self.operators, functions=self.functions)
        unknowns = self.terms * (len(bases.slots) + 1) + self.constant
        if not bases.suffice(unknowns, functions=self.functions):
            return []
        on_fewer = fewer_rows(bases, max(_MIN_ROWS, _ROWS_PER_UNKNOWN * unknowns))
        model, target = self._model(response, on_fewer)
        rough = race(model, self._starts(response, on_fewer), target, _SURVIVORS, budget)
        if float(rough.loss.min()) > EXACT:  # noise: more rows make better exponents
            model, target = self._model(response, bases)
        solved = solve(model, rough.best(_SURVIVORS), target, steps=_STEPS, budget=budget)
        return self._candidates(response, bases, solved, k, budget)

    def _starts(self, response: Response, bases: Bases) -> Starts:
        """Random exponents about those of the best single product of powers, and about 0; they follow from the seed."""
        t = response.t[bases.rows].abs()
        middle = float(t.median()) or float(t.max())  # most of t may be zero
        size = t.clamp_min(max(_SMALLEST_SIZE * middle, torch.finfo(t.dtype).tiny))
        A = torch.cat([torch.ones(len(t), 1, dtype=torch.float64), bases.logs], dim=1)
        # Not by torch.linalg.lstsq: its default driver reads memory that nobody has set (pytorch issue 187411), so that
        # the last digits of the starts, and with them the order of the finds, would differ from call to call.
        single = torch.from_numpy(least_squares(A.numpy(), size.log().numpy()).coefficients[1:])
        companions = torch.arange(len(bases.companions))
        members = (
            companions[1:].repeat_interleave(_STARTS_PER_COMPANION) if self.functions else companions.repeat(_STARTS)
        )
        generator = torch_stream(response.data.seed, self.name)
        theta = torch.randn(len(members), self.terms, len(single), generator=generator, dtype=torch.float64)
        theta[::2] = single + _SPREAD_NEAR * theta[::2]
        theta[1::2] *= _SPREAD_FAR
        return Starts(theta.flatten(1), members)

    def _model(self, response: Response, bases: Bases) -> tuple[_Sum, Tensor]:
        """The model, and its target (n,): t times the roots of the weights, of norm 1."""
        root = response.weight[bases.rows].sqrt()
        target = response.t[bases.rows] * root
        return _Sum(bases, root, self.terms, self.constant), target / target.norm()

    def _candidates(
        self, response: Response, bases: Bases, solved: EndPointsWithErrors, k: int, budget: Budget
    ) -> list[Candidate]:
        """Up to k sums with recognised exponents, in the order of their losses; the first that is a law is the last."""
        out: list[Candidate] = []
        seen: set[frozenset[Expression]] = set()
        for at in torch.argsort(solved.loss, stable=True).tolist():
            if len(seen) >= k or (seen and budget.over()):
                break
            terms = self._terms(bases, solved, at)
            if terms is None or frozenset(terms) in seen:
                continue
            seen.add(frozenset(terms))
            candidate = response.fit([ONE, *terms] if self.constant else terms)
            if candidate is not None:
                out.append(candidate)
                if response.data.is_law(candidate):
                    break
        return out

    def _terms(self, bases: Bases, solved: EndPointsWithErrors, at: int) -> list[Expression] | None:
        """The terms of one sum, each once, the simplest first; None where an exponent is not recognised.

        One order for one sum: starts that end at the same sum reach its terms in any order.
        """
        exact = float(solved.loss[at]) < EXACT
        exponents: list[float] = []
        for value in solved.starts.theta[at].tolist():
            snapped = snapped_exponent(value, exact=exact)
            if snapped is None:
                return None
            exponents.append(snapped)
        terms: list[Expression] = []
        for term in range(self.terms):
            own = exponents[term * len(bases.slots) : (term + 1) * len(bases.slots)]
            companion = bases.companions.expressions[int(solved.starts.members[at])] if term == self.terms - 1 else ONE
            terms.append(monomial(bases.slots, own, companion))
        distinct = sorted(dict.fromkeys(terms), key=lambda term: (term.complexity, str(term)))
        return [term for term in distinct if not (self.constant and term == ONE)] or None
