"""Features: the values of all distinct expressions of a few symbol layers on the slots, which the heads combine.

Unlike the engine's bank, which is one layer of one architecture, features are all expressions up to a layer. After each
layer those with equal values on the data are taken once, so that the next layer is built on few. Where memory does not
hold all, the most complex are left out. Of constants only slots that are constants, and 2, stay: the heads solve for
constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.dimensions import SAME_NUMBER, Dimension
from symenum.core.exactness import EXACTNESS, is_flat
from symenum.engine.architecture import complexity_rank
from symenum.engine.distinct import canonical_signs, representatives, signature
from symenum.engine.layer import SymbolLayer
from symenum.engine.layer_dimensions import dimensions_of_outputs
from symenum.expressions import Constant, Expression, Units, apply
from symenum.operators import Kind, Operator
from symenum.operators.traits import Role

__all__ = [
    "OUTPUTS_PER_COLUMN",
    "SAME_DIRECTION",
    "SLOT",
    "Features",
    "Table",
    "build_features",
    "directions",
    "extended_by_unary",
    "usable_features",
]

OUTPUTS_PER_COLUMN = 4
"""Outputs of a layer that are looked at, the simplest, for each feature that may stay: one in two or three is new."""
SLOT = -1
"""In a table of features: no operator, or no child."""
_LARGEST = 1e100  # of |v|, and 1/smallest: products of three features must not overflow
SAME_DIRECTION = 1e-12
"""Distance below which two unit columns are one: rounding of a few operations is 1e-15."""
_MIN_OUTPUTS = 1024  # of a layer that are looked at whatever the memory: slots alone would be no features
# Memory, and with it time between two looks at the clock.
_LAYER_BYTES = 1 << 28  # values of one layer before duplicates are removed: 256 MiB
_BLOCK_BYTES = 1 << 22  # values that are computed at once: 4 MiB, so that a few copies stay in the last cache
_BLOCK_OUTPUTS = 1 << 17  # outputs that are computed at once: with few rows, each output costs more than its values
_COUNTED_OUTPUTS = 1 << 20  # outputs whose complexities are told between two looks at the clock: 0.05 s
_MAX_OUTPUTS = 1 << 22  # outputs of a layer whose complexities are compared: 32 MiB of int64


@dataclass(frozen=True)
class Table:
    """How each feature is made: its operator (index, or -1 for a slot) and the numbers of its children, (N,) int64.

    Of a slot, `left` is its place among the slots.
    """

    slots: tuple[Expression, ...]
    operators: tuple[Operator, ...]
    operator: Tensor
    left: Tensor
    right: Tensor

    @cached_property
    def sizes(self) -> Tensor:
        """The number of operators of each feature, (N,) int64; slots have none."""
        made = self.operator != SLOT
        sizes = torch.zeros_like(self.operator)
        while True:  # once for each layer: children of a layer are below it
            children = sum(torch.where(side >= 0, sizes[side.clamp_min(0)], 0) for side in (self.left, self.right))
            larger = torch.where(made, 1 + children, 0)
            if bool((larger == sizes).all()):
                return sizes
            sizes = larger

    def extended(self, operator: Tensor, left: Tensor, right: Tensor) -> Table:
        """The table with further features behind its own: their operators and children, (M,) int64."""
        columns = ((self.operator, operator), (self.left, left), (self.right, right))
        return Table(self.slots, self.operators, *(torch.cat(pair) for pair in columns))

    def expression(self, number: int) -> Expression:
        """The expression of the feature of that number."""
        which = int(self.operator[number])
        if which == SLOT:
            return self.slots[int(self.left[number])]
        operator = self.operators[which]
        children = [int(self.left[number]), int(self.right[number])][: operator.arity]
        operands = [self.expression(child) for child in children]
        if operator.role is Role.SUM and operands == [Constant(1), Constant(1)]:
            return Constant(2)
        return apply(operator, *operands)


@dataclass(frozen=True)
class Features:
    """`values` (N, rows) float64 on the CPU, finite and distinct; `complexity` and `number` in the table (N,) int64.

    `dimension` (N,) float64: the numbers of their physical dimensions, where units are known; all have one.
    """

    values: Tensor
    complexity: Tensor
    number: Tensor
    table: Table
    dimension: Tensor | None = None
    _directions: dict[bool, Features] = field(default_factory=dict, init=False, repr=False, compare=False)
    _of_dimension: dict[float, Features] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def slots(self) -> int:
        """How many of the features are slots; they come first."""
        return int((self.table.operator[self.number] == SLOT).sum())

    def expression(self, index: int) -> Expression:
        """The feature of that index as a tree."""
        return self.table.expression(int(self.number[index]))

    def take(self, which: Tensor) -> Features:
        """The features of these indices (m,) int64."""
        dimension = None if self.dimension is None else self.dimension[which]
        return Features(self.values[which], self.complexity[which], self.number[which], self.table, dimension)

    def of_dimension(self, dimension: Dimension | None) -> Features:
        """Those of one physical dimension; all of them where units are not known, or for None."""
        if self.dimension is None or dimension is None:
            return self
        number = dimension.number
        if number not in self._of_dimension:
            alike = (self.dimension - number).abs() < SAME_NUMBER
            self._of_dimension[number] = self.take(torch.nonzero(alike).flatten())
        return self._of_dimension[number]

    def part(self, number: int, count: int) -> Features:
        """Part `number` of `count` parts of about equal size, in the order of the features; values are not copied."""
        low, high = (len(self) * at // count for at in (number, number + 1))
        return self.take(torch.arange(low, high)) if self.dimension is not None else self._slice(low, high)

    def _slice(self, low: int, high: int) -> Features:
        return Features(self.values[low:high], self.complexity[low:high], self.number[low:high], self.table)

    def up_to_affine(self, budget: Budget = NO_LIMIT) -> Features:
        """The features that are not constant and not a·v + b of a simpler one, by complexity."""
        return self._distinct_directions(budget, affine=True)

    def up_to_scale(self, budget: Budget = NO_LIMIT) -> Features:
        """The features that are not a·v of a simpler one, by complexity."""
        return self._distinct_directions(budget, affine=False)

    def simplest(self, count: int) -> Features:
        """The first `count` by complexity."""
        return self.take(torch.argsort(self.complexity, stable=True)[:count])

    @property
    def sizes(self) -> Tensor:
        """The number of operators of each feature, (N,) int64."""
        return self.table.sizes[self.number]

    def smallest(self, count: int) -> Features:
        """The first `count` by their number of operators, of equals the simplest."""
        order = torch.argsort(self.complexity, stable=True)
        return self.take(order[torch.argsort(self.sizes[order], stable=True)][:count])

    def _distinct_directions(self, budget: Budget, *, affine: bool) -> Features:
        """Computed once. CutShortError where the budget is over before the end; the next call begins anew."""
        if affine not in self._directions:
            self._directions[affine] = self._find_directions(budget, affine=affine)
        return self._directions[affine]

    def _find_directions(self, budget: Budget, *, affine: bool) -> Features:
        order = torch.argsort(self.complexity, stable=True)
        blocks = torch.split(order, _block(self.values.shape[1]))
        found = [directions(self.values[block], budget, affine=affine) for block in blocks]
        alive = torch.nonzero(torch.cat([alive for alive, _ in found])).flatten()
        marks = torch.cat([mark for _, mark in found])
        budget.check()
        leader = representatives(marks, torch.arange(len(alive)), SAME_DIRECTION)
        return self.take(order[alive[leader == torch.arange(len(alive))]])


def directions(values: Tensor, budget: Budget, *, affine: bool) -> tuple[Tensor, Tensor]:
    """Which rows of `values` (m, n) have a direction, as booleans (m,), and the signatures of these directions.

    The direction of a row is v/|v|, or with `affine` that of v less its mean; v and -v have one signature.
    """
    budget.check()
    scaled = values / values.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    before = scaled.norm(dim=1)
    if affine:
        scaled = scaled - scaled.mean(dim=1, keepdim=True)
    norm: Tensor = scaled.norm(dim=1)
    alive = norm > EXACTNESS.flat * before
    marks = signature(scaled[alive] / norm[alive, None])
    return alive, marks * canonical_signs(marks)[:, None]


def build_features(
    slots: Sequence[Expression],
    values: Tensor,
    operators: Sequence[Operator],
    layers: int,
    *,
    extend_unary: bool = False,
    max_columns: int = 200_000,
    max_bytes: int = _LAYER_BYTES,
    with_one: bool = True,
    budget: Budget = NO_LIMIT,
    units: Units | None = None,
) -> Features:
    """All distinct features of up to `layers` layers on slots with `values` (slots, rows), float64, CPU and finite.

    `extend_unary` adds u(v) for every feature v and unary operator u. `with_one` adds the constant 1 to the slots.
    The `max_columns` simplest stay, and never fewer than the slots. `max_bytes`: of one layer with its duplicates.
    `units` of the variables that the slots hold: only features that have a dimension are made.
    CutShortError where the budget is over before all are made.
    """
    if not bool(torch.isfinite(values).all()):
        raise ValueError("values of the slots must be finite on every row")
    slots = tuple(slots)
    if with_one and Constant(1) not in slots:
        slots = (*slots, Constant(1))
        values = torch.cat([values, torch.ones(1, values.shape[1], dtype=torch.float64)])
    working = tuple(operator for operator in operators if operator.role is not Role.IDENTITY)
    count = len(slots)
    none = torch.full((count,), SLOT)
    complexity = torch.tensor([slot.complexity for slot in slots])
    table = Table(slots, working, none, torch.arange(count), none)
    dimension = None if units is None else _dimensions_of_slots(slots, units)
    features = Features(values, complexity, torch.arange(count), table, dimension)
    features = _distinct(features, 0, max_columns, budget)
    for _ in range(layers):
        features = _grow(features, working, max_columns, max_bytes, budget)
    return extended_by_unary(features, max_columns, max_bytes, budget) if extend_unary else features


def _dimensions_of_slots(slots: Sequence[Expression], units: Units) -> Tensor:
    """(slots,) float64; a free number counts as a plain one."""
    numbers = [0.0 if (found := units.of(slot)) is None else found.number for slot in slots]
    return torch.tensor(numbers, dtype=torch.float64)


def extended_by_unary(
    features: Features, max_columns: int = 200_000, max_bytes: int = _LAYER_BYTES, budget: Budget = NO_LIMIT
) -> Features:
    """The features and u(v) of each of them, for the unary operators u of their table."""
    unary = tuple(operator for operator in features.table.operators if operator.kind is Kind.UNARY)
    return _grow(features, unary, max_columns, max_bytes, budget) if unary else features


def _grow(
    features: Features, operators: tuple[Operator, ...], max_columns: int, max_bytes: int, budget: Budget
) -> Features:
    """The features and all one-operator combinations of them that memory allows, made distinct."""
    rows = features.values.shape[1]
    width = len(features)
    while SymbolLayer(operators, width).size > _MAX_OUTPUTS and width > 1:
        width = width * 4 // 5
    below = features if width == len(features) else features.simplest(width)
    layer = SymbolLayer(operators, width)
    limit = max(_MIN_OUTPUTS, min(max_bytes // (8 * rows), OUTPUTS_PER_COLUMN * max_columns))
    numbers = _simplest_outputs(layer, below.complexity, limit, budget, _with_a_dimension(layer, below, budget))
    found = list(_usable_blocks(layer, below.values, numbers, budget))
    numbers = torch.cat([part for part, _ in found])
    budget.check()
    table, first = _extend(features.table, below, layer, numbers)
    dimension = None
    if features.dimension is not None:
        dimension = torch.cat([features.dimension, _dimensions(layer, below, numbers)])
    joined = Features(
        torch.cat([features.values, *(values for _, values in found)]),
        torch.cat([features.complexity, layer.complexity(below.complexity, numbers)]),
        torch.cat([features.number, torch.arange(first, first + len(numbers))]),
        table,
        dimension,
    )
    return _distinct(joined, len(features), max_columns, budget)


def _dimensions(layer: SymbolLayer, below: Features, numbers: Tensor) -> Tensor:
    """The numbers (len(numbers),) of the dimensions of these outputs, NaN for those that have none."""
    assert below.dimension is not None  # only asked where units are known
    first = below.values[:, 0]
    flat = (below.values == first[:, None]).all(dim=1)
    constant = torch.where(flat, first, torch.full_like(first, float("nan")))
    return dimensions_of_outputs(layer, below.dimension, constant, numbers)


def _with_a_dimension(layer: SymbolLayer, below: Features, budget: Budget) -> Tensor | None:
    """The numbers of the outputs that have a dimension, ascending; None where units are not known: all."""
    if below.dimension is None:
        return None
    found = []
    for part in torch.split(torch.arange(layer.size), _COUNTED_OUTPUTS):
        budget.check()
        found.append(part[~torch.isnan(_dimensions(layer, below, part))])
    return torch.cat(found)


def _simplest_outputs(
    layer: SymbolLayer, below: Tensor, limit: int, budget: Budget, possible: Tensor | None = None
) -> Tensor:
    """The numbers of all outputs, or of the `limit` simplest, the simplest first; `below` (width,): complexities.

    `possible` (ascending int64): those that may be taken, by default all.
    """
    numbers = torch.arange(layer.size) if possible is None else possible
    if len(numbers) <= limit:
        return numbers
    parts = []
    for part in torch.split(numbers, _COUNTED_OUTPUTS):
        budget.check()
        parts.append(layer.complexity(below, part))
    complexity = torch.cat(parts)
    # Not by sorting them all: there may be many millions, of a few complexities.
    edge = int((torch.cumsum(torch.bincount(complexity), 0) < limit).sum())  # that of the last one that fits
    inside = torch.nonzero(complexity < edge).flatten()
    tied = torch.nonzero(complexity == edge).flatten()[: limit - len(inside)]
    return numbers[torch.cat([inside[torch.argsort(complexity[inside], stable=True)], tied])]


def _block(rows: int) -> int:
    """The number of features that are computed between two looks at the clock."""
    return min(_BLOCK_OUTPUTS, max(1, _BLOCK_BYTES // (8 * rows)))


def _usable_blocks(
    layer: SymbolLayer, below: Tensor, numbers: Tensor, budget: Budget
) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers and values of the outputs that may be features, in blocks between which the clock is looked at."""
    for block in torch.split(numbers, _block(below.shape[1])):
        budget.check()
        values = layer.forward(below, block)
        usable = torch.nonzero(usable_features(values)).flatten()
        yield block[usable], values[usable]


