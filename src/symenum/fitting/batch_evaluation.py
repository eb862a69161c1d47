"""Values and derivatives of a batch of programs: equal operators of all members are one call on a block of memory.

Everything is laid out when a `Machine` is made: a run is a list of calls from block to block. Each call writes a
contiguous block; what it reads was gathered into one before. In a tree each node has one parent, so a slope is fetched
from where that parent wrote it, and is never summed up. `Blocks` says where the memory lies: NumPy on the CPU, or torch
on a GPU, where a call costs as much as ten thousand numbers, so that only large batches (many rows) belong there.

What is fitted, and to what, is not known here (`refine`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from symenum.fitting.batch_program import CONSTANT, DATA, Array, Integers, Program
from symenum.operators import Operator
from symenum.operators.traits import ARITHMETIC, Role

__all__ = [
    "HOST",
    "Blocks",
    "Call",
    "DeviceBlocks",
    "HostBlocks",
    "Machine",
    "Slopes",
    "backward",
    "forward",
    "passes_slope_unchanged",
]

# Calls that write into memory of the caller's. At the sizes of a fit a call costs as much as its work, so the common
# operators have calls of their own: NumPy's, which cost the least, but torch's sine and cosine, which are several times
# as fast. All others, the user's among them, go through the functions and derivatives of their record.

Call = tuple[Callable[..., object], tuple[Any, ...]]  # a function and its arguments, the memory for the result last
_BY_NUMPY = (*ARITHMETIC, Role.EXPONENTIAL, Role.LOGARITHM, Role.NEGATION, Role.ROOT, Role.MAGNITUDE)


def _sin(a: Tensor, out: Tensor) -> None:
    torch.sin(a, out=out)


def _cos(a: Tensor, out: Tensor) -> None:
    torch.cos(a, out=out)


def _general(operator: Operator, operands: Sequence[Tensor], out: Tensor) -> None:
    out.copy_(operator.function(*operands))


def _general_slope(operator: Operator, by: int, value: Tensor, operands: Sequence[Tensor], out: Tensor) -> None:
    slope = operator.partial(by, value, *operands)
    if isinstance(slope, Tensor):
        out.copy_(slope)
    else:
        out.fill_(slope)


def forward(operator: Operator, operands: Sequence[Array], value: Array) -> Call:
    """value = operator(*operands), all of them (nodes, rows)."""
    if operator.role in _BY_NUMPY and operator.numpy is not None:
        return operator.numpy, (*operands, value)
    tensors = [torch.from_numpy(operand) for operand in operands]
    out = torch.from_numpy(value)
    if operator.role is Role.SINE or operator.role is Role.COSINE:
        return _sin if operator.role is Role.SINE else _cos, (*tensors, out)
    return _general, (operator, tensors, out)


def passes_slope_unchanged(operator: Operator, by: int) -> bool:
    """Whether the slope of that operand is the slope of the node itself, so that there is nothing to compute."""
    return operator.role is Role.SUM or (operator.role is Role.DIFFERENCE and by == 0)


def backward(
    operator: Operator, by: int, slope: Array, value: Array, operands: Sequence[Array], out: Array
) -> list[Call]:
    """out = slope · ∂operator/∂operands[by], all of them (nodes, rows)."""
    a, b = operands[0], operands[-1]
    role = operator.role
    if role is Role.DIFFERENCE or role is Role.NEGATION:
        return [(np.negative, (slope, out))]
    if role is Role.PRODUCT:
        return [(np.multiply, (slope, operands[1 - by], out))]
    if role is Role.EXPONENTIAL:
        return [(np.multiply, (slope, value, out))]
    if role is Role.LOGARITHM or (role is Role.QUOTIENT and by == 0):
        return [(np.divide, (slope, b, out))]
    if role is Role.QUOTIENT:
        return [(np.multiply, (slope, value, out)), (np.divide, (out, b, out)), (np.negative, (out, out))]
    out_tensor = torch.from_numpy(out)
    calls: list[Call]
    if role is Role.SINE:
        calls = [(_cos, (torch.from_numpy(a), out_tensor))]
    elif role is Role.COSINE:
        calls = [(_sin, (torch.from_numpy(a), out_tensor)), (np.negative, (out, out))]
    else:
        tensors = [torch.from_numpy(operand) for operand in operands]
        calls = [(_general_slope, (operator, by, torch.from_numpy(value), tensors, out_tensor))]
    return [*calls, (np.multiply, (slope, out, out))]


# Blocks of memory, on the CPU and on a device.

_MEMORY_PARTS = 4  # a machine gets one part of the free memory; gathered copies and products take as much again
_BYTES = 8  # of a float64
_HOST_MEMORY = 1 << 31  # bytes that count as free where torch cannot say: a CPU that stands for a device, in tests


class Blocks(Protocol):
    """Arrays of float64 of one kind, here called blocks: slices are views, and calls write into them."""

    @property
    def room(self) -> int:
        """How many numbers a machine should have, at most."""

    def empty(self, *shape: int) -> Any:
        """A block."""

    def take_over(self, array: Array) -> Any:
        """A block of these numbers; the array itself where it lies in that memory already."""

    def give_back(self, block: Any) -> Array:
        """The numbers of a block."""

    def gather(self, source: Any, rows: Integers, out: Any) -> Call:
        """out = source[rows]."""

    def forward(self, operator: Operator, operands: Sequence[Any], value: Any) -> Call:
        """value = operator(*operands), all of them (nodes, rows)."""

    def backward(
        self, operator: Operator, by: int, slope: Any, value: Any, operands: Sequence[Any], out: Any
    ) -> list[Call]:
        """out = slope · ∂operator/∂operands[by], all of them (nodes, rows)."""

    def square_sums(self, residual: Any) -> Array:
        """Sums of squares over the last axis."""

    def gram(self, block: Any) -> Array:
        """For a block (members, k, copies, rows) the products of its lines (members, copies, k, k)."""


class HostBlocks:
    """In the memory of the CPU."""

    room = 1_500_000  # numbers: 12 MB, what the caches of a core hold
    backward = staticmethod(backward)
    forward = staticmethod(forward)

    def empty(self, *shape: int) -> Array:
        """See `Blocks`."""
        return np.empty(shape)

    def take_over(self, array: Array) -> Array:
        """See `Blocks`."""
        return array

    def give_back(self, block: Array) -> Array:
        """See `Blocks`."""
        return block

    def gather(self, source: Array, rows: Integers, out: Array) -> Call:
        """See `Blocks`."""
        return source.take, (rows, 0, out, "clip")

    def square_sums(self, residual: Array) -> Array:
        """See `Blocks`."""
        return np.asarray(np.einsum("bcr,bcr->bc", residual, residual))

    def gram(self, block: Array) -> Array:
        """See `Blocks`."""
        # A copy, because NumPy multiplies a matrix by its own transpose in a way that is slow for small ones.
        return np.asarray(block.transpose(0, 2, 1, 3).copy() @ block.transpose(0, 2, 3, 1))


class DeviceBlocks:
    """In the memory of a device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    @property
    def room(self) -> int:
        """See `Blocks`."""
        free = torch.cuda.mem_get_info(self._device)[0] if self._device.type == "cuda" else _HOST_MEMORY
        return free // (_BYTES * _MEMORY_PARTS)

    def empty(self, *shape: int) -> Tensor:
        """See `Blocks`."""
        return torch.empty(shape, dtype=torch.float64, device=self._device)

    def take_over(self, array: Array) -> Tensor:
        """See `Blocks`."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def give_back(self, block: Tensor) -> Array:
        """See `Blocks`."""
        return np.asarray(block.cpu().numpy())

    def gather(self, source: Tensor, rows: Integers, out: Tensor) -> Call:
        """See `Blocks`."""
        return _gather, (source, torch.from_numpy(rows).to(self._device), out)

    def forward(self, operator: Operator, operands: Sequence[Tensor], value: Tensor) -> Call:
        """See `Blocks`."""
        return _forward, (operator, operands, value)

    def backward(
        self, operator: Operator, by: int, slope: Tensor, value: Tensor, operands: Sequence[Tensor], out: Tensor
    ) -> list[Call]:
        """See `Blocks`."""
        return [(_backward, (operator, by, slope, value, operands, out))]

    def square_sums(self, residual: Tensor) -> Array:
        """See `Blocks`."""
        return self.give_back(residual.square().sum(dim=-1))

    def gram(self, block: Tensor) -> Array:
        """See `Blocks`."""
        lines = block.transpose(1, 2)
        return self.give_back(lines @ lines.transpose(2, 3))


def _gather(source: Tensor, rows: Tensor, out: Tensor) -> None:
    torch.index_select(source, 0, rows, out=out)


def _forward(operator: Operator, operands: Sequence[Tensor], value: Tensor) -> None:
    value.copy_(operator.function(*operands))


def _backward(
    operator: Operator, by: int, slope: Tensor, value: Tensor, operands: Sequence[Tensor], out: Tensor
) -> None:
    torch.mul(slope, operator.partial(by, value, *operands), out=out)


HOST = HostBlocks()


# The machine.

# The order of the nodes of a group, by which of their operands depend on a constant (0 none, 1 the first, 2 the second,
# 3 both). In this order the nodes whose first operand does are neighbours, and so are those whose second does.
_PLACE_BY_MOVES = np.array([3, 0, 2, 1])


class Slopes(Enum):
    """The constants by which there are derivatives."""

    ALL = "all"
    LINEAR = "linear"
    NONE = "none"


@dataclass
class _Group:
    """The nodes from `start` to `stop`, of one level and one operator, and where their values and operands lie.

    `moving`: for each operand, the start and the stop of the nodes whose operand depends on a constant.
    """

    operator: Operator
    start: int
    stop: int
    moving: tuple[tuple[int, int], ...]
    value: Any = None
    operands: list[Any] = field(default_factory=list)

    @property
    def arity(self) -> int:
        return self.operator.arity


_Level = list[_Group]


def _levels(program: Program, ordered: Integers) -> list[_Level]:
    """The groups of nodes, by level; `ordered` (nodes,) are their keys, sorted, each with its `_PLACE_BY_MOVES`."""
    key, count = ordered // 4, len(program.operators)
    edges = np.flatnonzero(np.diff(key, prepend=-1, append=-1)).tolist()
    # Where in each group the nodes end of which only the first operand, the first operand, any operand moves.
    ends = np.searchsorted(ordered, key[edges[:-1], None] * 4 + _PLACE_BY_MOVES[[3, 2, 0]]).tolist()
    levels: list[_Level] = []
    for (start, stop), (alone, first, last) in zip(pairwise(edges), ends, strict=True):
        level, number = divmod(int(key[start]), count)
        if level == len(levels):
            levels.append([])
        operator = program.operators[number]
        moving = ((start, first), (alone, last))[: operator.arity]
        levels[-1].append(_Group(operator, start, stop, moving))
    return levels


class Machine:
    """The expressions `members` of a program, which may repeat, computed on `rows` rows at once.

    `copies`: each member is computed for that many sets of constants, side by side with the rows; that is much faster
    than as many members. Derivatives that `slopes` leaves out are zero; with `Slopes.NONE` there is no `block`, nor
    `seeds`.

    The places of values: data columns, constants (member by member, and one more for each member), nodes. The places of
    slopes: a zero, the members' roots, then for each level from the last to the first its nodes, and what they pass on
    to their operands. `block` (members, width + 1, copies, rows) gets the derivatives; its last line is the caller's.
    """

    def __init__(
        self,
        program: Program,
        members: Integers,
        rows: int,
        copies: int = 1,
        slopes: Slopes = Slopes.ALL,
        blocks: Blocks = HOST,
    ) -> None:
        self._blocks = blocks
        self.members, self.width = members, int(program.count[members].max())
        size, k = len(members), self.width + 1
        self._copies, columns = copies, rows * copies
        self._inputs = inputs = len(program.data)
        begin = program.first[members]
        sizes = program.first[members + 1] - begin
        offsets = np.cumsum(sizes) - sizes
        nodes = np.arange(sizes.sum()) + np.repeat(begin - offsets, sizes)
        member = np.repeat(np.arange(size), sizes)
        moves = np.zeros_like(nodes)
        if slopes is not Slopes.NONE:
            moves = (program.moves if slopes is Slopes.ALL else program.linear_moves)[nodes]
        key = program.key[nodes] * 4 + _PLACE_BY_MOVES[moves]
        order = np.argsort(key, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        nodes, member, key = nodes[order], member[order], key[order]
        fixed = inputs + size * k

        def places(references: Integers, of: Integers) -> Integers:
            index, kind = references // 3, references % 3
            if not len(place):
                return np.where(kind == DATA, index, inputs + of * k + index)
            # Clipped: the index of a constant or a column may lie beyond the nodes; that entry is not used.
            node = place[np.minimum(offsets[of] + index, len(place) - 1)] + fixed
            return np.where(kind == DATA, index, np.where(kind == CONSTANT, inputs + of * k + index, node))

        self._values = blocks.empty(fixed + len(nodes), columns)
        self._constants = self._values[inputs:fixed].reshape(size, k, copies, rows)
        self._constants[:, -1] = 0.0
        self._data = self._values[:inputs].reshape(inputs, copies, rows)
        self._roots = places(program.root[members], np.arange(size))
        operands = places(program.operands[nodes], member[:, None])
        self._forward: list[Call] = []
        self._backward: list[Call] = []
        levels = _levels(program, key)
        self._lay_out_values(levels, operands, fixed, columns)
        # Slopes take as much memory as values.
        if slopes is not Slopes.NONE:
            self._lay_out_slopes(levels, operands, fixed, columns)

    def _lay_out_values(self, levels: list[_Level], operands: Integers, fixed: int, rows: int) -> None:
        values, blocks = self._values, self._blocks
        gathered = [
            np.concatenate([operands[group.start : group.stop, i] for group in level for i in range(group.arity)])
            for level in levels
        ]
        fetched = blocks.empty(sum(map(len, gathered)), rows)
        at = 0
        for level, where in zip(levels, gathered, strict=True):
            self._forward.append(blocks.gather(values[: fixed + level[0].start], where, fetched[at : at + len(where)]))
            for group in level:
                size = group.stop - group.start
                group.value = values[fixed + group.start : fixed + group.stop]
                group.operands = [fetched[at + size * i : at + size * (i + 1)] for i in range(group.arity)]
                at += size * group.arity
                self._forward.append(blocks.forward(group.operator, group.operands, group.value))
        self._out = blocks.empty(len(self.members), rows)
        self._forward.append(blocks.gather(values, self._roots, self._out))

    def _lay_out_slopes(self, levels: list[_Level], operands: Integers, fixed: int, rows: int) -> None:
        size, blocks = len(self.members), self._blocks
        passed = sum((group.stop - group.start) * group.arity for level in levels for group in level)
        slopes = blocks.empty(1 + size + len(operands) + passed, rows)
        slopes[:] = 0.0
        # (members, copies, rows): factors of the derivatives, for the caller to set
        self.seeds = slopes[1 : 1 + size].reshape(size, self._copies, -1)
        # The place of the slope of each value: at first that of the zero, and for the roots that of their seeds.
        source = np.zeros(len(self._values), dtype=np.int64)
        source[self._roots] = 1 + np.arange(size)
        filled = 1 + size
        for level in reversed(levels):
            first, last = level[0].start, level[-1].stop
            own, filled = filled, filled + last - first
            mine = source[fixed + first : fixed + last].copy()
            self._backward.append(blocks.gather(slopes[:own], mine, slopes[own:filled]))
            for group in level:
                slope = slopes[own + group.start - first : own + group.stop - first]
                for i, (start, stop) in enumerate(group.moving):
                    if start == stop:
                        continue
                    if passes_slope_unchanged(group.operator, i):
                        source[operands[start:stop, i]] = np.arange(own + start - first, own + stop - first)
                        continue
                    low, high = start - group.start, stop - group.start
                    cut = [part[low:high] for part in group.operands]
                    out = slopes[filled : filled + high - low]
                    self._backward += blocks.backward(
                        group.operator, i, slope[low:high], group.value[low:high], cut, out
                    )
                    source[operands[start:stop, i]] = np.arange(filled, filled + high - low)
                    filled += high - low
        sources = source[self._inputs : fixed].copy()
        flat = blocks.empty(len(sources), rows)
        self._backward.append(blocks.gather(slopes, sources, flat))
        self.block = flat.reshape(size, self.width + 1, self._copies, -1)

    def load(self, data: Array) -> None:
        """Take over the data columns (columns, rows)."""
        self._data[:] = self._blocks.take_over(data)[:, None]

    def values(self, constants: Array) -> Any:
        """Values (members, copies, rows) for constants (members, width, copies), which `derivatives` will use too.

        The caller may change them; the next run overwrites them.
        """
        self._constants[:, :-1] = self._blocks.take_over(constants)[..., None]
        for call, arguments in self._forward:
            call(*arguments)
        return self._out.reshape(len(self._roots), self._copies, -1)

    def derivatives(self) -> Any:
        """Derivatives by the constants times the seeds, into the block (members, width, copies, rows)."""
        for call, arguments in self._backward:
            call(*arguments)
        return self.block[:, :-1]
