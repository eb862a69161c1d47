"""Growth: laws of real data are sums and products of unlike parts, so a law of the front is a base for a larger one.

Two moves. In `grown` one more part comes into the law, at any place of it (`insertion`), or one function around the
whole of it, or another function takes the place of one. All constants are then fitted together, the inner ones too: the
first parts were chosen without the new one, and their constants with them. Parts that no longer earn their place leave;
their `price` decides, so that noise is not fitted. A grown law stands on the front, and so is a base itself.

In `continued` the heads search what the law leaves of y: one or two further terms beside its own, or a further factor
in y/f = g. That is dearer, and finds parts that are larger than those of an insertion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.expressions import Apply, Constant, Expression, Variable, apply, simplify, variables
from symenum.expressions.candidate import Candidate
from symenum.fitting import (
    Fit,
    Number,
    least_squares,
    linear_combination,
    plain_number,
    refine,
    with_one_less,
)
from symenum.fitting.free_constants import form_of, freed
from symenum.front import Front
from symenum.heads.response import ONE, best_first
from symenum.heads.stages import Scan
from symenum.heads.transforms import Transform, allowed_responses
from symenum.heads.work import Sizes
from symenum.operators import Abilities
from symenum.operators.traits import ADDITIVE, MULTIPLICATIVE, Role
from symenum.search.front_update import near
from symenum.search.insertion import below, best_insertions, common_factors, places_of, replaced, swaps
from symenum.search.polish import fitted, with_right_units
from symenum.search.problem import Task
from symenum.search.state import State

__all__ = ["bases", "continued", "form_of", "grown", "growth_work", "parts_of_continuation", "price", "simple_bases"]

_LINES = (Role.IDENTITY, Role.NEGATION, Role.MAGNITUDE)  # straight lines, whatever the range of their argument
_LEAST_KNOWN = 1e-14  # of the variance of y: a smaller loss of a sum of many terms is rounding
_LEAST_LOSS = 1e-300  # of which a logarithm is taken
_STEPS = 12  # Levenberg-Marquardt steps of a law with one more part: most are at their minimum after six
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MATERIAL = 24  # variables that parts are made of; the others become terms as they are
_INSERTIONS = 40  # laws with one more part that are fitted, those that promise most
_PRUNED = 6  # of these, the cheapest, that lose what they do not need
_PRUNING_ROUNDS = 2  # parts that one of them may lose in a turn
_SHORTER_LAWS = 60  # laws with a part less that are fitted in one round
_EQUALLY_COMPLEX = 3  # finds of one complexity that a turn hands back
_LEAST_USE = (
    0.05  # part of its scale (a period, 1, or the distance to its pole) that a function's argument must go through
)
_OUTER_SHIFT = 0.3  # in units of the range of a law: where the argument of a function around it begins
_MAX_VARYING = 6  # terms of a sum whose coefficients may vary with a function of a variable
_VARYING = 4  # such functions that are tried
# Fitted to 18 turns on three tables of PMLB (250 and 1,000 rows, laws of complexity 0 to 34, two cores), whose mean
# they meet. In a long search on 200 rows long laws took about twice as long (RESULTS.md, "The guard on 2026-11-17").
_TURN, _JUDGING, _FITTING = 0.17, 1.4e-8, 0.011
_FITTED = 30  # candidates of all heads, the best first, whose constants are fitted together
_PAIR_FEATURES = 2000  # features of two more terms


def growth_work(sizes: Sizes, complexity: int) -> float:
    """Work units of a turn of `grown`; with the law's complexity grow the places to judge and the constants to fit."""
    columns = min(_MATERIAL, sizes.slots)
    judged = _JUDGING * sizes.scanned * (100 * columns + columns**2) * (2 + complexity)
    return _TURN + judged + _FITTING * (2 + complexity) * (1 + sizes.rows / 500)


