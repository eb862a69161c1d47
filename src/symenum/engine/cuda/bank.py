"""The bank on a GPU, the layers that fill it, and the factors of the bounds that are made from it.

The bank has the same columns as `engine.bank.build_bank` makes. All operations have fixed shapes, and none waits for a
number from the device, so that a whole pass can be recorded once and replayed (a CUDA graph). Columns that `build_bank`
drops are therefore moved to the end, and two counts on the device say where the end begins.

The factors are those of `engine.cpu`, for products of TF32 numbers on tensor cores. A TF32 number has 11 significant
bits. Factors are rounded to TF32, so that the tensor core multiplies exactly what it is given; each factor is wrong by
at most 2⁻¹¹ of itself, and a product by 2⁻¹⁰. Sums are taken in float32, where a tensor core may truncate instead of
round, so an addition counts 2⁻²³. With γ the sum of both errors, z = √w·y and x = √w·v in units of |z|, r = v or 1/v,
s = |x|² and a = x·z, the bounds are

    sums:      s_i + s_j ± 2 x_i·x_j ∓ 2 a_i ∓ 2 a_j + 1  -  γ (s_i + s_j)         since 2|x_i x_j| ≤ x_i² + x_j²
    products:  Σ w v_i² r_j² ∓ 2 Σ w y v_i r_j + 1  -  γ (2 Σ w v_i² r_j² + 1)      since 2|y f| ≤ y² + f²

and _SLACK covers the float32 operations that add the parts. γ is 1e-3 for 20 rows. That is coarse, and enough: on the
koza-5 pass 150 of 5 million units are left, and these cost nothing in double precision.

The *own term* of a column is the part of the bound that depends on that column alone. Columns out of range have an own
term so low that all of their units are evaluated; those beyond the end of the bank have one so high that none is. The
own terms of products are summed by the tensor core too, in four places behind the rows, unless these four places would
make the product longer (`own_terms_apart`): 32 rows then take half the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from symenum.engine.architecture import Architecture
from symenum.engine.bank import NO_COMPLEXITY, Bank
from symenum.engine.distinct import DATA_TOLERANCE, SIGNATURE, key_direction, signature_directions
from symenum.engine.layer import Block, SymbolLayer, apply_poisoned, children
from symenum.operators import Kind, Operator

__all__ = [
    "BLOCK",
    "OUT_OF_RANGE",
    "TF32_PRODUCT_ERROR",
    "BankPlan",
    "DeviceBank",
    "DeviceLayer",
    "Factors",
    "inner_size",
    "load_kernels",
    "own_terms_apart",
    "padded",
    "plan_layer",
    "strict_function",
    "summation_error",
]


BLOCK = 128  # columns of a block; the columns of a bank are padded to a multiple of it
NO_KEY = 1 << 62  # stands for "no member" where the lowest key wins; `kernels.BIG` is the same number
_NAN = float("nan")
# The rank of an output among those of its class: whether it is kept, its complexity and its number, in one int64 that
# is below NO_KEY.
_COMPLEXITY_UNIT = 1 << 32  # above the number of every output
_MAX_COMPLEXITY = (1 << 28) - 1  # more complex outputs rank as equally complex
_NOT_KEPT = (_MAX_COMPLEXITY + 1) * _COMPLEXITY_UNIT

# Rounding errors of the bounds, relative.
OUT_OF_RANGE = 1e9  # largest |v| in units of y's root mean square: the product of two squares must stay below 3e38
TF32_PRODUCT_ERROR = 2.0**-10 * 1.01  # of a product of two numbers rounded to TF32: 2·2⁻¹¹, and 1% for higher orders
TF32_ADDITION_ERROR = 2.0**-23  # of an addition in a tensor core's float32 accumulator, which may truncate
_SLACK = 2.0**-18  # of the few float32 operations outside the tensor core, 2⁻²⁴ each
# Own terms in units of the mean square of y: below every limit, above every limit. Finite, so that nothing becomes NaN.
_ALWAYS, _NEVER = -1e35, 1e33
_OWN_PLACES = 4  # the high and the low half of the own terms of v_i and of v_j

# Sizes of programs, powers of 2. Chosen by trial: benchmarks/gpu.py times the kernels.
_FACTOR_COLUMNS = 16  # columns in a program of make_factors
_OUTPUTS = 32  # outputs or columns in a program of the kernels that read values
_ROWS = 32  # rows that such a program reads at a time
_CLASSES = 256  # classes in a program of classify and find_members
_PLACED = 1024  # columns in a program of group_columns and place_columns
_BUCKETS_PER_PAIR = 16  # buckets of the hash table for each pair of a class and its negative, before rounding up


def load_kernels() -> ModuleType:
    """The module of the Triton kernels, which can be imported only where Triton is installed."""
    from symenum.engine.cuda import kernels

    return kernels


def padded(columns: int) -> int:
    """The next multiple of BLOCK."""
    return -(-columns // BLOCK) * BLOCK


class DeviceBank(NamedTuple):
    """As `engine.bank.Bank` on a device, with `columns` a multiple of BLOCK, of which the first `counts[0]` are used.

    `values` (columns, rows) float64, zero beyond the end; `plus`, `minus` and their complexities (columns,) int64;
    `counts` (2,) int32: the number of columns, and of those with both signs, which come first; `stand_in` (classes,)
    int64.
    """

    values: Tensor
    plus: Tensor
    minus: Tensor
    plus_complexity: Tensor
    minus_complexity: Tensor
    counts: Tensor
    stand_in: Tensor

    def to_bank(self) -> Bank:
        """The same bank on the CPU, without the padding."""
        end = int(self.counts[0])
        values, plus, minus, plus_complexity, minus_complexity = (part[:end].cpu() for part in self[:5])
        return Bank(values, plus, minus, plus_complexity, minus_complexity, self.stand_in.cpu())


class BankPlan:
    """All that a bank of so many rows needs before the values: operands, complexities and classes; on `device`."""

    def __init__(self, architecture: Architecture, rows: int, device: torch.device) -> None:
        self._kernels = load_kernels()
        self.columns = padded(architecture.columns)
        self.rows = rows
        self.device = device
        self._layers = [plan_layer(layer, device) for layer in architecture.lower_layers]
        self._costs = [_plan_costs(layer, device) for layer in architecture.lower_layers]
        self.slot_complexity = torch.zeros(architecture.inputs, dtype=torch.int64, device=device)
        self._classes = len(architecture.kept)
        # The finite output of lowest rank represents its class: the kept one, then the simplest, then the first.
        rank = torch.full((architecture.raw_width,), _NOT_KEPT)
        rank[architecture.kept] = 0
        self._rank = (rank + torch.arange(architecture.raw_width)).to(device)
        class_of = architecture.class_of.to(device)
        self._class_of = torch.where(class_of < 0, self._classes, class_of)
        _, self._pair = torch.unique(architecture.twin.to(device), return_inverse=True)
        self._pairs = int(self._pair.max()) + 1
        self._buckets = 1 << (_BUCKETS_PER_PAIR * self._pairs - 1).bit_length()
        self.directions = signature_directions(rows).to(device) if rows > SIGNATURE else None
        self._key_direction = key_direction(rows).to(device)

    def use(self, slot_complexity: Sequence[int]) -> None:
        """Set the slots' complexities for the next banks; until then they are zero."""
        self.slot_complexity.copy_(torch.tensor(slot_complexity, dtype=torch.int64))

    def _complexities(self) -> Tensor:
        """The complexities (raw width,) int64 of all outputs of the last layer but one, on the device."""
        complexity = self.slot_complexity
        for layer in self._costs:
            left, right = (complexity.index_select(0, side) for side in layer.operands)
            complexity = layer.operator + left + layer.binary * right
        return complexity

    def build(self, slots: Tensor, scale2: Tensor) -> DeviceBank:
        """The bank for slot values (inputs, rows) and the mean square of y (1,), float64 on the device."""
        outputs = self.outputs(slots)
        complexity = self._complexities()
        rank = self._rank + complexity.clamp(max=_MAX_COMPLEXITY) * _COMPLEXITY_UNIT
        pairs, classes, rows, kernels = self._pairs, self._classes, self.rows, self._kernels

        def empty(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=self.device)

        tile = {"SIZE": _OUTPUTS, "BK": _ROWS}
        none = torch.full((self._buckets * 2 + 3 * pairs + classes + 1,), NO_KEY, device=self.device)
        sizes = [self._buckets, self._buckets, 2 * pairs, pairs, classes + 1]
        table, table2, sides, simplest, best = torch.split(none, sizes)
        stored = torch.full((pairs,), classes, device=self.device)
        stand_in, key = empty(2, classes)
        kernels.choose_outputs[_grid(len(outputs))](outputs, len(outputs), rows, rank, self._class_of, best, **tile)
        kernels.classify[_grid(classes, _CLASSES)](
            best, complexity, self._pair, stand_in, key, stored, simplest, classes, UNIT=_COMPLEXITY_UNIT, SIZE=_CLASSES
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
        kernels.find_members[_grid(classes, _CLASSES)](
            key, self._pair, stored, leader, flipped, sides, classes, pairs, SIZE=_CLASSES
        )
        # Columns with both signs first; in each group those out of range of the bounds last; dropped ones at the end.
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
        kernels.store_columns[(self.columns // _OUTPUTS,)](
            *columns, leader, flipped, sides, order, group, classes, pairs, NO_COMPLEXITY, values, *members, **tile
        )
        return DeviceBank(values, plus, minus, plus_complexity, minus_complexity, counts, stand_in)

    def outputs(self, slots: Tensor) -> Tensor:
        """All outputs (raw width, rows) of the last layer but one from slots (inputs, rows); NaN where one fails."""
        for layer in self._layers:
            slots = layer.outputs(slots)
        return slots


def _grid(count: int, size: int = _OUTPUTS) -> tuple[int]:
    return (-(-count // size),)


class DeviceLayer(Protocol):
    """A symbol layer on a device: one kernel if it knows all operators, else torch, block by block."""

    def outputs(self, below: Tensor) -> Tensor:
        """All outputs (size, rows) from those below (width, rows); float64 on the device, finite or NaN."""


def plan_layer(layer: SymbolLayer, device: torch.device) -> DeviceLayer:
    """The layer on that device, with the operands of all outputs."""
    kernels = load_kernels()
    if not kernels.has_codes(layer.operators):
        return _TorchLayer([_plan_block(block, layer.width, device) for block in layer.blocks])
    sides, parts = [], []
    for block in layer.blocks:
        left, right = children(block.operator.kind, torch.arange(block.size, device=device), layer.width)
        sides.append(torch.stack([left, left if right is None else right]))
        start = torch.arange(block.start, block.start + block.size, _OUTPUTS, device=device)
        assert block.operator.kernel is not None  # has_codes has seen it
        code = torch.full_like(start, block.operator.kernel)
        parts.append(torch.stack([code, start, (start + _OUTPUTS).clamp(max=block.start + block.size)], dim=1))
    return _CodedLayer(kernels.layer_outputs, torch.cat(sides, dim=1).int(), torch.cat(parts).int())


@dataclass(frozen=True)
class _CodedLayer:
    kernel: Callable[..., object]
    operands: Tensor  # (2, size) int32: left and right; equal for a unary operator
    parts: Tensor  # (programs, 3) int32: kernel number, first output and end of a program

    def outputs(self, below: Tensor) -> Tensor:
        rows = below.shape[1]
        out = below.new_empty(self.operands.shape[1], rows)
        tile = {"SIZE": _OUTPUTS, "BK": _ROWS}
        self.kernel[(len(self.parts),)](below, rows, *self.operands, self.parts, out, **tile)  # type: ignore[index]
        return out


@dataclass(frozen=True)
class _Costs:
    """What the complexities of a layer's outputs are made of; on the device."""

    operands: tuple[Tensor, Tensor]  # (size,) int32: left and right; equal for a unary operator
    operator: Tensor  # (size,) int32: the complexity of each output's operator
    binary: Tensor  # (size,) int32: 1 if that has two operands, else 0


def _plan_costs(layer: SymbolLayer, device: torch.device) -> _Costs:
    sides, costs = [], []
    for block in layer.blocks:
        left, right = children(block.operator.kind, torch.arange(block.size, device=device), layer.width)
        sides.append(torch.stack([left, left if right is None else right]).int())
        own = torch.tensor([block.operator.complexity, int(right is not None)], dtype=torch.int32, device=device)
        costs.append(own[:, None].expand(2, block.size))
    left, right = torch.cat(sides, dim=1)
    operator, binary = torch.cat(costs, dim=1)
    return _Costs((left, right), operator, binary)


@dataclass(frozen=True)
class _TorchBlock:
    operator: Operator
    left: Tensor  # int64, of a triangled operator; empty for others
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
    """The outputs (size, rows) float64 of one operator on all its operands, which are finite or NaN."""
    apply = strict_function(block.operator)
    if block.operator.kind is Kind.UNARY:
        return apply(below, None)
    if block.operator.kind is Kind.SQUARED:
        return apply(below[:, None], below[None]).flatten(0, 1)
    return apply(below[block.left], below[block.right])


def strict_function(operator: Operator) -> Callable[[Tensor, Tensor | None], Tensor]:
    """The operator as a function of operands that are finite or NaN, whose value is NaN where an operand is NaN."""
    if not operator.traits.strict:
        return partial(apply_poisoned, operator)
    return lambda left, right: operator.function(left) if right is None else operator.function(left, right)


def inner_size(rows: int) -> tuple[int, int]:
    """The inner dimension K of the products, and the part of it that is multiplied at a time; multiples of 16."""
    return _size_for(rows if own_terms_apart(rows) else rows + _OWN_PLACES)


def own_terms_apart(rows: int) -> bool:
    """Whether the own terms of products are added to them, because they have no room behind the rows."""
    return _size_for(rows) != _size_for(rows + _OWN_PLACES)


def _size_for(places: int) -> tuple[int, int]:
    if places <= 64:
        size = 16 if places <= 16 else 32 if places <= 32 else 64
        return size, size
    return -(-places // 64) * 64, 64


def margin(rows: int) -> float:
    """γ for sums over that many rows."""
    return TF32_PRODUCT_ERROR + summation_error(inner_size(rows)[0])


def summation_error(terms: int) -> float:
    """The relative error of a sum of so many terms in a tensor core; a quarter and 16 more are a margin."""
    return (1.25 * terms + 16) * TF32_ADDITION_ERROR


class Factors:
    """Buffers on `device` for the factors of a bank of `columns` × `rows`; (columns, K) or (columns,) float32."""

    def __init__(self, columns: int, rows: int, device: torch.device, kernels: ModuleType) -> None:
        K, self._part = inner_size(rows)
        self._kernels = kernels
        self._rows = rows
        self.x, left, left2, right, right2, inverse, inverse2 = torch.empty(7, columns, K, device=device)
        self.own, self.along, own_factor, own_inverse = torch.empty(4, columns, device=device)
        self.product = (left, left2, right, right2, own_factor, own_factor)
        self.quotient = (left, left2, inverse, inverse2, own_factor, own_inverse)
        self.transposed = torch.empty(rows, columns, dtype=torch.float64, device=device)

    def make(self, values: Tensor, counts: Tensor, y: Tensor, weight: Tensor, scale2: Tensor) -> None:
        """Fill them from `values` (columns, rows), y, weight (rows,) and the mean square of y (1,), all float64.

        `counts` (2,) int32: see `DeviceBank`.
        """
        columns, K = self.x.shape
        self._kernels.make_factors[(columns // _FACTOR_COLUMNS,)](
            values, y, weight, scale2, counts, self._rows, columns,
            self.x, self.own, self.along, *self.product[:4], *self.quotient[2:], self.transposed,
            margin(self._rows), _SLACK, OUT_OF_RANGE, _ALWAYS, _NEVER,
            K=K, BK=self._part, COLUMNS=_FACTOR_COLUMNS,
        )  # fmt: skip
