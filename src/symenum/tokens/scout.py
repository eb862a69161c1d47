"""Scouting: hundreds of new tokens at once, each one operator away from a promising one, judged in one batch.

Genetic programming and tree search go deep where they have found something; scouting goes wide. No tree is built for
what is not worth keeping, so a scouted token costs a few microseconds and its judgement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from symenum.enumeration.layer import apply_poisoned
from symenum.expressions import Expression, apply
from symenum.tokens.explain import PRICE, Explainer
from symenum.tokens.generator import Material
from symenum.tokens.pool import MAX_COMPLEXITY
from symenum.tokens.values import Evaluator, pick_distinct

__all__ = ["Scouted", "scout"]

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
    material: Material,
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
    if not base or not material.working:
        return tuple(before)
    everything = [*base, *material.variables]
    values = evaluator.matrix(everything)
    place = {token: i for i, token in enumerate(everything)}
    known = [place[seed] for seed in seeds if seed in place]
    which, left, right = (
        np.concatenate(pair)
        for pair in zip(
            _in_turn(material, known, len(base), start, count // 2),
            _at_random(material, len(base), count - count // 2, rng),
            strict=True,
        )
    )
    columns = torch.empty(len(which), material.rows, dtype=torch.float64)
    for number, operator in enumerate(material.working):
        here = np.nonzero(which == number)[0]
        second = None if operator.arity == 1 else values[right[here]]
        columns[here] = apply_poisoned(operator, values[left[here]], second)
    rest = explainer.unexplained(columns).log10().numpy()

    def expression(i: int) -> Expression:
        operator = material.working[which[i]]
        operands = (left[i],) if operator.arity == 1 else (left[i], right[i])
        return apply(operator, *(everything[int(operand)] for operand in operands))

    found = {one.token: one.fitness for one in before}
    for i in np.argsort(rest, kind="stable")[:_NEW].tolist():
        token = expression(i)
        if token.complexity <= MAX_COMPLEXITY and evaluator.usable(token):
            found.setdefault(token, float(rest[i]) + PRICE * token.complexity)
    ranked = sorted(found, key=lambda token: found[token])
    # Many are one function in different words; the first of them is the simplest.
    kept = pick_distinct(evaluator, material, ranked, _KEPT)
    return tuple(Scouted(token, found[token]) for token in kept if math.isfinite(found[token]))


def _in_turn(material: Material, seeds: Sequence[int], base: int, start: int, count: int) -> tuple[Ints, Ints, Ints]:
    """Operators and operands of joins number `start` and following: all of the best seed, then of the next."""
    actions: list[tuple[int, int, bool]] = []
    for number, operator in enumerate(material.working):
        if operator.arity == 1:
            actions.append((number, base, False))
            continue
        for variable in range(min(len(material.variables), _VARIABLES_IN_TURN)):
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


def _at_random(material: Material, base: int, count: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Operators and operands of random joins of the base, better ones more often, with variables and good ones."""
    chance = 1.0 / (np.arange(base) + _HEAD_START)
    first = rng.choice(base, size=count, p=chance / chance.sum())
    second = rng.integers(min(base, _BEST_PARTNERS), size=count)
    variable = base + rng.integers(len(material.variables), size=count)
    second = np.where(rng.random(count) < _PARTNER_IS_VARIABLE, variable, second)
    which = rng.integers(len(material.working), size=count)
    unary = np.array([operator.arity == 1 for operator in material.working])[which]
    swapped = (rng.random(count) < 0.5) & ~unary
    return which, np.where(swapped, second, first), np.where(swapped, first, second)
