"""The bank on a device: the same columns as `bank.build_bank` makes, by operations of fixed shape.

Nothing here waits for a number from the device, so that a whole pass can be recorded once and replayed (a CUDA graph).
What `build_bank` drops is therefore moved to the end instead, and two counts on the device say where the end begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends.factors import OUT_OF_RANGE
from symenum.enumeration.bank import Bank
from symenum.enumeration.distinct import DATA_TOLERANCE, SIGNATURE, key_direction, signature_directions
from symenum.enumeration.forms import FORM_OPERATORS
from symenum.enumeration.layer import SymbolLayer, apply_poisoned, children
from symenum.operators import Kind, Operator

__all__ = ["BLOCK", "BankPlan", "DeviceBank", "padded", "strict_function"]

BLOCK = 128  # the columns of a bank are a multiple of this
_BIG = 1 << 62
_NEVER = torch.iinfo(torch.int64).max // 4  # the complexity of what does not exist, as in `bank`
_SIZE = 32  # columns of a program
_NAN = float("nan")
# NaN in, NaN out: these need no poisoning of their own. (NaN**0 is 1.)
_STRICT = FORM_OPERATORS | {"identity", "neg", "inv", "sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh"}


def padded(columns: int) -> int:
    """The next multiple of BLOCK."""
    return -(-columns // BLOCK) * BLOCK


class DeviceBank(NamedTuple):
    """As `bank.Bank`, with `columns` a multiple of BLOCK; of these only the first `counts[0]` are there.

    `values` (columns, rows) float64, zero beyond the end; `plus`, `minus` and their complexities (columns,) int64;
    `counts` (2,) int32: the columns, and the first of them, which have both signs; `stand_in` (classes,) int64.
    """

    values: Tensor
    plus: Tensor
    minus: Tensor
    plus_complexity: Tensor
    minus_complexity: Tensor
    counts: Tensor
    stand_in: Tensor

    def to_bank(self) -> Bank:
        """The same on the CPU."""
        end = int(self.counts[0])
        values, plus, minus, plus_complexity, minus_complexity = (part[:end].cpu() for part in self[:5])
        return Bank(values, plus, minus, plus_complexity, minus_complexity, self.stand_in.cpu())


@dataclass(frozen=True)
class _BlockPlan:
    operator: Operator
    left: Tensor  # int64, for the triangled ones
    right: Tensor


class BankPlan:
    """What can be known before the values: the operands of every output, complexities, classes; on `device`."""

    def __init__(self, architecture: Architecture, rows: int, device: torch.device) -> None:
        from symenum.enumeration.backends import bank_kernels  # Triton is not everywhere

        self._kernels = bank_kernels
        self.columns = padded(architecture.columns)
        self.rows = rows
        self.device = device
        self._layers = [_plan_layer(layer, device) for layer in architecture.lower_layers]
        self._architecture = architecture
        self._slot_complexity: tuple[int, ...] | None = None
        self._by_rank, self._rank, self._complexity = torch.empty(
            3, architecture.raw_width, dtype=torch.int64, device=device
        )
        self._classes = len(architecture.kept)
        class_of = torch.where(architecture.class_of < 0, self._classes, architecture.class_of)
        _, pair = torch.unique(architecture.twin, return_inverse=True)
        self._pairs = int(pair.max()) + 1
        self._class_of, self._pair = class_of.to(device), pair.to(device)
        self._self = torch.arange(self._pairs, device=device)
        self._groups = torch.arange(5, device=device)[:, None]
        self._buckets = 1 << (16 * self._pairs - 1).bit_length()
        self.directions = signature_directions(rows).to(device) if rows > SIGNATURE else None
        self._key_direction = key_direction(rows).to(device)

    def use(self, slot_complexity: tuple[int, ...]) -> None:
        """Set the slots' own complexities for the banks to come; needed before the first."""
        if slot_complexity == self._slot_complexity:
            return
        self._slot_complexity = slot_complexity
        raw = self._architecture.raw_width
        complexity = self._architecture.complexity(torch.tensor(slot_complexity), torch.arange(raw))
        # The order in which the outputs of a class are asked to stand for it: the kept one, then the simplest.
        kept = torch.zeros(raw, dtype=torch.bool)
        kept[self._architecture.kept] = True
        order = torch.argsort(complexity, stable=True)
        order = order[torch.argsort((~kept[order]).long(), stable=True)]
        rank = torch.empty_like(order)
        rank[order] = torch.arange(raw)
        for buffer, values in ((self._by_rank, order), (self._rank, rank), (self._complexity, complexity)):
            buffer.copy_(values)

    def build(self, slots: Tensor, scale2: Tensor) -> DeviceBank:
        """The bank for slot values (inputs, rows) and the mean square of y (1,), float64 on the device."""
        outputs = self._outputs(slots)
        pairs, classes, rows, kernels = self._pairs, self._classes, self.rows, self._kernels

        def empty(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=self.device)

        tile = {"SIZE": _SIZE, "BK": 32}
        none = torch.full((self._buckets * 2 + 3 * pairs + classes + 1,), _BIG, device=self.device)
        sizes = [self._buckets, self._buckets, 2 * pairs, pairs, classes + 1]
        table, table2, sides, simplest, best = torch.split(none, sizes)
        stored = torch.full((pairs,), classes, device=self.device)
        stand_in, key = empty(2, classes)
        kernels.choose_outputs[_grid(len(outputs))](
            outputs, len(outputs), rows, self._rank, self._class_of, best, **tile
        )
        kernels.classify[_grid(classes, 256)](
            best, self._by_rank, self._complexity, self._pair, stand_in, key, stored, simplest, classes, SIZE=256
        )
        largest, (flipped, far) = empty(pairs, dtype=torch.float64), empty(2, pairs, dtype=torch.int32)
        buckets, leader = empty(pairs, 2), empty(pairs)
        columns = (outputs, rows, stand_in, stored)
        kernels.judge_columns[_grid(pairs)](
            *columns, simplest, classes, pairs, self._key_direction, scale2, OUT_OF_RANGE, largest, flipped, far,
            buckets, table, table2, TABLE=self._buckets, **tile,
        )  # fmt: skip
        kernels.find_leaders[_grid(pairs)](
            *columns, self._pair, classes, pairs, largest, flipped, buckets, table, table2, DATA_TOLERANCE, leader,
            **tile,
        )  # fmt: skip
        kernels.find_members[_grid(classes, 256)](
            key, self._pair, stored, leader, flipped, sides, classes, pairs, SIZE=256
        )
        # Those with both signs first, in each group those out of range of the bounds last, what is gone at the end.
        gone = (stored == classes) | (leader != self._self)
        group = torch.where(gone, 4, (sides.view(2, -1) == _BIG).any(dim=0) * 2 + far)
        place = (group == self._groups).flatten().cumsum(0).view(5, -1).gather(0, group[None])[0] - 1
        order = torch.empty_like(place).scatter_(0, place, self._self)
        values = empty(self.columns, rows, dtype=torch.float64)
        plus, minus, plus_complexity, minus_complexity = members = empty(4, self.columns)
        counts = torch.zeros(2, dtype=torch.int32, device=self.device)
        kernels.store_columns[(self.columns // _SIZE,)](
            *columns, leader, flipped, sides, order, group, classes, pairs, _NEVER, values, *members, counts, **tile
        )
        return DeviceBank(values, plus, minus, plus_complexity, minus_complexity, counts, stand_in)

    def _outputs(self, slots: Tensor) -> Tensor:
        """All outputs (raw width, rows) of the layer below the last one, NaN where they fail."""
        for layer in self._layers:
            out = torch.cat([_apply(block, slots) for block in layer])
            slots = out.nan_to_num_(nan=_NAN, posinf=_NAN, neginf=_NAN)
        return slots


def _grid(count: int, size: int = 0) -> tuple[int]:
    return (-(-count // (size or _SIZE)),)


def _plan_layer(layer: SymbolLayer, device: torch.device) -> list[_BlockPlan]:
    plans = []
    for block in layer.blocks:
        offsets = torch.arange(block.size if block.operator.kind is Kind.TRIANGLED else 0)
        left, right = children(block.operator.kind, offsets, layer.width)
        plans.append(_BlockPlan(block.operator, left.to(device), (left if right is None else right).to(device)))
    return plans


def _apply(block: _BlockPlan, below: Tensor) -> Tensor:
    """The outputs (size, rows) of one operator on all its operands, which are finite or NaN."""
    apply = strict_function(block.operator)
    if block.operator.kind is Kind.UNARY:
        return apply(below, None)
    if block.operator.kind is Kind.SQUARED:
        return apply(below[:, None], below[None]).flatten(0, 1)
    return apply(below[block.left], below[block.right])


def strict_function(operator: Operator) -> Callable[[Tensor, Tensor | None], Tensor]:
    """The operator's values on operands that are finite or NaN; NaN where an operand is."""
    if operator.name not in _STRICT:
        return partial(apply_poisoned, operator)
    return lambda left, right: operator.function(left) if right is None else operator.function(left, right)
