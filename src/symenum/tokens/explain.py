"""How much of y a pass could explain with a token: judged in a small pass, for hundreds of new tokens at once."""

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
from symenum.scans.projection import project_off
from symenum.scans.r_squared import affine_r_squared, pair_r_squared
from symenum.tokens.generator import TokenContext
from symenum.tokens.pool import MAX_COMPLEXITY
from symenum.tokens.trees import Evaluator, pick_distinct

__all__ = ["PRICE", "UNEXPLAINED", "Explainer", "Scouted", "promising_features", "scout", "simple_partners"]


# --------------------------------------------------------------------------------------------------------------------
# How much of y a pass could explain with a token: a small pass, for many tokens at once.
#
# A token need not look like y. What counts is the best fit of y by the token, or a function of it, joined with one
# partner by one operator, with the best scale and offset: a·u(t) + b, a·u(t) + b·f + c, a·u(t)·f + b, a·u(t)/f + b
# and a·f/u(t) + b, all of them matrix products; and, with few partners and rows since it must be computed value by
# value, a·u(v(t) ∘ f) + b for the operators ∘. Partners are simple features of the variables and the best front
# members, so that what the front leaves unexplained counts too. The true pass then judges what was chosen.


UNEXPLAINED = 1e-9  # the least part of y that these sums of squares can tell from rounding
_TINY = 1e-200
_ROWS = 64  # enough to rank tokens; the pass looks at more
_FEW_ROWS = 20
_FEW_PARTNERS = 5
_BEST_OF_TWO_LAYERS = 3  # variables
_MOST_FEATURES = 5000
_AT_ONCE = 256  # tokens: each has hundreds of fits, whose values are in memory together
PRICE = 0.05  # decades of 1 - R² that one complexity must earn
_BEST_VARIABLES = 8  # partners are built on so many; with more variables, on those that explain y best alone


