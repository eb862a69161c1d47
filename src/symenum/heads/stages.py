"""Which head runs when: the table of stages, their order on given data, and one pass through them.

A stage is a few scans that belong together. It is the unit in which a search stops, reports and takes turns; inside it
heads run one after another until one of them has found the law. `STAGES` says for each stage what it scans and when it
applies, `_ORDERS` in which order the stages come on which data, `AllHeads` holds what they share (data, features), and
`first_pass` runs them all once. What a search does between stages stands in `symenum.search`.
"""

from __future__ import annotations

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
from symenum.expressions import Constant, Expression
from symenum.expressions.algebra import plain_form
from symenum.expressions.candidate import Candidate
from symenum.heads.affine import Affine
from symenum.heads.combine import Combine
from symenum.heads.features import Features, build_features, extended_by_unary
from symenum.heads.head import Head, RegisteredHead, registered_heads
from symenum.heads.inner_constants import InnerConstants
from symenum.heads.one_feature import OneFeature
from symenum.heads.operator_grammar import NO_PRIOR, OperatorGrammar, Prior
from symenum.heads.polynomial import Polynomial, monomials
from symenum.heads.powers_of_sums import PowersOfSums
from symenum.heads.product_of_powers import ProductOfPowers
from symenum.heads.rational import Rational, RatioOfPolynomials
from symenum.heads.reductions import search_reduced
from symenum.heads.response import Data, Response, best_and_front, make_data
from symenum.heads.sum_of_powers import SumOfPowers
from symenum.heads.sum_of_terms import SumOfTerms
from symenum.heads.transforms import power_responses, responses_of
from symenum.heads.two_terms import TwoTerms
from symenum.operators import Operator, get_operators
from symenum.operators.traits import MULTIPLICATIVE, Role

__all__ = [
    "MANY_SLOTS",
    "SCAN_ROWS",
    "STAGES",
    "STAGE_NAMES",
    "TRANSFORMS",
    "AllHeads",
    "Stage",
    "StageRow",
    "first_pass",
    "informative_columns",
    "stage_order",
]


Scan = Callable[[Budget], list[Candidate]]


@dataclass(frozen=True)
class StageRow:
    """One row of the table: a stage's name, what it scans (heads run in that order), and when it applies.

    `group`: stages of one group run one after another; `_ORDERS` gives the order of the groups.
    """

    name: str
    group: str
    scans: Callable[[AllHeads], Iterable[Scan]]
    applies: Callable[[AllHeads], bool] = lambda heads: True


# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_TERMS_OF_SUMS = (2, 3)  # numbers of terms of sums of powers
_POLYNOMIAL_DEGREES = (1, 2, 3)  # of the polynomial that two terms stand beside

STAGES = (
    StageRow("products of powers", "opening", lambda heads: [heads.on(ProductOfPowers(0))]),
    StageRow("polynomials", "opening", lambda heads: [heads.on(Polynomial())]),
    StageRow("powers with a factor", "shallow", lambda heads: [heads.power_with_factor()]),
    StageRow(
        "polynomials of transforms",
        "shallow",
        lambda heads: [heads.on(Polynomial(6), response=response) for response in heads.responses],
    ),
    StageRow("powers of sums", "exponents", lambda heads: heads.powers_of_sums(functions=False)),
    StageRow("sums of powers", "exponents", lambda heads: heads.sums_of_powers(functions=False)),
    StageRow("powers of sums with a function", "functions", lambda heads: heads.powers_of_sums(functions=True)),
    StageRow("sums of powers with a function", "functions", lambda heads: heads.sums_of_powers(functions=True)),
    StageRow("one feature", "features", lambda heads: [heads.one_feature([heads.response, *heads.responses])]),
    StageRow(
        "ratios of polynomials",
        "features",
        lambda heads: [heads.on(RatioOfPolynomials())],
        lambda heads: heads.grammar.quotients,
    ),
    StageRow("two terms", "two terms", lambda heads: [heads.two_terms()]),
    StageRow(
        "reductions",
        "reductions",
        lambda heads: [heads.search_fewer_slots],
        lambda heads: heads.reduce and len(heads.data.stand_ins) > 1 and heads.grammar.products,
    ),
    StageRow(
        "powers with two factors",
        "deep",
        lambda heads: [heads.on(ProductOfPowers(2, device=heads.device), heads.features)],
    ),
    StageRow("affine", "deep", lambda heads: [heads.affine()]),
    StageRow("combine", "deep", lambda heads: heads.combined().scans),
    StageRow(
        "sums of terms",
        "sums",
        lambda heads: [heads.on(SumOfTerms(heads.operators, max_memory=heads.max_memory, device=heads.device))],
    ),
    StageRow("inner constants", "end", lambda heads: [heads.on(InnerConstants(heads.operators))]),
    StageRow(
        "rational",
        "end",
        lambda heads: [heads.on(Rational(device=heads.device), heads.features)],
        lambda heads: heads.grammar.quotients,
    ),
    StageRow("two terms on a polynomial", "last", lambda heads: heads.two_terms_on_polynomials()),
    StageRow(
        "outer functions",
        "reduced problems",
        lambda heads: [heads.two_terms(3000, response) for response in heads.responses_without_slots],
    ),
)
"""All stages that look for y itself; those of the group "reduced problems" run on such problems only."""

