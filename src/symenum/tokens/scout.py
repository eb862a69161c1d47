"""Scouting: hundreds of new tokens at once, each one operator away from a promising one, judged in one batch.

Genetic programming and tree search go deep where they have found something; scouting goes wide. No tree is built for
what is not worth keeping, so a scouted token costs a few microseconds and its judgement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from symenum.enumeration.layer import apply_poisoned
from symenum.expressions import Expression, apply
from symenum.tokens.explain import PRICE, Explainer
from symenum.tokens.generator import Material
from symenum.tokens.pool import MAX_COMPLEXITY
from symenum.tokens.values import Evaluator, pick_distinct

__all__ = ["Scouted", "scout"]

_KEPT = 60
_NEW = 30  # of one batch, so many are looked at more closely
_HEAD_START = 30.0  # chances fall as 1/(rank + this)
_PARTNER_IS_VARIABLE = 0.7
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
    rng: np.random.Generator,
) -> tuple[Scouted, ...]:
    """The best of `count` new tokens and of those scouted before, best first; `seeds` are the best first."""
    base = [*(one.token for one in before), *seeds]
    base = [token for token in dict.fromkeys(base) if evaluator.usable(token)]
    if not base or not material.working:
        return tuple(before)
    everything = [*base, *material.variables]
    values = evaluator.matrix(everything)
    chance = 1.0 / (np.arange(len(base)) + _HEAD_START)
    first = rng.choice(len(base), size=count, p=chance / chance.sum())
    second = rng.integers(min(len(base), _BEST_PARTNERS), size=count)
    variable = len(base) + rng.integers(len(material.variables), size=count)
    second = np.where(rng.random(count) < _PARTNER_IS_VARIABLE, variable, second)
    swapped = rng.random(count) < 0.5
    left, right = np.where(swapped, second, first), np.where(swapped, first, second)
    which = rng.integers(len(material.working), size=count)
    columns = torch.empty(count, material.rows, dtype=torch.float64)
    for number, operator in enumerate(material.working):
        here = np.nonzero(which == number)[0]
        if operator.arity == 1:
            columns[here] = apply_poisoned(operator, values[first[here]], None)
        else:
            columns[here] = apply_poisoned(operator, values[left[here]], values[right[here]])
    rest = explainer.unexplained(columns).log10().numpy()

    def expression(i: int) -> Expression:
        operator = material.working[which[i]]
        operands = (first[i],) if operator.arity == 1 else (left[i], right[i])
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
