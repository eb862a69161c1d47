"""Needed parts: good laws with one part replaced by what the data ask for there, and the tokens that follow.

For every part p of a law, the values that p would need for the law to equal y follow from the root down: the operand of
an operator needs what Newton's method finds row by row. An expression t is good at that place if α·t + β is near the
needed values, each row weighted by what an error there does to y. So thousands of expressions are judged at all places
of several laws by three matrix products, and the constants α, β are fitted, not drawn. Sums α·t + β·s + γ of two
expressions are tried where one alone is best.

The tokens of a grown law are the law itself, the new part, and its neighbours in the tree: with all of them in one set
a pass tries the new part in thousands of surroundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from symenum.expressions import Apply, Constant, Expression, Variable, apply, simplify, variables
from symenum.heads import Features, build_features
from symenum.operators import Abilities, Operator
from symenum.operators.traits import Role
from symenum.scans.r_squared import affine_r_squared
from symenum.tokens.credit import form
from symenum.tokens.generator import TokenContext
from symenum.tokens.pool import Memory
from symenum.tokens.trees import Evaluator, nodes, replaced

__all__ = ["Grown", "Place", "grow", "grown_laws", "growth_tokens", "in_turns", "needed", "ranked_groups"]

MAX_GROWN_COMPLEXITY = 30
"""Largest complexity of a grown law, and of a token that is a whole law."""
_MAX_PLACES = 30  # of one law
_NEWTON_STEPS = 8  # of the search for the values that an operand needs
_DIFFERENCE = 1e-6  # relative step of numerical derivatives: about the root of their rounding error
_MIN_SLOPE = 1e-12  # of an operator; where it is less, the operand does not matter on that row
_MAX_SLOPE_RATIO = 10.0  # rows whose slope is so many times the median weigh no more: one row must not decide
_MIN_ROWS = 0.9  # part of the weight of rows on which the needed values must exist
_ROWS = 96  # rows, evenly spread, on which expressions are judged at all places
_LAWS = 6  # laws that grow in one proposal; and as many of those that grew before
_BANK_SLOTS = 14  # variables and parts of laws that the expressions of the bank join
_MAX_BANK_VARIABLES = 10  # of them; those that occur in the laws come first
_BANK = 3000  # expressions of the bank, at most
_PER_PLACE = 3  # best expressions at each place that are considered
_BUILT = 24  # grown laws of a proposal that are built and judged on all rows
_KEPT = 30  # grown laws that are remembered from proposal to proposal
_DIGITS = 6  # significant digits of fitted constants: what is exactly 2.1 comes out as 2.1
_GROUP_SIZE = 3  # tokens of one grown law that are proposed side by side
_OTHERS_PER_GROUP = 2  # other tokens between two such groups
_MIN_DECADES = 0.05  # of y explained that every grown law counts with: each has a chance
_PRICE = 0.03  # decades of 1 - R² that a unit of complexity must bring


@dataclass(frozen=True)
class Grown:
    """A grown law, the new part in it, and its fitness: log10(1 - R²) plus the price of complexity; less is better."""

    law: Expression
    part: Expression
    fitness: float


@dataclass(frozen=True, eq=False)
class Place:
    """A node of a law by its position (`nodes`), the values (rows,) that it needs, and the slope (rows,) of the law."""

    law: Expression
    position: int
    part: Expression
    wanted: Tensor
    slope: Tensor


def needed(law: Expression, y: Tensor, rows: Tensor, evaluator: Evaluator) -> list[Place]:
    """All places of a law but constants, with the values that each needs for the law to equal y (rows,).

    `rows` (int64): the rows of the context to look at, all of them those of y.
    """
    if evaluator.values(law) is None:
        return []
    places: list[Place] = []
    stack: list[tuple[Expression, int, Tensor, Tensor]] = [(law, 0, y, torch.ones_like(y))]
    while stack and len(places) < _MAX_PLACES:
        node, position, wanted, slope = stack.pop()
        places.append(Place(law, position, node, wanted, slope))
        if not isinstance(node, Apply):
            continue
        values = [_at(evaluator, operand, rows) for operand in node.operands]
        below = position + 1
        for at, operand in enumerate(node.operands):
            if not isinstance(operand, Constant):
                needs, own_slope = _needs(node.operator, at, values, wanted)
                stack.append((operand, below, needs, slope * own_slope))
            below += len(nodes(operand))
    return places


def _at(evaluator: Evaluator, expression: Expression, rows: Tensor) -> Tensor:
    values = evaluator.values(expression)
    return torch.full((len(rows),), torch.nan, dtype=torch.float64) if values is None else values[rows]


def _needs(operator: Operator, at: int, values: Sequence[Tensor], wanted: Tensor) -> tuple[Tensor, Tensor]:
    """What operand `at` must be for the operator's value to be `wanted`, and the slope of the operator there."""
    role, x = operator.role, values[at]
    other = values[1 - at] if len(values) == 2 else x
    if role is Role.NEGATION:
        return -wanted, -torch.ones_like(x)
    if role is Role.SUM:
        return wanted - other, torch.ones_like(x)
    if role is Role.DIFFERENCE:
        return (wanted + other, torch.ones_like(x)) if at == 0 else (other - wanted, -torch.ones_like(x))
    if role is Role.PRODUCT:
        return wanted / other, other
    if role is Role.QUOTIENT:
        return (wanted * other, 1 / other) if at == 0 else (other / wanted, -wanted.square() / other)
    if role is Role.EXPONENTIAL:
        return wanted.log(), wanted
    if role is Role.LOGARITHM:
        return wanted.exp(), (-wanted).exp()
    function = operator.function
    if len(values) == 1:
        return _solved(function, x, wanted)
    return _solved(lambda one: function(one, other) if at == 0 else function(other, one), x, wanted)


