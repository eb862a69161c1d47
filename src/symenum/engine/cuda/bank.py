"""The bank on a GPU: the same columns as `engine.bank.build_bank` makes, by operations of fixed shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from symenum.engine.architecture import Architecture
from symenum.engine.bank import Bank
from symenum.engine.distinct import DATA_TOLERANCE, SIGNATURE, key_direction, signature_directions
from symenum.engine.layer import Block, SymbolLayer, apply_poisoned, children
from symenum.operators import Kind, Operator

__all__ = [
    "BLOCK",
    "OUT_OF_RANGE",
    "BankPlan",
    "DeviceBank",
    "DeviceLayer",
    "Factors",
    "inner_size",
    "padded",
    "plan_layer",
    "strict_function",
]


# --------------------------------------------------------------------------------------------------------------------
# The factors of the bounds on tensor cores: as `enumeration.bounds`, for products of TF32 numbers.
#
# A TF32 number has 11 significant bits. Factors are rounded to it, so that the tensor core multiplies exactly what it
# is given; each factor is then wrong by at most 2⁻¹¹ of itself, and a product by 2⁻¹⁰. Sums are taken in float32,
# where a tensor core may cut off instead of round, so an addition counts 2⁻²³. With γ the sum of both, z = √w·y and x
# = √w·v in units of |z|, r = v or 1/v, s = |x|² and a = x·z, the bounds are
#
#     sums:      s_i + s_j ± 2 x_i·x_j ∓ 2 a_i ∓ 2 a_j + 1  -  γ (s_i + s_j)         since 2|x_i x_j| ≤ x_i² + x_j²
#     products:  Σ w v_i² r_j² ∓ 2 Σ w y v_i r_j + 1  -  γ (2 Σ w v_i² r_j² + 1)      since 2|y f| ≤ y² + f²
#
# and _SLACK covers the float32 operations that add the parts up. γ is 1e-3 for 20 rows. That is coarse, and enough:
# on the benchmark 150 of 5 million units are left, which cost nothing in double precision.
#
# Columns out of range have an own term so low that all of their units are evaluated; those beyond the end of the bank
# have one so high that none is. The own terms of products are summed by the tensor core too, in four places behind
# the rows.


OUT_OF_RANGE = 1e9  # in units of y's root mean square: the product of two squares must stay below 3e38
_ROUNDING = 2.0**-10 * 1.01
_ADDITION = 2.0**-23
_SLACK = 2.0**-18
_ALWAYS, _NEVER = -1e35, 1e33  # own terms; finite, so that nothing becomes NaN
_COLUMNS = 16  # of a program


def inner_size(rows: int) -> tuple[int, int]:
    """The inner dimension K of the products, and the part of it that is multiplied at a time."""
    need = rows + 4
    if need <= 64:
        size = 16 if need <= 16 else 32 if need <= 32 else 64
        return size, size
    return -(-need // 64) * 64, 64


def margin(rows: int) -> float:
    """γ for sums of that many products."""
    return _ROUNDING + (1.25 * inner_size(rows)[0] + 16) * _ADDITION


class Factors:
    """Buffers for the factors of a bank of `columns` × `rows`; (columns, K) or (columns,) float32."""

    def __init__(self, columns: int, rows: int, device: torch.device, kernels: ModuleType) -> None:
        K, self._part = inner_size(rows)
        self._kernels = kernels
        self._rows = rows
        self.x, left, left2, right, right2, inverse, inverse2 = torch.empty(7, columns, K, device=device)
        self.own, self.along = torch.empty(2, columns, device=device)
        self.product = (left, left2, right, right2)
        self.quotient = (left, left2, inverse, inverse2)
        self.transposed = torch.empty(rows, columns, dtype=torch.float64, device=device)

    def make(self, values: Tensor, counts: Tensor, y: Tensor, weight: Tensor, scale2: Tensor) -> None:
        """For `values` (columns, rows), y, weight (rows,) and the mean square of y, all float64 on the device."""
        columns, K = self.x.shape
        self._kernels.make_factors[(columns // _COLUMNS,)](
            values, y, weight, scale2, counts, self._rows, columns,
            self.x, self.own, self.along, *self.product, *self.quotient[2:], self.transposed,
            margin(self._rows), _SLACK, OUT_OF_RANGE, _ALWAYS, _NEVER,
            K=K, BK=self._part, COLUMNS=_COLUMNS,
        )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------------
# The outputs of a symbol layer on a device, all of them: by one kernel where it knows the operators, else by torch.


_SIZE = 32  # outputs of a program
_NAN = float("nan")


class DeviceLayer(Protocol):
    def outputs(self, below: Tensor) -> Tensor:
        """All outputs (size, rows) from those below (width, rows), float64, finite or NaN, by fixed operations."""


def plan_layer(layer: SymbolLayer, device: torch.device) -> DeviceLayer:
    """The layer on that device, with all that can be known before the values."""
    from symenum.engine.cuda import kernels as bank_kernels  # Triton is not everywhere
    from symenum.engine.cuda import kernels as operator_kernels

    if not operator_kernels.has_codes(layer.operators):
        return _TorchLayer([_plan_block(block, layer.width, device) for block in layer.blocks])
    sides, parts = [], []
    for block in layer.blocks:
        left, right = children(block.operator.kind, torch.arange(block.size, device=device), layer.width)
        sides.append(torch.stack([left, left if right is None else right]))
        start = torch.arange(block.start, block.start + block.size, _SIZE, device=device)
        assert block.operator.kernel is not None  # has_codes has seen it
        code = torch.full_like(start, block.operator.kernel)
        parts.append(torch.stack([code, start, (start + _SIZE).clamp(max=block.start + block.size)], dim=1))
    return _CodedLayer(bank_kernels.layer_outputs, torch.cat(sides, dim=1).int(), torch.cat(parts).int())


@dataclass(frozen=True)
class _CodedLayer:
    kernel: Callable[..., object]
    operands: Tensor  # (2, size) int32
    parts: Tensor  # (programs, 3) int32

    def outputs(self, below: Tensor) -> Tensor:
        rows = below.shape[1]
        out = below.new_empty(self.operands.shape[1], rows)
        self.kernel[(len(self.parts),)](below, rows, *self.operands, self.parts, out, SIZE=_SIZE, BK=32)  # type: ignore[index]
        return out


@dataclass(frozen=True)
class _TorchBlock:
    operator: Operator
    left: Tensor  # int64, for the triangled ones
    right: Tensor


@dataclass(frozen=True)
class _TorchLayer:
    blocks: list[_TorchBlock]

    def outputs(self, below: Tensor) -> Tensor:
        out = torch.cat([_apply(block, below) for block in self.blocks])
        return out.nan_to_num_(nan=_NAN, posinf=_NAN, neginf=_NAN)


def _plan_block(block: Block, width: int, device: torch.device) -> _TorchBlock:
    offsets = torch.arange(block.size if block.operator.kind is Kind.TRIANGLED else 0, device=device)
    left, right = children(block.operator.kind, offsets, width)
    return _TorchBlock(block.operator, left, left if right is None else right)


def _apply(block: _TorchBlock, below: Tensor) -> Tensor:
    """The outputs (size, rows) of one operator on all its operands, which are finite or NaN."""
    apply = strict_function(block.operator)
    if block.operator.kind is Kind.UNARY:
        return apply(below, None)
    if block.operator.kind is Kind.SQUARED:
        return apply(below[:, None], below[None]).flatten(0, 1)
    return apply(below[block.left], below[block.right])


def strict_function(operator: Operator) -> Callable[[Tensor, Tensor | None], Tensor]:
    """The operator's values on operands that are finite or NaN; NaN where an operand is."""
    if not operator.traits.strict:
        return partial(apply_poisoned, operator)
    return lambda left, right: operator.function(left) if right is None else operator.function(left, right)


# --------------------------------------------------------------------------------------------------------------------
# The bank on a device: the same columns as `bank.build_bank` makes, by operations of fixed shape.
#
# Nothing here waits for a number from the device, so that a whole pass can be recorded once and replayed (a CUDA
# graph). What `build_bank` drops is therefore moved to the end instead, and two counts on the device say where the
# end begins.


BLOCK = 128  # the columns of a bank are a multiple of this
_BIG = 1 << 62
_NO_COMPLEXITY = torch.iinfo(torch.int64).max // 4  # the complexity of what does not exist, as in `bank`
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
        from symenum.engine.cuda import kernels as bank_kernels  # Triton is not everywhere

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
            *columns, leader, flipped, sides, order, group, classes, pairs, _NO_COMPLEXITY, values, *members, **tile
        )
        return DeviceBank(values, plus, minus, plus_complexity, minus_complexity, counts, stand_in)

    def outputs(self, slots: Tensor) -> Tensor:
        """All outputs (raw width, rows) of the layer below the last one, NaN where they fail; any number of rows."""
        for layer in self._layers:
            slots = layer.outputs(slots)
        return slots


def _grid(count: int, size: int = _SIZE) -> tuple[int]:
    return (-(-count // size),)