TRANSFORMS = "transforms"
"""The name for all the stages that look for a transform of y, one stage for each transform."""
STAGE_NAMES = (*(row.name for row in STAGES), TRANSFORMS)
"""What an ablation may leave out."""

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
MANY_SLOTS = 12  # with more slots, sums of products of slots are cheaper than features of one layer
_FEW_SLOTS = 2  # up to so many slots, deep features are cheaper than fitted exponents
_MANY_SCANNED_ROWS = 128  # with more rows, deep features of several slots cost seconds and come late


def _shape(slots: int, scanned_rows: int) -> str:
    """Which order of `_ORDERS` data of this shape have."""
    if slots == 1:
        return "one slot"
    if slots <= _FEW_SLOTS:
        return "few slots"
    if slots > MANY_SLOTS:
        return "many slots"
    return "several slots, many rows" if scanned_rows > _MANY_SCANNED_ROWS else "several slots, few rows"


# The cheap and the likely first. What is cheap depends on the data: deep features on many rows cost seconds for several
# slots, fitted exponents and sums of terms hardly more than for two slots; with two slots it is the other way round.
_ORDERS: dict[str, tuple[str, ...]] = {
    "one slot": ("opening", "shallow", "features", "two terms", "deep", "end", "last"),
    "few slots": (
        *("opening", "shallow", "features", "two terms", "reductions", "deep", "sums", "end"),
        *("exponents", "functions", "last"),
    ),
    "many slots": ("opening", "sums", "shallow", "features", "two terms", "reductions", "deep", "end", "last"),
    "several slots, many rows": (
        *("opening", "exponents", "shallow", "sums", "reductions", "functions"),
        *("features", "two terms", "deep", "end", "last"),
    ),
    "several slots, few rows": (
        *("opening", "exponents", "shallow", "features", "two terms", "reductions", "functions"),
        *("deep", "sums", "end", "last"),
    ),
}
_OPENING = sum(row.group == "opening" for row in STAGES)  # stages of milliseconds; early registered heads follow them
# For a problem that was reduced to few slots: transforms of y come early, deep features late.
_ON_REDUCED = (
    *("products of powers", "polynomials", "powers with a factor", "one feature", "two terms"),
    *("powers with two factors", "outer functions", "ratios of polynomials", "affine", "inner constants"),
)


def stage_order(slots: int, scanned_rows: int) -> tuple[str, ...]:
    """The names of the stages for y, first to last, before those that do not apply are left out."""
    groups = _ORDERS[_shape(slots, scanned_rows)]
    return tuple(row.name for group in groups for row in STAGES if row.group == group)


# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_COLUMNS = 30_000  # features of two layers
_WORKSPACE = 150_000_000  # bytes that scans take whatever the number of features
_COPIES = 80  # of the features of two layers that a head may hold, extensions by unary operators included
_SHARE_OF_A_LAYER = 16  # a layer may take 1/16 of the memory before duplicates are removed
_SPARE_ROWS = 6  # rows beyond the terms of a polynomial background
SCAN_ROWS = 400
"""The most rows that scans look at; every candidate is fitted and judged on all rows."""


@dataclass(frozen=True)
class Stage:
    """A few scans that belong together, on one set of data; `name` is what a progress display shows."""

    name: str
    data: Data
    grammar: OperatorGrammar
    scans: tuple[Scan, ...]
    prior: Prior = NO_PRIOR

    def run(self, budget: Budget) -> list[Candidate]:
        """The candidates of the scans that operators and prior permit; ends with the time, or when one is the law."""
        found: list[Candidate] = []
        for scan in self.scans:
            if budget.over():
                break
            try:
                new = [candidate for candidate in self._with_plain_forms(scan(budget)) if self._allows(candidate)]
            except CutShortError:
                break
            found += new
            if any(self.data.is_law(candidate) for candidate in new):
                break
        return found

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


MakeFeatures = Callable[[Budget], Features]


