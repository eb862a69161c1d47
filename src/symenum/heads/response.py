"""What a head fits, how a fit becomes a candidate, and when a candidate is the law.

A response is y itself or a transform t = g(y) of it, with row weights, and the way back from an expression for t to
one for y. Whatever a head does, its candidates are judged on y, with the numbers that are printed. Which transforms
there are stands in `transforms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from symenum.core.dimensions import DIMENSIONLESS, Dimension
from symenum.core.exactness import EXACTNESS, loss_up_to
from symenum.core.seeds import sample_rows
from symenum.core.target import Target
from symenum.expressions import Constant, DimensionError, Expression, Units, Variable, evaluate, substitute, variables
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination, plain_number, snap
from symenum.fitting.linear import least_squares
from symenum.fitting.recognise import count_unsnapped

__all__ = [
    "ONE",
    "UNIT",
    "Data",
    "Response",
    "best_and_front",
    "best_first",
    "is_law",
    "law_limit",
    "make_data",
    "surplus_constants",
]


ONE = Constant(1)
"""1 as a term: the offset of a sum."""
UNIT = Number(1.0, ONE)
"""1 as a coefficient."""
_HOLE = "_hole"  # the variable that stands for t in a law for y; no column has such a name: it begins with _
_LARGEST_COEFFICIENT = 1e200  # beyond it a coefficient times a value near 1e108 overflows
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_ROWS_PER_CONSTANT = 12  # rows that vouch for one constant that is not a nice number
_MAX_UNRECOGNISED = 6  # such constants of a law: with more, a polynomial follows any smooth function up to rounding
_SNAPPING_COST = 2.0  # growth of the loss that snapping may cause, in units of loss/rows for each term


@dataclass(frozen=True)
class Data:
    """The slots, a variable that stands in for each, their columns by its name (rows,) float64, and the target.

    `scan_rows` (m,) int64: the rows that scans look at. `seed`: of all random numbers that heads draw. There may be
    columns of further variables, which are no slots: laws may hold them, and heads do not look at them. `units`: the
    dimensions of the stand-ins and of y, where they are known.
    """

    slots: tuple[Expression, ...]
    stand_ins: tuple[Expression, ...]
    columns: Mapping[str, Tensor]
    target: Target
    scan_rows: Tensor
    seed: int = 0
    units: Units | None = None

    def evaluate(self, expression: Expression) -> Tensor:
        """Values (rows,) float64 of an expression in the stand-ins."""
        columns = self.columns
        if len(columns) > len(self.stand_ins):  # `evaluate` looks at all that it gets; of hundreds that takes long
            needed = variables(expression) or tuple(columns)[:1]  # a number takes its shape from a column
            columns = {name: columns[name] for name in needed}
        values: Tensor = evaluate(expression, columns)
        return values

    def candidate(self, expression: Expression) -> Candidate | None:
        """The expression, with slots in place of stand-ins, and its loss on y; None where it is not finite on a row."""
        loss = float(self.target.loss(self.evaluate(expression)[None]))
        if not loss < float("inf"):  # NaN compares false
            return None
        names = [slot.name for slot in self.stand_ins if isinstance(slot, Variable)]
        printed = dict(zip(names, self.slots, strict=True))
        return Candidate(substitute(expression, printed), loss)

    def is_law(self, candidate: Candidate) -> bool:
        return is_law(candidate, self.target)


def make_data(
    slots: Sequence[Expression],
    values: Tensor,
    target: Target,
    scan_rows: int,
    seed: int = 0,
    units: Units | None = None,
) -> Data:
    """Data on slot values (slots, rows) float64; at most `scan_rows` rows, drawn at random, are scanned.

    `units`: of the variables that the slots hold, and of y; each slot must have a dimension.
    """
    taken = {slot.name for slot in slots if isinstance(slot, Variable)}
    stand_ins: list[Expression] = []
    for i, slot in enumerate(slots):
        name = slot.name if isinstance(slot, Variable) else f"slot{i}"
        while not isinstance(slot, Variable) and name in taken:
            name += "_"
        stand_ins.append(Variable(name))
    columns = {slot.name: column for slot, column in zip(stand_ins, values, strict=True) if isinstance(slot, Variable)}
    rows = sample_rows(target.rows, scan_rows, seed, "rows that scans look at")
    return Data(
        tuple(slots), tuple(stand_ins), columns, target, rows, seed, _units_of_stand_ins(units, slots, stand_ins)
    )


def _units_of_stand_ins(
    units: Units | None, slots: Sequence[Expression], stand_ins: Sequence[Expression]
) -> Units | None:
    """The same units by the names of the stand-ins; of a slot that is a free number, those of a plain number."""
    if units is None:
        return None
    of_slots = [units.of(slot) or DIMENSIONLESS for slot in slots]
    names = [one.name for one in stand_ins if isinstance(one, Variable)]
    return replace(units, variables={**units.variables, **dict(zip(names, of_slots, strict=True))})


@dataclass(frozen=True)
class Response:
    """`t` and `weight` (rows,) float64 on all rows, weights summing to 1; `wrap` makes a law for y of one for t."""

    data: Data
    name: str
    t: Tensor
    weight: Tensor
    wrap: Callable[[Expression], Expression]

    @staticmethod
    def of(data: Data) -> Response:
        """y itself."""
        return Response(data, "y", data.target.y, data.target.weight, lambda expression: expression)

    @property
    def is_target(self) -> bool:
        return self.t is self.data.target.y

    @cached_property
    def dimension(self) -> Dimension | None:
        """The dimension that t has; None where units are not known, or where no t makes a law of the target's unit."""
        units = self.data.units
        return None if units is None else units.wanted(self.wrap(Variable(_HOLE)), _HOLE)

    @property
    def dimension_of_terms(self) -> Dimension | None:
        """The dimension of whatever is multiplied by a number and added; None where units do not tell."""
        units = self.data.units
        return None if units is None or units.free else self.dimension

    @property
    def has_a_dimension(self) -> bool:
        """Whether there may be a law for it, as far as units tell."""
        return self.data.units is None or self.dimension is not None

    def suits(self, term: Expression) -> bool:
        """Whether a number times this may be one of several terms of t, as far as units tell."""
        units = self.data.units
        if units is None:
            return True
        try:
            found = units.of(term)
        except DimensionError:
            return False
        return found is None or self.dimension is None or units.may_have(self.dimension / found)

    def scanned(self) -> tuple[Tensor, Tensor]:
        """t and the square roots of the weights (scan rows,), float64."""
        weight = self.weight[self.data.scan_rows]
        return self.t[self.data.scan_rows], (weight / weight.sum()).sqrt()

    def candidate(self, expression: Expression) -> Candidate | None:
        """An expression for t, judged on y."""
        return self.data.candidate(self.wrap(expression))

    def fit(
        self,
        terms: Sequence[Expression],
        weight: Tensor | None = None,
        write: Callable[[Sequence[Number]], Expression] | None = None,
    ) -> Candidate | None:
        """The least-squares combination of the terms, constants snapped where the data agree, judged on y.

        `weight` (rows,): other row weights for the fit. `write` makes the expression of the coefficients; by default
        the sum of the terms, without those that units forbid. None where a term is not finite or too small for a
        coefficient.
        """
        if write is None and self.data.units is not None:
            terms = [term for term in terms if self.suits(term)]
            if not terms:
                return None
        A = torch.stack([self.data.evaluate(term) for term in terms], dim=1)
        if not bool(torch.isfinite(A).all()) or self._beyond_doubles(A):
            return None
        write = write or partial(linear_combination, terms=terms)
        row_weight = self.weight if weight is None else weight
        snapped = snap(A.numpy(), self.t.numpy(), row_weight.numpy())
        candidate = self.candidate(write(snapped.numbers))
        if all(not number.snapped for number in snapped.numbers):
            return candidate
        root = row_weight.sqrt()
        free = least_squares((A * root[:, None]).numpy(), (self.t * root).numpy()).coefficients
        plain = self.candidate(write([plain_number(float(value)) for value in free]))
        return self.prefer_snapped(candidate, plain, len(terms))

    def _beyond_doubles(self, A: Tensor) -> bool:
        """Whether a column of A (rows, terms) is so small beside t that its coefficient could not be written."""
        sizes = A.abs().amax(dim=0)
        sizes = sizes[sizes > 0]
        return bool(len(sizes)) and bool(self.t.abs().amax() / _LARGEST_COEFFICIENT > sizes.amin())

    def prefer_snapped(self, snapped: Candidate | None, plain: Candidate | None, terms: int) -> Candidate | None:
        """The snapped one, unless it is worse on y by more than rounding or its standard error."""
        if snapped is None or plain is None:
            return snapped or plain
        target = self.data.target
        allowed = plain.loss * (1 + _SNAPPING_COST * terms / target.rows)
        return snapped if snapped.loss <= max(allowed, law_limit(target)) else plain


