"""The paper's 20 fifty-dimensional problems in one pass from the raw variables: one table.

    SYMENUM_DATA=../shared/data python benchmarks/fifty_dim.py [--problems 1 2 3]

Reads $SYMENUM_DATA/fifty_dim: synthetic_50d_N.csv (50 columns and y, no header) and .txt (the law, with x_1 … x_50). A
law counts as exact if the first candidate equals it to 1e-9 on fresh points, also of a range twice as wide.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time

from symenum.bench.judge import recovered
from symenum.bench.problems import MissingDataError, get_set
from symenum.heads import first_pass


def peak_gigabytes() -> float:
    # Kilobytes on Linux, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", type=int, default=list(range(1, 21)))
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per problem")
    options = parser.parse_args()
    try:
        problems = {int(problem.name.removeprefix("Fifty-")): problem for problem in get_set("fifty_dim").problems()}
    except MissingDataError as error:
        sys.exit(f"fifty_dim: {error}")
    times: list[float] = []
    right = 0
    print(f"{'problem':9s} {'exact':5s} {'seconds':>7s} {'peak GB':>7s}  expression")
    for number in options.problems:
        problem = problems[number]
        X, y = problem.sample()
        start = time.perf_counter()
        best = first_pass(X, y, time_limit=options.time_limit)[0].expression
        times.append(time.perf_counter() - start)
        exact = recovered(best, problem)
        right += exact
        mark = "yes" if exact else "NO"
        print(f"{problem.name:9s} {mark:5s} {times[-1]:7.2f} {peak_gigabytes():7.2f}  {str(best)[:130]}", flush=True)
    print(
        f"\n{right} of {len(times)} exact, median {statistics.median(times):.2f} s, longest {max(times):.2f} s, "
        f"peak memory {peak_gigabytes():.2f} GB"
    )


if __name__ == "__main__":
    main()