@dataclass(frozen=True)
class AllHeads:
    """The heads on `data`, and what they share; each gives its best `k`. Features are made when they are first needed.

    `max_memory` (bytes) bounds the features: with less of it there are fewer, and the most complex are left out first.
    `origin`: the same heads with other weights of the rows; its features are used here too.
    `reduce`: whether one stage looks for fewer variables that y depends on, and for a law in these.
    `device`: "cpu", or anything else to let heads that can use a GPU choose by the size of their scan.
    `registered`: heads from outside the package, one stage each.
    `leave_out`: names of stages that do not run, for ablations only.
    """

    data: Data
    operators: tuple[Operator, ...]
    k: int
    max_memory: int = DEFAULT_MEMORY
    prior: Prior = NO_PRIOR
    origin: AllHeads | None = None
    reduce: bool = True
    device: str = "cpu"
    registered: tuple[RegisteredHead, ...] = field(default_factory=registered_heads)
    leave_out: tuple[str, ...] = ()
    _made: dict[str, Features] = field(default_factory=dict, init=False, repr=False, compare=False)

    def with_target(self, target: Target) -> AllHeads:
        """The same heads on rows of other weights."""
        return replace(self, data=replace(self.data, target=target), origin=self.origin or self)

    def constant(self) -> list[Candidate]:
        """The mean of y, which every law must beat, and a nice number near it."""
        mean = float((self.data.target.y * self.data.target.weight).sum())
        found = [self.data.candidate(Constant(mean)), self.response.fit([Constant(1)])]
        return [candidate for candidate in found if candidate is not None]

    # The stages, in order

    def stages(self) -> Iterator[Stage]:
        """Every stage for y, and then one for each transform of y."""
        yield from self.on_target()
        yield from self.on_transforms()

    def on_target(self) -> Iterator[Stage]:
        """The stages that look for y itself, those of registered heads among them."""
        early = [head.name for head in self.registered if not head.late]
        late = [head.name for head in self.registered if head.late]
        order = stage_order(len(self.data.stand_ins), len(self.data.scan_rows))
        return self._in_order((*order[:_OPENING], *early, *order[_OPENING:], *late))

    def on_reduced(self) -> Iterator[Stage]:
        """The stages for a problem that was reduced to few slots."""
        return self._in_order(_ON_REDUCED)

    def on_transforms(self) -> Iterator[Stage]:
        """The stages that look for a transform of y."""
        for response in () if TRANSFORMS in self.leave_out else self.responses:
            scans = [self.two_terms(3000, response), self.affine(2000, response)]
            if len(self.data.stand_ins) == 1:
                scans.append(self.on(RatioOfPolynomials(), response=response))
            yield self._stage(f"for {response.name}", scans)

    def quick(self) -> Iterator[Stage]:
        """The stages for slots that will be others in the next step."""
        return self._applying(_QUICK_STAGES)

    def combined(self) -> Stage:
        """The paper's last layer: expressions as they are, no coefficients."""
        return self._stage("combine", [self.on(Combine(self.operators, cap=6000), self.features)])

    @property
    def stage_names(self) -> frozenset[str]:
        """The names that the order may hold: those of the table and of the registered heads."""
        return frozenset(self._rows())

    def _rows(self) -> dict[str, StageRow]:
        """The table of stages by name, with a row for each registered head."""
        rows = {row.name: row for row in STAGES}
        for head in self.registered:
            rows[head.name] = StageRow(head.name, "registered", partial(_registered_scans, head))
        return rows

    def _in_order(self, names: Sequence[str]) -> Iterator[Stage]:
        rows = self._rows()
        return self._applying([rows[name] for name in names])

    def _applying(self, rows: Iterable[StageRow]) -> Iterator[Stage]:
        """The stages of the rows that apply, have anything to scan, and are not left out."""
        for row in rows:
            scans = tuple(row.scans(self)) if row.name not in self.leave_out and row.applies(self) else ()
            if scans:
                yield self._stage(row.name, scans)

    def _stage(self, name: str, scans: Iterable[Scan]) -> Stage:
        return Stage(name, self.data, self.grammar, tuple(scans), self.prior)

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

    def power_with_factor(self) -> Scan:
        """Products of powers with one feature as a factor."""
        exponentials = any(operator.role is Role.EXPONENTIAL for operator in self.operators)
        return self.on(ProductOfPowers(1, exponentials), self.features)

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

    def one_feature(self, responses: Sequence[Response]) -> Scan:
        """One feature for each of these responses."""
        return partial(self._scan_one_feature, responses)

    def _scan_one_feature(self, responses: Sequence[Response], budget: Budget) -> list[Candidate]:
        return OneFeature().scan_responses(self.extended(budget), responses, self.k, budget)

    def two_terms(
        self, cap: int = 6000, response: Response | None = None, background: tuple[Expression, ...] = (Constant(1),)
    ) -> Scan:
        """Two terms of the `cap` simplest features beside a background."""
        return self.on(TwoTerms(background, cap=cap, device=self.device), self.extended, response)

    def two_terms_on_polynomials(self) -> Iterator[Scan]:
        """Two terms beside a full polynomial in the slots, where there are rows enough for it and few slots."""
        if len(self.data.stand_ins) > MANY_SLOTS:
            return
        for degree in _POLYNOMIAL_DEGREES:
            terms = monomials(self.data.stand_ins, degree)
            if len(terms) <= self.data.target.rows - _SPARE_ROWS:
                yield self.two_terms(3000, background=tuple(terms))

    def affine(self, cap: int = 4000, response: Response | None = None) -> Scan:
        """Products and quotients of the `cap` simplest features, with scale and offset."""
        products = tuple(
            operator for operator in self.operators if operator.role in MULTIPLICATIVE and operator.form is None
        )
        return self.on(Affine(products, cap=cap, device=self.device), self.extended, response)

    def search_fewer_slots(self, budget: Budget) -> list[Candidate]:
        """The scan of the stage "reductions"."""
        return search_reduced(self.data, self._solve_reduced, budget)

    def _solve_reduced(self, data: Data, budget: Budget) -> list[Candidate]:
        """What the cheaper stages find on a reduced problem, which is not reduced again.

        A required variable may stand in what was taken out of y: it is asked for when the law is whole again.
        """
        prior = replace(self.prior, required=())
        found: list[Candidate] = []
        for stage in replace(self, data=data, prior=prior, reduce=False, origin=None).on_reduced():
            found += stage.run(budget)
            if budget.over() or any(data.is_law(candidate) for candidate in found):
                break
        return found

    # What the heads share

    @cached_property
    def grammar(self) -> OperatorGrammar:
        return OperatorGrammar(self.operators)

    @cached_property
    def response(self) -> Response:
        return Response.of(self.data)

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
        )
        if not self.prior.forbids_parts or self.data.slots != self.data.stand_ins:
            return features
        allowed = [i for i in range(len(features)) if self.prior.allows_part(features.expression(i))]
        return features.take(torch.tensor(allowed))

    def extended(self, budget: Budget = NO_LIMIT) -> Features:
        """The features of two layers, and u(v) of each of them for every unary operator u."""
        if self.origin is not None:
            return self.origin.extended(budget)
        if "extended" not in self._made:
            room = self.max_memory // _SHARE_OF_A_LAYER
            self._made["extended"] = extended_by_unary(self.features(budget), 5 * self._columns, room, budget)
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


