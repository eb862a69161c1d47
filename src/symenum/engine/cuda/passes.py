"""A pass on one or several GPUs: bank, scan and shortlist on the device, the pool on the host.

A pass that fits into one strip is recorded at its second run (a CUDA graph) and replayed from then on, transfers
included: it has some forty small operations, whose launches from Python would take longer than the scan itself. On a
GPU with enough memory that is every pass up to 3e11 candidates; larger ones go strip by strip.

Passes on several slot sets (`scan_many`) are launched one behind the other. The host takes the result of one pass while
the device works on the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import RLock

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import DeviceLostError
from symenum.core.target import Target
from symenum.core.threads import Job, run_jobs
from symenum.engine.architecture import Architecture
from symenum.engine.cpu import OperatorScan
from symenum.engine.cuda.bank import BLOCK, BankPlan, DeviceBank, padded
from symenum.engine.cuda.scan import ROWS, UNITS, DeviceScan, judge_again
from symenum.engine.layer import Family
from symenum.engine.shortlist import Pool, Scorer

__all__ = ["NetworkScan", "scan_many", "scan_network", "screen_network"]


# Chosen by trial: benchmarks/gpu.py times the kernels.
_MAX_STRIPS = 64  # strips that a large bank is cut into, as far as memory allows
_UNIT_GROWTH = 8  # a large bank may have so many times UNITS in a strip; out of memory, so many times fewer are tried
_SHAPES = 4  # shapes of passes whose buffers, a few hundred MB each and at most _STRIP_SHARE, are kept
_STRIP_SHARE = 1 / 8  # part of a device's memory that the units of a strip may take
_BYTES_PER_UNIT = 8  # a bound, and a place in the list of those within the limit
_MAX_UNITS = (1 << 31) - (1 << 20)  # units have int32 numbers, which programs round up
_CAPTURE = "thread_local"  # other threads may take memory of the GPU while a pass is recorded
_IN_FLIGHT = 3  # passes of `scan_many` that are launched before the host waits for the first


SlotSet = tuple[Tensor, Sequence[int]]  # slot values (inputs, rows) float64 on the CPU, and the slots' complexities


@dataclass(frozen=True)
class NetworkScan:
    """The result of a pass, besides the pool."""

    stand_in: Tensor  # (classes,) int64 on the CPU, see `Bank`
    scored: int  # candidates
    complete: bool  # whether all candidates were scored


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
    """Bring the best of all candidates into the pool, for slot values (inputs, rows) float64 on the CPU.

    `complexity`: of the slots. The strips of the bank are dealt out to `devices`; a device may be named several times.
    Out of memory, smaller strips are tried; DeviceLostError if even the smallest do not fit.
    """
    least = ROWS * architecture.columns // _MAX_STRIPS
    most = _strip_units(architecture.columns, devices[0])
    for units in (most, most // _UNIT_GROWTH, most // _UNIT_GROWTH**2):
        found = _try_scan(architecture, slots, tuple(complexity), target, k, pool, budget, devices, threads, units)
        if found is not None:
            return found
        if units // _UNIT_GROWTH < least:
            break
    raise DeviceLostError(
        f"a pass over {architecture.columns:,} columns and {target.rows:,} rows does not fit on {devices[0]}: use "
        "mode='screen', fewer rows or inputs, or device='cpu'"
    )


def _strip_units(columns: int, device: torch.device) -> int:
    """Units in a strip: all, if memory allows; else more for a large bank, whose strips would be too thin for tiles."""
    whole = len(Family) * padded(columns) * (padded(columns) // BLOCK)
    if whole <= min(_MAX_UNITS, _room(device)):
        return max(UNITS, whole)
    return min(_UNIT_GROWTH * UNITS, max(UNITS, whole // _MAX_STRIPS))


def _room(device: torch.device) -> int:
    """The number of units for which a device has memory."""
    memory: int = torch.cuda.get_device_properties(device).total_memory
    return int(memory * _STRIP_SHARE) // _BYTES_PER_UNIT


def scan_many(
    architecture: Architecture,
    sets: Sequence[SlotSet],
    target: Target,
    k: int,
    budget: Budget,
    device: torch.device,
    threads: int,
) -> Iterator[tuple[Pool, NetworkScan]]:
    """For each slot set, in order, what `scan_network` gives, and the pool that it fills.

    Nothing is launched for sets that are left when the budget is over: their pools are empty. A set for which the
    results of the first transfer are not enough is scanned again, alone.
    """
    done = 0
    try:
        shard = _shard(architecture, target.rows, k, device, 0, 1, _strip_units(architecture.columns, device))
        if shard.strips == 1 and not architecture.last_layer.blocks_without_form:
            for found in shard.run_many(sets, target, k, budget):
                yield found
                done += 1
    except torch.cuda.OutOfMemoryError:
        _free()  # one by one, with smaller strips
    for slots, complexity in sets[done:]:
        pool = Pool(k, target)
        if budget.over():
            yield pool, NetworkScan(architecture.kept, 0, False)
        else:
            scan = scan_network(architecture, slots, complexity, target, k, pool, budget, (device,), threads)
            yield pool, scan


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
    """Judge on all rows at least `width` candidates that are the best on a few rows, and add the best to the pool.

    `slots` (inputs, few rows) and `target` hold the few rows, `every` (slots, target) all rows, on which `pool` judges;
    float64 on the CPU. The survivors never leave the device. None, and nothing is done, if the bank does not fit into
    one strip or into memory, if too many candidates are near the best, or if an operator has no kernel.
    """
    try:
        shard = _shard(architecture, target.rows, width, device, 0, 1, _strip_units(architecture.columns, device))
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
    """`_scan`, or None if it ran out of memory; what is in the pool by then is right, and will be found again."""
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
    rest = layer.blocks_without_form  # scanned on the CPU
    complete = done == total
    if rest and complete:
        scorer = Scorer(layer, shards[0].bank.to_bank(), target, pool)
        work = [job for block in rest for job in OperatorScan(scorer, block).jobs()]
        complete = run_jobs([job for _, job in work], budget, threads) == sum(size for size, _ in work)
    return NetworkScan(shards[0].stand_in, layer.size * done // total, complete)


class _Shard:
    """One device's part of all passes of one shape: of `shards` devices the one at `place`."""

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
        self._candidates, self._kept = architecture.last_layer.size, architecture.kept
        # The rows of a packet: values of the slots, y, weights; then the complexities of the slots, filled up with 0.
        shape = architecture.inputs + 2 + -(-architecture.inputs // rows), rows
        self._packet = torch.empty(shape, dtype=torch.float64, device=device)
        self._host_packet = torch.zeros(shape, dtype=torch.float64, pin_memory=True)
        self._scale2 = torch.empty(1, dtype=torch.float64, device=device)
        self.all_on_device = self._scan.writer.coded and not architecture.last_layer.blocks_without_form
        self._own = list(self._scan.strips)[place::shards]
        self.strips = len(self._scan.strips)
        self._graph: torch.cuda.CUDAGraph | None = None  # of a pass with its transfers, see `run`
        self._graph_of_many: torch.cuda.CUDAGraph | None = None  # of a pass without, see `run_many`
        self._runs = self._runs_of_many = 0
        self._lock = RLock()  # several searches of one process may share the buffers

    def run(self, slots: Tensor, target: Target, complexity: Sequence[int], pool: Pool, budget: Budget) -> int:
        """The number of strips done, for slot values (inputs, rows) float64 on the CPU."""
        with self._lock, torch.cuda.device(self._device.index):
            self._write_packet(self._host_packet, (slots, complexity), target)
            if self.strips == 1:
                self._whole()
                self._scan.collect(self._host_result, self.bank, *self._target, self._scale2, 0, pool)
                return 1
            return self._strip_by_strip(pool, budget)

    def run_many(
        self, sets: Sequence[SlotSet], target: Target, k: int, budget: Budget
    ) -> Iterator[tuple[Pool, NetworkScan]]:
        """For each slot set a pool of its best k; all sets are sent at once, and results fetched as they come."""
        with self._lock:
            packets = torch.zeros(len(sets), *self._packet.shape, dtype=torch.float64, pin_memory=True)
            for packet, slot_set in zip(packets, sets, strict=True):
                self._write_packet(packet, slot_set, target)
            waiting: deque[_Flight] = deque()
            with torch.cuda.device(self._device.index):
                sent = packets.to(self._device, non_blocking=True)
            for at in range(len(sets) + _IN_FLIGHT):
                if at < len(sets) and not budget.over():
                    with torch.cuda.device(self._device.index):
                        waiting.append(self._send(sent[at]))
                place = at - _IN_FLIGHT
                if place < 0:
                    continue
                pool = Pool(k, target)
                if not waiting:
                    yield pool, NetworkScan(self._kept, 0, False)
                    continue
                flight = waiting.popleft()
                flight.landed.synchronize()
                stand_in = flight.stand_in
                if not self._scan.take_whole(flight.result, pool):
                    slots, complexity = sets[place]
                    self.run(slots, target, complexity, pool, budget)
                    stand_in = self.stand_in
                yield pool, NetworkScan(stand_in, self._candidates, True)

    def _send(self, packet: Tensor) -> _Flight:
        """Launch a pass of one strip on a packet that is on the device; the host need not wait."""
        self._packet.copy_(packet)
        self._runs_of_many += 1
        if self._graph_of_many is None and self._runs_of_many > 1:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode=_CAPTURE):
                self._many = self._launch_of_many()
            self._graph_of_many = graph
        if self._graph_of_many is None:
            self._many = self._launch_of_many()
        else:
            self._graph_of_many.replay()
        landed: torch.cuda.Event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        result, stand_in = (
            torch.empty_like(part, device="cpu", pin_memory=True).copy_(part, non_blocking=True) for part in self._many
        )
        landed.record()
        return _Flight(result, stand_in, landed)

    def _launch_of_many(self) -> tuple[Tensor, Tensor]:
        bank = self._build()
        return self._scan.launch_whole(bank, *self._target, self._scale2), bank.stand_in

    def screen(
        self, slots: Tensor, target: Target, complexity: Sequence[int], every: tuple[Tensor, Target], pool: Pool
    ) -> bool:
        """Add to the pool, by their losses on all rows, the best of the candidates that are near the best on some rows.

        `every`: slot values (inputs, all rows) and target, on which `pool` judges. False: too many are near the best,
        and none is judged.
        """
        with self._lock, torch.cuda.device(self._device.index):
            self._write_packet(self._host_packet, (slots, complexity), target)
            self._whole()
            return judge_again(self._scan, self.bank, self._plan.outputs, *every, pool)

    def _write_packet(self, packet: Tensor, slot_set: SlotSet, target: Target) -> None:
        """Fill a packet in the memory of the host."""
        slots, complexity = slot_set
        into = packet.numpy()
        into[: self._inputs] = slots.numpy()
        into[self._inputs], into[self._inputs + 1] = target.y.numpy(), target.weight.numpy()
        into[self._inputs + 2 :].reshape(-1)[: self._inputs] = complexity

    @property
    def _target(self) -> tuple[Tensor, Tensor]:
        return self._packet[self._inputs], self._packet[self._inputs + 1]

    def _strip_by_strip(self, pool: Pool, budget: Budget) -> int:
        self._packet.copy_(self._host_packet)
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
        """A whole pass of one strip, with its result on the host."""
        self._runs += 1
        if self._graph is not None:
            self._graph.replay()
        elif self._runs == 1:
            self.bank = self._launch()
        else:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode=_CAPTURE):
                self.bank = self._launch()
            self._graph = graph
            graph.replay()
        torch.cuda.current_stream().synchronize()
        self.stand_in = self._host_stand_in.clone()

    def _launch(self) -> DeviceBank:
        """Launch a pass of one strip; its result is in pinned memory when the device has finished."""
        self._packet.copy_(self._host_packet, non_blocking=True)
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
        """The bank of the packet that is on the device."""
        self._plan.slot_complexity.copy_(self._packet[self._inputs + 2 :].flatten()[: self._inputs])
        self._scan.mean_square(*self._target, self._scale2)
        return self._plan.build(self._packet[: self._inputs], self._scale2)


@dataclass(frozen=True)
class _Flight:
    """A pass that was launched: its results, in pinned memory of the host, are there once `landed` is."""

    result: Tensor  # see `DeviceScan.launch_whole`
    stand_in: Tensor  # (classes,) int64
    landed: torch.cuda.Event


# A search asks for passes of one shape again and again, so the buffers of the last shapes are kept.
_shard = lru_cache(maxsize=_SHAPES)(_Shard)