def _extend(table: Table, below: Features, layer: SymbolLayer, numbers: Tensor) -> tuple[Table, int]:
    """The table with the outputs `numbers` of the layer appended, and the number of the first of them."""
    operator, left, right = (torch.full((len(numbers),), SLOT) for _ in range(3))
    for block, where, a, b in layer.decode(numbers):
        operator[where] = table.operators.index(block.operator)
        left[where] = below.number[a]
        if b is not None:
            right[where] = below.number[b]
    return table.extended(operator, left, right), len(table.operator)


def usable_features(values: Tensor) -> Tensor:
    """Which rows are finite, of moderate size and not constant, or 2 (it makes 2·x and x + 2), as booleans."""
    largest = values.abs().amax(dim=1)
    usable = (largest < _LARGEST) & (largest > 1 / _LARGEST)  # false for NaN
    flat = torch.nonzero(usable & is_flat(values)).flatten()
    usable[flat] = (values[flat] == 2.0).all(dim=1)
    return usable


def _distinct(features: Features, older: int, max_columns: int, budget: Budget) -> Features:
    """Features of equal values once; the first `older` keep their places, the others follow by complexity."""
    count = len(features)
    budget.check()
    rank = complexity_rank(torch.cat([torch.full((older,), -1), features.complexity[older:]]))
    leader = representatives(signature(features.values), rank)
    distinct = torch.nonzero(leader == torch.arange(count)).flatten()
    distinct = distinct[torch.argsort(rank[distinct])]
    return features.take(distinct[: max(max_columns, len(features.table.slots))])
