"""How much of y a pass could explain with a token, judged for hundreds of tokens at once; and scouting, which uses it.

A token need not look like y. What counts is the best fit of y by the token t, or a function u(t) of it, joined with one
partner f by one operator, with the best scale and offset: a·u(t) + b, a·u(t) + b·f + c, a·u(t)·f + b, a·u(t)/f + b
and a·f/u(t) + b, all of them matrix products; and a·v(t ∘ f) + b for unary operators v and binary operators ∘, with
fewer partners and rows, since these are computed value by value. Partners are simple features of the variables and the
best front members, so a token that explains what the front leaves unexplained counts too.

Scouting makes hundreds of new tokens, each one operator away from a promising one, and judges them in one batch. No
tree is built for a token that is dropped, so a scouted token costs a few microseconds and its judgement.

Nothing here decides about laws: tokens are only ranked, on a part of the rows. The pass judges what was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.engine.layer import SymbolLayer, apply_poisoned
from symenum.expressions import Expression, apply
from symenum.heads import build_features
from symenum.operators import Abilities, Kind
from symenum.scans.projection import unit_orthogonal_part
from symenum.scans.r_squared import affine_r_squared, pair_r_squared
from symenum.tokens.generator import TokenContext
from symenum.tokens.pool import MAX_COMPLEXITY
from symenum.tokens.trees import Evaluator, pick_distinct

__all__ = [
    "COMPLEXITY_PRICE",
    "MIN_UNEXPLAINED",
    "SCOUTS",
    "Explainer",
    "Scouted",
    "promising_features",
    "scout",
    "simple_partners",
]

Ints = npt.NDArray[np.int64]

MIN_UNEXPLAINED = 1e-9
"""Least 1 - R² that these differences of sums of squares can tell from rounding."""
_MIN_DIVISOR = 1e-200  # sizes and sums of weights below it count as it: their quotients with doubles stay finite
_TOKENS_AT_ONCE = 256  # judged together: with ten unary operators the values of `Explainer._outer` take 11 MB
_MAX_FEATURES = 2000  # columns of `promising_features`: 4 MB with 256 rows

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
COMPLEXITY_PRICE = 0.05
"""Decades of 1 - R² that a token must explain for each unit of its complexity."""
SCOUTS = 300
"""New tokens that are scouted for each proposal."""
_ROWS = 64  # rows, evenly spread, that tokens are judged on
_OUTER_ROWS = 20  # rows of a·v(t ∘ f) + b
_OUTER_PARTNERS = 5  # partners f of a·v(t ∘ f) + b
_VARIABLES_FOR_TWO_LAYERS = 3  # variables, those that explain y best alone, that features of two layers are built on
_VARIABLES_FOR_ONE_LAYER = 8  # variables that features of one layer, and partners, are built on
_MAX_SCOUTED = 60  # scouted tokens that are remembered from pass to pass
_EXAMINED = 30  # tokens of one batch whose trees are built and compared with those remembered
_RANK_OFFSET = 30.0  # the chance of the token of rank r to be built upon is proportional to 1/(r + this)
_VARIABLE_SHARE = 0.5  # part of the random joins whose second operand is a variable
_VARIABLES_IN_TURN = 4  # variables whose joins with the seeds are tried in a fixed order
_BEST_PARTNERS = 40  # the other random joins take their second operand from so many of the best tokens


class Explainer:
    """Judges tokens by the part of y that a pass leaves unexplained; made for one proposal, with its partners."""

    def __init__(self, context: TokenContext, evaluator: Evaluator, partners: Sequence[Expression]) -> None:
        self._rows = _spread(context.rows, _ROWS)
        weight = context.weight[self._rows]
        self._root = (weight / weight.sum().clamp_min(_MIN_DIVISOR)).sqrt()
        self._unary = tuple(op for op in context.working if op.kind is Kind.UNARY and op.form is None)
        able = Abilities(context.working)
        self._adds, self._multiplies, self._divides = able.sums, able.products, able.quotients
        self._target = _unit_target(context.y[self._rows], self._root)
        self._outer_rows = _spread(len(self._rows), _OUTER_ROWS)
        outer_root = self._root[self._outer_rows]
        self._outer_root = outer_root / outer_root.norm().clamp_min(_MIN_DIVISOR)
        self._outer_target = _unit_target(context.y[self._rows][self._outer_rows], self._outer_root)
        values = evaluator.matrix(partners)[:, self._rows]
        self._set_partners(values[torch.isfinite(values).all(dim=1)])

    def _set_partners(self, values: Tensor, outer: Tensor | None = None) -> None:
        """Take partners (partners, rows), and `outer` (partners, outer rows), by default the first of them."""
        self._partners = values
        self._unit_partners, _ = self._unit(values)
        self._partner_projections = self._unit_partners @ self._target
        self._outer_partners = values[:_OUTER_PARTNERS, self._outer_rows] if outer is None else outer

    def unexplained(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of the best fit with each row of `values` (N, rows), float64, from MIN_UNEXPLAINED to 1.

        It is 1 for a row of NaN.
        """
        if not len(values):
            return torch.empty(0, dtype=torch.float64)
        return torch.cat([self._unexplained(batch) for batch in torch.split(values[:, self._rows], _TOKENS_AT_ONCE)])

    def _unexplained(self, values: Tensor) -> Tensor:
        forms = [values, *(apply_poisoned(operator, values, None) for operator in self._unary)]
        stacked = torch.cat(forms)
        unexplained = torch.minimum(self._sums(stacked), self._products_and_quotients(stacked))
        return torch.minimum(unexplained.view(len(forms), len(values)).amin(dim=0), self._outer(values))

    def unexplained_by_set(self, values: Tensor) -> float:
        """1 - R² of the best fit with any of a few tokens (N, rows), which are partners of each other too."""
        values = values[:, self._rows]
        stacked = torch.cat([values, *(apply_poisoned(operator, values, None) for operator in self._unary)])
        stacked = stacked[torch.isfinite(stacked).all(dim=1)]
        joined = copy(self)
        joined._set_partners(
            torch.cat([self._partners, stacked]), torch.cat([self._outer_partners, values[:, self._outer_rows]])
        )
        unexplained = torch.minimum(joined._sums(stacked), joined._products_and_quotients(stacked)).amin()
        return float(torch.minimum(unexplained, joined._outer(values).amin()))

    def unexplained_alone(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of a·t + b for each row t of `values` (N, rows)."""
        unit, valid = self._unit(values[:, self._rows])
        return _bounded(1 - (unit @ self._target).square(), valid)

    def _sums(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of a·t + b·f + c with the best partner f, or without one."""
        unit, valid = self._unit(values)
        projection = unit @ self._target
        explained = projection.square()
        if len(self._unit_partners):
            cosines = unit @ self._unit_partners.T
            pairs = pair_r_squared(projection[:, None], self._partner_projections, cosines)
            explained = torch.maximum(explained, pairs.amax(dim=1))
        return _bounded(1 - explained, valid)

    def _products_and_quotients(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of a·t·f + b, a·t/f + b and a·f/t + b with the best partner f."""
        unexplained = torch.ones(len(values), dtype=torch.float64)
        if not len(self._partners):
            return unexplained
        nonzero = (self._partners.abs() > _MIN_DIVISOR).all(dim=1)
        if self._multiplies:
            unexplained = torch.minimum(unexplained, self._products(values, self._partners))
        if self._divides:
            unexplained = torch.minimum(unexplained, self._products(values, self._partners[nonzero].reciprocal()))
            unexplained = torch.minimum(unexplained, self._products(values.reciprocal(), self._partners))
        return unexplained

    def _products(self, first: Tensor, second: Tensor) -> Tensor:
        """1 - R² (N,) of a·p·q + b for each row p of `first` (N, rows), with the best row q of `second` (M, rows)."""
        if not len(second):
            return torch.ones(len(first), dtype=torch.float64)
        valid = torch.isfinite(first).all(dim=1)
        first = torch.where(valid[:, None], first, 0.0)
        # Scaled to a largest value of 1, so that neither squares nor fourth powers leave the range of doubles.
        first = first / first.abs().amax(dim=1, keepdim=True).clamp_min(_MIN_DIVISOR)
        second = second / second.abs().amax(dim=1, keepdim=True).clamp_min(_MIN_DIVISOR)
        root = self._root
        projection = (first * self._target) @ (second * root).T
        mean = (first * root) @ (second * root).T
        square = (first * root).square() @ second.square().T
        explained = affine_r_squared(projection, square - mean.square(), square).amax(dim=1)
        return _bounded(1 - explained, valid)

    def _outer(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of a·v(t ∘ f) + b with the best v, ∘ and f, on the outer rows and partners."""
        unexplained = torch.ones(len(values), dtype=torch.float64)
        # In single precision the functions take half the time; 1 - R² is a square, so it is still right to 1e-12.
        t, f = values[:, None, self._outer_rows].float(), self._outer_partners[None].float()
        joins = [t + f, t - f] if self._adds else []
        joins += [t * f] if self._multiplies else []
        joins += [t / f, f / t] if self._divides else []
        if not joins or not f.shape[1]:
            return unexplained
        joined = torch.cat(joins, dim=1)
        weight = self._outer_root.square()
        weighted_target = self._outer_root * self._outer_target
        for operator in self._unary:
            value = operator.function(joined).double()
            square = value.square() @ weight
            variance = square - (value @ weight).square()
            explained = affine_r_squared(value @ weighted_target, variance, square)
            unexplained = torch.minimum(unexplained, 1 - explained.amax(dim=1))
        return _bounded(unexplained, torch.ones_like(unexplained, dtype=torch.bool))

    def _unit(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Rows weighted, centred and of unit norm; and (N,) bool: which rows are finite and not constant."""
        finite = torch.isfinite(values).all(dim=1)
        safe = torch.where(finite[:, None], values, 0.0)
        unit, remaining = unit_orthogonal_part(safe * self._root, self._root[None])
        valid = finite & (remaining > EXACTNESS.remainder)
        return torch.where(valid[:, None], unit, 0.0), valid


def _bounded(unexplained: Tensor, valid: Tensor) -> Tensor:
    """1 - R² (N,) clamped to [MIN_UNEXPLAINED, 1]; 1 where a row is not valid."""
    bounded: Tensor = unexplained.masked_fill(~valid, 1.0).clamp(MIN_UNEXPLAINED, 1.0)
    return bounded


def _spread(rows: int, limit: int) -> Tensor:
    """At most `limit` row numbers (int64), evenly spread."""
    return torch.linspace(0, rows - 1, min(rows, limit), dtype=torch.float64).round().long()


def _unit_target(y: Tensor, root: Tensor) -> Tensor:
    """y (rows,) without its weighted mean, times the roots of the weights, of unit norm."""
    unit: Tensor = unit_orthogonal_part((y * root)[None], root[None])[0][0]
    return unit


# Features to start from


def promising_features(
    context: TokenContext, partners: Sequence[Expression], limit: int = 200
) -> tuple[Expression, ...]:
    """The features of one and two layers on the best variables that explain y best, at most `limit`, best first.

    Two layers are built on at most three variables, one layer on at most eight: with more, there are too many features.
    """
    evaluator = Evaluator(context)
    explainer = Explainer(context, evaluator, partners)
    fitness: dict[Expression, float] = {}
    for layers, width in ((2, _VARIABLES_FOR_TWO_LAYERS), (1, _VARIABLES_FOR_ONE_LAYER)):
        if not context.working or (layers == 1 and len(context.variables) <= _VARIABLES_FOR_TWO_LAYERS):
            continue
        best = _best_variables(context, evaluator, width)
        values = evaluator.matrix(best)
        features = build_features(best, values, context.working, layers, with_one=False, max_columns=_MAX_FEATURES)
        unexplained = explainer.unexplained(features.values)
        ranks = unexplained.log10() + COMPLEXITY_PRICE * features.complexity
        chosen = torch.argsort(ranks, stable=True)[: 2 * limit]
        fitness.update((features.expression(i), float(unexplained[i])) for i in chosen.tolist())
    ranked = sorted(fitness, key=lambda feature: math.log10(fitness[feature]) + COMPLEXITY_PRICE * feature.complexity)
    return tuple(pick_distinct(evaluator, context, ranked, limit))


def simple_partners(context: TokenContext, limit: int = 64) -> tuple[Expression, ...]:
    """The variables that explain y best alone, then one-operator features of them, simplest first; at most `limit`."""
    evaluator = Evaluator(context)
    best = _best_variables(context, evaluator, _VARIABLES_FOR_ONE_LAYER)
    features: list[Expression] = []
    if context.working:
        layer = SymbolLayer(context.working, len(best))
        for block, _, firsts, seconds in layer.decode(torch.arange(layer.size)):
            second = [None] * len(firsts) if seconds is None else seconds.tolist()
            for i, j in zip(firsts.tolist(), second, strict=True):
                operands = [best[i]] if j is None else [best[i], best[j]]
                features.append(apply(block.operator, *operands))
    features.sort(key=lambda feature: feature.complexity)
    room = max(0, limit - len(best))
    return (*best, *pick_distinct(evaluator, context, features, room))


def _best_variables(context: TokenContext, evaluator: Evaluator, count: int) -> list[Expression]:
    """The `count` variables that explain y best alone, in the order of the columns."""
    alone = Explainer(context, evaluator, ()).unexplained_alone(evaluator.matrix(context.variables))
    order = torch.argsort(alone, stable=True).tolist()[:count]
    return [context.variables[i] for i in sorted(order)]


# Scouting


@dataclass(frozen=True)
class Scouted:
    """A token and its fitness: log10 of the unexplained part of y, plus the price of its complexity; less is better."""

    token: Expression
    fitness: float


@dataclass(frozen=True)
class _Joins:
    """New tokens by number: `operator` (N,) of `context.working`; `first` and `second` (N,) of the operands' list.

    A unary operator has no use for `second`.
    """

    operator: Ints
    first: Ints
    second: Ints

    def __len__(self) -> int:
        return len(self.operator)

    def __add__(self, other: _Joins) -> _Joins:
        return _Joins(
            np.concatenate([self.operator, other.operator]),
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
        )


def scout(
    context: TokenContext,
    evaluator: Evaluator,
    explainer: Explainer,
    seeds: Sequence[Expression],
    before: Sequence[Scouted],
    count: int,
    passes: int,
    rng: np.random.Generator,
) -> tuple[Scouted, ...]:
    """The best of `count` new tokens and of those scouted `before`, best first. `seeds`: features, the best first.

    Half of the new ones are the next in a fixed order of all joins of a seed with a variable, after those of the
    `passes` before: drawn at random, one join in a hundred would still be missing after five times as many draws as
    there are joins. The other half is drawn at random.
    """
    base = [*(one.token for one in before), *seeds]
    base = [token for token in dict.fromkeys(base) if evaluator.usable(token)]
    if not base or not context.working:
        return tuple(before)
    operands = [*base, *context.variables]
    values = evaluator.matrix(operands)
    place = {token: i for i, token in enumerate(operands)}
    seed_places = [place[seed] for seed in seeds if seed in place]
    in_turn = count // 2
    joins = _joins_in_turn(context, seed_places, len(base), passes * in_turn, in_turn)
    joins += _random_joins(context, len(base), count - in_turn, rng)
    columns = torch.empty(len(joins), context.rows, dtype=torch.float64)
    for number, operator in enumerate(context.working):
        here = np.nonzero(joins.operator == number)[0]
        second = None if operator.arity == 1 else values[joins.second[here]]
        columns[here] = apply_poisoned(operator, values[joins.first[here]], second)
    decades = explainer.unexplained(columns).log10().numpy()
    fitness = {one.token: one.fitness for one in before}
    for i in np.argsort(decades, kind="stable")[:_EXAMINED].tolist():
        operator = context.working[joins.operator[i]]
        places = (joins.first[i], joins.second[i])[: operator.arity]
        token = apply(operator, *(operands[int(at)] for at in places))
        if token.complexity <= MAX_COMPLEXITY and evaluator.usable(token):
            fitness.setdefault(token, float(decades[i]) + COMPLEXITY_PRICE * token.complexity)
    ranked = sorted(fitness, key=lambda token: fitness[token])
    # Many tokens are one function written in different ways; the first of them is the simplest.
    distinct = pick_distinct(evaluator, context, ranked, _MAX_SCOUTED)
    return tuple(Scouted(token, fitness[token]) for token in distinct if math.isfinite(fitness[token]))


def _joins_in_turn(context: TokenContext, seeds: Sequence[int], base: int, start: int, count: int) -> _Joins:
    """The joins from number `start` on, of all joins of the best seed with a variable, then of the next seed.

    `seeds`: places of the seeds among the operands. `base`: place of the first variable.
    """
    actions: list[tuple[int, int, bool]] = []  # operator, variable's place, whether the variable comes first
    for number, operator in enumerate(context.working):
        if operator.arity == 1:
            actions.append((number, base, False))
            continue
        for variable in range(min(len(context.variables), _VARIABLES_IN_TURN)):
            actions.append((number, base + variable, False))
            if not operator.commutative:
                actions.append((number, base + variable, True))
    total = len(seeds) * len(actions)
    turns = [(start + i) % total for i in range(min(count, total))] if total else []
    chosen = [(seeds[turn // len(actions)], actions[turn % len(actions)]) for turn in turns]
    operators = [operator for _, (operator, _, _) in chosen]
    first = [variable if swapped else seed for seed, (_, variable, swapped) in chosen]
    second = [seed if swapped else variable for seed, (_, variable, swapped) in chosen]
    return _Joins(np.array(operators, np.int64), np.array(first, np.int64), np.array(second, np.int64))


def _random_joins(context: TokenContext, base: int, count: int, rng: np.random.Generator) -> _Joins:
    """`count` random joins of a token of the base, better ones more often, with a variable or one of the best tokens.

    `base`: the number of tokens, best first; the variables follow them among the operands.
    """
    chance = 1.0 / (np.arange(base) + _RANK_OFFSET)
    token = rng.choice(base, size=count, p=chance / chance.sum())
    partner = rng.integers(min(base, _BEST_PARTNERS), size=count)
    variable = base + rng.integers(len(context.variables), size=count)
    partner = np.where(rng.random(count) < _VARIABLE_SHARE, variable, partner)
    operators = rng.integers(len(context.working), size=count)
    unary = np.array([operator.arity == 1 for operator in context.working])[operators]
    swapped = (rng.random(count) < 0.5) & ~unary
    return _Joins(operators, np.where(swapped, partner, token), np.where(swapped, token, partner))
