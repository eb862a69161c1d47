"""Sums of terms: a background plus up to `max_terms` products of up to four factors, coefficients by least squares.

Searches, from cheap to dear: a narrow beam ordered by description length; all pairs of a short and a long product and
all triples of short ones; and a wider beam that also keeps the best set of every total complexity. A beam ordered by
fit alone would drop the simple truth, whose first terms fit worse than fancier ones, before it is complete. The
products themselves are scanned in `scans.products`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.core.exactness import EXACTNESS
from symenum.core.memory import DEFAULT_MEMORY
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.head import Choice, choose, fit_chosen
from symenum.heads.response import ONE, Response
from symenum.operators import Operator
from symenum.scans.best_pairs import run_on_best_device
from symenum.scans.pairs import best_pairs
from symenum.scans.products import FactorIndices, Factors, Products, build_factors
from symenum.scans.projection import orthogonal_part, orthonormal, unit_orthogonal_part
from symenum.scans.triples import best_triples

__all__ = [
    "MAX_TERMS",
    "SEARCHES",
    "Beam",
    "BeamSearch",
    "Reached",
    "State",
    "SumOfTerms",
    "SumSearch",
    "keep_best",
    "search_beam",
]

_TINY = 1e-300  # keeps the logarithm of a residual of zero finite
_MIN_ROWS = 4  # of any search: a term, the offset, and two rows that judge them
_MIN_ROWS_OF_SETS = 12  # of all pairs and triples: with fewer rows, some of so many sets fit by chance
_TIERS = (1, 2, 3, 4)  # numbers of factors of the products that a beam looks at
_SPARE_ROWS = 3  # rows beyond the unknowns of the longest sum
_BLOCK = 8000  # products of a tier whose values are held at once: 26 MB for 400 rows
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_SHARE_OF_NORMS = 8  # 1/8 of the memory may hold the norms of products from scan to scan
_SCANS = 8  # scans of all products that one search makes, for the estimate of its work
_SHORTLIST = 48  # products of each tier that are judged exactly for each state
_EXPANSIONS = 3  # products of each tier that become new states
_CLEAR_GAIN = 4.0  # times the gain that chance gives in the largest tier: beyond it no larger tier is scanned
_ROWS_PER_SLOT = 5  # with more rows for each slot and 1, all slots are in the background
_SHORT_PRODUCTS = 500  # products of one or two factors that are paired with all others
_PRODUCTS_IN_TRIPLES = 160  # products of one or two factors, all triples of which are judged
_MAX_PAIR_WORK = 3e10  # multiplications: with more to do, the scan of all pairs does not begin
# Limits of work, not of time, so that a result does not depend on the machine: each is about 4 s on two cores.
_PAIR_LIMIT = 6e10  # multiplications after which the scan of all pairs ends
_WORK_PER_PAIR = 64  # multiplications that a pair costs beside one for each row
_TRIPLE_LIMIT = 8e7  # multiplications after which the scan of all triples ends


@dataclass(frozen=True)
class Beam:
    """What the beam keeps: the `width` best by description length, and with `per_complexity` the best fit of each.

    `lazy`: a state whose gain in a tier is clearly above chance is not expanded by larger tiers.
    """

    width: int
    per_complexity: bool
    lazy: bool


@dataclass(frozen=True)
class State:
    """A set of products: orthonormal rows of it and the background (k, n), and the residual of y (n,), float64.

    `description`: length of the description of residual and terms, about, in units of log(e²); `relative`: |residual|
    over |y|.
    """

    terms: tuple[FactorIndices, ...]
    basis: Tensor
    residual: Tensor
    description: float
    relative: float

    @property
    def complexity(self) -> int:
        return sum(len(ids) for ids in self.terms) + len(self.terms)


@dataclass
class Reached:
    """How far a beam has come: the states after so many terms, none where it is at its end, and all sets seen."""

    terms: int = 0
    states: list[State] = field(default_factory=list)
    seen: set[frozenset[FactorIndices]] = field(default_factory=set)


def search_beam(
    products: Products,
    y: Tensor,
    background: Tensor,
    beam: Beam,
    *,
    max_terms: int,
    tiers: Sequence[int],
    budget: Budget,
    first: int = 0,
    reached: Reached | None = None,
) -> list[State]:
    """The sets of terms that the beam went through, best fit first.

    y (n,) and background (k, n, orthonormal) are multiplied by the roots of the row weights. Stops at a fit that is
    exact up to rounding. `tiers`: the numbers of factors of the products, ascending. `first`: the number of terms that
    the beam has already; its states come from `reached`, which also gets those that it ends with. Where they are not
    there, the beam begins anew, with the same result.
    """
    size = float(y.norm())
    reached = Reached() if reached is None else reached
    if first and reached.terms != first:
        search_beam(products, y, background, beam, max_terms=first, tiers=tiers, budget=budget, reached=reached)
    if first:
        states, seen, done = reached.states, reached.seen, []
    else:
        residual = orthogonal_part(y, background)
        start = State((), background, residual, 0.0, float(residual.norm()) / size if size > 0 else 0.0)
        states, seen, done = [start], set(), [start]
        if start.relative < EXACTNESS.noise_free:
            states = []
    for _ in range(first, max_terms):
        grown: list[State] = []
        for state in states:
            grown += _expansions(products, state, size, beam, tiers, seen, budget)
        states = keep_best(grown, beam) if grown else []
        done += states
        if not states or budget.over():
            break
        if min(state.relative for state in states) < EXACTNESS.noise_free:
            states = []
            break
    if not budget.over():  # else some states are missing
        reached.terms, reached.states, reached.seen = max_terms, states, seen
    return sorted(done, key=lambda state: state.relative)


def keep_best(grown: list[State], beam: Beam) -> list[State]:
    """The best states by description, and, if the beam asks for it, the best fit of each complexity."""
    grown = sorted(grown, key=lambda state: state.description)
    survivors = grown[: beam.width]
    if beam.per_complexity:
        best: dict[int, State] = {}
        for state in sorted(grown, key=lambda state: state.relative):
            best.setdefault(state.complexity, state)
        survivors += [state for state in best.values() if all(state is not other for other in survivors)]
    return survivors


def _expansions(
    products: Products,
    state: State,
    size: float,
    beam: Beam,
    tiers: Sequence[int],
    seen: set[frozenset[FactorIndices]],
    budget: Budget,
) -> Iterator[State]:
    """The state with one more term: the best `_EXPANSIONS` of each tier, judged by their exact gain."""
    rows = len(state.residual)
    square = float(state.residual @ state.residual)
    for tier in tiers:
        if budget.over():
            return
        ids = [ids for ids in products.screen(state.residual, tier, _SHORTLIST, budget) if ids not in state.terms]
        if not ids:
            continue
        values = products.factors.products(ids) * products.root
        C, remaining = unit_orthogonal_part(values, state.basis)
        gain = (C @ state.residual).square().masked_fill_(remaining <= EXACTNESS.remainder, 0.0)
        for index in torch.topk(gain, min(_EXPANSIONS, len(ids))).indices.tolist():
            terms = (*state.terms, ids[index])
            key = frozenset(terms)
            if key in seen or float(gain[index]) == 0.0:
                continue
            seen.add(key)
            basis = torch.cat([state.basis, C[index][None]])
            residual = state.residual - (C[index] @ state.residual) * C[index]
            residual = orthogonal_part(residual, basis, times=1)
            relative = float(residual.norm()) / size
            # The description of a term is its number among those of its tier.
            penalty = sum(2 * math.log(max(2, products.sizes[len(term)])) for term in terms)
            yield State(terms, basis, residual, rows * math.log(relative**2 + _TINY) + penalty, relative)
        chance = 2 * math.log(max(2, products.sizes[tiers[-1]])) / rows
        if beam.lazy and float(gain.max()) > _CLEAR_GAIN * chance * square:
            return


@dataclass(frozen=True)
class _Terms:
    """One response and its products, and the searches on them.

    `root` (n,): roots of the damped weights of the scanned rows; `t` (n,) is multiplied by it; `damping`: on all rows.
    """

    response: Response
    products: Products
    t: Tensor
    root: Tensor
    damping: Tensor
    max_terms: int
    device: str

    @property
    def largest_background(self) -> tuple[Expression, ...]:
        """1 and, with rows enough, all slots: those that are not needed go when constants are snapped."""
        slots = self.response.data.stand_ins
        return (ONE, *slots) if len(self.t) > _ROWS_PER_SLOT * (len(slots) + 1) else (ONE,)

    def beam(self, search: BeamSearch, k: int, budget: Budget) -> list[Candidate]:
        """The best sets of a beam, and the best of each number of terms."""
        background = self.largest_background if search.beside_slots else (ONE,)
        rows = orthonormal(self._rows(background))
        max_terms = min(self.max_terms, search.last, len(self.t) - len(background) - _SPARE_ROWS)
        if search.first and max_terms <= search.first:
            return []
        found = search_beam(
            self.products, self.t, rows, search.beam, max_terms=max_terms, tiers=_TIERS, budget=budget,
            first=search.first, reached=search.reached,
        )  # fmt: skip
        if not found:
            return []
        complexity = torch.tensor([state.complexity for state in found])
        residual = torch.tensor([state.relative for state in found], dtype=torch.float64)
        return self._fit([state.terms for state in found], choose(residual, complexity, k), background, budget)

    def pairs(self, tiers: Sequence[int], k: int, budget: Budget) -> list[Candidate]:
        """All pairs of a product of at most two factors and one of `tiers` factors, in blocks."""
        one, two = len(self.products.factors.values), len(self.products.pairs[0])
        work = min(_SHORT_PRODUCTS, one + two) * len(self.t) * float(max(self.products.sizes[tier] for tier in tiers))
        if len(self.t) < _MIN_ROWS_OF_SETS or work > _MAX_PAIR_WORK:
            return []
        short, V = self._short(_SHORT_PRODUCTS)
        background = orthonormal(self._rows((ONE,)))
        done = 0
        sets: list[tuple[FactorIndices, ...]] = []
        residual: list[Tensor] = []
        for tier in tiers:
            for ids, values in self._blocks(tier, budget):
                if budget.over() or done > _PAIR_LIMIT:
                    break
                done += len(V) * len(values) * (len(self.t) + _WORK_PER_PAIR)
                pairs = best_pairs(
                    V, self.t, background, values * self.root, width=4 * k, budget=budget, device=self.device
                )
                sets += [(short[a], ids[b]) for a, b in zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)]
                residual.append(pairs.residual)
        if not sets:
            return []
        complexity = torch.tensor([sum(map(len, terms)) for terms in sets])
        return self._fit(sets, choose(torch.cat(residual), complexity, k), (ONE,), budget)

    def triples(self, k: int, budget: Budget) -> list[Candidate]:
        """The best triples of products of at most two factors, all of which are judged."""
        short, V = self._short(_PRODUCTS_IN_TRIPLES)
        if len(self.t) < _MIN_ROWS_OF_SETS:
            return []
        background = orthonormal(self._rows((ONE,)))
        found = best_triples(V, self.t, background, width=4 * k, budget=budget, work=_TRIPLE_LIMIT)
        if not len(found):
            return []
        rows = torch.cat([found.third[:, None], found.pair], dim=1)
        sets = [tuple(short[row] for row in three) for three in rows.tolist()]
        complexity = torch.tensor([sum(map(len, terms)) for terms in sets])
        return self._fit(sets, choose(found.residual, complexity, k), (ONE,), budget)

    def _short(self, count: int) -> tuple[list[FactorIndices], Tensor]:
        """The first `count` products of at most two factors, and their weighted values."""
        one, two = len(self.products.factors.values), len(self.products.pairs[0])
        ids = [self.products.ids(1, a) for a in range(one)] + [self.products.ids(2, a) for a in range(two)]
        return ids[:count], torch.cat([self.products.factors.values, self.products.two])[:count] * self.root

    def _blocks(self, tier: int, budget: Budget) -> Iterator[tuple[list[FactorIndices], Tensor]]:
        """Products of the tier, each once, in blocks of values (about _BLOCK, n)."""
        values, (i, j) = self.products.factors.values, self.products.pairs
        if tier == 2:
            yield [self.products.ids(2, a) for a in range(len(i))], self.products.two
            return
        left = values if tier == 3 else self.products.two
        last = torch.arange(len(values)) if tier == 3 else j
        ids: list[FactorIndices] = []
        parts: list[Tensor] = []
        for a in range(len(left)):
            budget.check()
            right = torch.nonzero(i >= last[a]).flatten()
            names = [self.products.ids(tier, a, int(b)) for b in right.tolist()]
            distinct = [at for at, name in enumerate(names) if not self.products.factors.cancels(name)]
            ids += [names[at] for at in distinct]
            parts.append(left[a] * self.products.two[right[distinct]])
            if len(ids) >= _BLOCK or (a == len(left) - 1 and ids):
                yield ids, torch.cat(parts)
                ids, parts = [], []

    def _rows(self, background: Sequence[Expression]) -> Tensor:
        data = self.response.data
        return torch.stack([data.evaluate(term)[data.scan_rows] for term in background]) * self.root

    def _fit(
        self,
        sets: Sequence[tuple[FactorIndices, ...]],
        choice: Choice,
        background: Sequence[Expression],
        budget: Budget,
    ) -> list[Candidate]:
        def fit(at: int) -> list[Candidate | None]:
            terms = [*background, *(self.products.factors.expression(ids) for ids in sets[at])]
            # An exact law is fitted with damped weights first: in a heavy tail the digits of small terms are lost.
            exact = at in choice.indices[: choice.nearly]
            candidate = self.response.fit(terms, self.response.weight * self.damping) if exact else None
            if candidate is not None and self.response.data.is_law(candidate):
                return [candidate]
            return [self.response.fit(terms)]

        return fit_chosen(self.response, choice, fit, budget)


SumSearch = Callable[[_Terms, int, Budget], list[Candidate]]
MAX_TERMS = 8
"""The most terms beside the background."""


@dataclass(frozen=True)
class BeamSearch:
    """A beam beside 1, or beside 1 and all slots, from `first` terms to `last` ones; `reached` joins such parts."""

    beam: Beam
    beside_slots: bool
    first: int = 0
    last: int = MAX_TERMS
    reached: Reached | None = None

    def __call__(self, terms: _Terms, k: int, budget: Budget) -> list[Candidate]:
        return terms.beam(self, k, budget)

    def cut(self, parts: int) -> list[BeamSearch]:
        """The search in about so many parts, one after another, with the same states as the whole."""
        step = -(-MAX_TERMS // parts)
        reached = Reached()
        return [
            replace(self, first=first, last=min(first + step, MAX_TERMS), reached=reached)
            for first in range(0, MAX_TERMS, step)
        ]


SEARCHES: tuple[SumSearch, ...] = (
    BeamSearch(Beam(2, False, True), beside_slots=True),
    lambda terms, k, budget: terms.pairs((2, 3), k, budget),
    lambda terms, k, budget: terms.triples(k, budget),
    BeamSearch(Beam(8, True, True), beside_slots=False),
    lambda terms, k, budget: terms.pairs((4,), k, budget),
    BeamSearch(Beam(8, True, False), beside_slots=True),
)
"""The searches, from cheap to dear; none needs what another has found."""


@dataclass(frozen=True)
class SumOfTerms:
    """Terms are products and quotients of up to four slots, and, for few slots, of functions of one slot.

    `searches`: those that are made, one after another until one has found the law. `device`: see `AllHeads`.
    """

    operators: tuple[Operator, ...]
    max_terms: int = MAX_TERMS
    searches: tuple[SumSearch, ...] = SEARCHES
    name: str = "sum of terms"
    max_memory: int = DEFAULT_MEMORY
    device: str = "cpu"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        rows = data.scan_rows
        if len(rows) < _MIN_ROWS or not data.stand_ins:
            return []
        slots = torch.stack([data.evaluate(slot)[rows] for slot in data.stand_ins])
        factors = build_factors(data.stand_ins, slots, self.operators)
        if not factors.expressions:
            return []
        work = _SCANS * len(rows) * Products(factors, response.scanned()[1]).sizes[4]
        return run_on_best_device(
            lambda there: self._search(factors, response, k, budget, there),
            work=work, device=self.device, head=self.name,
        )  # fmt: skip

    def _search(
        self, factors: Factors, response: Response, k: int, budget: Budget, there: torch.device
    ) -> list[Candidate]:
        t, root = response.scanned()
        root = root * _damping(t).sqrt()
        products = Products(factors, root, self.max_memory // _SHARE_OF_NORMS, there)
        terms = _Terms(response, products, t * root, root, _damping(response.t), self.max_terms, self.device)
        out: list[Candidate] = []
        for search in self.searches:
            if budget.over() or any(response.data.is_law(candidate) for candidate in out):
                break
            try:
                out += search(terms, k, budget)
            except CutShortError:  # what the searches before have found stays
                break
        return out


def _damping(t: Tensor) -> Tensor:
    """Row weights (n,), 1/(1 + (t/2m)²) with m the median of |t|.

    They keep the few rows of a heavy tail (quotients of numbers near zero) from deciding the scan.
    """
    middle = max(float(t.abs().median()), 1e-12 * float(t.abs().max()))
    return 1 / (1 + (t / (2 * middle)).square()) if middle > 0 else torch.ones_like(t)
