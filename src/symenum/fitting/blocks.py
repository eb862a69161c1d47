"""Where the memory of a machine lies, and what is done on it: NumPy on the CPU, or torch on a GPU.

On a GPU a call costs as much as ten thousand numbers, so only large batches (many rows) belong there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from symenum.fitting import kernels
from symenum.fitting.kernels import Array, Call
from symenum.fitting.program import Whole
from symenum.operators import Operator

__all__ = ["HOST", "Blocks", "DeviceBlocks", "HostBlocks"]

_COPIES = 4  # of a machine's numbers would fit into what is free


class Blocks(Protocol):
    """Arrays of float64 of one kind, here called blocks: slices are views, and calls write where they are told."""

    @property
    def room(self) -> int:
        """How many numbers a machine should have, at most."""

    def empty(self, *shape: int) -> Any:
        """A block."""

    def take_over(self, array: Array) -> Any:
        """A block of these numbers; the numbers themselves where they lie there already."""

    def give_back(self, block: Any) -> Array:
        """The numbers of a block."""

    def gather(self, source: Any, rows: Whole, out: Any) -> Call:
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

    room = 1_500_000  # what the caches hold
    backward = staticmethod(kernels.backward)
    forward = staticmethod(kernels.forward)

    def empty(self, *shape: int) -> Array:
        """See `Blocks`."""
        return np.empty(shape)

    def take_over(self, array: Array) -> Array:
        """See `Blocks`."""
        return array

    def give_back(self, block: Array) -> Array:
        """See `Blocks`."""
        return block

    def gather(self, source: Array, rows: Whole, out: Array) -> Call:
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
        free = torch.cuda.mem_get_info(self._device)[0] if self._device.type == "cuda" else 1 << 31
        return free // (8 * _COPIES)

    def empty(self, *shape: int) -> Tensor:
        """See `Blocks`."""
        return torch.empty(shape, dtype=torch.float64, device=self._device)

    def take_over(self, array: Array) -> Tensor:
        """See `Blocks`."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def give_back(self, block: Tensor) -> Array:
        """See `Blocks`."""
        return np.asarray(block.cpu().numpy())

    def gather(self, source: Tensor, rows: Whole, out: Tensor) -> Call:
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