def is_law(candidate: Candidate, target: Target) -> bool:
    """Whether it equals y up to rounding, with constants that are recognised, or few for the number of rows."""
    return candidate.loss <= law_limit(target) and not surplus_constants(candidate.expression, target.rows)


def law_limit(target: Target) -> float:
    """The loss up to which an expression equals y but for rounding."""
    return loss_up_to(EXACTNESS.law, target.mean_square)


def surplus_constants(expression: Expression, rows: int) -> int:
    """The number of its constants that are not recognised, beyond the number that so many rows vouch for."""
    return max(0, count_unsnapped(expression) - min(rows // _ROWS_PER_CONSTANT, _MAX_UNRECOGNISED))


def best_and_front(candidates: Iterable[Candidate], target: Target, k: int) -> list[Candidate]:
    """The best k, and after them those that no simpler one equals or beats: under noise the law is among these."""
    order = best_first(candidates, target)
    simplest = min((candidate.complexity for candidate in order[:k]), default=0)
    front = []
    for candidate in order[k:]:
        if candidate.complexity < simplest:
            simplest = candidate.complexity
            front.append(candidate)
    return order[:k] + front


def best_first(candidates: Iterable[Candidate], target: Target) -> list[Candidate]:
    """By loss, equal expressions once; laws up to rounding by unrecognised constants, complexity and length."""
    limit = law_limit(target)

    def key(candidate: Candidate) -> tuple[float, int, int, int, str]:
        text = str(candidate.expression)
        exact = candidate.loss <= limit
        loss = 0.0 if exact else candidate.loss
        return loss, count_unsnapped(candidate.expression) if exact else 0, candidate.complexity, len(text), text

    distinct: dict[Expression, Candidate] = {}
    for candidate in candidates:
        known = distinct.get(candidate.expression)
        if known is None or candidate.loss < known.loss:
            distinct[candidate.expression] = candidate
    return sorted(distinct.values(), key=key)
