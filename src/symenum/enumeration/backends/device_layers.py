"""The outputs of a symbol layer on a device, all of them: by one kernel where it knows the operators, else by torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from symenum.enumeration.layer import Block, SymbolLayer, apply_poisoned, children
from symenum.operators import Kind, Operator

__all__ = ["DeviceLayer", "plan_layer", "strict_function"]

_SIZE = 32  # outputs of a program
_NAN = float("nan")


class DeviceLayer(Protocol):
    def outputs(self, below: Tensor) -> Tensor:
        """All outputs (size, rows) from those below (width, rows), float64, finite or NaN, by fixed operations."""


def plan_layer(layer: SymbolLayer, device: torch.device) -> DeviceLayer:
    """The layer on that device, with all that can be known before the values."""
    from symenum.enumeration.backends import bank_kernels, operator_kernels  # Triton is not everywhere

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
