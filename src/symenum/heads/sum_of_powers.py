"""Sums of a few products of powers, t = Σ c_k·g_k·∏ x_i^p_ki, with exponents that are fitted and then recognised.

The exponents are continuous, so that eight slots and exponents of 4 or 1/2 cost no more than two slots and squares; the
coefficients are eliminated. Many random starts around the best single product of powers, most of which fail, end in the
law or in the best sums of that shape. One term may have a function of the slots as a factor g (`companions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.seeds import torch_stream
from symenum.expressions import Constant, Expression
from symenum.expressions.candidate import Candidate
from symenum.fitting.linear import least_squares
from symenum.fitting.many_starts import Solved, Starts, race, solve
from symenum.heads.exponents import EXACT, Bases, fewer_rows, make_bases, monomial, snapped_exponent
from symenum.heads.features import Features
from symenum.heads.response import Response
from symenum.operators import Operator

__all__ = ["SumOfPowers"]

ONE = Constant(1)
_ROWS, _ROWS_PER_UNKNOWN = 64, 4  # for the starts, at least; survivors see all scanned rows
_STARTS = 96
_STARTS_EACH = 24  # for each companion
_STEPS = 50
_SURVIVORS = 16
_NEAR, _FAR = 0.7, 1.0  # spread of the exponents at the start: about those of the best single product, and about 0
_LARGEST = 60.0  # of an exponent of e
_SMALL = 1e-3  # of the median: values of t nearer to zero count as this much in the logarithm


@dataclass(frozen=True)
class _Sum:
    """The model: θ (B, terms·slots), members say which companion the last term has."""

    bases: Bases
    root: Tensor
    terms: int
    constant: bool

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """See `Model`."""
        logs = self.bases.logs
        P = theta.reshape(len(theta), self.terms, logs.shape[1])
        F = (P @ logs.T).clamp_(-_LARGEST, _LARGEST).exp_() * self.root  # (B, terms, n)
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
    """Sums of `terms` products of powers, with a constant if `constant`; with `functions`, a companion in one term."""

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
        few = fewer_rows(bases, max(_ROWS, _ROWS_PER_UNKNOWN * unknowns))
        model, target = self._model(response, few)
        rough = race(model, self._starts(response, few), target, _SURVIVORS, budget)
        if float(rough.loss.min()) > EXACT:  # noise: more rows make better exponents
            model, target = self._model(response, bases)
        solved = solve(model, rough.best(_SURVIVORS), target, steps=_STEPS, budget=budget)
        return self._candidates(response, bases, solved, k, budget)

    def _starts(self, response: Response, bases: Bases) -> Starts:
        """Random exponents about those of the best single product of powers, and about 0; they follow from the seed."""
        t = response.t[bases.rows].abs()
        middle = float(t.median()) or float(t.max())  # most of t may be zero
        size = t.clamp_min(max(_SMALL * middle, torch.finfo(t.dtype).tiny))
        A = torch.cat([torch.ones(len(t), 1, dtype=torch.float64), bases.logs], dim=1)
        # Not by torch.linalg.lstsq: its default driver reads memory that nobody has set (pytorch issue 187411), so that
        # the last digits of the starts, and with them the order of the finds, would differ from call to call.
        single = torch.from_numpy(least_squares(A.numpy(), size.log().numpy()).coefficients[1:])
        companions = torch.arange(len(bases.companions))
        members = companions[1:].repeat_interleave(_STARTS_EACH) if self.functions else companions.repeat(_STARTS)
        generator = torch_stream(response.data.seed, self.name)
        theta = torch.randn(len(members), self.terms, len(single), generator=generator, dtype=torch.float64)
        theta[::2] = single + _NEAR * theta[::2]
        theta[1::2] *= _FAR
        return Starts(theta.flatten(1), members)

    def _model(self, response: Response, bases: Bases) -> tuple[_Sum, Tensor]:
        """The model, and what it is to fit."""
        root = response.weight[bases.rows].sqrt()
        target = response.t[bases.rows] * root
        return _Sum(bases, root, self.terms, self.constant), target / target.norm()

    def _candidates(self, response: Response, bases: Bases, solved: Solved, k: int, budget: Budget) -> list[Candidate]:
        """The sums with recognised exponents, those that fit best first; a sum that is exact ends it."""
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

    def _terms(self, bases: Bases, solved: Solved, at: int) -> list[Expression] | None:
        """The terms of one sum, each once, the simplest first; None where an exponent is not to be recognised.

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
            mine = exponents[term * len(bases.slots) : (term + 1) * len(bases.slots)]
            companion = bases.companions.expressions[int(solved.starts.members[at])] if term == self.terms - 1 else ONE
            terms.append(monomial(bases.slots, mine, companion))
        distinct = sorted(dict.fromkeys(terms), key=lambda term: (term.complexity, str(term)))
        return [term for term in distinct if not (self.constant and term == ONE)] or None