def bases(front: Front, known: Sequence[Expression]) -> list[Candidate]:
    """The laws of the front whose forms are not `known`, the cheapest first."""
    forms = set(known)
    order = sorted(front, key=lambda law: price(law, front.floor, front.rows))
    return [law for law in order if form_of(law.expression) not in forms]


def simple_bases(state: State) -> list[Candidate]:
    """The laws of the front, then the runners-up, whose forms have not grown yet.

    Runners-up come in rounds, the second best law of each complexity, then the third, the simplest first in each: what
    is second to another form may be nearer to the law that both approach.

    Without noise they are the only bases. The long laws of the front are series there, such as sinh and sin of small
    arguments for x**3: of the lowest price, and one more part leaves less of y, but none of them ends at the law.
    """
    front, known = state.front, set(state.grown)
    found = [law for law in front if form_of(law.expression) not in known]
    ranks: dict[int, int] = {}
    others: list[tuple[int, Candidate]] = []
    for law in sorted(near(front, state.runners_up), key=lambda one: one.loss):
        rank = ranks[law.complexity] = ranks.get(law.complexity, 0) + 1
        others.append((rank, law))
    others.sort(key=lambda one: (one[0], one[1].complexity))
    return found + [law for _, law in others if form_of(law.expression) not in known]


def price(law: Candidate, floor: float, rows: int) -> float:
    """What law and data cost, in nats: rows·log(loss) + complexity·log(rows); losses up to the `floor` are alike.

    A part that is not needed still lowers the loss, the more so the more parts it was chosen from. Where parts grow
    with their number as complexity says, this is what chance takes off; a part must take off more.
    """
    return price_of(law.loss, law.complexity, floor, rows)


def price_of(loss: float, complexity: int, floor: float, rows: int) -> float:
    """The price of a law with this loss and complexity."""
    return rows * math.log(max(loss, floor, _LEAST_LOSS)) + complexity * math.log(max(2, rows))


def grown(task: Task, law: Expression, budget: Budget) -> list[Candidate]:
    """Laws that are the law with one more part, or one more and one less, with losses on the working rows.

    Only those of a lower price than the law, and those that are simpler than it.
    """
    terms = _as_sum(task, law)
    if terms is None:
        return []
    data, base = task.data, terms.scaled(1.0, 0.0)
    values = data.evaluate(base)
    old = data.candidate(base)
    if old is None:
        return []
    scanned = {name: column[data.scan_rows] for name, column in data.columns.items()}
    target = data.target.at(data.scan_rows)
    material = task.material(base, _MATERIAL)
    alone = [one for name in data.columns if (one := Variable(name)) not in material]
    allowed = partial(_may_grow_to, task) if task.prior.forbids_parts else None
    promising = best_insertions(base, scanned, target, material, alone, task.settings.operators, _INSERTIONS, allowed)
    around = _around(task, terms, float(values.min()), float(values.max())) if variables(base) else ()
    swapped = swaps(base, scanned, target, task.settings.operators)
    new = _fitted(task, [base, *(one.law for one in promising), *swapped, *around], budget)
    new += _varying(task, tuple(dict.fromkeys([*terms.terms, *material]))[:_MAX_VARYING], scanned, budget)
    best = _cheapest(task, new)
    known: set[Expression] = set()
    for _ in range(_PRUNING_ROUNDS):
        variants = (variant for one in best for variant in _with_one_less(one.expression) if variant not in known)
        shorter = list(dict.fromkeys(islice(variants, _SHORTER_LAWS)))
        known.update(shorter)
        if not shorter or budget.over():
            break
        pruned = _fitted(task, shorter, budget)
        new += pruned
        best = _cheapest(task, pruned)
    return _earned(task, new, old)


def _may_grow_to(task: Task, law: Expression) -> bool:
    """Whether a law may be one once its constants are fitted, numbers taken away that units do not let stand in it."""
    return any(map(task.prior.allows_part, with_right_units(task, [law])))


