"""One pass of all heads on the slots, from cheap to dear, until one of them has found the law.

Simple laws come out here in the first second, without any search; what does not is the work of tokens. The order is
that of the cost: with many slots sums of products are cheaper than deep features, with few it is the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.enumeration.shortlist import Candidate, Shortlist
from symenum.enumeration.target import check_names, check_slots, check_target, check_whole
from symenum.enumeration.threads import torch_threads
from symenum.expressions import Constant, Expression
from symenum.heads.affine import Affine
from symenum.heads.combine import Combine
from symenum.heads.features import Features, build_features, extended_by_unary
from symenum.heads.goal import Data, Goal, best_and_front, make_data
from symenum.heads.head import Head
from symenum.heads.inner import InnerConstants
from symenum.heads.one_feature import OneFeature
from symenum.heads.polynomial import Polynomial, monomials
from symenum.heads.product_of_powers import ProductOfPowers
from symenum.heads.rational import Rational, RatioOfPolynomials
from symenum.heads.sum_of_terms import SumOfTerms
from symenum.heads.transforms import goals_of
from symenum.heads.two_terms import TwoTerms
from symenum.operators import Operator, get_operators

__all__ = ["first_pass"]

SCAN_ROWS = 1024  # scans look at no more rows; every candidate is fitted and judged on all
_MANY_SLOTS = 12
_DEEP_COLUMNS = 30_000
_SPARE_ROWS = 6


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
) -> Shortlist:
    """The best k candidates of all heads, best first; among fits that are exact up to rounding the simplest first.

    After them come those, if any, that are simpler than all before them: the rest of the front of loss and complexity.

    `values` (rows, slots) and `y` (rows,) as for `PSRN.search`. The pass ends early when a candidate equals y up to
    rounding with constants that are recognised (or few for the number of rows); after `time_limit` seconds or when
    `stop()` is true it ends with what it has, and `complete` is False.

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
    kept = _telling(columns)
    data = make_data([expressions[i] for i in kept], columns[:, kept].T.contiguous(), target, SCAN_ROWS)
    with torch_threads(1):  # thousands of small operations: threads that wait for each other cost more than they do
        found, complete = _Pass(data, records, k, budget).run()
    return Shortlist(tuple(best_and_front(found, target, k)), complete, len(found))


def _checked(values: object, slots: Iterable[str | Expression] | None) -> tuple[Tensor, list[Expression]]:
    """Slot values (rows, slots) and the slots' expressions."""
    width = _width(values)
    names = check_names(slots, width)
    columns = check_slots(values, width)
    if not width:
        raise ValueError("values must have at least one column")
    return columns, names


def _telling(columns: Tensor) -> list[int]:
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


@dataclass(frozen=True)
class _Pass:
    data: Data
    operators: tuple[Operator, ...]
    k: int
    budget: Budget

    @cached_property
    def goal(self) -> Goal:
        return Goal.of(self.data)

    @cached_property
    def goals(self) -> list[Goal]:
        return goals_of(self.data, self.operators)

    @cached_property
    def none(self) -> Features:
        """For heads that need the slots only."""
        return build_features(self.data.stand_ins, self._slots, (), 0)

    @cached_property
    def features(self) -> Features:
        """Two layers on the slots and 1."""
        return build_features(self.data.stand_ins, self._slots, self.operators, 2, max_columns=_DEEP_COLUMNS)

    @cached_property
    def extended(self) -> Features:
        """The same with u(v) of all of them."""
        return extended_by_unary(self.features, 5 * _DEEP_COLUMNS)

    @property
    def _slots(self) -> Tensor:
        return torch.stack([self.data.evaluate(slot)[self.data.scan_rows] for slot in self.data.stand_ins])

    def run(self) -> tuple[list[Candidate], bool]:
        """All candidates, and whether the pass went to its end."""
        found = [candidate for candidate in [self._constant()] if candidate is not None]
        if any(self.data.is_law(candidate) for candidate in found):
            return found, True
        for stage in self._stages():
            if self.budget.over():
                return found, False
            new = list(stage())
            found += new
            if any(self.data.is_law(candidate) for candidate in new):
                return found, True
        return found, not self.budget.over()

    def _constant(self) -> Candidate | None:
        return self.goal.fit([Constant(1)])

    def _stages(self) -> Iterator[Callable[[], list[Candidate]]]:
        slots = len(self.data.stand_ins)
        sums = SumOfTerms(self.operators)
        products = tuple(operator for operator in self.operators if operator.name in ("mul", "div"))
        yield self._on(ProductOfPowers(0))
        yield self._on(Polynomial())
        if slots > _MANY_SLOTS:
            yield self._on(sums)
        yield self._on(ProductOfPowers(1), lambda: self.features)
        for goal in self.goals:
            yield self._on(Polynomial(6), goal=goal)
        yield lambda: OneFeature().scan_goals(self.extended, [self.goal, *self.goals], self.k, self.budget)
        yield self._on(RatioOfPolynomials())
        yield self._on(TwoTerms(), lambda: self.extended)
        yield self._on(ProductOfPowers(2), lambda: self.features)
        yield self._on(Affine(products), lambda: self.extended)
        yield self._on(Combine(self.operators, cap=6000), lambda: self.features)
        if 1 < slots <= _MANY_SLOTS:
            yield self._on(sums)
        yield self._on(InnerConstants(self.operators))
        yield self._on(Rational(), lambda: self.features)
        for degree in (1, 2, 3):
            terms = monomials(self.data.stand_ins, degree) if slots <= _MANY_SLOTS else []
            if 0 < len(terms) <= self.data.target.rows - _SPARE_ROWS:
                yield self._on(TwoTerms(tuple(terms), cap=3000), lambda: self.extended)
        for goal in self.goals:
            yield self._on(TwoTerms(cap=3000), lambda: self.extended, goal)
            yield self._on(Affine(products, cap=2000), lambda: self.extended, goal)
            if slots == 1:
                yield self._on(RatioOfPolynomials(), goal=goal)

    def _on(
        self, head: Head, features: Callable[[], Features] | None = None, goal: Goal | None = None
    ) -> Callable[[], list[Candidate]]:
        return lambda: head.scan(features() if features else self.none, goal or self.goal, self.k, self.budget)
