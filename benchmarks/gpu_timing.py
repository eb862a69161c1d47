"""Times on a GPU and tables of them, for `gpu.py`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
import triton

__all__ = ["DEVICE", "kernel_seconds", "line", "recorded_seconds", "seconds", "table"]

DEVICE = torch.device("cuda", 0)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The median of wall-clock times, the device idle before and after."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def kernel_seconds(work: Callable[[], object]) -> float:
    return 1e-3 * float(triton.testing.do_bench(work, warmup=50, rep=200, return_mode="median"))


def recorded_seconds(work: Callable[[], object]) -> float:
    """The time of launches that are recorded once and replayed, as in a pass."""
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return kernel_seconds(graph.replay)


def table(*columns: str) -> None:
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def line(*cells: object) -> None:
    print(
        "| " + " | ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True
    )
