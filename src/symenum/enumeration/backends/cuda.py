"""A pass on one or several GPUs: bank, scan and shortlist on the device, the pool on the host.

A pass that fits into one strip is recorded at its second run (a CUDA graph) and replayed from then on: some two
hundred small operations, whose launches from Python would take longer than the scan itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor

from symenum.enumeration.architecture import Architecture
from symenum.enumeration.backends.device_bank import BankPlan, DeviceBank
from symenum.enumeration.backends.device_scan import ROWS, UNITS, DeviceScan
from symenum.enumeration.backends.tiles import OperatorScan
from symenum.enumeration.budget import Budget
from symenum.enumeration.forms import FORM_OPERATORS
from symenum.enumeration.scoring import Scorer
from symenum.enumeration.shortlist import Pool
from symenum.enumeration.target import Target
from symenum.enumeration.threads import Job, run_jobs

__all__ = ["NetworkScan", "scan_network"]


@dataclass(frozen=True)
class NetworkScan:
    """`stand_in` (classes,) int64 on the CPU, see `Bank`; the share of the candidates scored; whether that is all."""

    stand_in: Tensor
    scored: int
    complete: bool


def scan_network(
    architecture: Architecture,
    slots: Tensor,
    complexity: Sequence[int],
    target: Target,
    k: int,
    pool: Pool,
    budget: Budget,
    devices: Sequence[torch.device],
    threads: int,
) -> NetworkScan:
    """The best of all candidates into the pool, for slot values (inputs, rows) float64 on the CPU.

    The strips of the bank are dealt out to `devices`, of which one may stand there several times. Out of memory makes
    the strips smaller; MemoryError if the bank alone does not fit.
    """
    least = ROWS * architecture.columns // 64
    for units in (UNITS, UNITS // 8, UNITS // 64):
        found = _try_scan(architecture, slots, tuple(complexity), target, k, pool, budget, devices, threads, units)
        if found is not None:
            return found
        if units // 8 < least:
            break
    raise MemoryError(
        f"a pass over {architecture.columns:,} columns and {target.rows:,} rows does not fit on {devices[0]}: use "
        "mode='screen', fewer rows or inputs, or device='cpu'"
    )


def _try_scan(
    architecture: Architecture,
    slots: Tensor,
    complexity: tuple[int, ...],
    target: Target,
    k: int,
    pool: Pool,
    budget: Budget,
    devices: Sequence[torch.device],
    threads: int,
    units: int,
) -> NetworkScan | None:
    """None: out of memory. What is in the pool by then is right, and found again."""
    try:
        return _scan(architecture, slots, complexity, target, k, pool, budget, devices, threads, units)
    except torch.cuda.OutOfMemoryError:
        _shard.cache_clear()
        torch.cuda.empty_cache()
        return None


def _scan(
    architecture: Architecture,
    slots: Tensor,
    complexity: tuple[int, ...],
    target: Target,
    k: int,
    pool: Pool,
    budget: Budget,
    devices: Sequence[torch.device],
    threads: int,
    units: int,
) -> NetworkScan:
    shards = [
        _shard(architecture, target.rows, k, device, place, len(devices), units) for place, device in enumerate(devices)
    ]
    data = torch.cat([slots, target.y[None], target.weight[None]])
    if len(shards) == 1:
        done = shards[0].run(data, complexity, pool, budget)
    else:
        jobs: list[Job] = [partial(shard.run, data, complexity, pool) for shard in shards]
        done = run_jobs(jobs, budget, len(shards))
    total = shards[0].strips
    layer = architecture.last_layer
    rest = [b for b in layer.blocks if b.operator.arity == 2 and b.operator.name not in FORM_OPERATORS]
    complete = done == total
    if rest and complete:
        scorer = Scorer(layer, shards[0].bank.to_bank(), target, pool)
        work = [job for block in rest for job in OperatorScan(scorer, block).jobs()]
        complete = run_jobs([job for _, job in work], budget, threads) == sum(size for size, _ in work)
    return NetworkScan(shards[0].stand_in, layer.size * done // total, complete)


class _Shard:
    """One device's part of the passes of one shape; `place` of `shards` says which strips are its own."""

    def __init__(
        self,
        architecture: Architecture,
        rows: int,
        k: int,
        device: torch.device,
        place: int,
        shards: int,
        units: int,
    ) -> None:
        self._plan = BankPlan(architecture, rows, device)
        self._scan = DeviceScan(
            architecture.last_layer, self._plan.columns, rows, k, device, self._plan.directions,
            place=place, shards=shards, units=units,
        )  # fmt: skip
        self._device = device
        self._inputs = architecture.inputs
        self._data = torch.empty(architecture.inputs + 2, rows, dtype=torch.float64, device=device)
        self._own = list(self._scan.strips)[place::shards]
        self.strips = len(self._scan.strips)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._runs = 0

    def run(self, data: Tensor, complexity: tuple[int, ...], pool: Pool, budget: Budget) -> int:
        """The number of strips done, for `data` (inputs + 2, rows) float64: slots, y and weights."""
        with torch.cuda.device(self._device):
            self._data.copy_(data)
            self._plan.use(complexity)
            if self.strips == 1:
                self._whole()
                torch.cuda.current_stream().synchronize()
                self.stand_in = self._host_stand_in.clone()
                self._scan.collect(self._host_result, self.bank, *self._target, self._square, 0, pool)
                return 1
            return self._strip_by_strip(pool, budget)

    @property
    def _target(self) -> tuple[Tensor, Tensor]:
        return self._data[self._inputs], self._data[self._inputs + 1]

    def _strip_by_strip(self, pool: Pool, budget: Budget) -> int:
        self.bank = self._plan.build(self._data[: self._inputs], self._scale2())
        self.stand_in = self.bank.stand_in.cpu()
        columns = int(self.bank.counts[0])
        done = 0
        for strip in self._own:
            if budget.over():
                break
            if strip < columns:
                self._scan.limit.fill_(pool.limit)
                target = (*self._target, self._scale2())
                result = self._scan.launch(self.bank, *target, strip, unary=strip == 0)
                self._scan.collect(result.cpu(), self.bank, *target, strip, pool)
            done += 1
        return done

    def _whole(self) -> None:
        self._runs += 1
        if self._graph is not None:
            self._graph.replay()
        elif self._runs == 1:
            self.bank = self._launch()
        else:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.bank = self._launch()
            self._graph = graph
            graph.replay()

    def _launch(self) -> DeviceBank:
        """A pass of one strip; its result lies in pinned memory when the device is done."""
        scale2 = self._square = self._scale2()
        bank = self._plan.build(self._data[: self._inputs], scale2)
        self._scan.limit.fill_(float("inf"))
        result = self._scan.launch(bank, *self._target, scale2, 0, unary=True)
        if self._runs == 1:
            self._host_result = torch.empty_like(result, device="cpu", pin_memory=True)
            self._host_stand_in = torch.empty_like(bank.stand_in, device="cpu", pin_memory=True)
        self._host_result.copy_(result, non_blocking=True)
        self._host_stand_in.copy_(bank.stand_in, non_blocking=True)
        return bank

    def _scale2(self) -> Tensor:
        """The mean square of y (1,)."""
        y, weight = self._target
        return (weight * y.square()).sum(dim=0, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)


# A search asks for passes of one shape again and again; a few hundred MB of buffers are kept for the last few shapes.
_shard = lru_cache(maxsize=4)(_Shard)
