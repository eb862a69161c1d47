"""What a scan of a few rows has left, judged on all rows without leaving the device.

The operands' values on all rows are made anew, some rows at a time. Of thousands of survivors the best few hundred come
back; whether two of them are the same is seen on the rows of the scan.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from symenum.enumeration.backends.device_bank import DeviceBank
from symenum.enumeration.backends.device_scan import CAPACITY, DeviceScan, add_packed
from symenum.enumeration.shortlist import Pool
from symenum.enumeration.target import Target

__all__ = ["judge_again"]

_VALUES = 1 << 28  # of distinct operands at a time: 2 GB
_BACK = 64  # times k come back first; equal ones are among them


def judge_again(
    scan: DeviceScan,
    bank: DeviceBank,
    outputs: Callable[[Tensor], Tensor],
    slots: Tensor,
    target: Target,
    pool: Pool,
) -> bool:
    """Add to the pool the best on all rows of the pairs that `scan` has written; False: they did not fit its buffer.

    `outputs` gives all outputs (raw width, rows) below the last layer from slot values (inputs, rows); slots (inputs,
    all rows) and `target` float64 on the CPU. A candidate that fails on any row is none.
    """
    codes, count = scan.written
    found = int(count)
    if found > CAPACITY:
        return False
    losses = _losses(scan, bank, outputs, slots, target, found)
    losses, order = losses.nan_to_num_(nan=float("inf")).sort(stable=True)
    end = int(torch.isfinite(losses).sum())
    step = _BACK * pool.k
    for start in range(0, end, step):
        part = slice(start, min(start + step, end))
        if float(losses[start]) > pool.limit:
            break
        add_packed(pool, scan.pack(codes[order[part]], losses[part], bank).cpu())
    return True


def _losses(
    scan: DeviceScan, bank: DeviceBank, outputs: Callable[[Tensor], Tensor], slots: Tensor, target: Target, found: int
) -> Tensor:
    """The losses (found,) float64 on all rows."""
    device = bank.values.device
    losses = torch.zeros(found, dtype=torch.float64, device=device)
    data = torch.cat([slots, target.y[None], target.weight[None]]).to(device)
    step = max(1, _VALUES // len(bank.stand_in))
    for start in range(0, target.rows, step):
        part = data[:, start : start + step].contiguous()
        scan.writer.add_losses(scan.written[0], bank, outputs(part[:-2]), part[-2], part[-1], losses)
    return losses
