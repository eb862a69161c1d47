"""What a head fits, how a fit becomes a candidate, and when a candidate is the law.

A response is y itself or a transform t = g(y) of it, with row weights, and the way back from an expression for t to
one for y. Whatever a head does, its candidates are judged on y, with the numbers that are printed. Which transforms
there are stands in `transforms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS, loss_up_to
from symenum.core.seeds import sample_rows
from symenum.core.target import Target
from symenum.expressions import Constant, Expression, Variable, evaluate, substitute, variables
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
_LARGEST_COEFFICIENT = 1e200  # beyond it a coefficient times a value near 1e108 overflows
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_ROWS_PER_CONSTANT = 12  # rows that vouch for one constant that is not a nice number
_MAX_UNRECOGNISED = 6  # such constants of a law: with more, a polynomial follows any smooth function up to rounding
_SNAPPING_COST = 2.0  # growth of the loss that snapping may cause, in units of loss/rows for each term


@dataclass(frozen=True)
class Data:
    """The slots, a variable that stands in for each, their columns by its name (rows,) float64, and the target.

    `scan_rows` (m,) int64: the rows that scans look at. `seed`: of all random numbers that heads draw. There may be
    columns of further variables, which are no slots: laws may hold them, and heads do not look at them.
    """

    slots: tuple[Expression, ...]
    stand_ins: tuple[Expression, ...]
    columns: Mapping[str, Tensor]
    target: Target
    scan_rows: Tensor
    seed: int = 0

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


def make_data(slots: Sequence[Expression], values: Tensor, target: Target, scan_rows: int, seed: int = 0) -> Data:
    """Data on slot values (slots, rows) float64; at most `scan_rows` rows, drawn at random, are scanned."""
    taken = {slot.name for slot in slots if isinstance(slot, Variable)}
    stand_ins: list[Expression] = []
    for i, slot in enumerate(slots):
        name = slot.name if isinstance(slot, Variable) else f"slot{i}"
        while not isinstance(slot, Variable) and name in taken:
            name += "_"
        stand_ins.append(Variable(name))
    columns = {slot.name: column for slot, column in zip(stand_ins, values, strict=True) if isinstance(slot, Variable)}
    rows = sample_rows(target.rows, scan_rows, seed, "rows that scans look at")
    return Data(tuple(slots), tuple(stand_ins), columns, target, rows, seed)


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
        the sum of the terms. None where a term is not finite or too small for a coefficient.
        """
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
