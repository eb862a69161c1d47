"""How often screening finds the best candidate of the exact mode: random planted laws with 5% noise.

    python benchmarks/screening.py [--problems 100] [--inputs 3] [--rows 10000]

A problem is a random candidate of the network itself that is finite on the data, plus noise of 5% of its standard
deviation. Found: the first of the screened shortlist has the loss of the first of the exact one.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from symenum import PSRN
from symenum.expressions import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--inputs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--operators", default="koza")
    arguments = parser.parse_args()
    net = PSRN(arguments.inputs, arguments.operators, 3)
    generator = torch.Generator().manual_seed(2026)
    found = problems = 0
    exact_seconds, screen_seconds = [], []
    while problems < arguments.problems:
        x = 4 * torch.rand(arguments.rows, arguments.inputs, generator=generator, dtype=torch.float64) - 1
        number = int(torch.randint(net.sizes[-1], (1,), generator=generator))
        law = net.expression(number)
        clean = evaluate(law, {f"x{i + 1}": column for i, column in enumerate(x.T)})
        if not bool(torch.isfinite(clean).all()) or float(clean.std()) < 1e-9 * float(clean.abs().max()):
            continue  # fails somewhere, or constant
        y = clean + 0.05 * clean.std() * torch.randn(arguments.rows, generator=generator, dtype=torch.float64)
        start = time.perf_counter()
        screened = net.search(x, y, k=10, mode="screen")
        middle = time.perf_counter()
        exact = net.search(x, y, k=1, mode="exact")
        screen_seconds.append(middle - start)
        exact_seconds.append(time.perf_counter() - middle)
        same = bool(screened) and screened[0].loss <= exact[0].loss * (1 + 1e-9)
        found += same
        problems += 1
        if not same:
            best = f"{screened[0].loss / exact[0].loss:.6f} times its loss" if screened else "nothing"
            print(f"missed: law {law}, exact found {exact[0].expression}, screening {best}", flush=True)
    print(f"{net}, {arguments.rows:,} rows: best candidate found in {found} of {problems}")
    print(
        f"seconds per pass, median: exact {statistics.median(exact_seconds):.2f}, "
        f"screening {statistics.median(screen_seconds):.2f}"
    )


if __name__ == "__main__":
    main()
