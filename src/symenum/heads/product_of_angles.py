"""Products of powers of the slots, of differences of slots, and of sines and cosines of simple angles.

Angles are a slot, a difference, a product, a quotient, or a difference times a slot, whole, halved and doubled: with
exponents that are fitted, sin(v/2)² and 1 - cos(v) are one factor. The list is short, so that all triples of them are
scanned, as features on logarithms (see `product_of_powers`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import choose
from symenum.heads.product_of_powers import damped, fit_products
from symenum.heads.response import Response
from symenum.operators import Abilities, Operator
from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.projection import orthonormal
from symenum.scans.triples import best_triples

__all__ = ["ProductOfAngles"]

_MOST_SLOTS = 8
_SINGLES = 400
_PAIRED = 400
_IN_THREES = 90

Sets = list[tuple[int, ...]]


@dataclass(frozen=True)
class _Scan:
    """Logarithms of the factors times the roots of the weights (N, n), log|t| likewise (n,), and the background."""

    rows: Tensor
    complexity: Tensor
    target: Tensor
    background: Tensor

    def singles(self, k: int, budget: Budget) -> Sets:
        which, residual = best_single(self.rows, self.target, self.background, _SINGLES)
        return [(int(which[at]),) for at in choose(residual, self.complexity[which], k).indices]

    def pairs(self, k: int, budget: Budget) -> Sets:
        pairs = best_pairs(self.rows[:_PAIRED], self.target, self.background, width=_SINGLES, budget=budget)
        choice = choose(pairs.residual, self.complexity[pairs.i] + self.complexity[pairs.j], k)
        return [(int(pairs.i[at]), int(pairs.j[at])) for at in choice.indices]

    def triples(self, k: int, budget: Budget) -> Sets:
        """For each of the simplest factors the best pairs beside it."""
        found = best_triples(self.rows[:_IN_THREES], self.target, self.background, width=4 * k, budget=budget)
        if not len(found):
            return []
        sets = torch.cat([found.third[:, None], found.pair], dim=1)
        choice = choose(found.residual, self.complexity[sets].sum(dim=1), k)
        return [tuple(sets[at].tolist()) for at in choice.indices]


@dataclass(frozen=True)
class ProductOfAngles:
    """c · ∏ x_i^p_i · ∏ f_j^q_j with up to three factors f_j of the list."""

    operators: tuple[Operator, ...]
    name: str = "product of angles"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        if bool((response.t == 0).any()) or len(data.stand_ins) > _MOST_SLOTS:
            return []
        t, root = response.scanned()
        weight = root.square() * damped(t)
        root = (weight / weight.sum()).sqrt()
        factors, logs = _logarithms(response, list(_factors(data.stand_ins, self.operators)))
        usable = [value for slot in data.stand_ins if bool(((value := data.evaluate(slot)) != 0).all())]
        background = torch.stack([torch.ones_like(t), *(value[data.scan_rows].abs().log() for value in usable)])
        if len(logs) < 3 or len(t) < len(background) + 6:
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
    """The factors without a zero on any row, simplest first, and their logarithms (N, n) on the scanned rows."""
    data = response.data
    factors: list[Expression] = []
    rows: list[Tensor] = []
    for factor in sorted(offered, key=lambda factor: factor.complexity):
        values = data.evaluate(factor)
        if bool(torch.isfinite(values).all()) and bool((values != 0).all()):
            factors.append(factor)
            rows.append(values[data.scan_rows].abs().log())
    return factors, torch.stack(rows) if rows else torch.empty(0, len(data.scan_rows), dtype=torch.float64)


def _factors(slots: Sequence[Expression], operators: Sequence[Operator]) -> Iterator[Expression]:
    able = Abilities(tuple(operators))
    if able.differences:
        yield from (apply("sub", a, b) for a, b in itertools.combinations(slots, 2))
    two = Constant(2)
    for angle in _angles(slots, able) if able.periodic else ():
        for scaled in (angle, apply("div", angle, two), apply("mul", two, angle)):
            yield from (apply(operator, scaled) for operator in able.periodic)


def _angles(slots: Sequence[Expression], able: Abilities) -> Iterator[Expression]:
    yield from slots
    for a, b in itertools.combinations(slots, 2):
        if able.products:
            yield apply("mul", a, b)
        if able.quotients:
            yield apply("div", a, b)
            yield apply("div", b, a)
        if able.differences:
            difference = apply("sub", a, b)
            yield difference
            if able.products:
                yield from (apply("mul", difference, c) for c in slots if c not in (a, b))
