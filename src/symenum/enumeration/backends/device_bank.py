"""The bank on a device: the same columns as `bank.build_bank` makes, by operations of fixed shape.

Nothing here waits for a number from the device, so that a whole pass can be recorded once and replayed (a CUDA graph).
What `build_bank` drops is therefore moved to the end instead, and two counts on the device say where the end begins.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends.device_layers import plan_layer
from symenum.enumeration.backends.factors import OUT_OF_RANGE
from symenum.enumeration.bank import Bank
from symenum.enumeration.distinct import DATA_TOLERANCE, SIGNATURE, key_direction, signature_directions

__all__ = ["BLOCK", "BankPlan", "DeviceBank", "padded"]

BLOCK = 128  # the columns of a bank are a multiple of this
_BIG = 1 << 62
_NEVER = torch.iinfo(torch.int64).max // 4  # the complexity of what does not exist, as in `bank`
_SIZE = 32  # columns of a program
_WIDE = 256  # classes of a program
_PLACED = 1024  # pairs of a program that puts them in order


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


class BankPlan:
    """What can be known before the values: the operands of every output, complexities, classes; on `device`."""

    def __init__(self, architecture: Architecture, rows: int, device: torch.device) -> None:
        from symenum.enumeration.backends import bank_kernels  # Triton is not everywhere

        self._kernels = bank_kernels
        self.columns = padded(architecture.columns)
        self.rows = rows
        self.device = device
        self._layers = [plan_layer(layer, device) for layer in architecture.lower_layers]
        self._architecture = architecture
        self._slot_complexity: tuple[int, ...] | None = None
        self._by_rank, self._rank, self._complexity = torch.empty(
            3, architecture.raw_width, dtype=torch.int64, device=device
        )
        self._classes = len(architecture.kept)
        class_of = architecture.class_of.to(device)
        self._class_of = torch.where(class_of < 0, self._classes, class_of)
        _, self._pair = torch.unique(architecture.twin.to(device), return_inverse=True)
        self._pairs = int(self._pair.max()) + 1
        self._buckets = 1 << (16 * self._pairs - 1).bit_length()
        self.directions = signature_directions(rows).to(device) if rows > SIGNATURE else None
        self._key_direction = key_direction(rows).to(device)

    def use(self, slot_complexity: tuple[int, ...]) -> None:
        """Set the slots' own complexities for the banks to come; needed before the first."""
        if slot_complexity == self._slot_complexity:
            return
        self._slot_complexity = slot_complexity
        raw = self._architecture.raw_width
        own, everything = torch.tensor(slot_complexity, device=self.device), torch.arange(raw, device=self.device)
        complexity = self._architecture.complexity(own, everything)
        # The order in which the outputs of a class are asked to stand for it: the kept one, then the simplest.
        kept = torch.zeros(raw, dtype=torch.bool, device=self.device)
        kept[self._architecture.kept.to(self.device)] = True
        order = torch.argsort(complexity, stable=True)
        order = order[torch.argsort((~kept[order]).long(), stable=True)]
        rank = torch.empty_like(order)
        rank[order] = everything
        for buffer, values in ((self._by_rank, order), (self._rank, rank), (self._complexity, complexity)):
            buffer.copy_(values)

    def build(self, slots: Tensor, scale2: Tensor) -> DeviceBank:
        """The bank for slot values (inputs, rows) and the mean square of y (1,), float64 on the device."""
        outputs = self.outputs(slots)
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
        kernels.classify[_grid(classes, _WIDE)](
            best, self._by_rank, self._complexity, self._pair, stand_in, key, stored, simplest, classes, SIZE=_WIDE
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
        kernels.find_members[_grid(classes, _WIDE)](
            key, self._pair, stored, leader, flipped, sides, classes, pairs, SIZE=_WIDE
        )
        # Those with both signs first, in each group those out of range of the bounds last, what is gone at the end.
        programs = _grid(pairs, _PLACED)
        group, order = empty(2, pairs, dtype=torch.int32)
        histogram, counts = empty(programs[0], 8, dtype=torch.int32), empty(2, dtype=torch.int32)
        kernels.group_columns[programs](stored, leader, sides, far, classes, pairs, group, histogram, SIZE=_PLACED)
        kernels.place_columns[programs](
            group, histogram, programs[0], pairs, order, counts,
            PROGRAMS=1 << (programs[0] - 1).bit_length(), SIZE=_PLACED,
        )  # fmt: skip
        values = empty(self.columns, rows, dtype=torch.float64)
        plus, minus, plus_complexity, minus_complexity = members = empty(4, self.columns)
        kernels.store_columns[(self.columns // _SIZE,)](
            *columns, leader, flipped, sides, order, group, classes, pairs, _NEVER, values, *members, **tile
        )
        return DeviceBank(values, plus, minus, plus_complexity, minus_complexity, counts, stand_in)

    def outputs(self, slots: Tensor) -> Tensor:
        """All outputs (raw width, rows) of the layer below the last one, NaN where they fail; any number of rows."""
        for layer in self._layers:
            slots = layer.outputs(slots)
        return slots


def _grid(count: int, size: int = _SIZE) -> tuple[int]:
    return (-(-count // size),)
