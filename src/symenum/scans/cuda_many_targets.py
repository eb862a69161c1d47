"""Bounds of the units of `many_targets` on a GPU: directions in float32, their products with targets on tensor cores.

Three products of TF32 halves make a product of two float32 rows, with a relative error of 2⁻²¹ for each number and 2⁻²³
for each addition. A direction's own error is that of float32 relative to what is left of its row off the background.
The bound adds both, so it is not below the true R² of any pair in the unit. Pairs of which less than `_LEAST_NEW` is
left are no pairs here: their directions have too few digits in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.scans.many_targets import BLOCK, LEAST_NEW, PairBank, UnitTargets, own_directions

__all__ = ["bounds"]

_LEAST_NEW = 1e-3  # part of a row off its background below which there is no pair on a GPU
_EPSILON = 2.0**-23  # distance from 1 to the next float32
_PROJECTION_ERRORS = 8 * _EPSILON  # of a direction, relative to the row before it was projected: a few roundings
_UNITS_AT_ONCE = 1 << 22  # units of a launch, between which the clock is looked at
# The fastest of six shapes on an H200 (benchmarks/RESULTS.md, "Meeting in the middle").
_ROWS = 128  # rows j of a tile,
_TARGETS = 128  # and targets of a program: a direction that is made serves so many
_WARPS = 4


def bounds(bank: PairBank, sides: Sequence[UnitTargets], budget: Budget) -> list[Tensor]:
    """For each group upper bounds (m, units) float32 of R² in each unit, 0 where it was not scanned or has no pair."""
    width = max(16, 1 << (bank.left.shape[1] - 1).bit_length())
    left, right = (_typed(_of_size_one(rows), width) for rows in (bank.left, bank.right))
    return [_of_group(bank, side, left, right, budget) for side in sides]


def _of_group(bank: PairBank, side: UnitTargets, left: Tensor, right: Tensor, budget: Budget) -> Tensor:
    blocks, count, width = -(-len(right) // BLOCK), len(side.unit), left.shape[1]
    units = len(left) * blocks
    own = own_directions(bank.left, side) if bank.terms else None
    none = left.new_zeros(1, width)
    root, one, targets = (_typed(rows, width) for rows in (side.root[None], side.one[None], side.unit))
    own_rows = none if own is None else _typed(own, width)
    out = torch.zeros(count, units, dtype=torch.float32, device=left.device)
    error = (3 * _EPSILON / 4 + (width + 4) * _EPSILON) + _PROJECTION_ERRORS
    step = max(1, _UNITS_AT_ONCE // blocks)
    for first in range(0, len(left), step):
        if budget.over():
            break
        some = min(step, len(left) - first)
        part = out[:, first * blocks : (first + some) * blocks]
        _kernels().unit_bounds[(some * blocks, -(-count // _TARGETS))](
            left, right, root, one, own_rows, targets, part, first, len(right), count, blocks, units,
            max(_LEAST_NEW, LEAST_NEW), error, _PROJECTION_ERRORS, TERMS=bank.terms, SAME=bank.same, K=width,
            BLOCK=BLOCK, ROWS=_ROWS, TARGETS=_TARGETS, num_warps=_WARPS,
        )  # fmt: skip
    out.square_()
    if own is not None:  # 0 stays 0: there is no pair
        base = (side.unit @ own.T).square().float() * (1 + _EPSILON)
        by_row = out.view(count, len(left), blocks)
        by_row.add_(base[:, :, None] * (by_row > 0))
    return out


def _of_size_one(rows: Tensor) -> Tensor:
    """Rows scaled to a largest absolute value of 1: a direction does not change with the scale of its rows."""
    return rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)


def _typed(rows: Tensor, width: int) -> Tensor:
    """Rows (N, n) as float32 with zeros up to that width."""
    return torch.nn.functional.pad(rows, (0, width - rows.shape[1])).float().contiguous()


def _kernels() -> ModuleType:
    """The module of the Triton kernel, which can be imported only where Triton is installed."""
    from symenum.scans import target_kernels

    return target_kernels
