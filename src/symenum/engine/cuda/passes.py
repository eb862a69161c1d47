"""A pass on one or several GPUs: bank, scan and shortlist on the device, the pool on the host.

A pass that fits into one strip is recorded at its second run (a CUDA graph) and replayed from then on, transfers
included: some forty small operations, whose launches from Python would take longer than the scan itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.target import Target
from symenum.core.threads import Job, run_jobs
from symenum.engine.architecture import Architecture
from symenum.engine.cpu import OperatorScan
from symenum.engine.cuda.bank import BLOCK, BankPlan, DeviceBank
from symenum.engine.cuda.scan import ROWS, UNITS, DeviceScan, judge_again
from symenum.engine.layer import Block, Family, SymbolLayer
from symenum.engine.shortlist import Pool, Scorer
from symenum.operators.traits import ARITHMETIC

__all__ = ["NetworkScan", "scan_network", "screen_network"]


_STRIPS = 64  # of a large bank


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
    most = _strip_units(architecture.columns)
    for units in (most, most // 8, most // 64):
        found = _try_scan(architecture, slots, tuple(complexity), target, k, pool, budget, devices, threads, units)
        if found is not None:
            return found
        if units // 8 < least:
            break
    raise MemoryError(
        f"a pass over {architecture.columns:,} columns and {target.rows:,} rows does not fit on {devices[0]}: use "
        "mode='screen', fewer rows or inputs, or device='cpu'"
    )


def _strip_units(columns: int) -> int:
    """More units at a time for a large bank: its strips would be too thin for the tiles of a program."""
    return min(8 * UNITS, max(UNITS, len(Family) * columns * columns // (BLOCK * _STRIPS)))


def screen_network(
    architecture: Architecture,
    slots: Tensor,
    target: Target,
    every: tuple[Tensor, Target],
    complexity: Sequence[int],
    width: int,
    pool: Pool,
    device: torch.device,
) -> NetworkScan | None:
    """Into the pool the best on all rows of some `width` or more candidates that are the best on a few rows.

    slots (inputs, few rows) and `target` are the few rows, `every` all of them, which `pool` is for; float64 on the
    CPU. The survivors never leave the device. None: the bank does not fit in one strip or not into memory, too many
    candidates come near the best, or an operator has no kernel.
    """
    try:
        shard = _shard(architecture, target.rows, width, device, 0, 1, UNITS)
        if shard.strips > 1 or not shard.all_on_device:
            return None
        if not shard.screen(slots, target, tuple(complexity), every, pool):
            return None
    except torch.cuda.OutOfMemoryError:
        _free()
        return None
    return NetworkScan(shard.stand_in, architecture.last_layer.size, True)


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
        _free()
        return None


def _free() -> None:
    _shard.cache_clear()
    torch.cuda.empty_cache()


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
    if len(shards) == 1:
        done = shards[0].run(slots, target, complexity, pool, budget)
    else:
        jobs: list[Job] = [partial(shard.run, slots, target, complexity, pool) for shard in shards]
        done = run_jobs(jobs, budget, len(shards))
    total = shards[0].strips
    layer = architecture.last_layer
    rest = _rest(layer)
    complete = done == total
    if rest and complete:
        scorer = Scorer(layer, shards[0].bank.to_bank(), target, pool)
        work = [job for block in rest for job in OperatorScan(scorer, block).jobs()]
        complete = run_jobs([job for _, job in work], budget, threads) == sum(size for size, _ in work)
    return NetworkScan(shards[0].stand_in, layer.size * done // total, complete)


def _rest(layer: SymbolLayer) -> list[Block]:
    """What is scanned on the CPU."""
    return [b for b in layer.blocks if b.operator.arity == 2 and b.operator.role not in ARITHMETIC]


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
        shape = architecture.inputs + 2, rows
        self._data = torch.empty(shape, dtype=torch.float64, device=device)
        self._host_data = torch.empty(shape, dtype=torch.float64, pin_memory=True)
        self._scale2 = torch.empty(1, dtype=torch.float64, device=device)
        self.all_on_device = self._scan.writer.coded and not _rest(architecture.last_layer)
        self._own = list(self._scan.strips)[place::shards]
        self.strips = len(self._scan.strips)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._runs = 0
        self._lock = Lock()  # several searches of one process may share the buffers

    def run(self, slots: Tensor, target: Target, complexity: tuple[int, ...], pool: Pool, budget: Budget) -> int:
        """The number of strips done, for slot values (inputs, rows) float64 on the CPU."""
        with self._lock, torch.cuda.device(self._device.index):
            self._take(slots, target, complexity)
            if self.strips == 1:
                self._whole()
                self._scan.collect(self._host_result, self.bank, *self._target, self._scale2, 0, pool)
                return 1
            return self._strip_by_strip(pool, budget)

    def screen(
        self, slots: Tensor, target: Target, complexity: tuple[int, ...], every: tuple[Tensor, Target], pool: Pool
    ) -> bool:
        """Into the pool, with losses on all rows, the best of what comes near the best on some of them.

        `every`: slot values (inputs, all rows) and target; `pool` is theirs. False: too many come near, none is judged.
        """
        with self._lock, torch.cuda.device(self._device.index):
            self._take(slots, target, complexity)
            self._whole()
            return judge_again(self._scan, self.bank, self._plan.outputs, *every, pool)

    def _take(self, slots: Tensor, target: Target, complexity: tuple[int, ...]) -> None:
        data = self._host_data.numpy()
        data[: self._inputs] = slots.numpy()
        data[-2], data[-1] = target.y.numpy(), target.weight.numpy()
        self._plan.use(complexity)

    @property
    def _target(self) -> tuple[Tensor, Tensor]:
        return self._data[self._inputs], self._data[self._inputs + 1]

    def _strip_by_strip(self, pool: Pool, budget: Budget) -> int:
        self.bank = self._build()
        self.stand_in = self.bank.stand_in.cpu()
        columns = int(self.bank.counts[0])
        done = 0
        for strip in self._own:
            if budget.over():
                break
            if strip < columns:
                self._scan.limit.fill_(pool.limit)
                result = self._scan.launch(self.bank, *self._target, self._scale2, strip, unary=strip == 0)
                self._scan.collect(result.cpu(), self.bank, *self._target, self._scale2, strip, pool)
            done += 1
        return done

    def _whole(self) -> None:
        """A pass of one strip, and its result on the host."""
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
        torch.cuda.current_stream().synchronize()
        self.stand_in = self._host_stand_in.clone()

    def _launch(self) -> DeviceBank:
        """Its result lies in pinned memory when the device is done."""
        bank = self._build()
        self._scan.limit.fill_(float("inf"))
        result = self._scan.launch(bank, *self._target, self._scale2, 0, unary=True)
        if self._runs == 1:
            self._host_result = torch.empty_like(result, device="cpu", pin_memory=True)
            self._host_stand_in = torch.empty_like(bank.stand_in, device="cpu", pin_memory=True)
        self._host_result.copy_(result, non_blocking=True)
        self._host_stand_in.copy_(bank.stand_in, non_blocking=True)
        return bank

    def _build(self) -> DeviceBank:
        self._data.copy_(self._host_data, non_blocking=True)
        self._scan.mean_square(*self._target, self._scale2)
        return self._plan.build(self._data[: self._inputs], self._scale2)


# A search asks for passes of one shape again and again; a few hundred MB of buffers are kept for the last few shapes.
_shard = lru_cache(maxsize=4)(_Shard)
