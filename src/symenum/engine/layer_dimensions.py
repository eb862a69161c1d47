"""What a symbol layer makes of physical dimensions, for all of its outputs at once; by the numbers of `Dimension`.

The rules are those of `Operator.dimension_rule`: NaN stands for an output that has no dimension, such as a length plus
a time. So a bank or a table of features holds only what may be a part of a law, before anything is scanned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.dimensions import SAME_NUMBER
from symenum.engine.architecture import Architecture
from symenum.engine.layer import SymbolLayer
from symenum.expressions import Constant, Expression, Units
from symenum.operators import Operator
from symenum.operators.traits import DimensionRule

__all__ = ["SlotDimensions", "admissible_parts", "dimensions_of_classes", "dimensions_of_outputs", "join"]

_NO_DIMENSION = float("nan")


@dataclass(frozen=True)
class SlotDimensions:
    """`numbers` (inputs,) float64 of the dimensions of the slots of a pass; `wanted`: that of the target.

    `constant` (inputs,) float64: the value of a slot that is a number, NaN for all others.
    """

    numbers: Tensor
    constant: Tensor
    wanted: float

    @staticmethod
    def of(slots: Sequence[Expression], units: Units) -> SlotDimensions:
        """Those of these slots; a number that may have any dimension counts as a plain one."""
        found = [units.of(slot) for slot in slots]
        numbers = [0.0 if one is None else one.number for one in found]
        values = [float(slot.value) if isinstance(slot, Constant) else _NO_DIMENSION for slot in slots]
        own, constant = (torch.tensor(one, dtype=torch.float64) for one in (numbers, values))
        return SlotDimensions(own, constant, units.target.number)


def dimensions_of_outputs(layer: SymbolLayer, below: Tensor, constant: Tensor, numbers: Tensor) -> Tensor:
    """The numbers (len(numbers),) of the dimensions of these outputs (int64), from those below (width,), float64.

    `constant` (width,): the value of an output below that is a number, else NaN; an exponent must be one.
    """
    out = torch.full((len(numbers),), _NO_DIMENSION, dtype=torch.float64, device=below.device)
    for block, where, left, right in layer.decode(numbers):
        a = below[left]
        b, value = (None, None) if right is None else (below[right], constant[right])
        out[where] = join(block.operator, a, b, value)
    return out


def join(operator: Operator, a: Tensor, b: Tensor | None, value: Tensor | None) -> Tensor:
    """The number of the dimension of operator(a, b), element by element; `value`: that of b where it is a number."""
    none = torch.full_like(a, _NO_DIMENSION)
    rule = operator.dimension_rule
    plain = a.abs() < SAME_NUMBER
    if b is None:
        if rule is DimensionRule.HOMOGENEOUS:
            return a * operator.dimension_degree
        return torch.where(plain, torch.zeros_like(a), none)
    if rule is DimensionRule.PRODUCT:
        return a + b
    if rule is DimensionRule.QUOTIENT:
        return a - b
    both_plain = plain & (b.abs() < SAME_NUMBER)
    if rule is DimensionRule.HOMOGENEOUS:
        return torch.where((a - b).abs() < SAME_NUMBER, a * operator.dimension_degree, none)
    if rule is DimensionRule.POWER:
        assert value is not None  # of a binary operator
        return torch.where(both_plain, torch.zeros_like(a), torch.where(b.abs() < SAME_NUMBER, a * value, none))
    return torch.where(both_plain, torch.zeros_like(a), none)


def dimensions_of_classes(architecture: Architecture, dimensions: SlotDimensions, outputs: Tensor) -> Tensor:
    """The numbers (len(outputs),) of the dimensions of outputs of the last layer but one (int64)."""
    slots, constant = dimensions.numbers, dimensions.constant
    if architecture.layers == 1:
        return slots[outputs]
    for layer in architecture.lower_layers[:-1]:
        everything = torch.arange(layer.size)
        slots, constant = (
            dimensions_of_outputs(layer, slots, constant, everything),
            layer.forward(constant[:, None])[:, 0],
        )
    return dimensions_of_outputs(architecture.lower_layers[-1], slots, constant, outputs)


def admissible_parts(dimension: Tensor, wanted: float, rule: DimensionRule) -> Iterator[Tensor]:
    """Sets of columns, int64 ascending, whose pairs hold every pair that a rule joins to the wanted dimension.

    `dimension` (columns,) float64. A product or quotient needs columns of two dimensions, and a sum those of one; pairs
    inside a set that give another dimension are left to whoever scans it.
    """
    groups, member = torch.unique((dimension / SAME_NUMBER).round(), return_inverse=True)
    number = torch.zeros(len(groups), dtype=torch.float64).scatter_(0, member, dimension)
    if rule not in (DimensionRule.PRODUCT, DimensionRule.QUOTIENT):
        alike = torch.nonzero((dimension - wanted).abs() < SAME_NUMBER).flatten()
        if len(alike):
            yield alike
        return
    for at, first in enumerate(number.tolist()):
        partner = wanted - first if rule is DimensionRule.PRODUCT else first - wanted
        for other in torch.nonzero((number - partner).abs() < SAME_NUMBER).flatten().tolist():
            if rule is DimensionRule.PRODUCT and other < at:
                continue  # the same set, from the other side
            yield torch.nonzero((member == at) | (member == other)).flatten()
