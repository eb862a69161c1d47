"""Candidates per second of the heads that judge pairs, next to the engine's combine head and to a batched lstsq.

    python benchmarks/heads.py [--rows 20] [--columns 40000]

All on the same random bank, in this process, in turn; medians of three. A candidate of a head is a pair with its best
coefficients. The batched lstsq is torch.linalg.lstsq (driver "gelsy", the default) on batches of 10,000 pairs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from symenum import PSRN
from symenum.enumeration.budget import Budget
from symenum.enumeration.threads import available_cores
from symenum.heads.affine import best_affine
from symenum.heads.projection import orthonormal
from symenum.heads.two_terms import best_pairs
from symenum.operators import get_operator


def median_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--columns", type=int, default=40_000)
    parser.add_argument("--width", type=int, default=64)
    arguments = parser.parse_args()
    rows, columns = arguments.rows, arguments.columns
    generator = torch.Generator().manual_seed(0)
    x = 1 + 2 * torch.rand(rows, 5, generator=generator, dtype=torch.float64)
    y = x[:, 0] * torch.exp(x[:, 1] / x[:, 2]) + x[:, 0] ** 3 * torch.sin(x[:, 4])
    y *= 1 + 0.05 * torch.randn(rows, generator=generator, dtype=torch.float64)
    net = PSRN(5, "koza", 3)
    net.search(x, y)  # masks and memory are there from here on

    V = torch.randn(columns, rows, generator=generator, dtype=torch.float64)
    V += torch.randn(columns, 1, generator=generator, dtype=torch.float64)
    root = torch.full((rows,), rows**-0.5, dtype=torch.float64)
    background = orthonormal(root[None])
    half, square = columns * (columns - 1) // 2, columns * columns

    def affine(name: str) -> Callable[[], object]:
        return lambda: best_affine(V, y, root, get_operator(name), width=arguments.width, budget=Budget())

    def least_squares() -> None:
        i, j = torch.randint(columns, (2, 10_000), generator=generator)
        A = torch.stack([V[i], V[j], torch.ones(10_000, rows, dtype=torch.float64)], dim=2)
        torch.linalg.lstsq(A, y.expand(10_000, rows)[:, :, None])

    works = [
        ("combine (koza-5 pass)", net.sizes[-1], lambda: net.search(x, y)),
        ("two terms", half, lambda: best_pairs(V * root, y * root, background, width=arguments.width)),
        ("affine, v·w", half, affine("mul")),
        ("affine, v/w", square, affine("div")),
        ("affine, v + w", half, affine("add")),
        ("affine, v - w", half, affine("sub")),
        ("batched lstsq, two terms", 10_000, least_squares),
    ]
    measured = [(name, count / median_seconds(work)) for name, count, work in works]
    combine, slow = measured[0][1], measured[-1][1]
    print(f"{rows} rows, {columns:,} columns, {available_cores()} cores, torch {torch.__version__}\n")
    print("| head | candidates/s | of combine | times batched lstsq |")
    print("|---|---|---|---|")
    for name, rate in measured:
        print(f"| {name} | {rate:.3g} | {rate / combine:.2f} | {rate / slow:.0f} |")


if __name__ == "__main__":
    main()
