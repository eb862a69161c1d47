"""How often screening finds the best candidate of the exact mode: random planted laws with 5% noise.

    python benchmarks/screening.py [--problems 100] [--inputs 2] [--rows 2500] [--range -1 3] [--seed 5000]

A problem is a random candidate of the network itself that is finite on the data, plus noise of 5% of its standard
deviation; every one counts, also where something else than the planted law fits the noisy data best. Found: the first
of the screened shortlist has the loss of the first of the exact one, to 1e-12.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from symenum import PSRN
from symenum.expressions import Expression, evaluate


def planted(net: PSRN, seed: int, rows: int, low: float, high: float) -> tuple[Expression, torch.Tensor, torch.Tensor]:
    """A random candidate that is finite on random data (rows, inputs) and not constant, the data, the noisy target."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        x = low + (high - low) * torch.rand(rows, net.inputs, generator=generator, dtype=torch.float64)
        law = net.expression(int(torch.randint(net.sizes[-1], (1,), generator=generator)))
        clean = evaluate(law, {f"x{i + 1}": column for i, column in enumerate(x.T)})
        if float(clean.abs().max()) < 1e100 and float(clean.std()) > 1e-9 * float(clean.abs().max()):
            return law, x, clean + 0.05 * clean.std() * torch.randn(rows, generator=generator, dtype=torch.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--inputs", type=int, default=2)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--range", type=float, nargs=2, default=(-1.0, 3.0))
    parser.add_argument("--seed", type=int, default=5000, help="of the first problem; the next ones count on")
    parser.add_argument("--operators", default="koza")
    arguments = parser.parse_args()
    net = PSRN(arguments.inputs, arguments.operators, 3)
    found = 0
    exact_seconds, screen_seconds = [], []
    for seed in range(arguments.seed, arguments.seed + arguments.problems):
        law, x, y = planted(net, seed, arguments.rows, *arguments.range)
        start = time.perf_counter()
        screened = net.search(x, y, k=10, mode="screen")
        middle = time.perf_counter()
        exact = net.search(x, y, k=1, mode="exact")
        screen_seconds.append(middle - start)
        exact_seconds.append(time.perf_counter() - middle)
        if screened and screened[0].loss <= exact[0].loss * (1 + 1e-12):
            found += 1
            continue
        best = f"{screened[0].loss / exact[0].loss:.6f} times its loss" if screened else "nothing"
        print(f"missed {seed}: law {law}, exact found {exact[0].expression}, screening {best}", flush=True)
    print("| operators | inputs | rows | x | found | exact, median s | screening, median s |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {arguments.operators} | {arguments.inputs} | {arguments.rows:,} | {tuple(arguments.range)} "
        f"| {found} of {arguments.problems} | {statistics.median(exact_seconds):.2f} "
        f"| {statistics.median(screen_seconds):.2f} |"
    )


if __name__ == "__main__":
    main()
