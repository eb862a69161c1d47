"""Candidates per second of the heads that judge pairs, next to the engine's combine head and to a batched lstsq.

    python benchmarks/heads.py [--rows 20] [--columns 14000 ...] [--repeats 5]

All on the same random bank, in this process, in turn, round after round, so that what else the machine does meets all
alike; medians. 14,000 columns are about those of the koza-5 bank, on which combine is measured. A candidate of a head
is a pair with its best coefficients; "affine, all four" is what the head does with +, -, *, /. The batched lstsq is
torch.linalg.lstsq (driver "gelsy", the default) on batches of 10,000 pairs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from symenum import PSRN
from symenum.core.budget import Budget
from symenum.core.threads import available_cores
from symenum.heads.affine import best_affine
from symenum.operators import get_operator
from symenum.scans.pairs import best_pairs
from symenum.scans.projection import orthonormal

Work = tuple[str, int, Callable[[], object]]  # name, candidates, what to do


def median_seconds(works: list[Work], repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name, _, _ in works}
    for _ in range(repeats):
        for name, _, work in works:
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(several) for name, several in times.items()}


def pair_heads(y: Tensor, columns: int, width: int, generator: torch.Generator) -> list[Work]:
    """The heads and lstsq on a random bank of `columns` columns, for the target y (rows,)."""
    rows = len(y)
    V = torch.randn(columns, rows, generator=generator, dtype=torch.float64)
    V += torch.randn(columns, 1, generator=generator, dtype=torch.float64)
    root = torch.full((rows,), rows**-0.5, dtype=torch.float64)
    background = orthonormal(root[None])
    half, square = columns * (columns - 1) // 2, columns * columns

    def affine(name: str) -> Callable[[], object]:
        return lambda: best_affine(V, y, root, get_operator(name), width=width, budget=Budget())

    def least_squares() -> None:
        i, j = torch.randint(columns, (2, 10_000), generator=generator)
        A = torch.stack([V[i], V[j], torch.ones(10_000, rows, dtype=torch.float64)], dim=2)
        torch.linalg.lstsq(A, y.expand(10_000, rows)[:, :, None])

    return [
        ("two terms", half, lambda: best_pairs(V * root, y * root, background, width=width)),
        ("affine, v·w", half, affine("mul")),
        ("affine, v/w", square, affine("div")),
        ("affine, v + w", half, affine("add")),
        ("affine, v - w", half, affine("sub")),
        ("batched lstsq, two terms", 10_000, least_squares),
    ]


def report(works: list[Work], repeats: int) -> None:
    """One table; the first work is combine, the last is lstsq."""
    seconds = median_seconds(works, repeats)
    rates = {name: count / seconds[name] for name, count, _ in works}
    affine = [(count, seconds[name]) for name, count, _ in works if name.startswith("affine")]
    rates["affine, all four"] = sum(count for count, _ in affine) / sum(time for _, time in affine)
    combine, slow = rates[works[0][0]], rates[works[-1][0]]
    print("| head | candidates/s | of combine | times batched lstsq |")
    print("|---|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate:.3g} | {rate / combine:.2f} | {rate / slow:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--columns", type=int, nargs="+", default=[14_000])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = arguments.rows
    generator = torch.Generator().manual_seed(0)
    x = 1 + 2 * torch.rand(rows, 5, generator=generator, dtype=torch.float64)
    y = x[:, 0] * torch.exp(x[:, 1] / x[:, 2]) + x[:, 0] ** 3 * torch.sin(x[:, 4])
    y *= 1 + 0.05 * torch.randn(rows, generator=generator, dtype=torch.float64)
    net = PSRN(5, "koza", 3)
    net.search(x, y)  # masks and memory are there from here on
    combine: Work = ("combine (koza-5 pass)", net.sizes[-1], lambda: net.search(x, y))
    for columns in arguments.columns:
        print(f"\n{rows} rows, {columns:,} columns, {available_cores()} cores, torch {torch.__version__}\n")
        report([combine, *pair_heads(y, columns, arguments.width, generator)], arguments.repeats)


if __name__ == "__main__":
    main()
