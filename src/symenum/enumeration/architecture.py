"""What a network can build, before any data: its layers, its distinct sub-expressions, its candidates' numbers.

An architecture is `inputs` slots and `layers` symbol layers over one operator set. The distinct outputs of the last
layer but one feed the last layer, whose outputs are the candidates: numbered, and never stored. Of an output and its
negative only one is stored (a *column* of the bank); the other is the same column with a sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.enumeration.cache import cached_numbers, key_of
from symenum.enumeration.distinct import canonical_signs, representatives_by_domain
from symenum.enumeration.layer import SymbolLayer, layer_sizes
from symenum.expressions import Expression, apply, sample_points
from symenum.operators import OPERATORS, Operator

__all__ = ["Architecture", "complexity_rank"]

_MASK_VERSION = 1  # raise it when the way to find duplicates changes: old cache files are then ignored


@dataclass(frozen=True)
class Architecture:
    """`layers` symbol layers of `operators` on `inputs` slots."""

    inputs: int
    operators: tuple[Operator, ...]
    layers: int

    @cached_property
    def raw_sizes(self) -> tuple[int, ...]:
        """The paper's layer sizes, before the removal of duplicates: 105, 33705, … for koza on 5 inputs."""
        return layer_sizes(self.operators, self.inputs, self.layers)

    @property
    def raw_width(self) -> int:
        """The number of outputs below the last layer, before the removal of duplicates."""
        return self.raw_sizes[-2] if self.layers > 1 else self.inputs

    @cached_property
    def lower_layers(self) -> tuple[SymbolLayer, ...]:
        """The layers below the last one, in order."""
        widths = (self.inputs, *self.raw_sizes)
        return tuple(SymbolLayer(self.operators, width) for width in widths[: self.layers - 1])

    @cached_property
    def last_layer(self) -> SymbolLayer:
        """The layer of the candidates, on the distinct outputs below it."""
        return SymbolLayer(self.operators, len(self.kept))

    @property
    def kept(self) -> Tensor:
        """The numbers (ascending int64) of the distinct outputs of the last layer but one: the paper's DR mask."""
        return self._mask[0]

    @property
    def twin(self) -> Tensor:
        """For each distinct output the index (int64, into `kept`) of the one stored for it: itself or its negative."""
        return self._mask[1]

    @cached_property
    def columns(self) -> int:
        """The number of distinct outputs up to sign, which is the width of the bank before it has seen data."""
        return len(torch.unique(self.twin))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The layers' sizes, the last but one without duplicates and up to sign; the last: number of candidates."""
        lower = (*self.raw_sizes[:-2], self.columns) if self.layers > 1 else ()
        return (*lower, self.last_layer.size)

    def bank_values(self, slots: Tensor, which: Tensor) -> Tensor:
        """Values (len(which), rows) of the distinct outputs `which`, for slot values (inputs, rows), float64."""
        return self._through_layers(slots, SymbolLayer.forward, self.kept[which])

    def bank_complexity(self, slots: Tensor) -> Tensor:
        """Complexities (int64) of all distinct outputs, from those of the slots (inputs,)."""
        return self._through_layers(slots, SymbolLayer.complexity, self.kept)

    def reconstruct(self, number: int, slots: Sequence[Expression]) -> Expression:
        """The expression of the candidate of that number (Algorithm 1, step 4)."""
        if not 0 <= number < self.last_layer.size:
            raise ValueError(f"number must be from 0 to {self.last_layer.size - 1}, not {number}")
        layers = (*self.lower_layers, self.last_layer)

        def rebuild(index: int, level: int) -> Expression:
            if level == 0:
                return slots[index]
            block, _, left, right = next(layers[level - 1].decode(torch.tensor([index])))
            operands = [int(left)] if right is None else [int(left), int(right)]
            if level == self.layers:
                operands = [int(self.kept[operand]) for operand in operands]
            return apply(block.operator, *(rebuild(operand, level - 1) for operand in operands))

        return rebuild(number, self.layers)

    def _through_layers(self, below: Tensor, step: Callable[..., Tensor], numbers: Tensor) -> Tensor:
        if self.layers == 1:
            return below[numbers]
        for layer in self.lower_layers[:-1]:
            below = step(layer, below)
        return step(self.lower_layers[-1], below, numbers)

    @cached_property
    def _mask(self) -> tuple[Tensor, Tensor]:
        if self.layers == 1:
            itself = torch.arange(self.inputs)  # slots are distinct by assumption; equal values are found on the data
            return itself, itself
        if all(OPERATORS.get(operator.name) == operator for operator in self.operators):
            names = [(operator.name, operator.complexity) for operator in self.operators]
            key = key_of("mask", _MASK_VERSION, self.inputs, self.layers, names)
            numbers = cached_numbers(key, self._find_distinct, self._could_be_mask)
        else:
            numbers = self._find_distinct()  # a user's function has no name that identifies it in a file
        kept, twin = torch.from_numpy(numbers.reshape(2, -1).copy())
        return kept, twin

    def _find_distinct(self) -> npt.NDArray[np.int64]:
        """`kept` and `twin`, one after the other."""
        values = sample_points(self.inputs).T.contiguous()
        complexity = torch.zeros(self.inputs, dtype=torch.int64)
        for layer in self.lower_layers:
            values, complexity = layer.forward(values), layer.complexity(complexity)
        found = representatives_by_domain(values, complexity_rank(complexity), wider=True)
        kept = torch.unique(found[found >= 0])
        values, complexity = values[kept], complexity[kept]
        signed = values * canonical_signs(values)[:, None]
        # Of one domain only: where an output fails on the data, its twin must fail too.
        twin = representatives_by_domain(signed, complexity_rank(complexity), wider=False)
        return np.concatenate([kept.numpy(), twin.numpy()])

    def _could_be_mask(self, numbers: npt.NDArray[np.int64]) -> bool:
        if len(numbers) == 0 or len(numbers) % 2:
            return False
        kept, twin = numbers.reshape(2, -1)
        return bool(
            kept[0] >= 0
            and kept[-1] < self.raw_width
            and (np.diff(kept) > 0).all()
            and twin.min() >= 0
            and twin.max() < len(kept)
            and (twin[twin] == twin).all()
        )


def complexity_rank(complexity: Tensor) -> Tensor:
    """The position of each when ordered by complexity, then index."""
    order = torch.argsort(complexity, stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    return rank
