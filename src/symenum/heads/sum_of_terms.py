"""Sums of terms: a background plus up to `max_terms` products of up to four factors, with exact coefficients.

Searches, from cheap to dear: a narrow beam ordered by description length; all pairs of a short and a long product and
all triples of short ones; and a wider beam that also keeps the best set of every total complexity, since a single beam
ordered by fit drops the simple truth, whose first terms fit worse than fancier ones, before it is complete.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.core.exactness import EXACTNESS
from symenum.core.memory import DEFAULT_MEMORY
from symenum.expressions import Constant, Expression
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import Choice, choose, fit_chosen
from symenum.heads.response import Response
from symenum.operators import Operator
from symenum.scans.best_pairs import run_where_it_suits
from symenum.scans.pairs import best_pairs
from symenum.scans.products import Factors, Ids, Products, make_factors
from symenum.scans.projection import off, orthonormal, project_off
from symenum.scans.triples import best_triples

__all__ = ["Beam", "State", "SumOfTerms", "keep_best", "search_beam"]

ONE = Constant(1)
_SHARE_OF_NORMS = 8  # this part of the memory may hold the norms of products from scan to scan
_SCANS = 8  # of all products, at least, that one search makes
_SHORTLIST = 48  # of each tier, judged exactly for each state
_EXPAND = 3  # of these, the best so many become new states
_CLEARLY = 4.0  # a gain so many times above what chance gives in the largest tier: dearer tiers need no scan
_LINEAR_ROWS = 5  # rows per unknown from which all slots are in the background
_SHORT = 500
_TRIPLES = 160
_BLOCK = 8000
_PAIR_WORK = 3e10  # multiplications from which the exhaustive pairs are left out
# Limits of work, not of time, so that a result does not depend on the machine: each is about 4 s on two cores.
_PAIR_LIMIT = 6e10  # multiplications of a scan of pairs by products, where a pair costs _PER_PAIR beside its rows
_PER_PAIR = 64
_TRIPLE_LIMIT = 8e7  # multiplications of scans so small that each pair is judged exactly


@dataclass(frozen=True)
class Beam:
    """How wide the beam is: `width` best by description length, one of each complexity if asked, and the shortcut."""

    width: int
    per_complexity: bool
    lazy: bool


@dataclass(frozen=True)
class State:
    """A set of products, the orthonormal rows of it and the background, what is left of y, and the description."""

    terms: tuple[Ids, ...]
    basis: Tensor
    left: Tensor
    description: float
    relative: float

    @property
    def complexity(self) -> int:
        return sum(len(ids) for ids in self.terms) + len(self.terms)


def search_beam(
    products: Products,
    y: Tensor,
    background: Tensor,
    beam: Beam,
    *,
    max_terms: int,
    tiers: Sequence[int],
    budget: Budget,
) -> list[State]:
    """The sets of terms that the beam went through, best fit first.

    y (n,) and background (k, n, orthonormal) are multiplied by the roots of the row weights. Stops at a fit that is
    exact up to rounding.
    """
    size = float(y.norm())
    left = off(y, background)
    start = float(left.norm()) / size if size > 0 else 0.0
    if start < EXACTNESS.noise_free:
        return [State((), background, left, 0.0, start)]
    states = [State((), background, left, 0.0, start)]
    seen: set[frozenset[Ids]] = set()
    done: list[State] = list(states)
    for _ in range(max_terms):
        grown: list[State] = []
        for state in states:
            grown += _expansions(products, state, size, beam, tiers, seen, budget)
        if not grown:
            break
        states = keep_best(grown, beam)
        done += states
        if min(state.relative for state in states) < EXACTNESS.noise_free or budget.over():
            break
    return sorted(done, key=lambda state: state.relative)


def keep_best(grown: list[State], beam: Beam) -> list[State]:
    """The best by description, and, if the beam asks for it, the best fit of each complexity."""
    grown = sorted(grown, key=lambda state: state.description)
    kept = grown[: beam.width]
    if beam.per_complexity:
        best: dict[int, State] = {}
        for state in sorted(grown, key=lambda state: state.relative):
            best.setdefault(state.complexity, state)
        kept += [state for state in best.values() if all(state is not other for other in kept)]
    return kept


def _expansions(
    products: Products,
    state: State,
    size: float,
    beam: Beam,
    tiers: Sequence[int],
    seen: set[frozenset[Ids]],
    budget: Budget,
) -> Iterator[State]:
    """The state with one more term: the best few of each tier, all judged exactly."""
    rows = len(state.left)
    square = float(state.left @ state.left)
    for tier in tiers:
        if budget.over():
            return
        ids = [ids for ids in products.screen(state.left, tier, _SHORTLIST, budget) if ids not in state.terms]
        if not ids:
            continue
        values = products.factors.products(ids) * products.root
        C, remaining = project_off(values, state.basis)
        gain = (C @ state.left).square().masked_fill_(remaining <= EXACTNESS.left, 0.0)
        for index in torch.topk(gain, min(_EXPAND, len(ids))).indices.tolist():
            terms = (*state.terms, ids[index])
            key = frozenset(terms)
            if key in seen or float(gain[index]) == 0.0:
                continue
            seen.add(key)
            basis = torch.cat([state.basis, C[index][None]])
            left = state.left - (C[index] @ state.left) * C[index]
            left = off(left, basis, times=1)
            relative = float(left.norm()) / size
            # Bits, about: the residual's, and for each term which one of its tier it is.
            penalty = sum(2 * math.log(max(2, products.sizes[len(term)])) for term in terms)
            yield State(terms, basis, left, rows * math.log(relative**2 + 1e-300) + penalty, relative)
        chance = 2 * math.log(max(2, products.sizes[tiers[-1]])) / rows
        if beam.lazy and float(gain.max()) > _CLEARLY * chance * square:
            return


@dataclass(frozen=True)
class SumOfTerms:
    """Terms are products and quotients of up to four slots, and, for few slots, of functions of one slot."""

    operators: tuple[Operator, ...]
    max_terms: int = 8
    name: str = "sum of terms"
    max_memory: int = DEFAULT_MEMORY
    device: str = "cpu"  # see `placement`

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        rows = data.scan_rows
        if len(rows) < 4 or not data.stand_ins:
            return []
        slots = torch.stack([data.evaluate(slot)[rows] for slot in data.stand_ins])
        factors = make_factors(data.stand_ins, slots, self.operators)
        if not factors.expressions:
            return []
        work = _SCANS * len(rows) * Products(factors, response.scanned()[1]).sizes[4]
        return run_where_it_suits(
            lambda there: self._search(factors, response, k, budget, there),
            work=work, device=self.device, head=self.name,
        )  # fmt: skip

    def _search(
        self, factors: Factors, response: Response, k: int, budget: Budget, there: torch.device
    ) -> list[Candidate]:
        data = response.data
        t, root = response.scanned()
        damping = _damping(t)
        root = root * damping.sqrt()
        products = Products(factors, root, self.max_memory // _SHARE_OF_NORMS, there)
        terms = _Terms(response, products, t * root, root, _damping(response.t), self.max_terms, self.device)
        linear = len(t) > _LINEAR_ROWS * (len(data.stand_ins) + 1)
        wide = terms.backgrounds(linear)
        out: list[Candidate] = []
        steps: tuple[Callable[[], list[Candidate]], ...] = (
            lambda: terms.beam(Beam(2, False, True), wide[-1], k, budget),
            lambda: terms.pairs((2, 3), k, budget),
            lambda: terms.triples(k, budget),
            lambda: terms.beam(Beam(8, True, True), wide[0], k, budget),
            lambda: terms.pairs((4,), k, budget),
            lambda: terms.beam(Beam(8, True, False), wide[-1], k, budget),
        )
        for step in steps:
            if budget.over() or any(data.is_law(candidate) for candidate in out):
                break
            try:
                out += step()
            except CutShortError:  # what the steps before have found stays
                break
        return out


@dataclass(frozen=True)
class _Terms:
    """One response and its products, and the searches on them."""

    response: Response
    products: Products
    t: Tensor  # weighted (n,)
    root: Tensor
    damping: Tensor  # (all rows,)
    max_terms: int
    device: str

    def backgrounds(self, linear: bool) -> list[tuple[Expression, ...]]:
        """1 alone, and, with rows enough, 1 and all slots: what is not needed leaves when constants are snapped."""
        one: tuple[Expression, ...] = (ONE,)
        return [one, (ONE, *self.response.data.stand_ins)] if linear else [one]

    def beam(self, beam: Beam, background: Sequence[Expression], k: int, budget: Budget) -> list[Candidate]:
        """The best sets of a beam, and the best of each number of terms."""
        rows = orthonormal(self._rows(background))
        most = min(self.max_terms, len(self.t) - len(background) - 3)
        tiers = (1, 2, 3, 4) if len(background) == 1 else (2, 3, 4)
        found = search_beam(self.products, self.t, rows, beam, max_terms=most, tiers=tiers, budget=budget)
        complexity = torch.tensor([state.complexity for state in found])
        residual = torch.tensor([state.relative for state in found], dtype=torch.float64)
        return self._fit([state.terms for state in found], choose(residual, complexity, k), background, budget)

    def pairs(self, tiers: Sequence[int], k: int, budget: Budget) -> list[Candidate]:
        """All pairs of a product of at most two factors and one of `tiers` factors, in blocks."""
        one, two = len(self.products.factors.values), len(self.products.pairs[0])
        work = min(_SHORT, one + two) * len(self.t) * float(max(self.products.sizes[tier] for tier in tiers))
        if len(self.t) < 12 or work > _PAIR_WORK:
            return []
        short, V = self._short(_SHORT)
        background = orthonormal(self._rows((ONE,)))
        done = 0
        sets: list[tuple[Ids, ...]] = []
        residual: list[Tensor] = []
        for tier in tiers:
            for ids, values in self._blocks(tier, budget):
                if budget.over() or done > _PAIR_LIMIT:
                    break
                done += len(V) * len(values) * (len(self.t) + _PER_PAIR)
                wide = values * self.root
                pairs = best_pairs(V, self.t, background, wide, width=4 * k, budget=budget, device=self.device)
                sets += [(short[a], ids[b]) for a, b in zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)]
                residual.append(pairs.residual)
        if not sets:
            return []
        complexity = torch.tensor([sum(map(len, terms)) for terms in sets])
        return self._fit(sets, choose(torch.cat(residual), complexity, k), (ONE,), budget)

    def triples(self, k: int, budget: Budget) -> list[Candidate]:
        """All triples of products of at most two factors: for each of them the best pairs beside it."""
        short, V = self._short(_TRIPLES)
        if len(self.t) < 12:
            return []
        background = orthonormal(self._rows((ONE,)))
        found = best_triples(V, self.t, background, width=4 * k, budget=budget, work=_TRIPLE_LIMIT)
        if not len(found):
            return []
        rows = torch.cat([found.third[:, None], found.pair], dim=1)
        sets = [tuple(short[row] for row in three) for three in rows.tolist()]
        complexity = torch.tensor([sum(map(len, terms)) for terms in sets])
        return self._fit(sets, choose(found.residual, complexity, k), (ONE,), budget)

    def _short(self, count: int) -> tuple[list[Ids], Tensor]:
        """The first `count` products of at most two factors, and their weighted values."""
        one, two = len(self.products.factors.values), len(self.products.pairs[0])
        ids = [self.products.ids(1, a) for a in range(one)] + [self.products.ids(2, a) for a in range(two)]
        return ids[:count], torch.cat([self.products.factors.values, self.products.two])[:count] * self.root

    def _blocks(self, tier: int, budget: Budget) -> Iterator[tuple[list[Ids], Tensor]]:
        """Products of the tier, each once, in blocks of values (about _BLOCK, n)."""
        values, (i, j) = self.products.factors.values, self.products.pairs
        if tier == 2:
            yield [self.products.ids(2, a) for a in range(len(i))], self.products.two
            return
        left = values if tier == 3 else self.products.two
        last = torch.arange(len(values)) if tier == 3 else j
        ids: list[Ids] = []
        parts: list[Tensor] = []
        for a in range(len(left)):
            budget.check()
            right = torch.nonzero(i >= last[a]).flatten()
            names = [self.products.ids(tier, a, int(b)) for b in right.tolist()]
            fine = [at for at, name in enumerate(names) if not self.products.factors.cancels(name)]
            ids += [names[at] for at in fine]
            parts.append(left[a] * self.products.two[right[fine]])
            if len(ids) >= _BLOCK or (a == len(left) - 1 and ids):
                yield ids, torch.cat(parts)
                ids, parts = [], []

    def _rows(self, background: Sequence[Expression]) -> Tensor:
        data = self.response.data
        return torch.stack([data.evaluate(term)[data.scan_rows] for term in background]) * self.root

    def _fit(
        self, sets: Sequence[tuple[Ids, ...]], choice: Choice, background: Sequence[Expression], budget: Budget
    ) -> list[Candidate]:
        def fit(at: int) -> list[Candidate | None]:
            terms = [*background, *(self.products.factors.expression(ids) for ids in sets[at])]
            # An exact law comes out of the rows that have digits left; what is none, out of all rows as they count.
            damped = at in choice.indices[: choice.nearly]
            candidate = self.response.fit(terms, self.response.weight * self.damping) if damped else None
            if candidate is not None and self.response.data.is_law(candidate):
                return [candidate]
            return [self.response.fit(terms)]

        return fit_chosen(self.response, choice, fit, budget)


def _damping(t: Tensor) -> Tensor:
    """Row weights (n,) that keep the few rows of a heavy tail (quotients of numbers near zero) from ruling the scan."""
    middle = max(float(t.abs().median()), 1e-12 * float(t.abs().max()))
    return 1 / (1 + (t / (2 * middle)).square()) if middle > 0 else torch.ones_like(t)