class Explainer:
    """Scores tokens by what is left of y; made for one proposal, with the partners of the moment."""

    def __init__(self, context: TokenContext, evaluator: Evaluator, partners: Sequence[Expression]) -> None:
        self._rows = _spread(context.rows, _ROWS)
        weight = context.weight[self._rows]
        self._root = (weight / weight.sum().clamp_min(_TINY)).sqrt()
        self._unary = tuple(op for op in context.working if op.kind is Kind.UNARY and op.form is None)
        able = Abilities(context.working)
        self._adds, self._multiplies, self._divides = able.sums, able.products, able.quotients
        self._target = _unit_target(context.y[self._rows], self._root)
        self._few = _spread(len(self._rows), _FEW_ROWS)
        few_root = self._root[self._few]
        self._few_root = few_root / few_root.norm().clamp_min(_TINY)
        self._few_target = _unit_target(context.y[self._rows][self._few], self._few_root)
        values = evaluator.matrix(partners)[:, self._rows]
        self._set_partners(values[torch.isfinite(values).all(dim=1)])

    def _set_partners(self, values: Tensor, few: Tensor | None = None) -> None:
        self._partners = values
        self._unit_partners, _ = self._unit(values)
        self._partner_share = self._unit_partners @ self._target
        self._few_partners = values[:_FEW_PARTNERS, self._few] if few is None else few

    def unexplained(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of the best of all fits with each row of `values` (N, rows), between 1e-9 and 1; NaN rows: 1."""
        if not len(values):
            return torch.empty(0, dtype=torch.float64)
        return torch.cat([self._unexplained(some) for some in torch.split(values[:, self._rows], _AT_ONCE)])

    def _unexplained(self, values: Tensor) -> Tensor:
        forms = [values, *(apply_poisoned(operator, values, None) for operator in self._unary)]
        stacked = torch.cat(forms)
        left = torch.minimum(self._with_partner(stacked), self._combined(stacked))
        left = torch.minimum(left, self._outer(stacked))
        return left.view(len(forms), len(values)).amin(dim=0)

    def unexplained_by_set(self, values: Tensor) -> float:
        """The same of the best fit with any of a few tokens (N, rows), which are partners of each other too."""
        values = values[:, self._rows]
        stacked = torch.cat([values, *(apply_poisoned(operator, values, None) for operator in self._unary)])
        stacked = stacked[torch.isfinite(stacked).all(dim=1)]
        both = copy(self)
        both._set_partners(torch.cat([self._partners, stacked]), torch.cat([self._few_partners, values[:, self._few]]))
        left = torch.minimum(both._with_partner(stacked), both._combined(stacked)).amin()
        return float(torch.minimum(left, both._outer(stacked).amin()))

    def alone(self, values: Tensor) -> Tensor:
        """1 - R² (N,) of a·t + b for each row t (N, rows)."""
        unit, fine = self._unit(values[:, self._rows])
        return _bounded(1 - (unit @ self._target).square(), fine)

    def _with_partner(self, values: Tensor) -> Tensor:
        """a·t + b·f + c with the best f."""
        unit, fine = self._unit(values)
        share = unit @ self._target
        best = share.square()
        if len(self._unit_partners):
            g = unit @ self._unit_partners.T
            own, partner = share[:, None], self._partner_share
            best = torch.maximum(best, pair_r_squared(own, partner, g).amax(dim=1))
        return _bounded(1 - best, fine)

    def _combined(self, values: Tensor) -> Tensor:
        """a·t·f + b, a·t/f + b and a·f/t + b with the best f."""
        out = torch.ones(len(values), dtype=torch.float64)
        if not len(self._partners):
            return out
        nonzero = (self._partners.abs() > _TINY).all(dim=1)
        if self._multiplies:
            out = torch.minimum(out, self._products(values, self._partners))
        if self._divides:
            out = torch.minimum(out, self._products(values, self._partners[nonzero].reciprocal()))
            out = torch.minimum(out, self._products(values.reciprocal(), self._partners))
        return out

    def _outer(self, values: Tensor) -> Tensor:
        """a·u(t + f) + b and the like with the best u and f of few, on few rows."""
        out = torch.ones(len(values), dtype=torch.float64)
        t, f = values[:, None, self._few], self._few_partners[None]
        joins = [t + f, t - f] if self._adds else []
        joins += [t * f] if self._multiplies else []
        joins += [t / f, f / t] if self._divides else []
        if not joins or not f.shape[1]:
            return out
        joined = torch.cat(joins, dim=1)
        weight = self._few_root.square()
        along = self._few_root * self._few_target
        for operator in self._unary:
            value = operator.function(joined)
            square = value.square() @ weight
            spread = square - (value @ weight).square()
            share = affine_r_squared(value @ along, spread, square)
            out = torch.minimum(out, 1 - share.amax(dim=1))
        return _bounded(out, torch.ones_like(out, dtype=torch.bool))

    def _products(self, left: Tensor, right: Tensor) -> Tensor:
        """1 - R² of a·l·r + b with the best row r of `right` for each row l of `left`."""
        if not len(right):
            return torch.ones(len(left), dtype=torch.float64)
        fine = torch.isfinite(left).all(dim=1)
        left = torch.where(fine[:, None], left, 0.0)
        # Scaled to size 1, so that neither squares nor fourth powers leave the range of doubles.
        left = left / left.abs().amax(dim=1, keepdim=True).clamp_min(_TINY)
        right = right / right.abs().amax(dim=1, keepdim=True).clamp_min(_TINY)
        root = self._root
        along = (left * self._target) @ (right * root).T
        mean = (left * root) @ (right * root).T
        square = (left * root).square() @ right.square().T
        explained = affine_r_squared(along, square - mean.square(), square).amax(dim=1)
        return _bounded(1 - explained, fine)

    def _unit(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Rows weighted, centred and of unit norm, and which of them have a direction (bool)."""
        finite = torch.isfinite(values).all(dim=1)
        safe = torch.where(finite[:, None], values, 0.0)
        unit, left = project_off(safe * self._root, self._root[None])
        fine = finite & (left > EXACTNESS.left)
        return torch.where(fine[:, None], unit, 0.0), fine


def _bounded(left: Tensor, fine: Tensor) -> Tensor:
    """What is left (N,), within its bounds; 1 where a row is not fine."""
    out: Tensor = left.masked_fill(~fine, 1.0).clamp(UNEXPLAINED, 1.0)
    return out


def _spread(rows: int, limit: int) -> Tensor:
    """At most `limit` row numbers (int64), evenly spread."""
    return torch.linspace(0, rows - 1, min(rows, limit), dtype=torch.float64).round().long()


def _unit_target(y: Tensor, root: Tensor) -> Tensor:
    """y (rows,) without its weighted mean, times the roots of the weights, of unit norm."""
    unit: Tensor = project_off((y * root)[None], root[None])[0][0]
    return unit


def promising_features(
    context: TokenContext, partners: Sequence[Expression], limit: int = 200
) -> tuple[Expression, ...]:
    """The features of up to two layers on the best variables that explain y best, at most `limit`, best first.

    With many variables only a few of them get two layers: there would be too many features.
    """
    evaluator = Evaluator(context)
    bare = Explainer(context, evaluator, ())
    order = torch.argsort(bare.alone(evaluator.matrix(context.variables)), stable=True).tolist()
    explainer = Explainer(context, evaluator, partners)
    found: dict[Expression, float] = {}
    for layers, width in ((2, _BEST_OF_TWO_LAYERS), (1, _BEST_VARIABLES)):
        best = [context.variables[i] for i in sorted(order[:width])]
        if not context.working or (layers == 1 and len(order) <= _BEST_OF_TWO_LAYERS):
            continue
        values = evaluator.matrix(best)
        features = build_features(best, values, context.working, layers, with_one=False, max_columns=_MOST_FEATURES)
        left = explainer.unexplained(features.values)
        chosen = torch.argsort(left.log10() + PRICE * features.complexity, stable=True)[: 2 * limit]
        found.update((features.expression(i), float(left[i])) for i in chosen.tolist())
    ranked = sorted(found, key=lambda feature: math.log10(found[feature]) + PRICE * feature.complexity)
    return tuple(pick_distinct(evaluator, context, ranked, limit))


def simple_partners(context: TokenContext, limit: int = 64) -> tuple[Expression, ...]:
    """Variables and one-operator features of the variables that explain y best alone, at most `limit`."""
    evaluator = Evaluator(context)
    bare = Explainer(context, evaluator, ())
    left = bare.alone(evaluator.matrix(context.variables))
    order = torch.argsort(left, stable=True).tolist()[:_BEST_VARIABLES]
    best = [context.variables[i] for i in sorted(order)]
    features: list[Expression] = []
    if context.working:
        layer = SymbolLayer(context.working, len(best))
        for block, _, lefts, rights in layer.decode(torch.arange(layer.size)):
            second = [None] * len(lefts) if rights is None else rights.tolist()
            for i, j in zip(lefts.tolist(), second, strict=True):
                operands = [best[i]] if j is None else [best[i], best[j]]
                features.append(apply(block.operator, *operands))
    features.sort(key=lambda feature: feature.complexity)
    room = max(0, limit - len(best))
    return (*best, *pick_distinct(evaluator, context, features, room))


# --------------------------------------------------------------------------------------------------------------------
# Scouting: hundreds of new tokens at once, each one operator away from a promising one, judged in one batch.
#
# Genetic programming and tree search go deep where they have found something; scouting goes wide. No tree is built
# for what is not worth keeping, so a scouted token costs a few microseconds and its judgement.


Ints = npt.NDArray[np.int64]
_KEPT = 60
_NEW = 30  # of one batch, so many are looked at more closely
_HEAD_START = 30.0  # chances fall as 1/(rank + this)
_PARTNER_IS_VARIABLE = 0.5
_VARIABLES_IN_TURN = 4
_BEST_PARTNERS = 40


@dataclass(frozen=True)
class Scouted:
    """A token and its fitness: decades of y that are left, and the price of its complexity; lower is better."""

    token: Expression
    fitness: float


def scout(
    context: TokenContext,
    evaluator: Evaluator,
    explainer: Explainer,
    seeds: Sequence[Expression],
    before: Sequence[Scouted],
    count: int,
    start: int,
    rng: np.random.Generator,
) -> tuple[Scouted, ...]:
    """The best of `count` new tokens and of those scouted before, best first; `seeds` are the best first.

    Half of the new ones are the next in a fixed order of all joins of a seed with a variable, from number `start` on:
    drawn at random, one in a hundred would still be missing after all have been seen on average five times.
    """
    base = [*(one.token for one in before), *seeds]
    base = [token for token in dict.fromkeys(base) if evaluator.usable(token)]
    if not base or not context.working:
        return tuple(before)
    everything = [*base, *context.variables]
    values = evaluator.matrix(everything)
    place = {token: i for i, token in enumerate(everything)}
    known = [place[seed] for seed in seeds if seed in place]
    which, left, right = (
        np.concatenate(pair)
        for pair in zip(
            _in_turn(context, known, len(base), start, count // 2),
            _at_random(context, len(base), count - count // 2, rng),
            strict=True,
        )
    )
    columns = torch.empty(len(which), context.rows, dtype=torch.float64)
    for number, operator in enumerate(context.working):
        here = np.nonzero(which == number)[0]
        second = None if operator.arity == 1 else values[right[here]]
        columns[here] = apply_poisoned(operator, values[left[here]], second)
    rest = explainer.unexplained(columns).log10().numpy()

    def expression(i: int) -> Expression:
        operator = context.working[which[i]]
        operands = (left[i],) if operator.arity == 1 else (left[i], right[i])
        return apply(operator, *(everything[int(operand)] for operand in operands))

    found = {one.token: one.fitness for one in before}
    for i in np.argsort(rest, kind="stable")[:_NEW].tolist():
        token = expression(i)
        if token.complexity <= MAX_COMPLEXITY and evaluator.usable(token):
            found.setdefault(token, float(rest[i]) + PRICE * token.complexity)
    ranked = sorted(found, key=lambda token: found[token])
    # Many are one function in different words; the first of them is the simplest.
    kept = pick_distinct(evaluator, context, ranked, _KEPT)
    return tuple(Scouted(token, found[token]) for token in kept if math.isfinite(found[token]))


def _in_turn(
    context: TokenContext, seeds: Sequence[int], base: int, start: int, count: int
) -> tuple[Ints, Ints, Ints]:
    """Operators and operands of joins number `start` and following: all of the best seed, then of the next."""
    actions: list[tuple[int, int, bool]] = []
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
    which = [operator for _, (operator, _, _) in chosen]
    left = [variable if swapped else seed for seed, (_, variable, swapped) in chosen]
    right = [seed if swapped else variable for seed, (_, variable, swapped) in chosen]
    return np.array(which, np.int64), np.array(left, np.int64), np.array(right, np.int64)


def _at_random(context: TokenContext, base: int, count: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Operators and operands of random joins of the base, better ones more often, with variables and good ones."""
    chance = 1.0 / (np.arange(base) + _HEAD_START)
    first = rng.choice(base, size=count, p=chance / chance.sum())
    second = rng.integers(min(base, _BEST_PARTNERS), size=count)
    variable = base + rng.integers(len(context.variables), size=count)
    second = np.where(rng.random(count) < _PARTNER_IS_VARIABLE, variable, second)
    which = rng.integers(len(context.working), size=count)
    unary = np.array([operator.arity == 1 for operator in context.working])[which]
    swapped = (rng.random(count) < 0.5) & ~unary
    return which, np.where(swapped, second, first), np.where(swapped, first, second)
