"""One search on a law that is hard to find: how often the engine runs, what the rest costs, how busy a GPU is.

    python benchmarks/loop.py [--problem exact noisy wide] [--max-time 60] [--device cuda] [--threads 2] [--seed 0]

The problems are random laws of depth 6 (`symenum.bench.problems.random_laws`, for development): `exact` has 5 variables
and 200 rows, `noisy` 5 variables, 20,000 rows and 5% noise, `wide` 10 variables (3 of them not in the law), 1,000 rows
and 5% noise. For each problem it prints

- the steps, the network passes, the candidates scored, and the best law;
- the seconds in passes (`PSRN.search`, `PSRN.search_many`) and in their scans (bank and scan; on a GPU a batch of
  passes as a whole), and the median of step over scan, of the steps with a pass;
- the seconds of each kind of step;
- with a GPU the share of the time with a kernel at work, and with a kernel of ours: the union of the intervals that
  CUDA's own tracing (CUPTI) gives.

`--threads` restricts the process to so many cores. `--no-trace` leaves the tracing out, which costs some microseconds
for each kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import torch

from symenum import PSRN, PSERegressor
from symenum.bench.problems.random_laws import DEVELOPMENT
from symenum.core.devices import gpu_fault
from symenum.engine import network


@dataclass(frozen=True)
class Case:
    """A random law of the development set, and the data that are made of it."""

    law: str
    rows: int
    noise: float  # standard deviation, in units of that of y
    idle: int = 0  # further variables that are not in the law

    def sample(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """X (rows, variables) and y (rows,)."""
        random = np.random.default_rng([seed, self.rows])
        X, y = replace(DEVELOPMENT.law(self.law), rows=self.rows).sample(seed)
        y = y + self.noise * y.std() * random.standard_normal(self.rows)
        return np.concatenate([X, random.uniform(0.5, 3.0, (self.rows, self.idle))], axis=1), y


CASES = {
    "exact": Case("Random-40", 200, 0.0),
    "noisy": Case("Random-184", 20_000, 0.05),
    "wide": Case("Random-24", 1000, 0.05, idle=3),
}


@dataclass
class Meter:
    """What was counted, in seconds and numbers; `step` is called after each step."""

    passes: int = 0
    calls: int = 0  # of search and search_many
    scored: int = 0
    in_passes: float = 0.0
    in_scans: float = 0.0
    steps: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ratios: list[float] = field(default_factory=list)  # step over scan
    _scans_before: float = 0.0

    def step(self, report: Any) -> None:
        self.steps[report.stage].append(report.seconds)
        scans = self.in_scans - self._scans_before
        if scans > 0:
            self.ratios.append(report.seconds / scans)
        self._scans_before = self.in_scans

    def took_pass(self, seconds: float, found: Any) -> None:
        shortlists = found if isinstance(found, list) else [found]
        self.calls += 1
        self.passes += sum(1 for shortlist in shortlists if shortlist.scored)
        self.scored += sum(shortlist.scored for shortlist in shortlists)
        self.in_passes += seconds

    def took_scan(self, seconds: float, _: Any) -> None:
        self.in_scans += seconds


def timed(work: Callable[..., Any], tell: Callable[[float, Any], None]) -> Callable[..., Any]:
    """The same function, which tells its seconds and its result."""

    def run(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = work(*arguments, **options)
        tell(time.perf_counter() - start, result)
        return result

    return run


@contextlib.contextmanager
def metered(meter: Meter) -> Iterator[None]:
    hooks = (
        (PSRN, "search", meter.took_pass),
        (PSRN, "search_many", meter.took_pass),
        (network.Pass, "_scan", meter.took_scan),
        (network, "exact_passes", meter.took_scan),
    )
    with contextlib.ExitStack() as stack:
        for place, name, tell in hooks:
            stack.enter_context(mock.patch.object(place, name, timed(getattr(place, name), tell)))
        yield


def union(intervals: Sequence[tuple[int, int]]) -> int:
    """The length of the union of intervals (start, end)."""
    total, end = 0, -1
    for first, last in sorted(intervals):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


def kernel_names() -> set[str]:
    """The names of our own kernels."""
    from symenum.engine.cuda import kernels
    from symenum.scans import pair_kernels, target_kernels

    return {*vars(kernels), *vars(pair_kernels), *vars(target_kernels)}


def busy(trace: torch.profiler.profile) -> tuple[float, float]:
    """The seconds with a kernel at work, and with a kernel of ours."""
    ours, names, everything = [], kernel_names(), []
    assert trace.profiler is not None
    assert trace.profiler.kineto_results is not None
    for event in trace.profiler.kineto_results.events():
        name = event.name()
        if event.device_type() != torch.autograd.DeviceType.CUDA or name.startswith(("Memcpy", "Memset")):
            continue
        interval = (event.start_ns(), event.start_ns() + event.duration_ns())
        everything.append(interval)
        if name in names:
            ours.append(interval)
    return 1e-9 * union(everything), 1e-9 * union(ours)


def run(name: str, options: argparse.Namespace) -> None:
    X, y = CASES[name].sample(options.seed)
    meter = Meter()
    model = PSERegressor(
        max_time=options.max_time, device=options.device, random_state=options.seed, callbacks=meter.step
    )
    tracing = options.trace and options.device != "cpu" and gpu_fault(0) is None
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with contextlib.ExitStack() as stack:
        stack.enter_context(metered(meter))
        trace = stack.enter_context(torch.profiler.profile(activities=activities, acc_events=True)) if tracing else None
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    case, (rows, variables) = CASES[name], X.shape
    steps = sum(map(len, meter.steps.values()))
    print(f"\n{name}: {case.law}, {variables} variables, {rows:,} rows, noise {case.noise:g}; plan: {model.plan_}")
    print(f"  {steps} steps in {seconds:.1f} s ({model.stop_reason_})")
    print(f"  {meter.passes} network passes in {meter.calls} calls; {meter.scored:.3g} candidates")
    ratio = statistics.median(meter.ratios) if meter.ratios else float("nan")
    print(f"  passes {meter.in_passes:.2f} s, their scans {meter.in_scans:.2f} s; step over scan, median {ratio:.2f}")
    if trace is not None:
        everything, ours = busy(trace)
        print(f"  a kernel at work {everything / seconds:.1%} of the time, a kernel of ours {ours / seconds:.1%}")
    for stage, times in sorted(meter.steps.items(), key=lambda item: -sum(item[1])):
        print(f"  {sum(times):8.2f} s {len(times):5d} x {stage}, longest {max(times):.2f} s")
    print(f"  best: {model.best_expression_}")
    if hasattr(model, "schedule_"):
        print(model.schedule_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--max-time", type=float, default=60.0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-trace", dest="trace", action="store_false")
    options = parser.parse_args()
    if options.threads is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    for name in options.problem:
        run(name, options)


if __name__ == "__main__":
    main()
