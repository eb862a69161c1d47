"""Small features: all distinct functions of the slots with one operator, with two, and so on, as there is room.

The features of `features` come by layers and complexity, as the paper counts it, where sin(x) is as dear as four sums.
Here functions and sums count alike: what meets in the middle is a law of few operators, whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.engine.distinct import representatives, signature
from symenum.expressions import Expression
from symenum.heads.features import SLOT, Features, Table, usable_features
from symenum.operators import Operator
from symenum.operators.traits import Role

__all__ = ["build_small_features"]

_AT_ONCE = 1 << 17  # functions that are computed between two looks at the clock


def build_small_features(
    slots: Sequence[Expression], values: Tensor, operators: Sequence[Operator], limit: int, size: int, budget: Budget
) -> Features:
    """The functions of up to `size` operators on slots with values (slots, rows), float64 and finite; about `limit`.

    The smallest first. CutShortError where the budget is over before all are made.
    """
    working = tuple(one for one in operators if one.role is not Role.IDENTITY and one.form is None)
    none = torch.full((len(slots),), SLOT)
    table = Table(tuple(slots), working, none, torch.arange(len(slots)), none)
    complexity = torch.tensor([slot.complexity for slot in slots])
    features = Features(values, complexity, torch.arange(len(slots)), table)
    for count in range(1, size + 1):
        before = len(features)
        made = list(_of_size(features, count, limit - before, budget))
        if not made:
            break
        features = _appended(features, made)
        leader = representatives(signature(features.values), torch.arange(len(features)))
        kept = torch.nonzero(leader == torch.arange(len(features))).flatten()[: max(before, limit)]
        features = _renumbered(features, kept)
        if len(features) in (before, limit):
            break
    return features


def _of_size(features: Features, size: int, room: int, budget: Budget) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Functions of that size: operator, left and right child (m,) and values (m, rows); about as many as have room."""
    sizes, count = features.sizes, 0
    for number, operator in enumerate(features.table.operators):
        for low in range(size) if operator.arity == 2 else [size - 1]:
            left = torch.nonzero(sizes == low).flatten()
            right = torch.nonzero(sizes == size - 1 - low).flatten() if operator.arity == 2 else left[:1]
            if operator.commutative and operator.arity == 2 and low > size - 1 - low:
                continue
            step = max(1, _AT_ONCE // max(1, len(right)))
            for some in torch.split(left, step):
                budget.check()
                if not len(some) or not len(right) or count >= 2 * room:  # some are equal to others
                    continue
                i, j = (side.flatten() for side in torch.meshgrid(some, right, indexing="ij"))
                if operator.commutative and low == size - 1 - low and operator.arity == 2:
                    i, j = i[i <= j], j[i <= j]
                V = features.values
                values = operator.function(V[i], V[j]) if operator.arity == 2 else operator.function(V[i])
                usable = torch.nonzero(usable_features(values)).flatten()
                count += len(usable)
                j = j[usable] if operator.arity == 2 else torch.full_like(usable, SLOT)
                yield number, i[usable], j, values[usable]


def _appended(features: Features, made: Sequence[tuple[int, Tensor, Tensor, Tensor]]) -> Features:
    """The features and functions of them, behind them."""
    table, complexity = features.table, features.complexity
    left, right = torch.cat([one[1] for one in made]), torch.cat([one[2] for one in made])
    operator = torch.cat([torch.full_like(one[1], one[0]) for one in made])
    own = torch.tensor([one.complexity for one in table.operators])[operator]
    cost = own + complexity[left] + torch.where(right >= 0, complexity[right.clamp_min(0)], 0)
    values = torch.cat([features.values, *(one[3] for one in made)])
    return Features(
        values, torch.cat([complexity, cost]), torch.arange(len(values)), table.extended(operator, left, right)
    )


def _renumbered(features: Features, kept: Tensor) -> Features:
    """The features that are kept, with a table of these alone: children are smaller, so that all of them are kept."""
    table = features.table
    place = torch.full((len(features),), SLOT)
    place[kept] = torch.arange(len(kept))
    made = table.operator[kept] != SLOT
    left = torch.where(made, place[table.left[kept].clamp_min(0)], table.left[kept])
    right = torch.where(table.right[kept] >= 0, place[table.right[kept].clamp_min(0)], SLOT)
    smaller = replace(table, operator=table.operator[kept], left=left, right=right)
    return Features(features.values[kept], features.complexity[kept], torch.arange(len(kept)), smaller)
