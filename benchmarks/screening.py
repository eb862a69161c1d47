"""How often screening finds the best candidate of the exact mode: random planted laws with 5% noise.

    python benchmarks/screening.py [--problems 100] [--inputs 3] [--rows 10000]

A problem is a random candidate of the network itself that is finite on the data, plus noise of 5% of its standard
deviation. Found: the first of the screened shortlist has the loss of the first of the exact one. Where a law has
poles, its standard deviation, and so the noise, is that of a few rows, and another candidate than the law itself fits
the noisy data best: such problems are counted apart.
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
    outcomes: dict[bool, list[bool]] = {True: [], False: []}  # by whether the law itself is the best
    exact_seconds, screen_seconds = [], []
    while len(outcomes[True]) < arguments.problems:
        x = 4 * torch.rand(arguments.rows, arguments.inputs, generator=generator, dtype=torch.float64) - 1
        number = int(torch.randint(net.sizes[-1], (1,), generator=generator))
        law = net.expression(number)
        clean = evaluate(law, {f"x{i + 1}": column for i, column in enumerate(x.T)})
        if not float(clean.abs().max()) < 1e100 or float(clean.std()) < 1e-9 * float(clean.abs().max()):
            continue  # fails somewhere (NaN compares false), or constant
        y = clean + 0.05 * clean.std() * torch.randn(arguments.rows, generator=generator, dtype=torch.float64)
        start = time.perf_counter()
        screened = net.search(x, y, k=10, mode="screen")
        middle = time.perf_counter()
        exact = net.search(x, y, k=1, mode="exact")
        screen_seconds.append(middle - start)
        exact_seconds.append(time.perf_counter() - middle)
        planted = exact[0].loss >= float((clean - y).square().mean()) * (1 - 1e-9)
        found = bool(screened) and screened[0].loss <= exact[0].loss * (1 + 1e-9)
        outcomes[planted].append(found)
        if not found:
            best = f"{screened[0].loss / exact[0].loss:.6f} times its loss" if screened else "nothing"
            print(f"missed: law {law}, exact found {exact[0].expression}, screening {best}", flush=True)
    for planted, label in ((True, "the law is the best candidate"), (False, "noise hides the law")):
        print(f"{label}: the best candidate found in {sum(outcomes[planted])} of {len(outcomes[planted])}")
    print(f"{net}, {arguments.rows:,} rows")
    print(
        f"seconds per pass, median: exact {statistics.median(exact_seconds):.2f}, "
        f"screening {statistics.median(screen_seconds):.2f}"
    )


if __name__ == "__main__":
    main()
