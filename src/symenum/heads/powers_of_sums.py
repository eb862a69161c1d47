"""Products of powers of sums, t = c·∏ x_i^p_i · ∏ (1 + a_j·g_j·∏ x_i^q_ji)^r_j, with everything but the shape fitted.

On logarithms c, p and r are linear and are eliminated; a and q are found from many random starts. Factors such as
sqrt(1 - v²/c²), (m₁r₁ + m₂r₂)/(m₁ + m₂) or 1/(1 + uv/c²) come out with any number of slots and any exponents. The last
sum may hold a companion g out of `factor_families`; all other g_j are 1. `product_of_powers` then fits and recognises
the outer exponents and the constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.seeds import torch_stream
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination, plain_number, recognise
from symenum.fitting.many_starts import EndPointsWithErrors, Starts, race, solve
from symenum.heads.exponents import EXACT, Bases, fewer_rows, make_bases, monomial, snapped_exponent
from symenum.heads.features import Features
from symenum.heads.product_of_powers import damped, fit_products
from symenum.heads.response import ONE, UNIT, Response
from symenum.operators import Operator
from symenum.scans.projection import orthogonal_part, orthonormal

__all__ = ["PowersOfSums"]

_MAX_LOG_TERM = 60.0  # of log|a·∏x^q|: beside e^60 = 1e26 the 1 of the sum has no digit left in double precision
_MAX_LOG_CONSTANT = 460.0  # of log|a|: e^460 = 1e200, the largest coefficient that `Response.fit` writes
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MIN_ROWS, _ROWS_PER_UNKNOWN = 80, 5  # fits look at the larger number of rows
_STARTS = 128  # random starts without a companion
_STARTS_PER_COMPANION = 32  # random starts of each companion
_STEPS = 50  # of the fit of the survivors
_SURVIVORS = 24  # starts that are fitted to the end
_FIRST_SIZE = 0.7  # largest |a·g·∏x^q| at the start: below 1, so that 1 - 0.7 > 0 on all rows


@dataclass(frozen=True)
class _Logarithm:
    """The model of log|t|: θ (B, sums·(1 + slots)) holds log|a| and q of each sum.

    A member is a number whose lowest bits are the signs of a (1: negative), and the rest the number of the companion.
    `background` (b, n) is orthonormal: 1 and the logarithms of the slots, weighted; all columns are projected off it.
    """

    bases: Bases
    root: Tensor
    background: Tensor
    sums: int

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """See `Model`."""
        logs = torch.cat([torch.ones(len(self.root), 1, dtype=torch.float64), self.bases.logs], dim=1)
        inside = theta.reshape(len(theta), self.sums, logs.shape[1])
        M = (inside @ logs.T).clamp_(-_MAX_LOG_TERM, _MAX_LOG_TERM).exp_() * _signs(members, self.sums)[..., None]
        M[:, -1] *= self.bases.companions.values[members >> self.sums]
        slope = M / (1 + M) * self.root
        columns = orthogonal_part(torch.log((1 + M).abs()) * self.root, self.background, times=1)

        def derivative(coefficients: Tensor) -> Tensor:
            weighted = slope * coefficients[..., None]
            return orthogonal_part((weighted[:, :, None] * logs.T).flatten(1, 2), self.background, times=1)

        return columns, derivative


def _signs(members: Tensor, sums: int) -> Tensor:
    """±1 (B, sums): the lowest bits of a member's number."""
    bits = torch.stack([(members >> place) & 1 for place in range(sums)], dim=1)
    return (1 - 2 * bits).to(torch.float64)


