"""Which heads there are, cut into slices: the table of stages, what a slice costs, and one pass through them.

A stage is a few scans that belong together; each scan is a slice of it, of about a second at most. Slice n of a stage
on given data is always the same work, whatever ran before it. So a search can stop, report and take turns between any
two slices, and one that is resumed goes on with slice n. `STAGES` says for each stage what its slices are, what one of
them costs and when the stage applies; `AllHeads` holds what the stages share (data, features); `in_turn` is the order
of all slices, which `first_pass` follows. What a search does between slices stands in `symenum.search`.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.core.memory import DEFAULT_MEMORY, return_freed_memory
from symenum.core.target import Target, check_slots, check_target, check_whole
from symenum.core.threads import single_threaded
from symenum.engine.network import slot_expressions
from symenum.engine.shortlist import Shortlist
from symenum.expressions import Constant, Expression, Variable
from symenum.expressions.algebra import plain_form
from symenum.expressions.candidate import Candidate
from symenum.heads.affine import Affine
from symenum.heads.combine import Combine
from symenum.heads.dimensionless_groups import in_groups
from symenum.heads.feature_times_polynomial import FeatureTimesPolynomial
from symenum.heads.features import Features, build_features, extended_by_unary
from symenum.heads.head import Head, Priced, RegisteredHead, Scan, registered_heads
from symenum.heads.inner_constants import InnerConstants
from symenum.heads.meetings import WORK_OF_A_MEETING, Meetings
from symenum.heads.one_feature import OneFeature
from symenum.heads.operator_grammar import NO_PRIOR, OperatorGrammar, Prior
from symenum.heads.polynomial import Polynomial, monomials
from symenum.heads.powers_of_sums import PowersOfSums
from symenum.heads.product_of_powers import ProductOfPowers
from symenum.heads.rational import Rational, RatioOfPolynomials
from symenum.heads.reductions import SURFACE_ROWS, Reduced, furthest_reductions, may_be_reduced
from symenum.heads.response import Data, Response, best_and_front, make_data
from symenum.heads.sum_of_powers import SumOfPowers
from symenum.heads.sum_of_terms import SEARCHES, BeamSearch, SumOfTerms, SumSearch
from symenum.heads.transforms import power_responses, responses_of
from symenum.heads.two_terms import TwoTerms
from symenum.heads.work import Model, Sizes, Work
from symenum.operators import Operator, get_operators
from symenum.operators.traits import ARITHMETIC, MULTIPLICATIVE, Role

__all__ = [
    "SCAN_ROWS",
    "STAGES",
    "STAGE_NAMES",
    "TRANSFORMS",
    "AllHeads",
    "Scan",
    "Stage",
    "StageRow",
    "first_pass",
    "in_turn",
    "informative_columns",
    "joined",
]


@dataclass(frozen=True)
class StageRow:
    """One row of the table: a stage's name, its slices, the work of one of them, and when the stage applies.

    `slices`: the scans, one after another; they are laid out as they are asked for. `on_reduced`: whether it also runs
    on problems that were reduced to few slots, where features are cheap. `needs`: the stage that makes its features.
    """

    name: str
    slices: Callable[[AllHeads], Iterable[Scan]]
    work: Work
    applies: Callable[[AllHeads], bool] = lambda heads: True
    on_reduced: bool = False
    needs: StageRow | None = None

    def work_of_slice(self, sizes: Sizes) -> float:
        """Its work, and never less than that of the stage that makes its features, so that this one comes first."""
        return max(self.work.of(sizes), self.needs.work.of(sizes) if self.needs else 0.0)


_ONE_FEATURE = OneFeature()
_FINDING_REDUCTIONS = Work(2e-5, lambda sizes: min(SURFACE_ROWS, sizes.rows) * sizes.slots, lambda sizes: 0.02)
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_TERMS_OF_SUMS = (2, 3)  # numbers of terms of sums of powers
_BACKGROUND_DEGREES = (1, 2)  # of the polynomial that one feature stands beside
_POLYNOMIAL_DEGREES = (1, 2, 3)  # of the polynomial that two terms stand beside
_MAX_FITTED_SLOTS = 12  # with more slots no exponents are fitted: each slot is an unknown in each term
_RESPONSES_AT_ONCE = 15  # y and transforms of it that one slice looks for in one feature
_COMBINED = 6000  # features that are combined as they are, without coefficients
_COMBINED_PAIRWISE = 600  # the same for an operator that is evaluated pair by pair
_COMPARED_ROWS = 64  # rows by which columns are told apart before they are compared as a whole
_COMPARED_VALUES = 1 << 20  # values that are looked at at once: 1 MiB of the answers
_MAX_POLYNOMIAL_SLOTS = 12  # with more slots no two terms stand beside a polynomial

# The features that stages share: made by slices of their own, which find nothing. A stage that comes before them makes
# what it needs.
FEATURES = StageRow(
    "features",
    lambda heads: [
        heads.making(heads.features),
        heads.making(lambda budget: heads.features(budget).up_to_affine(budget)),
    ],
    Work(1.5e-8, lambda sizes: sizes.outputs * (sizes.scanned + 60)),
    on_reduced=True,
)
EXTENDED = StageRow(
    "extended features",
    lambda heads: [
        heads.making(heads.extended),
        heads.making(lambda budget: heads.extended(budget).up_to_affine(budget)),
        heads.making(lambda budget: heads.extended(budget).up_to_scale(budget)),
    ],
    Work(2e-8, lambda sizes: sizes.extended * (sizes.scanned + 30) * (1 if sizes.unary else 0.25)),
    on_reduced=True,
)
# The unknowns of heads with fitted exponents, see `PowersOfSums` and `SumOfPowers`; sizes are sums, and terms - 1.
_POWERS_OF_SUMS = Model(
    lambda slots, sums: sums * (slots + 1), lambda slots, sums: (sums + 1) * (slots + 1) + sums, 80, 5
)
_SUMS_OF_POWERS = Model(lambda slots, size: (size + 1) * slots, lambda slots, size: (size + 1) * (slots + 1), 64, 4)

STAGES = (
    StageRow(
        "products of powers",
        lambda heads: [heads.on(ProductOfPowers(0))],
        Work(0.0, lambda sizes: 0.0, lambda sizes: sizes.fits(1.5, sizes.slots)),
        on_reduced=True,
    ),
    StageRow(
        "polynomials",
        lambda heads: [heads.on(Polynomial())],
        Work(
            7e-10,
            lambda sizes: sizes.polynomials(12, 120),
            lambda sizes: sizes.fits(1 + 2 * sizes.short_polynomials(12, 12)),
        ),
        on_reduced=True,
    ),
    StageRow(
        "polynomials of transforms",
        lambda heads: [heads.until_law(heads.on(Polynomial(6), response=response) for response in heads.responses)],
        Work(7e-10, lambda sizes: sizes.responses * sizes.polynomials(6, 120)),
    ),
    StageRow(
        "ratios of polynomials",
        lambda heads: [heads.on(RatioOfPolynomials())],
        Work(5e-9, lambda sizes: sizes.ratios(8, 10)),
        lambda heads: (
            heads.grammar.quotients
            and len(heads.data.stand_ins) <= RatioOfPolynomials.max_slots
            and heads.plain_numbers
        ),
        on_reduced=True,
    ),
    FEATURES,
    StageRow(
        "powers with a factor",
        lambda heads: [heads.power_with_factor()],
        Work(8e-8, lambda sizes: sizes.features * sizes.scanned, lambda sizes: sizes.fits(sizes.k)),
        on_reduced=True,
        needs=FEATURES,
    ),
    StageRow(
        "powers with two factors",
        lambda heads: [heads.on(ProductOfPowers(2, device=heads.device), heads.features)],
        Work(
            1.3e-7,
            lambda sizes: (min(6000, 12 * sizes.features) + min(20_000, 0.5 * sizes.features)) * (sizes.scanned + 40),
            lambda sizes: sizes.fits(sizes.k),
        ),
        on_reduced=True,
        needs=FEATURES,
    ),
    StageRow(
        "combine",
        lambda heads: heads.combined_slices(),
        Work(
            2e-11,
            lambda sizes: _pairs_of_combine(sizes) * (sizes.scanned + 60),
            lambda sizes: sizes.fits(2 * sizes.k),
        ),
        needs=FEATURES,
    ),
    StageRow(
        "rational",
        lambda heads: [heads.on(Rational(above, device=heads.device), heads.features) for above in (1, 2)],
        Work(5e-4, lambda sizes: sizes.scanned, lambda sizes: sizes.fits(7 * sizes.k)),
        lambda heads: heads.grammar.quotients and heads.plain_numbers,
        needs=FEATURES,
    ),
    EXTENDED,
    StageRow(
        "one feature",
        lambda heads: heads.one_feature([heads.response, *heads.responses]),
        Work(
            2.4e-8,
            lambda sizes: sizes.extended * (sizes.scanned + 4 * _responses_at_once(sizes)) / sizes.parts_of_extended,
            lambda sizes: sizes.fits(sizes.k + 4 * _responses_at_once(sizes)),
        ),
        on_reduced=True,
        needs=EXTENDED,
    ),
    StageRow(
        "two terms",
        lambda heads: [heads.two_terms()],
        Work(
            8e-11,
            lambda sizes: min(6000, sizes.extended) ** 2 / 2 * sizes.scanned,
            lambda sizes: sizes.fits(3.5 * sizes.k),
        ),
        on_reduced=True,
        needs=EXTENDED,
    ),
    StageRow(
        "affine",
        lambda heads: heads.affine(),
        Work(
            1.4e-10,
            lambda sizes: min(4000, sizes.extended) ** 2 * 0.75 * sizes.scanned,
            lambda sizes: sizes.fits(2.2 * sizes.k),
        ),
        on_reduced=True,
        needs=EXTENDED,
    ),
    StageRow(
        "two terms on a polynomial",
        lambda heads: heads.two_terms_on_polynomials(),
        Work(
            1e-10,
            lambda sizes: min(3000, sizes.extended) ** 2 / 2 * sizes.scanned,
            lambda sizes: _fits_on_polynomials(sizes),
        ),
        lambda heads: len(heads.data.stand_ins) <= _MAX_POLYNOMIAL_SLOTS,
        needs=EXTENDED,
    ),
    StageRow(
        "features times a polynomial",
        lambda heads: heads.features_times_polynomials(),
        Work(
            3e-10,
            lambda sizes: sizes.extended * sizes.scanned * (sizes.slots + 2) ** 2,
            lambda sizes: sizes.fits(2 * sizes.k),
        ),
        lambda heads: (
            len(heads.data.stand_ins) <= _MAX_POLYNOMIAL_SLOTS and heads.grammar.products and heads.plain_numbers
        ),
        on_reduced=True,
        needs=EXTENDED,
    ),
    StageRow(
        "one feature on a polynomial",
        lambda heads: heads.one_feature_on_polynomials(),
        Work(
            2e-9,
            lambda sizes: sizes.extended * sizes.scanned * sizes.monomials(1),
            lambda sizes: sizes.fits(3 * sizes.k),
        ),
        lambda heads: len(heads.data.stand_ins) <= _MAX_POLYNOMIAL_SLOTS,
        on_reduced=True,
        needs=EXTENDED,
    ),
    StageRow(
        "powers of sums",
        lambda heads: heads.powers_of_sums(functions=False),
        Work(
            3.3e-7,
            lambda sizes: sizes.starts(_POWERS_OF_SUMS, 128),
            lambda sizes: sizes.fits(4 * sizes.k) * sizes.share_fitted(_POWERS_OF_SUMS),
        ),
        lambda heads: heads.fitted_sums,
    ),
    StageRow(
        "sums of powers",
        lambda heads: heads.sums_of_powers(functions=False),
        Work(
            2.7e-7,
            lambda sizes: sizes.starts(_SUMS_OF_POWERS, 96),
            lambda sizes: sizes.fits(3 * sizes.k) * sizes.share_fitted(_SUMS_OF_POWERS),
        ),
        lambda heads: heads.fitted_exponents,
    ),
    StageRow(
        "powers of sums with a function",
        lambda heads: heads.powers_of_sums(functions=True),
        Work(
            3.3e-7,
            lambda sizes: sizes.starts(_POWERS_OF_SUMS, 32 * sizes.companions),
            lambda sizes: sizes.fits(4 * sizes.k) * sizes.share_fitted(_POWERS_OF_SUMS),
        ),
        lambda heads: heads.fitted_exponents,
    ),
    StageRow(
        "sums of powers with a function",
        lambda heads: heads.sums_of_powers(functions=True),
        Work(
            2.7e-7,
            lambda sizes: sizes.starts(_SUMS_OF_POWERS, 24 * sizes.companions),
            lambda sizes: sizes.fits(3 * sizes.k) * sizes.share_fitted(_SUMS_OF_POWERS),
        ),
        lambda heads: heads.fitted_exponents,
    ),
    StageRow(
        "sums of clear terms",  # most of its work is left out where small products explain y clearly
        lambda heads: heads.sums_of_terms(SEARCHES[:1]),
        Work(
            3.2e-9,
            lambda sizes: sizes.products[1] * (sizes.scanned + 100) / sizes.parts_of_sums,
            lambda sizes: sizes.fits(4 * sizes.k),
        ),
        lambda heads: heads.several_slots,
    ),
    StageRow(
        "sums of terms",
        lambda heads: heads.sums_of_terms(SEARCHES[1:]),
        Work(
            3.2e-9,
            lambda sizes: (
                sizes.products[-1] * (sizes.scanned + 100) / sizes.parts_of_sums
                + 0.005 * sizes.pairs_of_products(500, 3e10)
            ),
            lambda sizes: sizes.fits(12 * sizes.k),
        ),
        lambda heads: heads.several_slots,
    ),
    StageRow(
        "inner constants",
        lambda heads: heads.inner_constants(),
        Work(
            1.1e-6,
            lambda sizes: sizes.inner_starts * (min(200, sizes.scanned) + 100),
            lambda sizes: sizes.fits(2 * sizes.k),
        ),
        lambda heads: heads.plain_numbers,
        on_reduced=True,
    ),
    StageRow(
        "exact meetings",
        lambda heads: heads.meetings.exact(),
        Work(1.0, lambda sizes: WORK_OF_A_MEETING),
        lambda heads: heads.meetings.possible and heads.plain_numbers,
    ),
    StageRow(
        "near meetings",
        lambda heads: heads.meetings.near(),
        Work(1.0, lambda sizes: WORK_OF_A_MEETING),
        lambda heads: heads.meetings.possible and heads.plain_numbers,
    ),
    StageRow(
        "dimensionless groups",
        lambda heads: heads.in_groups_slices(),
        Work(1.0, lambda sizes: _work_on_reduced(sizes)),
        lambda heads: not heads.plain_numbers,
    ),
    StageRow(
        "reductions",
        lambda heads: heads.reduced_slices(),
        Work(1.0, lambda sizes: _work_on_reduced(sizes)),
        lambda heads: may_be_reduced(len(heads.data.stand_ins), heads.data.target.rows) and heads.grammar.products,
    ),
)
"""All stages that look for y itself, on the raw variables."""

# Two terms of 3000 features, or products and quotients of 2000, for one response.
_ON_RESPONSE = Work(
    2.6e-10, lambda sizes: min(3000, sizes.extended) ** 2 / 2 * sizes.scanned, lambda sizes: sizes.fits(2.5 * sizes.k)
)
_OUTER_FUNCTIONS = StageRow(
    "outer functions",
    lambda heads: [heads.two_terms(3000, response) for response in heads.responses_without_slots],
    _ON_RESPONSE,
    needs=EXTENDED,
)
_REDUCED_STAGES = (*(row for row in STAGES if row.on_reduced), _OUTER_FUNCTIONS)
"""The stages for a problem that was reduced to few slots."""
_GROUP_STAGES = tuple(row for row in STAGES if row.name not in ("combine", "reductions", "dimensionless groups"))
"""The stages for a problem in dimensionless groups, where each head finds what units allow."""
# Its first slices are short on few slots, and find most of what no other stage finds: they come among the first.
_EARLY_MEETINGS = Work(0.2, lambda sizes: 1.0)
_PART_STAGES = tuple(
    replace(row, work=_EARLY_MEETINGS) if row.name == "exact meetings" else row
    for row in _GROUP_STAGES
    if row.name != "near meetings"
)
"""The stages for what a part of a law must be, which has few slots and, beside the right rest, no noise."""


def _fits_on_polynomials(sizes: Sizes) -> float:
    """Seconds of the fits of a slice of two terms on a polynomial, the mean of all degrees that there are."""
    terms = [sizes.monomials(degree) for degree in _POLYNOMIAL_DEGREES]
    fitted = [count for count in terms if count <= sizes.rows - _SPARE_ROWS]
    return sum(sizes.fits(2.5 * sizes.k, count) for count in fitted) / max(1, len(fitted))


def _groups_of_responses(count: int) -> int:
    """In how many groups so many responses are scanned."""
    return -(-count // _RESPONSES_AT_ONCE)


def _responses_at_once(sizes: Sizes) -> float:
    """Responses of a slice of one feature: y and its transforms, over the number of groups."""
    return (1 + sizes.responses) / _groups_of_responses(1 + sizes.responses)


def _pairs_of_combine(sizes: Sizes) -> float:
    """Pairs of a slice, the mean of all slices; a pair that is evaluated by itself counts as 200."""
    slow = len(pairwise_operators(sizes.operators))
    together = 3 * min(_COMBINED, sizes.features) ** 2
    alone = 200 * slow * min(_COMBINED_PAIRWISE, sizes.features) ** 2
    return (together + alone) / 2 if slow else together


def _work_on_reduced(sizes: Sizes) -> float:
    """The mean of the stages for reduced problems, with one slot less."""
    reduced = replace(sizes, slots=max(1, sizes.slots - 1))
    return sum(row.work_of_slice(reduced) for row in _REDUCED_STAGES) / len(_REDUCED_STAGES)


TRANSFORMS = "transforms"
"""The name for all the stages that look for a transform of y, one stage for each transform."""
STAGE_NAMES = (
    *(row.name for row in (*STAGES, _OUTER_FUNCTIONS) if row not in (FEATURES, EXTENDED)),
    TRANSFORMS,
)
"""What an ablation may leave out."""

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_COLUMNS = 30_000  # features of two layers
_WORKSPACE = 150_000_000  # bytes that scans take whatever the number of features
_COPIES = 80  # of the features of two layers that a head may hold, extensions by unary operators included
_SHARE_OF_A_LAYER = 16  # a layer may take 1/16 of the memory before duplicates are removed
_SPARE_ROWS = 6  # rows beyond the terms of a polynomial background
SCAN_ROWS = 400
"""The most rows that scans look at; every candidate is fitted and judged on all rows."""


class _Slices:
    """The scans of a stage by their numbers, laid out one after another as they are asked for.

    Only the last one is held, so that what it needs is freed when the next one is laid out.
    """

    def __init__(self, lay_out: Callable[[], Iterable[Scan]]) -> None:
        self._lay_out = lay_out
        self._rest: Iterator[Scan] = iter(())
        self._number = -1  # of the scan that is held, which is None where the stage is at its end
        self._scan: Scan | None = None
        self._begun = False

    def at(self, number: int) -> Scan | None:
        """The scan of that number; None where the stage has no such slice."""
        if number < self._number or not self._begun:
            self._rest, self._number, self._begun = iter(self._lay_out()), -1, True
        while self._number < number:
            self._scan = next(self._rest, None)
            self._number += 1
            if self._scan is None:
                self._number = number
        return self._scan


@dataclass(frozen=True)
class Stage:
    """Slices that belong together, on one set of data; `name` is what a progress display shows.

    `work`: of one slice on average, in seconds on two cores of the reference machine, told from sizes before it runs.
    """

    name: str
    work: float
    data: Data
    grammar: OperatorGrammar
    prior: Prior
    slices: _Slices = field(repr=False)

    def scan(self, number: int) -> Scan | None:
        """Slice `number`, counted from 0; None where the stage is at its end before it."""
        return self.slices.at(number)

    def work_of(self, number: int) -> float:
        """The work of slice `number`: its own, where it is known, else that of a slice on average."""
        scan = self.scan(number)
        return scan.work if isinstance(scan, Priced) else self.work

    def run(self, number: int, budget: Budget) -> list[Candidate]:
        """The candidates of slice `number` that operators and prior permit; none where the time was over too soon."""
        scan = self.scan(number)
        if scan is None or budget.over():
            return []
        try:
            found = scan(budget)
        except CutShortError:
            return []
        return [candidate for candidate in self._with_plain_forms(found) if self._allows(candidate)]

    def _allows(self, candidate: Candidate) -> bool:
        return self.grammar.allows(candidate.expression) and self.prior.allows(candidate.expression)

    def _with_plain_forms(self, found: list[Candidate]) -> list[Candidate]:
        """The candidates, and laws among them once more in the form that people write.

        Only where the slots are the raw variables: elsewhere slots are expressions, and the forms would not be read.
        """
        if self.data.slots != self.data.stand_ins:
            return found
        laws = [plain_form(candidate.expression) for candidate in found if self.data.is_law(candidate)]
        return found + [candidate for law in laws if (candidate := self.data.candidate(law)) is not None]


def in_turn(stages: Iterable[Stage]) -> Iterator[tuple[Stage, int]]:
    """All slices of these stages, each as its stage and its number: next is always the one that ends cheapest.

    A slice ends at the work of all slices of its stage up to it. So a stage of many slices does not hold up one that is
    cheaper than all of them; of equals the first in the table comes first.
    """
    waiting = [(stage.work, place, 0, stage) for place, stage in enumerate(stages)]
    heapq.heapify(waiting)
    while waiting:
        _, place, number, stage = heapq.heappop(waiting)
        if stage.scan(number) is not None:
            yield stage, number
            heapq.heappush(waiting, ((number + 2) * stage.work, place, number + 1, stage))


def joined(name: str, stages: Sequence[Stage]) -> Stage:
    """Stages on the same data as one stage of all their slices, in turn; its work is that of a slice on average."""

    def lay_out() -> Iterator[Scan]:
        for stage, number in in_turn(stages):
            scan = stage.scan(number)
            assert scan is not None  # `in_turn` gives only slices that there are
            yield Priced(scan, stage.work_of(number))

    work = sum(stage.work for stage in stages) / len(stages)
    return replace(stages[0], name=name, work=work, slices=_Slices(lay_out))


MakeFeatures = Callable[[Budget], Features]


@dataclass(frozen=True)
class AllHeads:
    """The heads on `data`, and what they share; each gives its best `k`. Features are made when they are first needed.

    `max_memory` (bytes) bounds the features: with less of it there are fewer, and the most complex are left out first.
    `origin`: the same heads with other weights of the rows; its features are used here too.
    `device`: "cpu", or anything else to let heads that can use a GPU choose by the size of their scan.
    `registered`: heads from outside the package, one stage of one slice each.
    `leave_out`: names of stages that do not run, for ablations only.
    """

    data: Data
    operators: tuple[Operator, ...]
    k: int
    max_memory: int = DEFAULT_MEMORY
    prior: Prior = NO_PRIOR
    origin: AllHeads | None = None
    device: str = "cpu"
    registered: tuple[RegisteredHead, ...] = field(default_factory=registered_heads)
    leave_out: tuple[str, ...] = ()
    _made: dict[str, Features] = field(default_factory=dict, init=False, repr=False, compare=False)
    _reduced: list[tuple[Reduced, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    def with_target(self, target: Target) -> AllHeads:
        """The same heads on rows of other weights."""
        return replace(self, data=replace(self.data, target=target), origin=self.origin or self)

    def constant(self) -> list[Candidate]:
        """The mean of y, which every law must beat, and a nice number near it."""
        mean = float((self.data.target.y * self.data.target.weight).sum())
        found = [self.data.candidate(Constant(mean)), self.response.fit([Constant(1)])]
        return [candidate for candidate in found if candidate is not None]

    # The stages

    def on_target(self) -> tuple[Stage, ...]:
        """The stages that look for y itself, in the order of the table; those of registered heads are the last."""
        return self._applying([*STAGES, *map(_registered_row, self.registered)])

    def on_reduced(self) -> tuple[Stage, ...]:
        """The stages for a problem that was reduced to few slots."""
        return self._applying(_REDUCED_STAGES)

    def on_part(self) -> tuple[Stage, ...]:
        """The stages for what a part of a law must be."""
        return self._applying(_PART_STAGES)

    def on_transforms(self) -> tuple[Stage, ...]:
        """The stages that look for a transform of y."""
        responses = () if TRANSFORMS in self.leave_out else self.responses
        return self._applying([_transform_row(response) for response in responses])

    def on_slots(self) -> tuple[Stage, ...]:
        """The stages for slots that are variables and tokens, and will be others in the next step."""
        return self._applying(_SLOT_STAGES)

    def on_response(self, response: Response, cap: int) -> Iterator[Scan]:
        """Quick scans for any response on the raw variables; two terms of the `cap` simplest features."""
        yield self.on(ProductOfPowers(0), response=response)
        yield self.power_with_factor(response)
        yield from self.one_feature([response])
        yield self.two_terms(cap, response)

    def beside(self, terms: tuple[Expression, ...], cap: int) -> Iterator[Scan]:
        """One feature, and two of the `cap` simplest, beside these terms, whose coefficients are fitted anew."""
        yield from self.one_feature([self.response], OneFeature(background=terms))
        yield self.two_terms(cap, background=terms)

    def allows(self, expression: Expression) -> bool:
        """Whether the operators can write it and the prior permits it."""
        return self.grammar.allows(expression) and self.prior.allows(expression)

    def combined(self) -> Stage:
        """The paper's last layer: expressions as they are, no coefficients."""
        (row,) = [row for row in STAGES if row.name == "combine"]
        return self._stage(row)

    @property
    def stage_names(self) -> frozenset[str]:
        """The names of the stages for y: those of the table and of the registered heads."""
        return frozenset(row.name for row in STAGES) | {head.name for head in self.registered}

    def _applying(self, rows: Iterable[StageRow]) -> tuple[Stage, ...]:
        """The stages of the rows that apply and are not left out."""
        return tuple(self._stage(row) for row in rows if row.name not in self.leave_out and row.applies(self))

    def _stage(self, row: StageRow) -> Stage:
        slices = _Slices(partial(row.slices, self))
        return Stage(row.name, row.work_of_slice(self.sizes), self.data, self.grammar, self.prior, slices)

    @cached_property
    def sizes(self) -> Sizes:
        """What estimates of work are made of."""
        scanned = len(self.data.scan_rows)
        return Sizes(
            slots=len(self.data.stand_ins),
            rows=self.data.target.rows,
            scanned=scanned,
            responses=len(self.responses),
            k=self.k,
            operators=self.operators,
            max_columns=self._columns,
            max_outputs=self.max_memory // _SHARE_OF_A_LAYER // (8 * scanned),
        )

    # What the rows of the table are made of

    def on(self, head: Head, features: MakeFeatures | None = None, response: Response | None = None) -> Scan:
        """The scan of a head on these features (default: the slots) for this response (default: y)."""
        return partial(self._scan, head, features, response)

    def _scan(
        self, head: Head, features: MakeFeatures | None, response: Response | None, budget: Budget
    ) -> list[Candidate]:
        return_freed_memory(self.max_memory)
        return head.scan(
            features(budget) if features else self.slot_features, response or self.response, self.k, budget
        )

    def power_with_factor(self, response: Response | None = None) -> Scan:
        """Products of powers with one feature as a factor."""
        exponentials = any(operator.role is Role.EXPONENTIAL for operator in self.operators)
        return self.on(ProductOfPowers(1, exponentials), self.features, response)

    def powers_of_sums(self, *, functions: bool) -> list[Scan]:
        """One and two powers of sums; with `functions`, a companion in one of them."""
        return [self.on(PowersOfSums(self.operators, sums, functions)) for sums in (1, 2)]

    def sums_of_powers(self, *, functions: bool) -> list[Scan]:
        """Sums of powers for y and its powers; with `functions`, a companion in one term."""
        responses = [self.response, *power_responses(self.data, self.operators)]
        return [
            self.on(SumOfPowers(self.operators, terms, functions=functions), response=response)
            for terms in _TERMS_OF_SUMS
            for response in responses
        ]

    def one_feature(self, responses: Sequence[Response], head: OneFeature = _ONE_FEATURE) -> Iterator[Scan]:
        """One feature for each of these responses; a slice takes some of them and a part of the features.

        Features come in their order, the simplest first.
        """
        parts, groups = self.sizes.parts_of_extended, _groups_of_responses(len(responses))
        for group in range(groups):
            some = responses[len(responses) * group // groups : len(responses) * (group + 1) // groups]
            for number in range(parts):
                yield partial(self._scan_one_feature, head, some, number, parts)

    def _scan_one_feature(
        self, head: OneFeature, responses: Sequence[Response], number: int, parts: int, budget: Budget
    ) -> list[Candidate]:
        features = self.extended(budget).part(number, parts)
        return head.scan_responses(features, responses, self.response, self.k, budget)

    def features_times_polynomials(self) -> Iterator[Scan]:
        """A feature times a linear form, with an offset or beside a second one, for y and its transforms."""
        for outer in (0, 1):
            head = FeatureTimesPolynomial(outer)
            for response in [self.response, *self.responses_without_slots]:
                yield self.on(head, self.extended, response)

    def one_feature_on_polynomials(self) -> Iterator[Scan]:
        """One feature beside a full polynomial in the slots, for y and its transforms, where there are rows enough."""
        for degree in _BACKGROUND_DEGREES:
            terms = tuple(monomials(self.data.stand_ins, degree))
            if len(terms) <= self.data.target.rows - _SPARE_ROWS:
                responses = [self.response, *self.responses_without_slots]
                yield from self.one_feature(responses, OneFeature(background=terms))

    def two_terms(
        self,
        cap: int = 6000,
        response: Response | None = None,
        background: tuple[Expression, ...] = (Constant(1),),
        counts: tuple[int, ...] = (1, 2),
    ) -> Scan:
        """Two terms (or as many as `counts` says) of the `cap` simplest features beside a background."""
        return self.on(TwoTerms(background, cap=cap, counts=counts, device=self.device), self.extended, response)

    def two_terms_on_polynomials(self) -> Iterator[Scan]:
        """One term, and two, beside a full polynomial in the slots, where there are rows enough for it."""
        for degree in _POLYNOMIAL_DEGREES:
            terms = monomials(self.data.stand_ins, degree)
            if len(terms) <= self.data.target.rows - _SPARE_ROWS:
                yield from (self.two_terms(3000, background=tuple(terms), counts=(count,)) for count in (1, 2))

    def affine(self, cap: int = 4000, response: Response | None = None) -> list[Scan]:
        """Products and quotients of the `cap` simplest features, with scale and offset."""
        return [
            self.on(Affine((operator,), cap=cap, device=self.device), self.extended, response)
            for operator in self.operators
            if operator.role in MULTIPLICATIVE and operator.form is None
        ]

    def combined_slices(self) -> list[Scan]:
        """The operators that are scanned by matrix products; then all, where others are evaluated pair by pair.

        Together, because the losses of the quick ones let most pairs of the slow ones be given up after a few rows.
        """
        slow = pairwise_operators(self.operators)
        quick = tuple(operator for operator in self.operators if operator not in slow)
        scans = [self.on(Combine(quick, cap=_COMBINED), self.features)] if quick else []
        return scans + ([self.on(Combine(self.operators, cap=_COMBINED_PAIRWISE), self.features)] if slow else [])

    def sums_of_terms(self, searches: Sequence[SumSearch]) -> list[Scan]:
        """Each search of the head is a slice; beams over many products are cut into several."""
        parts = self.sizes.parts_of_sums
        cut: list[SumSearch] = []
        for search in searches:
            cut += search.cut(parts) if isinstance(search, BeamSearch) and parts > 1 else [search]
        return [
            self.on(SumOfTerms(self.operators, searches=(one,), max_memory=self.max_memory, device=self.device))
            for one in cut
        ]

    def inner_constants(self) -> list[Scan]:
        """Sums, then products."""
        return [self.on(InnerConstants(self.operators, products=(product,))) for product in (False, True)]

    @cached_property
    def meetings(self) -> Meetings:
        """What is undone of y, and the pairs that meet it."""
        return Meetings(self.data, self.operators, self.device)

    def until_law(self, scans: Iterable[Scan]) -> Scan:
        """These scans as one, which ends with the first that finds the law."""
        return partial(self._until_law, tuple(scans))

    def _until_law(self, scans: Sequence[Scan], budget: Budget) -> list[Candidate]:
        found: list[Candidate] = []
        for scan in scans:
            found += scan(budget)
            if budget.over() or any(self.data.is_law(candidate) for candidate in found):
                break
        return found

    def making(self, make: MakeFeatures) -> Scan:
        """A slice that makes features and finds nothing."""

        def scan(budget: Budget) -> list[Candidate]:
            make(budget)
            return []

        return scan

    def reduced_slices(self) -> Iterator[Scan]:
        """The reductions are found, and then each reduced problem is searched by the cheaper stages, in turn.

        A reduced problem is not reduced again. A required variable may stand in what was taken out of y: it is asked
        for when the law is whole again.
        """
        yield Priced(self._find_reductions, _FINDING_REDUCTIONS.of(self.sizes))
        for problem in self.reduced_problems(NO_LIMIT):
            yield from self._slices_on(problem)

    def in_groups_slices(self) -> Iterator[Scan]:
        """The problem in dimensionless groups, for a few choices of the base, searched by nearly all stages.

        All choices together, the cheapest slice next: a base that makes the law simple is soon met.
        """
        problems = in_groups(self.data)
        owners: dict[int, Reduced] = {}
        stages: list[Stage] = []
        for problem in problems:
            heads = replace(self._heads_on(problem), max_memory=self.max_memory // len(problems))
            for stage in (*heads._applying(_GROUP_STAGES), *heads.on_transforms()):
                owners[id(stage)] = problem
                stages.append(stage)
        for stage, number in in_turn(stages):
            yield Priced(partial(_scan_reduced, owners[id(stage)], stage, number), stage.work_of(number))

    def _heads_on(self, problem: Reduced) -> AllHeads:
        """The heads on a reduced problem; a law is judged as a whole when it is one again."""
        prior = replace(self.prior, required=(), units=None)
        return replace(self, data=problem.data(), prior=prior, origin=None)

    def _slices_on(self, problem: Reduced) -> Iterator[Scan]:
        """The cheaper stages on a reduced problem, in turn."""
        for stage, number in in_turn(self._heads_on(problem).on_reduced()):
            yield Priced(partial(_scan_reduced, problem, stage, number), stage.work_of(number))

    def _find_reductions(self, budget: Budget) -> list[Candidate]:
        self.reduced_problems(budget)
        return []

    def reduced_problems(self, budget: Budget) -> tuple[Reduced, ...]:
        """Problems with fewer slots, the fewest first. CutShortError where the budget is over before they are found."""
        if not self._reduced:
            self._reduced.append(furthest_reductions(self.data, budget))
        return self._reduced[0]

    # What the heads share

    @cached_property
    def grammar(self) -> OperatorGrammar:
        return OperatorGrammar(self.operators)

    @cached_property
    def response(self) -> Response:
        return Response.of(self.data)

    @property
    def several_slots(self) -> bool:
        return len(self.data.stand_ins) > 1

    @property
    def fitted_exponents(self) -> bool:
        """Whether sums of powers have slots enough to be more than features, and not too many to be fitted."""
        return 1 < len(self.data.stand_ins) <= _MAX_FITTED_SLOTS and self.alike

    @property
    def fitted_sums(self) -> bool:
        """Whether powers of sums may be fitted: also of one slot, since x**2.5/(x**2.5 + 7) is no feature.

        One slot comes with few rows more often than several do: without rows enough there is nothing to do.
        """
        one = len(self.data.stand_ins) == 1 and self.sizes.share_fitted(_POWERS_OF_SUMS) > 0
        return one or self.fitted_exponents

    @property
    def alike(self) -> bool:
        """Whether units let all slots stand in one sum: they have one dimension, or units forbid nothing."""
        units = self.data.units
        names = [slot.name for slot in self.data.stand_ins if isinstance(slot, Variable)]
        return self.plain_numbers or units is None or len({units.variables[name] for name in names}) == 1

    @property
    def plain_numbers(self) -> bool:
        """Whether units forbid nothing here: they are not known, numbers may have any, or no slot has one.

        Heads that join slots with free exponents, or in polynomials of unlike terms, run on dimensionless groups
        elsewhere.
        """
        units = self.data.units
        if units is None or units.free:
            return True
        names = [slot.name for slot in self.data.stand_ins if isinstance(slot, Variable)]
        return units.target.dimensionless and all(units.variables[name].dimensionless for name in names)

    @cached_property
    def responses(self) -> list[Response]:
        """The transforms of y that the data allow."""
        return responses_of(self.data, self.operators)

    @cached_property
    def responses_without_slots(self) -> list[Response]:
        """Those of them that do not join y with a slot."""
        return responses_of(self.data, self.operators, with_slots=False)

    @cached_property
    def slot_features(self) -> Features:
        """The slots and 1, for heads that make their own features."""
        return build_features(self.data.stand_ins, self._slots, (), 0)

    def features(self, budget: Budget = NO_LIMIT) -> Features:
        """Two layers on the slots and 1."""
        if self.origin is not None:
            return self.origin.features(budget)
        if "features" not in self._made:
            self._made["features"] = self._build_features(budget)
        return self._made["features"]

    def _build_features(self, budget: Budget) -> Features:
        features = build_features(
            self.data.stand_ins,
            self._slots,
            self.operators,
            2,
            max_columns=self._columns,
            max_bytes=self.max_memory // _SHARE_OF_A_LAYER,
            budget=budget,
            units=self.data.units,
        )
        if self.data.slots != self.data.stand_ins:
            return features
        features = features.straight_in(self.prior.straight)
        if not replace(self.prior, units=None, straight=()).forbids_parts:
            return features
        allowed = [i for i in range(len(features)) if self.prior.allows_part(features.expression(i))]
        return features.take(torch.tensor(allowed))

    def extended(self, budget: Budget = NO_LIMIT) -> Features:
        """The features of two layers, and u(v) of each of them for every unary operator u."""
        if self.origin is not None:
            return self.origin.extended(budget)
        if "extended" not in self._made:
            room = self.max_memory // _SHARE_OF_A_LAYER
            extended = extended_by_unary(self.features(budget), 5 * self._columns, room, budget)
            straight = self.prior.straight if self.data.slots == self.data.stand_ins else ()
            self._made["extended"] = extended.straight_in(straight)
        return self._made["extended"]

    @property
    def _columns(self) -> int:
        """The most features of two layers, so that `_COPIES` copies of them, 8 bytes a number, fit into the memory."""
        room = self.max_memory - _WORKSPACE
        return min(_MAX_COLUMNS, room // (_COPIES * 8 * len(self.data.scan_rows)))

    @property
    def _slots(self) -> Tensor:
        """Values (slots, scanned rows)."""
        return torch.stack([self.data.evaluate(slot)[self.data.scan_rows] for slot in self.data.stand_ins])


def _scan_reduced(problem: Reduced, stage: Stage, number: int, budget: Budget) -> list[Candidate]:
    """What a slice of a stage finds on the reduced problem, as candidates for y."""
    return [one for candidate in stage.run(number, budget) for one in problem.candidates(candidate)]


_EARLY = Work(0.05, lambda sizes: 1.0)
_LATE = Work(1.0, lambda sizes: max(row.work_of_slice(sizes) for row in STAGES))


def _registered_row(head: RegisteredHead) -> StageRow:
    """Nobody knows what a head from outside costs: 0.05 s are assumed, or of a late one as much as of the dearest."""

    def slices(heads: AllHeads) -> list[Scan]:
        wanted = {"slots": None, "layers": heads.features, "extended": heads.extended}[head.wanted]
        return [heads.on(head, wanted)]

    return StageRow(head.name, slices, _LATE if head.late else _EARLY)


def _transform_row(response: Response) -> StageRow:
    def slices(heads: AllHeads) -> Iterator[Scan]:
        yield heads.until_law([heads.on(ProductOfPowers(0), response=response), heads.power_with_factor(response)])
        yield heads.two_terms(3000, response)
        yield from heads.affine(2000, response)
        if len(heads.data.stand_ins) == 1:
            yield heads.on(RatioOfPolynomials(), response=response)

    return StageRow(f"for {response.name}", slices, _ON_RESPONSE, needs=EXTENDED)


def _quick_powers(heads: AllHeads) -> Iterator[Scan]:
    if "products of powers" not in heads.leave_out:
        yield heads.on(ProductOfPowers(0))
    if "powers with a factor" not in heads.leave_out:
        yield heads.power_with_factor()


_SLOT_STAGES = (
    FEATURES,
    StageRow(
        "powers",
        _quick_powers,
        Work(4e-8, lambda sizes: sizes.features * sizes.scanned, lambda sizes: sizes.fits(0.5 * sizes.k)),
        needs=FEATURES,
    ),
    EXTENDED,
    StageRow(
        "one feature",
        lambda heads: heads.one_feature([heads.response, *heads.responses_without_slots]),
        Work(
            2.4e-8,
            lambda sizes: sizes.extended * (sizes.scanned + 20) / sizes.parts_of_extended,
            lambda sizes: sizes.fits(4 * sizes.k),
        ),
        needs=EXTENDED,
    ),
    StageRow(
        "two terms",
        lambda heads: [heads.two_terms()],
        Work(
            8e-11,
            lambda sizes: min(6000, sizes.extended) ** 2 / 2 * sizes.scanned,
            lambda sizes: sizes.fits(3.5 * sizes.k),
        ),
        needs=EXTENDED,
    ),
    StageRow(
        "affine",
        lambda heads: heads.affine(5000),
        Work(
            1.4e-10,
            lambda sizes: min(5000, sizes.extended) ** 2 * 0.75 * sizes.scanned,
            lambda sizes: sizes.fits(2.2 * sizes.k),
        ),
        needs=EXTENDED,
    ),
    StageRow(
        "outer functions",
        lambda heads: [heads.two_terms(2500, response) for response in heads.responses_without_slots],
        _ON_RESPONSE,
        needs=EXTENDED,
    ),
)
"""The stages worth their time on tokens, where each step has other slots; with caps of their own."""


def first_pass(
    values: object,
    y: object,
    *,
    slots: Iterable[str | Expression] | None = None,
    operators: str | Iterable[str | Operator] = "koza",
    sample_weight: object = None,
    k: int = 10,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
    seed: int = 0,
) -> Shortlist:
    """One pass of all heads on the slots, from cheap to dear, until one of them has found the law; no tokens.

    The best k candidates, best first; among fits that are exact up to rounding the simplest first. After them come
    those, if any, that are simpler than all before them: the rest of the front of loss and complexity.

    `values` (rows, slots) and `y` (rows,) as for `PSRN.search`. The pass ends early when a candidate equals y up to
    rounding with constants that are recognised (or few for the number of rows); after `time_limit` seconds or when
    `stop()` is true it ends with what it has, and `complete` is False. `seed`: of all random numbers.

    >>> import numpy as np
    >>> x = np.linspace(0.5, 3, 20)
    >>> print(first_pass(x, 3 * x * np.sin(x) + 1, k=1)[0].expression)
    3*x1*sin(x1) + 1
    """
    check_whole("k", k)
    budget = Budget(time_limit, stop)
    records = get_operators(operators)
    columns, expressions = _checked(values, slots)
    target, rows = check_target(y, sample_weight, columns.shape[0])
    columns = columns[rows]
    informative = informative_columns(columns)
    slot_values = columns[:, informative].T.contiguous()
    data = make_data([expressions[i] for i in informative], slot_values, target, SCAN_ROWS, seed)
    with single_threaded():
        found, complete = _run(AllHeads(data, records, k), budget)
    return Shortlist(tuple(best_and_front(found, target, k)), complete, len(found))


def _run(heads: AllHeads, budget: Budget) -> tuple[list[Candidate], bool]:
    """All candidates, and whether the pass went to its end: to the law or through all slices."""
    found = heads.constant()
    if any(heads.data.is_law(candidate) for candidate in found):
        return found, True
    for stage, number in itertools.chain(in_turn(heads.on_target()), in_turn(heads.on_transforms())):
        if budget.over():
            return found, False
        new = stage.run(number, budget)
        found += new
        if any(heads.data.is_law(candidate) for candidate in new):
            return found, True
    return found, not budget.over()


def _checked(values: object, slots: Iterable[str | Expression] | None) -> tuple[Tensor, list[Expression]]:
    """Slot values (rows, slots) and the slots' expressions."""
    width = _width(values)
    names = slot_expressions(slots, width)
    columns = check_slots(values, width)
    if not width:
        raise ValueError("values must have at least one column")
    return columns, names


def pairwise_operators(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The binary operators that no matrix product scans: pow, and a user's own."""
    return tuple(operator for operator in operators if operator.arity == 2 and operator.role not in ARITHMETIC)


def informative_columns(columns: Tensor) -> list[int]:
    """The indices of the slots of `columns` (rows, slots) that are not constant and not equal to an earlier one.

    A law written with a constant column, or spread over two equal ones, would be right on these data only.
    """
    varying = _varying(columns)
    # Columns that differ in these few rows are different; only the others are compared in all rows, by a hash.
    rows = torch.linspace(0, len(columns) - 1, min(len(columns), _COMPARED_ROWS), dtype=torch.float64).long()
    keys = [tuple(key) for key in columns[rows].T.tolist()]
    count = Counter(keys)
    known: set[object] = set()
    found: list[int] = []
    for i, key in enumerate(keys):
        if not varying[i]:
            continue
        same = key if count[key] == 1 else (key, _hash(columns[:, i]))
        if same not in known:
            known.add(same)
            found.append(i)
    return found or [0]


def _varying(columns: Tensor) -> list[bool]:
    """Whether each column of (rows, slots) has two different values; a block of rows at a time."""
    varying = torch.zeros(columns.shape[1], dtype=torch.bool)
    step = max(1, _COMPARED_VALUES // max(1, columns.shape[1]))
    for start in range(0, len(columns), step):
        if bool(varying.all()):
            break
        varying |= (columns[start : start + step] != columns[0]).any(dim=0)
    return [bool(one) for one in varying.tolist()]


def _hash(column: Tensor) -> bytes:
    """A hash of a column (rows,) float64; 0 and -0 are equal."""
    return hashlib.blake2b((column + 0.0).numpy().tobytes()).digest()


def _width(values: object) -> int:
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, Sequence) and len(values):
        first = values[0]
        return len(first) if isinstance(first, Sequence) else 1
    return int(shape[1]) if shape is not None and len(shape) == 2 else 1
