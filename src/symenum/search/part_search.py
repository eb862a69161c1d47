"""A part of a nearly right law as a problem of its own: what it would have to be is a table, which the heads search.

A law of several variables is often right but for one part. In x3*(p(x4) - x1 + x5), where a long p follows what the
data ask for there to eight digits, x1, x3 and x5 are in their places, and only the form of p is not found: a search of
all variables is too wide for it. What the part must be in each row follows from y and from the rest of the law.

1. `parts_of` takes a law apart: what is in one or two variables, and stands in a sum or a product with other things.
2. A smooth curve beside the part takes up what the part misses while the constants of the rest are fitted. So they
   become those that the rest has beside the right part, and nice numbers among them are recognised.
3. `PartTable` holds what the part must be, row by row. The heads search it, slice by slice. What they find takes the
   place of the part, and all constants of the law are fitted together.

Which part has its turn, and when, is decided in `moves` and `schedule`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.memory import LAWS_REMEMBERED
from symenum.core.target import Target
from symenum.expressions import Apply, Constant, Expression, Variable, apply, simplify, substitute, variables
from symenum.expressions.algebra import Product, Sum, as_product, as_sum, folded_fraction, number_constant, with_factor
from symenum.expressions.candidate import Candidate
from symenum.expressions.template import Call
from symenum.fitting import tidy
from symenum.fitting.form_fit import derivatives
from symenum.fitting.free_constants import form_of, free_constants, freed, with_leaves
from symenum.fitting.smooth_functions import SmoothFit, fit_beside, needed_values
from symenum.front import Front
from symenum.heads.response import make_data
from symenum.heads.stages import SCAN_ROWS, Stage, in_turn
from symenum.operators.traits import ADDITIVE, MULTIPLICATIVE
from symenum.search.polish import fitted, tidied
from symenum.search.problem import Task
from symenum.search.template_search import price_of_form

__all__ = [
    "PART_TURN",
    "LawPart",
    "PartTable",
    "is_nearly_right",
    "part_table",
    "parts_of",
    "parts_to_search",
    "searched_part",
]

_HOLE = Variable("_part")  # stands for the part in the rest of a law
_KNOWN = Variable("_known_part")  # its values in the law as it is, beside which a curve is fitted
_CONSTANT = "_constant"  # what the names of the constants of the rest begin with, while they are fitted
_NEARLY = 1e-4  # of what the first law of the front leaves: noise of 1% leaves more, and its laws are not taken apart
_LAWS = 4  # laws of the front, the best, whose parts are searched: each is one more view of the same rest
_MOST_VARIABLES = 2  # of a part: its table is searched with features of all its variables
_LEAST_COMPLEXITY = 4  # of a part: a simpler one has been tried in every other form by the heads
_DIGITS = (1, 2, 3)  # significant digits that the constants of a rest are tried with, as those of laws (`polish`)
_ROUNDING_COST = 2.0  # the loss may grow by this factor, since a curve never follows a part to the last digit
_LEAST_ROWS = 48  # of the data: four for each coefficient of a curve in one variable
_MIN_ROWS = 12  # on which a part matters: as many as meetings ask for, to tell functions apart
_SMALL_WEIGHT = 1e-12  # of the largest weight of a row: below, the row says nothing of the part
_PART_WORK = 4.0  # work units of the slices on one table: a law of one variable is found in 1 to 4
_SLICES_OF_A_TURN = 0.4  # work units of the slices of one turn, or a little more: a slice takes up to 0.7,
PART_TURN = 0.3
"""Work units of a turn: 25 turns of benchmarks/loop.py, `exact`, took 0.25 s each, 25 on two random laws 0.33 s."""
_FINDS = 8  # finds of a turn that take the place of the part, those of the lowest price: a tenth of a second of fits


@dataclass(frozen=True)
class LawPart:
    """A part of a law, and the rest of it with `_HOLE` in its place."""

    rest: Expression
    part: Expression

    @property
    def form(self) -> Expression:
        """What tells it from other parts: the rest, whatever its constants are, and the variables of the part."""
        return apply("add", form_of(self.rest), sum_of_variables(self.part))

    def law(self, part: Expression) -> Expression:
        """The law with another part."""
        return simplify(substitute(self.rest, {_HOLE.name: part}))


def can_be_searched(columns: Iterable[str], rows: int) -> bool:
    """Whether laws of these columns may be taken apart: several, rows enough, and no name that is used here."""
    names = list(columns)
    taken = any(name in (_HOLE.name, _KNOWN.name) or name.startswith(_CONSTANT) for name in names)
    return len(names) > 1 and rows >= _LEAST_ROWS and not taken


def sum_of_variables(part: Expression) -> Expression:
    """The variables of a part, as an expression, so that a state can hold them."""
    names = variables(part)
    total: Expression = Variable(names[0])
    for name in names[1:]:
        total = apply("add", total, Variable(name))
    return total


def is_nearly_right(front: Front) -> bool:
    """Whether the best law leaves so little of y that most of it must be right."""
    return len(front) > 1 and _is_near(front[-1].loss, front)


def _is_near(loss: float, front: Front) -> bool:
    return loss - front.zero <= _NEARLY * (front[0].loss - front.zero)


def parts_to_search(front: Front, searched: Sequence[Expression]) -> Iterator[LawPart]:
    """The parts of nearly right laws of the front whose forms were not `searched`; the best law first, large parts."""
    known = set(searched)
    for law in [law for law in reversed(front) if _is_near(law.loss, front)][:_LAWS]:
        for part in parts_of(law.expression):
            if part.form not in known:
                known.add(part.form)
                yield part


# Taking a law apart


@lru_cache(LAWS_REMEMBERED)  # asked for the best laws of a front in every step
def parts_of(law: Expression) -> tuple[LawPart, ...]:
    """The parts of a law in one or two variables that stand in a sum or in a product with others; the largest first.

    Of a sum those terms are one part that have the same factor in other variables, and of a product those factors. A
    number in front of a sum is multiplied into it, so that what is a plain term of the law is one of the rest, too.

    >>> from symenum.expressions import parse
    >>> for found in parts_of(parse("2*x3*(3*sin(x4)**2 + exp(x4) - 0.5*x1) + x2")):
    ...     print(found.part, "|", found.rest)
    2*(3*sin(x4)**2 + exp(x4) - 0.5*x1) | _part*x3 + x2
    6*sin(x4)**2 + 2*exp(x4) | (_part - x1)*x3 + x2
    """
    found: dict[tuple[Expression, tuple[str, ...]], LawPart] = {}
    for one in _Apart().of(simplify(law), lambda inner: inner, 1.0):
        part = replace(one, rest=simplify(one.rest), part=simplify(one.part))
        if part.part.complexity >= _LEAST_COMPLEXITY and variables(part.part):
            found.setdefault((part.rest, tuple(variables(part.part))), part)
    return tuple(sorted(found.values(), key=lambda one: -one.part.complexity))


Wrap = Callable[[Expression], Expression]


class _Apart:
    """The walk through a law, from the root down; each node knows what stands around it."""

    def of(self, node: Expression, wrap: Wrap, scale: float) -> Iterator[LawPart]:
        """The parts of scale·node, around which `wrap` writes the rest of the law."""
        if not isinstance(node, Apply):
            return
        if node.operator.role in ADDITIVE:
            yield from self._of_sum(as_sum(node), wrap, scale)
        elif node.operator.role in MULTIPLICATIVE or len(as_product(node).factors) > 1:
            product = _scaled(as_product(node), scale)
            if product is not None:
                yield from self._of_product(product, wrap)
        else:
            for at, operand in enumerate(node.operands):

                def around(inner: Expression, at: int = at) -> Expression:
                    whole = Apply(node.operator, (*node.operands[:at], inner, *node.operands[at + 1 :]))
                    return wrap(whole if scale == 1 else with_factor(number_constant(scale), whole))

                yield from self.of(operand, around, 1.0)

    def _of_sum(self, total: Sum, wrap: Wrap, scale: float) -> Iterator[LawPart]:
        number = scale * total.number
        terms: list[Product] = []
        for added, one in total.terms:
            scaled = _scaled(as_product(one), scale if added else -scale)
            if scaled is None or not math.isfinite(number):
                return
            terms.append(scaled)
        for names in _sets_of_variables([term.close() for term in terms]):
            by_factor: dict[Product, list[int]] = {}
            for at, term in enumerate(terms):
                if names & set(variables(term.close())):
                    by_factor.setdefault(_outside(term, names), []).append(at)
            for factor, members in by_factor.items():
                alone = not factor.factors and not factor.divisors
                others = [term.close() for at, term in enumerate(terms) if at not in members]
                if alone and not others:
                    continue  # the part would be the whole sum, which belongs to what stands around it
                inside = [_inside(terms[at], names).close() for at in members]
                part = _sum_of(inside, number if alone else 0.0)
                hole = replace(factor, factors=(_HOLE, *factor.factors)).close()
                yield LawPart(wrap(_sum_of([hole, *others], 0.0 if alone else number)), part)
        for at, term in enumerate(terms):
            others = [other.close() for place, other in enumerate(terms) if place != at]

            def around(inner: Expression, others: list[Expression] = others) -> Expression:
                return wrap(_sum_of([inner, *others], number))

            yield from self.of(term.close(), around, 1.0)

    def _of_product(self, product: Product, wrap: Wrap) -> Iterator[LawPart]:
        whole = product.close()
        for names in _sets_of_variables([*product.factors, *product.divisors]):
            inside, outside = _inside(product, names), _outside(product, names)
            if variables(inside.close()) and (outside.factors or outside.divisors):
                yield LawPart(wrap(replace(outside, factors=(_HOLE, *outside.factors)).close()), inside.close())
        for at, factor in enumerate(product.factors):
            if factor == whole:
                continue  # a number that cannot be folded: nothing stands beside it
            left = replace(product, factors=(*product.factors[:at], *product.factors[at + 1 :]))
            if _is_sum(factor):
                left = replace(left, numerator=1, denominator=1)

            def above(inner: Expression, left: Product = left) -> Expression:
                return wrap(replace(left, factors=(inner, *left.factors)).close())

            yield from self.of(factor, above, product.number if _is_sum(factor) else 1.0)
        for at, divisor in enumerate(product.divisors):
            left = replace(product, divisors=(*product.divisors[:at], *product.divisors[at + 1 :]))

            def below(inner: Expression, left: Product = left) -> Expression:
                return wrap(replace(left, divisors=(inner, *left.divisors)).close())

            yield from self.of(divisor, below, 1.0)


def _is_sum(node: Expression) -> bool:
    return isinstance(node, Apply) and node.operator.role in ADDITIVE


def _scaled(product: Product, scale: float) -> Product | None:
    """scale·product; None where its number is too large or too small to fold."""
    if scale == 1:
        return product
    number = folded_fraction(product.numerator * scale, product.denominator)
    return None if number is None else replace(product, numerator=number[0], denominator=number[1])


def _sum_of(terms: Sequence[Expression], number: float) -> Expression:
    return simplify(Sum(tuple((True, term) for term in terms), number).close())


def _sets_of_variables(pieces: Sequence[Expression]) -> Iterator[frozenset[str]]:
    """The sets of variables that a part may have: each alone, and those that a piece has together."""
    sets = [frozenset(variables(piece)) for piece in pieces]
    single = sorted(frozenset().union(*sets)) if sets else []
    yield from (frozenset([name]) for name in single)
    yield from dict.fromkeys(names for names in sets if 1 < len(names) <= _MOST_VARIABLES)


def _inside(product: Product, names: frozenset[str]) -> Product:
    """The number and what is in these variables alone."""
    return replace(product, factors=_within(product.factors, names), divisors=_within(product.divisors, names))


def _outside(product: Product, names: frozenset[str]) -> Product:
    """What holds other variables, too; without the number."""
    factors, divisors = (
        tuple(one for one in some if one not in _within(some, names)) for some in (product.factors, product.divisors)
    )
    return Product(1, 1, factors, divisors)


def _within(pieces: Sequence[Expression], names: frozenset[str]) -> tuple[Expression, ...]:
    return tuple(one for one in pieces if names.issuperset(variables(one)))


# The table of a part


def searched_part(task: Task, part: LawPart, first: int, budget: Budget) -> tuple[list[Candidate], int | None]:
    """One turn on the table of a part, from slice `first` on: laws, and the next slice; None where none is left."""
    known = task.part_tables
    if part not in known:
        table = part_table(task, part, budget)
        if budget.over():  # it may have been cut short
            return [], first
        known.clear()
        known[part] = table
    found = known[part]
    return ([], None) if not isinstance(found, PartTable) else found.turn(first, task, budget)


@dataclass
class PartTable:
    """What a part must be, and the slices of the heads that search it.

    `part`: with the constants of the rest as they are beside the right part. `price`: of the part as it stands in the
    law, on the table; what is found must cost less.
    """

    part: LawPart
    target: Target
    price: float
    _slices: Iterator[tuple[Stage, int]] = field(repr=False)
    _known: list[tuple[Stage, int, float]] = field(default_factory=list, repr=False)

    def turn(self, first: int, task: Task, budget: Budget) -> tuple[list[Candidate], int | None]:
        """The laws that follow from some slices, from number `first` on; and the number of the next slice, if any."""
        found: list[Candidate] = []
        number: int | None = first
        spent = 0.0
        while number is not None and spent < _SLICES_OF_A_TURN and not budget.over():
            place = self.slice(number)
            if place is None:
                number = None
            else:
                stage, at, work = place
                found += stage.run(at, budget)
                spent, number = spent + work, number + 1
        return self.laws(task, found, budget), number

    def slice(self, number: int) -> tuple[Stage, int, float] | None:
        """Slice `number` and its work; None where the work of all before it is done. Laid out as they are asked for."""
        while len(self._known) <= number:
            if sum(work for _, _, work in self._known) >= _PART_WORK:
                return None
            found = next(self._slices, None)
            if found is None:
                return None
            stage, at = found
            self._known.append((stage, at, stage.work_of(at)))
        return self._known[number]

    def laws(self, task: Task, found: Sequence[Candidate], budget: Budget) -> list[Candidate]:
        """The laws with the best finds in the place of the part, all constants fitted together."""
        rows, floor = self.target.rows, self.target.floor
        by_price = sorted((price_of_form(one, rows, floor), place) for place, one in enumerate(found))
        limit, complexity_of = task.settings.max_complexity, task.empty_front.complexity_of
        laws = (self.part.law(found[place].expression) for price, place in by_price if price < self.price)
        chosen = islice(dict.fromkeys(law for law in laws if complexity_of(law) <= limit), _FINDS)
        whole = fitted(task, list(chosen), budget)
        return whole + tidied(task, whole, budget)


def part_table(task: Task, one: LawPart, budget: Budget = NO_LIMIT) -> PartTable | None:
    """The table of a part; None where the rest of the law does not say what it must be."""
    data = task.data
    columns, y, weight = data.columns, data.target.y, data.target.weight
    part = data.evaluate(one.part)
    beside = _beside_curve(one, freed(one.rest), part, task, budget)
    if beside is None:
        return None
    rounded = _in_few_digits(one, beside, part, task, budget)
    if rounded is not None:
        rest, value = rounded.rest, rounded.value
    else:
        named = {**columns, _HOLE.name: beside.value}
        rest = tidy(beside.rest, named, y, weight, budget=budget, seed=task.settings.seed).expression
        value = beside.value
    if _HOLE.name not in variables(rest):
        return None
    needed, slope = _needed(rest, value, task)
    weights = weight * slope.square()
    counted = torch.isfinite(needed) & torch.isfinite(weights) & (weights > _SMALL_WEIGHT * weights.max())
    if int(counted.sum()) < _MIN_ROWS:
        return None
    names = variables(one.part)
    target = Target(needed[counted], weights[counted] / weights[counted].sum())
    values = torch.stack([columns[name][counted] for name in names])
    own = make_data([Variable(name) for name in names], values, target, SCAN_ROWS, task.settings.seed)
    heads = replace(task.make_heads(own), prior=replace(task.prior, required=(), units=None))
    old = Candidate(one.part, float(target.loss(part[counted][None])))
    price = price_of_form(old, target.rows, target.floor)
    return PartTable(replace(one, rest=rest), target, price, in_turn(heads.on_part()))


@dataclass(frozen=True)
class _Beside:
    """The rest of a law as it is beside a smooth part, the values of that part (rows,), and the loss of both."""

    rest: Expression
    value: Tensor
    loss: float


def _beside_curve(
    one: LawPart, rest: Expression, part: Tensor, task: Task, budget: Budget, *, free: bool = True
) -> _Beside | None:
    """The rest beside the part (rows,) and a curve; its constants are fitted with the curve, where they are `free`."""
    data = task.data
    values = free_constants(rest, integers=False) if free else ()
    names = [f"{_CONSTANT}{at + 1}" for at in range(len(values))]
    named = with_leaves(rest, [Variable(name) for name in names], integers=False) if names else rest
    size = float(part.std()) or 1.0  # the curve is in units of the part, so that its price is the same in any
    curve = apply("mul", Constant(size), _HOLE)
    whole = substitute(named, {_HOLE.name: apply("add", _KNOWN, curve)})
    call = Call(_HOLE.name, "part", tuple(Variable(name) for name in variables(one.part)))
    columns = {**data.columns, _KNOWN.name: part}
    starts = dict(zip(names, values, strict=True))
    found = fit_beside(whole, call, starts, columns, data.target.y, data.target.weight, budget=budget)
    if found is None:
        return None
    if names:
        rest = with_leaves(rest, [Constant(found.constants[name]) for name in names], integers=False)
    return _Beside(rest, part + size * torch.from_numpy(found.values[_HOLE.name].copy()), found.loss)


def _in_few_digits(one: LawPart, beside: _Beside, part: Tensor, task: Task, budget: Budget) -> _Beside | None:
    """The rest with its constants in the fewest digits that cost next to nothing; None where all cost something.

    What a curve misses of the part moves the constants by more than their standard errors, which `tidy` goes by.
    """
    values = free_constants(beside.rest, integers=False)
    for digits in _DIGITS if values else ():
        leaves = [number_constant(float(f"{value:.{digits}g}")) for value in values]
        rest = simplify(with_leaves(beside.rest, leaves, integers=False))
        found = _beside_curve(one, rest, part, task, budget, free=False)
        if found is not None and found.loss <= _ROUNDING_COST * beside.loss:
            return found
    return None


def _needed(rest: Expression, part: Tensor, task: Task) -> tuple[Tensor, Tensor]:
    """What the part must be for the law to equal y (rows,), near these values of it, and the slope of the law there."""
    data = task.data
    value, slopes = derivatives(rest, [_HOLE.name], {**data.columns, _HOLE.name: part})
    place = {_HOLE.name: part.numpy()}, {_HOLE.name: slopes[0].numpy()}, (data.target.y - value).numpy()
    start = SmoothFit(*place, 0.0, 0.0, 0.0, {}, {}, 0.0)
    needed, slope = needed_values(start, rest, _HOLE.name, data.columns, data.target.y)
    return torch.from_numpy(needed), torch.from_numpy(slope)