@dataclass(frozen=True)
class PowersOfSums:
    """Products of powers of the slots and of `sums` (1 or 2) powers of sums; `functions`: a companion in the last."""

    operators: tuple[Operator, ...]
    sums: int
    functions: bool = False

    @property
    def name(self) -> str:
        return f"powers of {self.sums} sums"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        if bool((response.t == 0).any()):
            return []
        bases = make_bases(response, self.operators, functions=self.functions)
        unknowns = (self.sums + 1) * (len(bases.slots) + 1) + self.sums
        if not bases.suffice(unknowns, functions=self.functions):
            return []
        bases = fewer_rows(bases, max(_MIN_ROWS, _ROWS_PER_UNKNOWN * unknowns))
        model, target = self._model(response, bases)
        rough = race(model, self._starts(response, bases), target, _SURVIVORS, budget)
        solved = solve(model, rough.best(_SURVIVORS), target, steps=_STEPS, budget=budget)
        order = torch.argsort(solved.loss, stable=True).tolist()
        found = (self._features(bases, solved, at) for at in order)
        sets = dict.fromkeys(tuple(chosen) for chosen in found if chosen is not None)
        return fit_products(response, list(sets)[:k], 1, budget)

    def _starts(self, response: Response, bases: Bases) -> Starts:
        """Random exponents, and constants that keep the sums above zero; they follow from the seed of the data."""
        count = len(bases.companions)
        companions = torch.zeros(_STARTS).long()
        if self.functions:
            companions = torch.arange(1, count).repeat(_STARTS_PER_COMPANION)
        generator = torch_stream(response.data.seed, self.name)
        signs = torch.randint(1 << self.sums, companions.shape, generator=generator)
        q = torch.randn(len(companions), self.sums, len(bases.slots), generator=generator, dtype=torch.float64)
        q *= (1 - bases.inside[companions])[:, None]  # a slot inside the companion is seldom a base of a power too
        largest = (q @ bases.logs.T).amax(dim=2)
        largest[:, -1] += bases.companions.values[companions].abs().amax(dim=1).log()
        theta = torch.cat([(math.log(_FIRST_SIZE) - largest)[..., None], q], dim=2)
        return Starts(theta.flatten(1), (companions << self.sums) | signs)

    def _model(self, response: Response, bases: Bases) -> tuple[_Logarithm, Tensor]:
        """The model, and its target (n,): log|t| projected off the background, divided by the norm of log|t|."""
        t = response.t[bases.rows]
        root = (response.weight[bases.rows] * damped(t)).sqrt()
        rows = torch.cat([torch.ones(1, len(t), dtype=torch.float64), bases.logs.T]) * root
        background = orthonormal(rows)
        log_t = t.abs().log() * root
        return _Logarithm(bases, root, background, self.sums), orthogonal_part(log_t, background) / log_t.norm()

    def _features(self, bases: Bases, solved: EndPointsWithErrors, at: int) -> list[Expression] | None:
        """The sums of one solution as trees, multiplied out so that they hold no quotients.

        None where an exponent is not recognised, a constant cannot be written, or a sum is a constant.
        """
        exact = float(solved.loss[at]) < EXACT
        member = solved.starts.members[at : at + 1]
        signs = _signs(member, self.sums)[0].tolist()
        width = 1 + len(bases.slots)
        out: list[Expression] = []
        for j in range(self.sums):
            part = slice(j * width, (j + 1) * width)
            theta = solved.starts.theta[at, part].tolist()
            exponents = [snapped_exponent(value, exact=exact) for value in theta[1:]]
            q = [exponent for exponent in exponents if exponent is not None]
            if len(q) < len(exponents):
                return None
            log_a = theta[0] - float(torch.tensor(q, dtype=torch.float64) @ bases.means)
            if abs(log_a) > _MAX_LOG_CONSTANT:
                return None
            a = signs[j] * math.exp(log_a)
            last = j == self.sums - 1
            companion = bases.companions.expressions[int(member) >> self.sums] if last else ONE
            if not any(q) and companion == ONE:
                return None  # 1 + a is a constant
            above = monomial(bases.slots, [max(e, 0.0) for e in q], companion)
            below = monomial(bases.slots, [max(-e, 0.0) for e in q], ONE)
            number = _constant(a, float(solved.errors[at, part][0]), exact)
            out.append(linear_combination([UNIT, number], [below, above]))
        # One order for one product: starts that end at the same one reach its sums in any order.
        return sorted(out, key=lambda one: (one.complexity, str(one)))


def _constant(value: float, error: float, exact: bool) -> Number:
    """The nice number near the value, or the value itself; `error`: the standard error of its logarithm."""
    return recognise(value, abs(value) * error, exact=exact, zero=False, polished=False) or plain_number(value)