@dataclass(frozen=True)
class _Sum:
    """A law as a sum of terms, one of which is 1, each with a fitted coefficient."""

    coefficients: tuple[float, ...]
    terms: tuple[Expression, ...]

    def scaled(self, scale: float, shift: float) -> Expression:
        """scale·law + shift, written with other coefficients."""
        shifted = [
            scale * value + shift * (term == ONE) for value, term in zip(self.coefficients, self.terms, strict=True)
        ]
        return linear_combination([plain_number(value) for value in shifted], self.terms)


def _as_sum(task: Task, law: Expression) -> _Sum | None:
    """The law as a sum whose coefficients are fitted; None where a term is not finite."""
    return _fitted_sum(task, _terms(freed(law)))


def _fitted_sum(task: Task, terms: tuple[Expression, ...]) -> _Sum | None:
    """The sum of these terms with coefficients of least squares; None where a term is not finite."""
    data = task.data
    A = torch.stack([data.evaluate(term) for term in terms], dim=1)
    if not bool(torch.isfinite(A).all()):
        return None
    root = data.target.weight.sqrt()
    found = least_squares((A * root[:, None]).numpy(), (data.target.y * root).numpy()).coefficients
    return _Sum(tuple(float(value) for value in found), terms)


def _around(task: Task, base: _Sum, low: float, high: float) -> Iterator[Expression]:
    """a·u(law) + b for each function u that the operators have; the law's values go from `low` to `high`."""
    able, width = Abilities(task.settings.operators), high - low
    if not 0 < width < math.inf:
        return
    above = base.scaled(1.0, _OUTER_SHIFT * width - low)
    arguments = [apply("div", ONE, above)] if able.quotients else []
    arguments += [apply("pow", above, Constant(2))] if able.whole_powers else []
    for one in task.settings.operators:
        if one.arity == 2 or one.form is not None or one.role in (Role.IDENTITY, Role.NEGATION):
            continue
        if one.role is Role.EXPONENTIAL:
            arguments += [apply(one, base.scaled(sign / width, 0.0)) for sign in (1, -1)]
        elif one.entire:
            arguments.append(apply(one, base.scaled(1 / width, -(low + high) / (2 * width))))
        else:
            arguments.append(apply(one, above))
    for argument in arguments:
        yield apply("add", apply("mul", Constant(1.0), argument), Constant(0.5))


