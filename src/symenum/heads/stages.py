"""All heads on one set of slots, in stages from cheap to dear: their order, and one pass through them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.core.memory import DEFAULT_MEMORY, hand_back
from symenum.core.target import Target, check_slots, check_target, check_whole
from symenum.core.threads import single_threaded
from symenum.engine.network import slot_expressions
from symenum.engine.shortlist import Shortlist
from symenum.expressions import Constant, Expression
from symenum.expressions.algebra import plain
from symenum.expressions.candidate import Candidate
from symenum.heads.affine import Affine
from symenum.heads.combine import Combine
from symenum.heads.features import Features, build_features, extended_by_unary
from symenum.heads.head import Head, RegisteredHead, registered_heads
from symenum.heads.inner_constants import InnerConstants
from symenum.heads.one_feature import OneFeature
from symenum.heads.one_variable import OneVariable
from symenum.heads.operator_grammar import NO_PRIOR, OperatorGrammar, Prior
from symenum.heads.polynomial import Polynomial, monomials
from symenum.heads.powers_of_sums import PowersOfSums
from symenum.heads.product_of_angles import ProductOfAngles
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
    "ON_REDUCED",
    "OPENING",
    "SCAN_ROWS",
    "STAGE_NAMES",
    "TRANSFORMS",
    "AllHeads",
    "Stage",
    "first_pass",
    "stage_order",
    "telling",
]


# --------------------------------------------------------------------------------------------------------------------
# In which order the stages for y itself come: the cheap and the likely first.
#
# What is cheap depends on the data. Deep features on many rows cost seconds for several slots, fitted exponents and
# sums of terms hardly more than for two; with two slots it is the other way round.


MANY_SLOTS = 12  # with more, sums of products are cheaper than any features
_FEW_SLOTS = 2
_DEAR_ROWS = 128  # scanned; above, deep features come late
_BEGIN = ("products of powers", "polynomials")
OPENING = len(_BEGIN)  # stages that take milliseconds and come first; registered heads come after them
_SHALLOW = ("powers with a factor", "polynomials of transforms")
_EXPONENTS = ("powers of sums", "sums of powers")
_WITH_FUNCTIONS = ("products of angles", "powers of sums with a function", "sums of powers with a function")
_FEATURES = ("one feature", "ratios of polynomials")
_DEEP = ("powers with two factors", "one variable", "affine", "combine")
_END = ("inner constants", "rational")
_LAST = ("two terms on a polynomial",)
_SUMS, _REDUCTIONS, _TWO_TERMS = ("sums of terms",), ("reductions",), ("two terms",)
# For a problem that was reduced to few slots: transforms of y come early, deep features late.
ON_REDUCED = (
    *(*_BEGIN, "powers with a factor", "one feature", "one variable", "two terms", "powers with two factors"),
    *("outer functions", "ratios of polynomials", "affine", "inner constants"),
)
TRANSFORMS = "transforms"
"""The stages that look for a transform of y, one for each transform."""
STAGE_NAMES = tuple(
    dict.fromkeys(
        (
            *(*_BEGIN, *_SHALLOW, *_EXPONENTS, *_WITH_FUNCTIONS, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_DEEP, *_SUMS),
            *(*_END, *_LAST, *ON_REDUCED, TRANSFORMS),
        )
    )
)
"""All stages: what an ablation may leave out."""


def stage_order(slots: int, scanned_rows: int) -> tuple[str, ...]:
    """The names of the stages, first to last; those that the data or the operators do not allow are skipped later."""
    if slots == 1:
        return (*_BEGIN, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_DEEP, *_END, *_LAST)
    if slots <= _FEW_SLOTS:
        head = (*_BEGIN, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_DEEP, *_SUMS, *_END)
        return (*head, *_EXPONENTS, *_WITH_FUNCTIONS, *_LAST)
    if slots > MANY_SLOTS:
        return (*_BEGIN, *_SUMS, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_DEEP, *_END, *_LAST)
    if scanned_rows > _DEAR_ROWS:
        cheap = (*_BEGIN, *_EXPONENTS, *_SHALLOW, *_SUMS, *_REDUCTIONS, *_WITH_FUNCTIONS)
        return (*cheap, *_FEATURES, *_TWO_TERMS, *_DEEP, *_END, *_LAST)
    early = (*_BEGIN, *_EXPONENTS, *_SHALLOW, *_FEATURES, *_TWO_TERMS, *_REDUCTIONS, *_WITH_FUNCTIONS)
    return (*early, *_DEEP, *_SUMS, *_END, *_LAST)


# --------------------------------------------------------------------------------------------------------------------
# All heads on one set of slots, in stages from cheap to dear.
#
# `order` says which stage comes when. A stage is the unit in which a search stops, reports and takes turns; inside it
# heads run one after another, until one of them has found the law.


_TERMS = (2, 3)  # of sums of powers
_DEEP_COLUMNS = 30_000
_SPARE_ROWS = 6
_WORKSPACE = 150_000_000  # bytes that scans take whatever the number of features
_COPIES = 80  # of the features of two layers, extensions by unary operators included
_SHARE_OF_A_LAYER = 16  # a layer may take this part of the memory before duplicates are removed
Scan = Callable[[Budget], list[Candidate]]


@dataclass(frozen=True)
class Stage:
    """A few scans that belong together; `name` is what a progress display says."""

    name: str
    data: Data
    permitted: OperatorGrammar
    scans: tuple[Scan, ...]
    prior: Prior = NO_PRIOR

    def run(self, budget: Budget) -> list[Candidate]:
        """What the scans find and operators and prior permit, until the time is over or one of them has the law."""
        found: list[Candidate] = []
        for scan in self.scans:
            if budget.over():
                break
            try:
                new = [candidate for candidate in self._with_plain(scan(budget)) if self._allows(candidate)]
            except CutShortError:
                break
            found += new
            if any(self.data.is_law(candidate) for candidate in new):
                break
        return found

    def _allows(self, candidate: Candidate) -> bool:
        return self.permitted.allows(candidate.expression) and self.prior.allows(candidate.expression)

    def _with_plain(self, found: list[Candidate]) -> list[Candidate]:
        """And laws as people would write them, where the data agree; on the raw variables only, where they are read."""
        if self.data.slots != self.data.stand_ins:
            return found
        laws = [plain(candidate.expression) for candidate in found if self.data.is_law(candidate)]
        return found + [candidate for law in laws if (candidate := self.data.candidate(law)) is not None]


@dataclass(frozen=True)
class AllHeads:
    """The heads on `data`; each hands back its best `k`. Features are made when they are first needed.

    `max_memory` bounds what the features take: with less of it there are fewer, the dearest are left out first.
    `origin`: the same heads with other weights of the rows, whose features will do here too.
    With `reduce` one stage looks for fewer variables that y depends on, and for a law in these.
    `device`: "cpu", or anything else to let heads that can use a GPU choose by the size of their scan.
    `registered`: heads from outside the package, one stage each.
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
    leave_out: tuple[str, ...] = ()  # names of stages that do not run, for ablations only
    _made: dict[str, Features] = field(default_factory=dict, init=False, repr=False, compare=False)

    def with_target(self, target: Target) -> AllHeads:
        """The same heads on rows of other weights."""
        return replace(self, data=replace(self.data, target=target), origin=self.origin or self)

    @cached_property
    def permitted(self) -> OperatorGrammar:
        return OperatorGrammar(self.operators)

    @cached_property
    def response(self) -> Response:
        return Response.of(self.data)

    @cached_property
    def responses(self) -> list[Response]:
        return responses_of(self.data, self.operators)

    @cached_property
    def none(self) -> Features:
        """For heads that need the slots only."""
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
        fine = [i for i in range(len(features)) if self.prior.allows_part(features.expression(i))]
        return features.take(torch.tensor(fine))

    def extended(self, budget: Budget = NO_LIMIT) -> Features:
        """The same with u(v) of all of them."""
        if self.origin is not None:
            return self.origin.extended(budget)
        if "extended" not in self._made:
            room = self.max_memory // _SHARE_OF_A_LAYER
            self._made["extended"] = extended_by_unary(self.features(budget), 5 * self._columns, room, budget)
        return self._made["extended"]

    @property
    def _columns(self) -> int:
        """How many features of two layers: heads hold a few copies of five times as many."""
        room = self.max_memory - _WORKSPACE
        return min(_DEEP_COLUMNS, room // (_COPIES * 8 * len(self.data.scan_rows)))

    @property
    def _slots(self) -> Tensor:
        return torch.stack([self.data.evaluate(slot)[self.data.scan_rows] for slot in self.data.stand_ins])

    def constant(self) -> list[Candidate]:
        """The mean of y, which every law must beat, and a nice number near it."""
        mean = float((self.data.target.y * self.data.target.weight).sum())
        found = [self.data.candidate(Constant(mean)), self.response.fit([Constant(1)])]
        return [candidate for candidate in found if candidate is not None]

    def stages(self) -> Iterator[Stage]:
        """Every head on y, and then, one stage for each, on the transforms of y."""
        yield from self.on_target()
        yield from self.on_transforms()

    def on_target(self) -> Iterator[Stage]:
        """The stages that look for y itself; those whose results the operators cannot write are left out."""
        early = [head.name for head in self.registered if not head.late]
        late = [head.name for head in self.registered if head.late]
        order = stage_order(len(self.data.stand_ins), len(self.data.scan_rows))
        return self._in_order((*order[:OPENING], *early, *order[OPENING:], *late))

    def on_reduced(self) -> Iterator[Stage]:
        """The stages for a problem that was reduced to few slots."""
        return self._in_order(ON_REDUCED)

    @property
    def stage_names(self) -> frozenset[str]:
        """The names of the stages that the order may name."""
        return frozenset(self._scans())

    def _in_order(self, names: Sequence[str]) -> Iterator[Stage]:
        made = self._scans()
        return (self._stage(name, *made[name]) for name in names if made[name] and name not in self.leave_out)

    def _scans(self) -> dict[str, list[Scan]]:
        """The scans of each stage; none where they would find nothing that may be written."""
        on, alone = self._on, len(self.data.stand_ins) == 1
        quotients = self.permitted.quotients
        responses = responses_of(self.data, self.operators, with_slots=False)
        return {
            "products of powers": [on(ProductOfPowers(0))],
            "polynomials": [on(Polynomial())],
            "powers with a factor": [on(ProductOfPowers(1, self._exponentials), self.features)],
            "polynomials of transforms": [on(Polynomial(6), response=response) for response in self.responses],
            "one feature": [partial(self._one_feature, [self.response, *self.responses])],
            "ratios of polynomials": [on(RatioOfPolynomials())] if quotients else [],
            "reductions": [self._reduced] if self._reducible else [],
            "two terms": [on(TwoTerms(device=self.device), self.extended)],
            "powers with two factors": [on(ProductOfPowers(2, device=self.device), self.features)],
            "one variable": [on(OneVariable(self.operators))] if alone else [],
            "affine": [on(Affine(self._products, device=self.device), self.extended)],
            "combine": list(self.combined().scans),
            "sums of terms": [on(SumOfTerms(self.operators, max_memory=self.max_memory, device=self.device))],
            "inner constants": [on(InnerConstants(self.operators))],
            "rational": [on(Rational(device=self.device), self.features)] if quotients else [],
            "two terms on a polynomial": list(self._on_polynomials()),
            "outer functions": [
                on(TwoTerms(cap=3000, device=self.device), self.extended, response) for response in responses
            ],
            "products of angles": [on(ProductOfAngles(self.operators))],
            **self._fitted_exponents(functions=False),
            **self._fitted_exponents(functions=True),
            **{head.name: [on(head, self._wanted(head))] for head in self.registered},
        }

    def _fitted_exponents(self, *, functions: bool) -> dict[str, list[Scan]]:
        """Sums of powers for y and its powers, and powers of sums; with `functions`, one of the slots' in a term."""
        suffix = " with a function" if functions else ""
        responses = [self.response, *power_responses(self.data, self.operators)]
        return {
            f"powers of sums{suffix}": [self._on(PowersOfSums(self.operators, sums, functions)) for sums in (1, 2)],
            f"sums of powers{suffix}": [
                self._on(SumOfPowers(self.operators, terms, functions=functions), response=response)
                for terms in _TERMS
                for response in responses
            ],
        }

    def on_transforms(self) -> Iterator[Stage]:
        """The stages that look for a transform of y."""
        for response in () if TRANSFORMS in self.leave_out else self.responses:
            scans = [
                self._on(TwoTerms(cap=3000, device=self.device), self.extended, response),
                self._on(Affine(self._products, cap=2000, device=self.device), self.extended, response),
            ]
            if len(self.data.stand_ins) == 1:
                scans.append(self._on(RatioOfPolynomials(), response=response))
            yield self._stage(f"for {response.name}", *scans)

    def combined(self) -> Stage:
        """The paper's last layer: expressions as they are, no coefficients."""
        return self._stage("combine", self._on(Combine(self.operators, cap=6000), self.features))

    def quick(self) -> Iterator[Stage]:
        """The stages worth their time on slots that will be others in the next step."""
        return (stage for stage in self._quick() if stage.scans and stage.name not in self.leave_out)

    def _quick(self) -> Iterator[Stage]:
        responses = responses_of(self.data, self.operators, with_slots=False)
        powers = {
            "products of powers": self._on(ProductOfPowers(0)),
            "powers with a factor": self._on(ProductOfPowers(1, self._exponentials), self.features),
        }
        yield self._stage("powers", *(scan for name, scan in powers.items() if name not in self.leave_out))
        yield self._stage("one feature", partial(self._one_feature, [self.response, *responses]))
        yield self._stage("two terms", self._on(TwoTerms(cap=6000, device=self.device), self.extended))
        if len(self.data.stand_ins) == 1:
            yield self._stage("one variable", self._on(OneVariable(self.operators)))
        yield self._stage("affine", self._on(Affine(self._products, cap=5000, device=self.device), self.extended))
        yield self._stage(
            "outer functions",
            *(self._on(TwoTerms(cap=2500, device=self.device), self.extended, response) for response in responses),
        )

    @property
    def _exponentials(self) -> bool:
        return any(operator.role is Role.EXPONENTIAL for operator in self.operators)

    @property
    def _products(self) -> tuple[Operator, ...]:
        return tuple(
            operator for operator in self.operators if operator.role in MULTIPLICATIVE and operator.form is None
        )

    def _wanted(self, head: RegisteredHead) -> Callable[[Budget], Features] | None:
        """The features that a registered head asks for; None: those of the slots."""
        return {"slots": None, "layers": self.features, "extended": self.extended}[head.wanted]

    def _one_feature(self, responses: Sequence[Response], budget: Budget) -> list[Candidate]:
        return OneFeature().scan_responses(self.extended(budget), responses, self.k, budget)

    @property
    def _reducible(self) -> bool:
        return self.reduce and len(self.data.stand_ins) > 1 and self.permitted.products

    def _reduced(self, budget: Budget) -> list[Candidate]:
        return search_reduced(self.data, self._solve, budget)

    def _solve(self, data: Data, budget: Budget) -> list[Candidate]:
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

    def _on_polynomials(self) -> Iterator[Scan]:
        """Two terms beside a full polynomial, where there are rows enough for it, and not too many slots."""
        if len(self.data.stand_ins) > MANY_SLOTS:
            return
        for degree in (1, 2, 3):
            terms = monomials(self.data.stand_ins, degree)
            if len(terms) <= self.data.target.rows - _SPARE_ROWS:
                yield self._on(TwoTerms(tuple(terms), cap=3000, device=self.device), self.extended)

    def _stage(self, name: str, *scans: Scan) -> Stage:
        return Stage(name, self.data, self.permitted, scans, self.prior)

    def _on(
        self, head: Head, features: Callable[[Budget], Features] | None = None, response: Response | None = None
    ) -> Scan:
        return partial(self._scan, head, features, response)

    def _scan(
        self, head: Head, features: Callable[[Budget], Features] | None, response: Response | None, budget: Budget
    ) -> list[Candidate]:
        hand_back(self.max_memory)
        return head.scan(features(budget) if features else self.none, response or self.response, self.k, budget)


# --------------------------------------------------------------------------------------------------------------------
# One pass of all heads on the slots, from cheap to dear, until one of them has found the law.
#
# Simple laws come out here in the first second, without any search; what does not is the work of tokens.


SCAN_ROWS = 400  # scans look at no more rows; every candidate is fitted and judged on all


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
    """The best k candidates of all heads, best first; among fits that are exact up to rounding the simplest first.

    After them come those, if any, that are simpler than all before them: the rest of the front of loss and complexity.

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
    kept = telling(columns)
    data = make_data([expressions[i] for i in kept], columns[:, kept].T.contiguous(), target, SCAN_ROWS, seed)
    with single_threaded():
        found, complete = _run(AllHeads(data, records, k), budget)
    return Shortlist(tuple(best_and_front(found, target, k)), complete, len(found))


def _run(heads: AllHeads, budget: Budget) -> tuple[list[Candidate], bool]:
    """All candidates, and whether the pass went to its end."""
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


def telling(columns: Tensor) -> list[int]:
    """The slots of `columns` (rows, slots) that say something of their own: not constant, not equal to an earlier one.

    A law written with a constant column, or spread over two equal ones, would be right on these data only.
    """
    kept: list[int] = []
    for i, column in enumerate(columns.T):
        constant = bool((column == column[0]).all())
        if not constant and not any(torch.equal(column, columns[:, j]) for j in kept):
            kept.append(i)
    return kept or [0]


def _width(values: object) -> int:
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, Sequence) and len(values):
        first = values[0]
        return len(first) if isinstance(first, Sequence) else 1
    return int(shape[1]) if shape is not None and len(shape) == 2 else 1