def _registered_scans(head: RegisteredHead, heads: AllHeads) -> list[Scan]:
    wanted = {"slots": None, "layers": heads.features, "extended": heads.extended}[head.wanted]
    return [heads.on(head, wanted)]


def _quick_powers(heads: AllHeads) -> Iterator[Scan]:
    if "products of powers" not in heads.leave_out:
        yield heads.on(ProductOfPowers(0))
    if "powers with a factor" not in heads.leave_out:
        yield heads.power_with_factor()


_QUICK_STAGES = (
    StageRow("powers", "quick", _quick_powers),
    StageRow(
        "one feature", "quick", lambda heads: [heads.one_feature([heads.response, *heads.responses_without_slots])]
    ),
    StageRow("two terms", "quick", lambda heads: [heads.two_terms()]),
    StageRow("affine", "quick", lambda heads: [heads.affine(5000)]),
    StageRow(
        "outer functions",
        "quick",
        lambda heads: [heads.two_terms(2500, response) for response in heads.responses_without_slots],
    ),
)
"""In this order: the stages worth their time on tokens, where each step has other slots; with caps of their own."""


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
    """All candidates, and whether the pass went to its end: to the law or through all stages."""
    found = heads.constant()
    stages = heads.stages()
    while not any(heads.data.is_law(candidate) for candidate in found):
        stage = next(stages, None)
        if stage is None or budget.over():
            return found, stage is None and not budget.over()
        found += stage.run(budget)
    return found, True


def _checked(values: object, slots: Iterable[str | Expression] | None) -> tuple[Tensor, list[Expression]]:
    """Slot values (rows, slots) and the slots' expressions."""
    width = _width(values)
    names = slot_expressions(slots, width)
    columns = check_slots(values, width)
    if not width:
        raise ValueError("values must have at least one column")
    return columns, names


def informative_columns(columns: Tensor) -> list[int]:
    """The indices of the slots of `columns` (rows, slots) that are not constant and not equal to an earlier one.

    A law written with a constant column, or spread over two equal ones, would be right on these data only.
    """
    found: list[int] = []
    for i, column in enumerate(columns.T):
        constant = bool((column == column[0]).all())
        if not constant and not any(torch.equal(column, columns[:, j]) for j in found):
            found.append(i)
    return found or [0]


def _width(values: object) -> int:
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, Sequence) and len(values):
        first = values[0]
        return len(first) if isinstance(first, Sequence) else 1
    return int(shape[1]) if shape is not None and len(shape) == 2 else 1
