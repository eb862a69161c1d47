"""Random trees over variables and constants: the raw material of all generators."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from symenum.expressions import Constant, Expression, apply
from symenum.tokens.generator import Material

__all__ = ["random_constant", "random_leaf", "random_tree", "random_trees"]

_CONSTANT_LEAVES = 0.2  # of the leaves, where constants are wanted at all
_STOP = 0.3  # how often a branch ends before its full depth
_TRIES = 200  # per token


def random_constant(material: Material, rng: np.random.Generator) -> Constant:
    """A constant of the range, to a sixtieth of its width: the fit finds the other digits. Not 0: it says nothing."""
    low, high = material.constant_range or (1.0, 1.0)
    decimals = max(0, 1 - math.floor(math.log10((high - low) / 6))) if high > low else 15
    for _ in range(_TRIES):
        value = min(max(round(float(rng.uniform(low, high)), decimals), low), high)
        if value:
            return Constant(value)
    return Constant(high or low)


def random_leaf(material: Material, rng: np.random.Generator) -> Expression:
    """A variable, or now and then a constant."""
    if material.constant_range is not None and rng.random() < _CONSTANT_LEAVES:
        return random_constant(material, rng)
    return material.variables[int(rng.integers(len(material.variables)))]


def random_tree(material: Material, rng: np.random.Generator, depth: int) -> Expression:
    """A tree of at most that many operators from root to leaf, operators drawn evenly; needs an operator."""
    operators = material.working
    operator = operators[int(rng.integers(len(operators)))]
    operands = []
    for _ in range(operator.arity):
        ends = depth <= 1 or rng.random() < _STOP
        operands.append(random_leaf(material, rng) if ends else random_tree(material, rng, depth - 1))
    return apply(operator, *operands)


def random_trees(material: Material, rng: np.random.Generator, count: int, depth: int) -> Iterator[Expression]:
    """Enough random trees of depth 1 to `depth` that `count` of them should do as tokens."""
    if not material.working:
        return
    for _ in range(_TRIES * count):
        yield random_tree(material, rng, int(rng.integers(1, depth + 1)))
