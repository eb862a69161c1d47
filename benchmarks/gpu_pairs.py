"""The heads that judge pairs on a GPU, for `gpu.py`."""

from __future__ import annotations

from functools import partial
from unittest import mock

import torch
from gpu_timing import DEVICE, kernel_seconds, line, seconds, table

from symenum.core.budget import Budget
from symenum.enumeration.threads import available_cores
from symenum.expressions import Variable
from symenum.heads.affine import best_affine, rescore_affine
from symenum.heads.device_ladder import PairScan
from symenum.heads.device_pairs import AffineProducts, AffineSums, TwoTermPairs
from symenum.heads.features import build_features, extended_by_unary
from symenum.heads.pair_tests import AffineSumTest
from symenum.heads.projection import orthonormal, project_off
from symenum.operators import get_operator, get_operators
from symenum.scans.pairs import _best_pairs, best_pairs

__all__ = ["bench_affine", "bench_two_terms"]


def bench_affine() -> None:
    table("affine", "columns", "rows", "pairs", "bounds ms", "bounds pairs/s", "whole ms", "whole pairs/s",
          "better ones in a sample of 2e6")  # fmt: skip
    sizes = ((65_536, 32), (65_536, 128), (262_144, 32), (262_144, 128))
    for name, columns, rows in (*(("mul", *size) for size in sizes), ("add", 262_144, 32), ("add", 262_144, 128)):
        bench_affine_size(name, columns, rows)


def bench_affine_size(name: str, columns: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    V = torch.randn(columns, rows, generator=generator, dtype=torch.float64)
    V += torch.randn(columns, 1, generator=generator, dtype=torch.float64)
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    root = torch.full((rows,), rows**-0.5, dtype=torch.float64)
    V, y, root = (part.to(DEVICE) for part in (V, y, root))
    target = project_off((y * root)[None], orthonormal(root[None]))[0][0]
    operator = get_operator(name)
    found = best_affine(V, y, root, operator, width=64)
    whole = seconds(lambda: best_affine(V, y, root, operator, width=64), 5)
    sums = AffineSums(AffineSumTest(V, target, root, 1))
    scan = PairScan(sums if name == "add" else AffineProducts(V, V, target, root, same=True))
    bounds = kernel_seconds(lambda: [scan.bounds(strip) for strip in scan.strips])
    pairs = len(V) * (len(V) + 1) // 2
    i, j = torch.randint(len(V), (2, 2_000_000), device=DEVICE)
    better = rescore_affine(V, target, root, operator, i, j) < found.residual[-1] * (1 - 1e-12)
    known = torch.isin(torch.minimum(i, j) * columns + torch.maximum(i, j), found.i * columns + found.j)
    line(
        f"v {operator.name} w",
        f"{columns:,}",
        rows,
        f"{pairs:,}",
        1e3 * bounds,
        pairs / bounds,
        1e3 * whole,
        pairs / whole,
        int((better & ~known).sum()),
    )


def bench_two_terms() -> None:
    """Random columns, and, against the CPU, the features of two layers of data with one to three variables."""
    table("two terms: columns", "rows", "pairs", "bounds ms", "bounds pairs/s", "whole ms", "whole pairs/s")
    for columns, rows in ((14_000, 20), (65_536, 20), (65_536, 128), (262_144, 20), (262_144, 32)):
        generator = torch.Generator().manual_seed(0)
        V = torch.randn(columns, rows, generator=generator, dtype=torch.float64).to(DEVICE)
        t = torch.randn(rows, generator=generator, dtype=torch.float64).to(DEVICE)
        background = orthonormal(torch.ones_like(t)[None])
        work = partial(_best_pairs, V, t, background, None, width=4096, budget=Budget())
        work()
        whole = seconds(work, 5)
        C, target = project_off(V, background)[0], project_off(t[None], background)[0][0]
        scan = PairScan(TwoTermPairs(C, C, target, same=True))
        bounds = kernel_seconds(lambda scan=scan: [scan.bounds(strip) for strip in scan.strips])
        pairs = columns * (columns - 1) // 2
        line(f"{columns:,}", rows, f"{pairs:,}", 1e3 * bounds, pairs / bounds, 1e3 * whole, pairs / whole)
        del scan
    table("two terms: variables", "rows", "features", f"ms on {available_cores()} CPU cores", "ms on the GPU", "equal")
    for inputs, rows in ((1, 20), (2, 20), (3, 40)):
        bench_two_term_features(inputs, rows)


def bench_two_term_features(inputs: int, rows: int) -> None:
    x = 1 + 2 * torch.rand(rows, inputs, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    slots = [Variable(f"x{i + 1}") for i in range(inputs)]
    features = build_features(slots, x.T.contiguous(), get_operators("koza"), 2, max_columns=30_000)
    V = extended_by_unary(features, 150_000).up_to_affine().values[:20_000]
    t = x.prod(dim=1).abs().sqrt() + x[:, 0].sin()
    background = orthonormal(torch.ones_like(t)[None])
    here = partial(best_pairs, V, t, background)
    there = partial(best_pairs, V, t, background, device="cuda")
    with mock.patch("symenum.enumeration.devices._WORTH", 0):
        same = torch.allclose(there().residual, here().residual, rtol=1e-6, atol=1e-12)
        on_gpu = seconds(there, 5)
    line(inputs, rows, f"{len(V):,}", 1e3 * seconds(here, 3), 1e3 * on_gpu, same)