def _solved(function: Callable[[Tensor], Tensor], start: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
    """x (rows,) with function(x) = goal, near `start`, and the slope there; a row without a solution ends somewhere."""
    x = start
    for _ in range(_NEWTON_STEPS):
        limit = 1 + x.abs()
        step = _DIFFERENCE * limit
        value = function(x)
        slope = (function(x + step) - value) / step
        change = (goal - value) / torch.where(slope.abs() < _MIN_SLOPE, torch.nan, slope)
        x = torch.where(torch.isfinite(change), x + change.clamp(-limit, limit), x)
    step = _DIFFERENCE * (1 + x.abs())
    return x, (function(x + step) - function(x - step)) / (2 * step)


# The bank of expressions, and how near each comes to what every place needs


class _Bank:
    """Expressions with values (expressions, rows): those that are given, and all of one operator on some of them."""

    def __init__(
        self, context: TokenContext, evaluator: Evaluator, slots: Sequence[Expression], given: Sequence[Expression]
    ) -> None:
        usable = [*slots, *(one for one in given if evaluator.usable(one))]
        self._given = list(dict.fromkeys(usable))
        values = [evaluator.matrix(self._given)]
        complexity = [torch.tensor([one.complexity for one in self._given])]
        self._features: Features | None = None
        if context.working:
            slot_values = evaluator.matrix(slots)
            features = build_features(slots, slot_values, context.working, 1, with_one=False, max_columns=_BANK)
            self._features = features
            values.append(features.values)
            complexity.append(features.complexity)
        self.values = torch.cat(values)
        self.complexity = torch.cat(complexity)

    def expression(self, i: int) -> Expression:
        if i < len(self._given) or self._features is None:
            return self._given[i]
        return self._features.expression(i - len(self._given))


def grow(
    context: TokenContext,
    evaluator: Evaluator,
    laws: Sequence[Expression],
    slots: Sequence[Expression],
    given: Sequence[Expression],
    before: Sequence[Grown],
    rng: np.random.Generator,
) -> tuple[Grown, ...]:
    """The best laws that grow from `laws` and from those grown `before`, each form once, best first.

    Half of the laws that grow are the best, the others are drawn. The bank of expressions holds `given`, and all of one
    operator on the variables and the first of `slots`.
    """
    base = _chosen(_judged(laws, context, evaluator), rng) + _chosen([(one.fitness, one.law) for one in before], rng)
    if not base:
        return ()
    occurring = dict.fromkeys(Variable(name) for law in base for name in variables(law))
    joined = list(dict.fromkeys([*occurring, *context.variables]))[:_MAX_BANK_VARIABLES]
    joined += [slot for slot in dict.fromkeys(slots) if evaluator.usable(slot)][: _BANK_SLOTS - len(joined)]
    bank = _Bank(context, evaluator, joined, given)
    rows = torch.linspace(0, context.rows - 1, min(context.rows, _ROWS), dtype=torch.float64).round().long()
    new = _grown(context, evaluator, list(dict.fromkeys(base)), bank, bank.values[:, rows], rows)
    best: dict[str, Grown] = {}
    for one in sorted([*before, *new], key=lambda one: one.fitness):
        best.setdefault(form(one.law).key, one)
    return tuple(best.values())[:_KEPT]


def _judged(laws: Sequence[Expression], context: TokenContext, evaluator: Evaluator) -> list[tuple[float, Expression]]:
    """The laws that may grow with their fitness."""
    found: list[tuple[float, Expression]] = []
    for law in laws:
        decades = _decades(evaluator.values(law), context) if law.complexity < MAX_GROWN_COMPLEXITY else None
        if isinstance(law, Apply) and decades is not None:
            found.append((decades + _PRICE * law.complexity, law))
    return found


def _chosen(laws: Sequence[tuple[float, Expression]], rng: np.random.Generator) -> list[Expression]:
    """The best of the laws, and as many that are drawn of the others."""
    ranked = [law for _, law in sorted(laws, key=lambda pair: pair[0])]
    best, others = ranked[: _LAWS // 2], ranked[_LAWS // 2 :]
    drawn = rng.permutation(len(others))[: _LAWS - len(best)]
    return best + [others[int(i)] for i in drawn]


def _grown(
    context: TokenContext, evaluator: Evaluator, laws: Sequence[Expression], bank: _Bank, judged: Tensor, rows: Tensor
) -> list[Grown]:
    """The laws that grow out of these, judged on all rows; `judged`: the bank's values (expressions, rows)."""
    y = context.y[rows]
    places = [place for law in laws for place in needed(law, y, rows, evaluator)]
    weights, wanted, kept = _weighted(places, context, rows)
    if not kept:
        return []
    fit = _Fit(judged, weights, wanted)
    size = float((context.weight * (context.y - (context.weight * context.y).sum()).square()).sum())
    rest = torch.tensor([place.law.complexity - place.part.complexity for place in kept])
    price = _PRICE * (rest[:, None] + bank.complexity[None])
    score = (fit.loss / max(size, 1e-300)).clamp_min(1e-16).log10() + price
    per_place = torch.topk(score, min(_PER_PLACE, score.shape[1]), dim=1, largest=False)
    order = torch.argsort(per_place.values.flatten(), stable=True)[:_BUILT].tolist()
    out: dict[Expression, Grown] = {}
    for number in order:
        at, i = number // per_place.indices.shape[1], int(per_place.indices.flatten()[number])
        place = kept[at]
        second = fit.partner(at, i)
        for terms in ([i], [i, second]):
            part = _linear([bank.expression(j) for j in terms], fit.coefficients(at, terms))
            law = simplify(replaced(place.law, place.position, part))
            if not isinstance(law, Apply) or law in out or law.complexity > MAX_GROWN_COMPLEXITY:
                continue
            decades = _decades(evaluator.values(law), context)
            if decades is not None:
                out[law] = Grown(law, part, decades + _PRICE * law.complexity)
    return list(out.values())


def _weighted(places: Sequence[Place], context: TokenContext, rows: Tensor) -> tuple[Tensor, Tensor, list[Place]]:
    """Weights and needed values (places, rows) of the places that have them on nearly all rows; and these places."""
    weights, wanted, kept = [], [], []
    plain = context.weight[rows]
    for place in places:
        values, slope = place.wanted, place.slope.abs()
        fine = torch.isfinite(values) & torch.isfinite(slope) & (values.abs() < 1e100)
        if not bool(fine.any()) or float(plain[fine].sum()) < _MIN_ROWS * float(plain.sum()):
            continue
        slope = slope.clamp_max(_MAX_SLOPE_RATIO * float(slope[fine].median()))
        weight = torch.where(fine, plain * slope.square(), 0.0)
        if float(weight.sum()) > 0:
            weights.append(weight)
            wanted.append(torch.where(fine, values, 0.0))
            kept.append(place)
    if not kept:
        return torch.empty(0, len(rows)), torch.empty(0, len(rows)), []
    return torch.stack(weights), torch.stack(wanted), kept


class _Fit:
    """Weighted fits α·t + β of all expressions t (expressions, rows) to what all places need (places, rows)."""

    def __init__(self, values: Tensor, weights: Tensor, wanted: Tensor) -> None:
        finite = torch.isfinite(values).all(dim=1)
        scale = values.abs().amax(dim=1, keepdim=True)
        self._scale = torch.where(finite[:, None], scale, 1.0).clamp_min(1e-200)
        self._values = torch.where(finite[:, None], values / self._scale, 0.0)
        self._total = weights.sum(dim=1, keepdim=True)
        self._share = weights / self._total
        mean = (self._share * wanted).sum(dim=1, keepdim=True)
        self._wanted = wanted
        self._centred = wanted - mean
        self._variance = (self._share * self._centred.square()).sum(dim=1, keepdim=True)
        along = (self._share * self._centred) @ self._values.T
        means = self._share @ self._values.T
        squares = self._share @ self._values.square().T
        explained = affine_r_squared(along, squares - means.square(), squares)
        self.loss = self._total * (self._variance - explained).clamp_min(0.0)
        """(places, expressions): the loss of y that each expression would leave at each place."""

    def partner(self, at: int, i: int) -> int:
        """The expression that explains most, at a place, of what expression i leaves there."""
        share, t = self._share[at], self._values[i]
        t = t - (share * t).sum()
        size = (share * t.square()).sum().clamp_min(1e-300)
        residual = self._centred[at] - (share * t * self._centred[at]).sum() / size * t
        means = self._values @ share
        squares = self._values.square() @ share
        spread = squares - means.square() - (self._values @ (share * t)).square() / size
        explained = affine_r_squared(self._values @ (share * residual), spread, squares)
        return int(explained.argmax())

    def coefficients(self, at: int, terms: Sequence[int]) -> list[float]:
        """The factors of the terms and the offset of the best fit at a place."""
        root = self._share[at].sqrt()
        columns = torch.stack([*(self._values[i] for i in terms), torch.ones_like(root)], dim=1)
        solution = torch.linalg.lstsq(
            columns * root[:, None], (self._wanted[at] * root)[:, None], driver="gelsd"
        ).solution
        factors = solution.flatten()
        scales = torch.cat([self._scale[list(terms), 0], torch.ones(1, dtype=torch.float64)])
        return [float(f"{value:.{_DIGITS}g}") for value in (factors / scales).tolist()]


def _linear(terms: Sequence[Expression], coefficients: Sequence[float]) -> Expression:
    """The linear combination; the last coefficient is the offset."""
    total: Expression = Constant(0)
    for coefficient, term in zip(coefficients, terms, strict=False):
        if math.isfinite(coefficient) and coefficient:
            total = apply("add", total, apply("mul", Constant(coefficient), term))
    offset = coefficients[-1] if math.isfinite(coefficients[-1]) else 0.0
    return simplify(apply("add", total, Constant(offset)))


def _decades(values: Tensor | None, context: TokenContext) -> float | None:
    """log10(1 - R²) of a·values + b; None where the values are not finite or constant."""
    if values is None:
        return None
    weight = context.weight
    y = context.y - (weight * context.y).sum()
    x = values - (weight * values).sum()
    xx, yy, xy = (float((weight * a * b).sum()) for a, b in ((x, x), (y, y), (x, y)))
    if not (xx > 0 and yy > 0):
        return None
    return math.log10(min(1.0, max(1 - xy * xy / (xx * yy), 1e-16)))


# Tokens


def growth_tokens(grown: Sequence[Grown]) -> Iterator[tuple[Expression, ...]]:
    """For each grown law the tokens that should meet: the law, its new part, and the part's neighbours in the tree."""
    for one in grown:
        group: dict[Expression, None] = dict.fromkeys([one.law, one.part])
        path = [node for node in nodes(one.law) if isinstance(node, Apply) and one.part in node.operands]
        for parent in path[:1]:
            group.update(dict.fromkeys(operand for operand in parent.operands if isinstance(operand, Apply)))
            group[parent] = None
        yield tuple(token for token in group if isinstance(token, Apply))


def ranked_groups(grown: Sequence[Grown], memory: Memory) -> list[tuple[Expression, ...]]:
    """The tokens of the grown laws, the best law first: by the decades of y explained, and the merit of the law."""
    score = [max(-one.fitness, _MIN_DECADES) * memory.merit(one.law) for one in grown]
    groups = list(growth_tokens(grown))
    return [groups[i] for i in sorted(range(len(groups)), key=lambda i: -score[i])]


def in_turns(
    groups: Sequence[tuple[Expression, ...]], others: Iterable[Expression], count: int
) -> Iterator[Expression]:
    """A group, then two of the others, then the next group, and so on; then the others that are left.

    `count` tokens are wanted: where they are few, no group has more than half of them.
    """
    size = max(1, min(_GROUP_SIZE, math.ceil(count / 2)))
    rest = iter(others)
    for group in groups:
        yield from group[:size]
        yield from islice(rest, _OTHERS_PER_GROUP)
    yield from rest


def grown_laws(
    context: TokenContext,
    evaluator: Evaluator,
    memory: Memory,
    parts: Mapping[Expression, float],
    given: Sequence[Expression],
    before: Sequence[Grown],
    rng: np.random.Generator,
) -> tuple[Grown, ...]:
    """`grow` from the best laws that the memory knows; nothing where laws may hold no constants, sums or products.

    `parts` of laws with their weights: some of them, drawn by weight and merit, are joined with the variables.
    """
    able = Abilities(context.working)
    if context.constant_range is None or not (able.sums and able.products):
        return ()
    usable = [part for part in parts if evaluator.usable(part)]
    weight = np.array([parts[part] * memory.merit(part) for part in usable]) + _MIN_DECADES
    drawn: list[Expression] = []
    if usable:
        order = rng.choice(len(usable), size=len(usable), replace=False, p=weight / weight.sum())
        drawn = [usable[int(i)] for i in order]
    laws = [member.expression for member in memory.front]
    return grow(context, evaluator, laws, drawn, [*drawn, *given], before, rng)