def _fitted(task: Task, laws: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """The laws with all their constants fitted together, near where they are; those that are finite."""
    data, target = task.data, task.data.target
    results = refine(
        laws,
        data.columns,
        target.y,
        target.weight,
        starts=0,
        steps=_STEPS,
        integers=False,
        budget=budget,
        seed=task.settings.seed,
        device=task.settings.device,
        near=True,
    )
    return [Candidate(one.expression, one.loss) for one in results if one.loss < math.inf]


def _varying(
    task: Task, terms: tuple[Expression, ...], columns: Mapping[str, Tensor], budget: Budget
) -> list[Candidate]:
    """Sums Σ a_i·t_i + w·Σ b_i·t_i with a fitted function w, without the terms that do not earn their place.

    `columns` (scanned rows,) by name.
    """
    target = task.data.target.at(task.data.scan_rows)
    material = [one for one in terms if isinstance(one, Variable)]
    laws: list[Expression] = []
    for w in common_factors(terms, columns, target, material, task.settings.operators, _VARYING):
        both = _fitted_sum(task, (*terms, *(_times(term, w) for term in terms)))
        if both is not None:
            numbers = [plain_number(value) for value in both.coefficients]
            outer, inner = (linear_combination(some, terms) for some in (numbers[: len(terms)], numbers[len(terms) :]))
            laws.append(apply("add", outer, apply("mul", inner, w)))
    found: list[Candidate | None] = []
    for law in _fitted(task, laws, budget):
        assert isinstance(law.expression, Apply)  # a fit changes constants only
        product = law.expression.operands[1]
        assert isinstance(product, Apply)
        found.append(_shortened(task, terms, product.operands[1]))
    return [candidate for candidate in found if candidate is not None]


def _times(term: Expression, w: Expression) -> Expression:
    """term·w; w where the term is 1."""
    return w if term == ONE else apply("mul", term, w)


def _shortened(task: Task, terms: tuple[Expression, ...], w: Expression) -> Candidate | None:
    """Σ a_i·t_i + w·Σ b_i·t_i without the terms that do not earn their place; None where it is not finite."""
    data, rows = task.data, task.data.target.rows
    each = [*terms, *(_times(term, w) for term in terms)]
    root = data.target.weight.sqrt()
    A = torch.stack([data.evaluate(term) for term in each], dim=1) * root[:, None]
    y = data.target.y * root
    if not bool(torch.isfinite(A).all()):
        return None
    floor = max(task.working_front.floor, _LEAST_KNOWN * task.scale)

    def fit(some: Sequence[int]) -> tuple[Fit, float]:
        """The least squares of these columns, and the sum of squares that they leave."""
        found = least_squares(A[:, list(some)].numpy(), y.numpy())
        return found, float(found.residual @ found.residual)

    def cost(square: float, some: Sequence[int]) -> float:
        return price_of(square, sum(2 + each[i].complexity for i in some), floor, rows)

    kept = list(range(len(each)))
    while len(kept) > 1:
        whole, square = fit(kept)
        shorter = [[i for i in kept if i != out] for out in kept]
        if whole.full_rank:  # without a column, the square of its coefficient over its error is left in addition
            left = square + np.square(whole.coefficients / whole.sensitivity)
        else:
            left = np.array([fit(some)[1] for some in shorter])
        least, fewer = min((cost(float(one), some), some) for one, some in zip(left, shorter, strict=True))
        if least > cost(square, kept):
            break
        kept = fewer

    def write(numbers: Sequence[Number]) -> Expression:
        pairs = list(zip(numbers, kept, strict=True))
        plain = [(number, terms[i]) for number, i in pairs if i < len(terms)]
        inner = [(number, terms[i - len(terms)]) for number, i in pairs if i >= len(terms)]
        parts = [linear_combination(*zip(*some, strict=True)) for some in (plain, inner) if some]
        if inner:
            parts[-1] = simplify(apply("mul", parts[-1], w))
        return parts[0] if len(parts) == 1 else apply("add", *parts)

    return task.heads.response.fit([each[i] for i in kept], write=write)


def _cheapest(task: Task, found: Sequence[Candidate]) -> list[Candidate]:
    """The six laws of the lowest price, of each form one."""
    distinct: dict[Expression, Candidate] = {}
    for law in sorted(found, key=partial(_price, task)):
        form = form_of(law.expression)
        if form not in distinct and _uses_its_functions(task, law.expression):
            distinct[form] = law
        if len(distinct) == _PRUNED:
            break
    return list(distinct.values())


def _price(task: Task, law: Candidate) -> float:
    return price(law, task.working_front.floor, task.data.target.rows)


def _earned(task: Task, found: Sequence[Candidate], old: Candidate) -> list[Candidate]:
    """The finds that are simpler than the old law, or of a lower price.

    Of each complexity the three best. Left out are those that operators and prior do not allow, and those with a
    function that is a line or a parabola in disguise.
    """
    limit = _price(task, old)
    by_complexity: dict[int, list[Candidate]] = {}
    for candidate in sorted(found, key=lambda one: one.loss):
        if candidate.complexity >= old.complexity and _price(task, candidate) >= limit:
            continue
        alike = by_complexity.setdefault(candidate.complexity, [])
        if len(alike) < _EQUALLY_COMPLEX:
            law = simplify(candidate.expression)
            if task.allows(law) and task.heads.grammar.allows(law) and _uses_its_functions(task, law):
                alike.append(Candidate(law, candidate.loss))
    return [candidate for alike in by_complexity.values() for candidate in alike]


def _uses_its_functions(task: Task, law: Expression) -> bool:
    """Whether the argument of every function goes through enough of it to be more than a line or a parabola.

    3e6*sin(1e-7*x - 1.5) is a parabola with giants that cancel, and 1/(x - 1e4) a line: fits end there where the data
    ask for a polynomial, which other parts write better.
    """
    rows = task.data.scan_rows
    needed = {name: task.data.columns[name][rows] for name in variables(law)}
    places = places_of(law, needed) if needed else []
    values = {place.path: place.value for place in places}
    for place in places:
        node = place.node
        if not isinstance(node, Apply) or node.operator.role in _LINES:
            continue
        divides = node.operator.role is Role.QUOTIENT
        if len(node.operands) == 2 and not divides:
            continue
        argument = values[below(place.path, len(node.operands) - 1)]
        low, high = float(argument.min()), float(argument.max())
        scale = node.operator.traits.period or 1.0
        if divides or not node.operator.entire:  # the pole, or the end of the domain, is at zero
            scale = max(abs(low), abs(high))
        if 0 < high - low < _LEAST_USE * scale:
            return False
    return True


def _with_one_less(law: Expression) -> Iterator[Expression]:
    """The law without one operand of a sum or product, and with the argument of a function in the function's place."""
    yield from with_one_less(law)
    stack: list[tuple[tuple[int, ...], Expression]] = [((), law)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, Apply):
            if len(node.operands) == 1 and variables(node):
                yield simplify(replaced(law, path, node.operands[0]))
            stack += [((*path, at), operand) for at, operand in enumerate(node.operands)]


def parts_of_continuation(task: Task) -> int:
    """The turns that a law takes: one for a further term, one for a further factor, as the operators allow."""
    able = Abilities(task.settings.operators)
    return able.sums + able.products


def continued(task: Task, law: Expression, part: int, budget: Budget) -> list[Candidate]:
    """Laws that are the law with one more part of kind number `part`, with losses on the working rows."""
    heads = task.heads
    found: list[Candidate] = []
    try:
        for scan in list(_scans(task, law))[part]:
            found += scan(budget)
    except CutShortError:
        return found
    allowed = [candidate for candidate in found if heads.allows(candidate.expression)]
    best = [candidate.expression for candidate in best_first(allowed, task.data.target)[:_FITTED]]
    return allowed + fitted(task, best, budget)


def _scans(task: Task, law: Expression) -> Iterator[Iterator[Scan]]:
    """The scans for a further term, and those for a further factor, as far as the operators allow them."""
    able = Abilities(task.settings.operators)
    if able.sums:
        yield task.heads.beside(_terms(law), _PAIR_FEATURES)
    if able.products:
        y, values = task.data.target.y, task.data.evaluate(law)
        quotient = Transform("y/law", y / values, values.abs(), lambda factor: apply("mul", law, factor))
        responses = allowed_responses(task.data, [quotient])
        yield (scan for response in responses for scan in task.heads.on_response(response, _PAIR_FEATURES))


def _terms(law: Expression) -> tuple[Expression, ...]:
    """1 and the terms of the law without their coefficients, each once."""
    terms: dict[Expression, None] = {Constant(1): None}
    stack = [law]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.operator.role in (*ADDITIVE, Role.NEGATION):
            stack += reversed(node.operands)
        elif (term := _without_coefficient(node)) is not None:
            terms[term] = None
    return tuple(terms)


def _without_coefficient(term: Expression) -> Expression | None:
    """The term without a number that multiplies or divides it; None for a number."""
    while isinstance(term, Apply) and term.operator.role in MULTIPLICATIVE:
        left, right = term.operands
        if isinstance(left, Constant) and term.operator.role is Role.PRODUCT:
            term = right
        elif isinstance(right, Constant):
            term = left
        else:
            break
    return None if isinstance(term, Constant) else term
