"""Constants fitted on a GPU next to the CPU, for `gpu.py`."""

from __future__ import annotations

from functools import partial
from unittest import mock

import torch
from gpu_timing import line, seconds, table

from symenum.enumeration.threads import available_cores
from symenum.expressions import parse
from symenum.fitting import refine

__all__ = ["bench_fitting"]

LAWS = (
    "{a}*sin({b}*x + 0.3)/(y + 2.0) + 0.1",
    "{a}*exp({b}*x)*y + 0.5*x",
    "({a} - x)*log({b}*y + x*x + 1.0)",
    "{a}*x*y/({b} + x) + 0.2*cos(1.1*y)",
)


def bench_fitting() -> None:
    """A batch of families of four kinds from several constants each, on noisy data; no further starts."""
    cores = available_cores()
    table(
        "expressions",
        "rows",
        f"ms on the CPU ({cores} cores)",
        "ms on the GPU",
        "ratio",
        "largest difference of losses",
    )
    for count, rows in ((32, 1000), (32, 10_000), (256, 10_000), (64, 100_000)):
        generator = torch.Generator().manual_seed(0)
        x, y, noise = torch.rand(3, rows, generator=generator, dtype=torch.float64)
        columns = {"x": 0.5 + 2 * x, "y": 0.5 + 2 * y}
        target = 3 * torch.sin(1.2 * columns["x"] + 0.3) / (columns["y"] + 2) + 0.1 * noise
        families = [parse(LAWS[i % 4].format(a=1.0 + i / count, b=0.5 + i / count)) for i in range(count)]
        fit = partial(refine, families, columns, target, starts=0)
        here = fit()
        with mock.patch("symenum.fitting.batch._LARGE", 0):
            there = fit(device="cuda")
            on_gpu = seconds(partial(fit, device="cuda"), 3)
        on_cpu = seconds(fit, 1)
        worst = max(abs(a.loss - b.loss) / b.loss for a, b in zip(there, here, strict=True))
        line(count, f"{rows:,}", 1e3 * on_cpu, 1e3 * on_gpu, on_cpu / on_gpu, worst)
