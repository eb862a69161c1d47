"""The paper's 61 benchmark problems in one pass from the raw variables: no search, no tokens, one table.

    python benchmarks/first_pass.py [--set nguyen] [--seeds 0 1] [--problem Nguyen-5]

A problem counts as recovered if the first candidate equals the law to 1e-9 on 1,000 fresh points of a range twice as
wide. The R and R* problems are equidistant: every seed is the same data.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

from symenum.bench.judge import recovered
from symenum.bench.problems import PROBLEM_SETS, Problem, problem_set
from symenum.heads import first_pass


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    problem: str
    seed: int
    recovered: bool
    seconds: float
    expression: str


def run(problem: Problem, seed: int, time_limit: float) -> Line:
    """One problem, timed with everything that the pass does."""
    X, y = problem.sample(seed)
    start = time.perf_counter()
    found = first_pass(X, y, time_limit=time_limit)
    seconds = time.perf_counter() - start
    best = found[0].expression
    return Line(problem.name, seed, recovered(best, problem), seconds, str(best))


def summary(name: str, lines: list[Line]) -> str:
    seconds = sorted(line.seconds for line in lines)
    right = sum(line.recovered for line in lines)
    return (
        f"{name:10s} {right:3d} of {len(lines):3d} recovered, median {seconds[len(seconds) // 2]:.2f} s, "
        f"longest {seconds[-1]:.1f} s, all {sum(seconds):.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--set", nargs="*", default=[name for name in PROBLEM_SETS if name != "deep"], choices=list(PROBLEM_SETS)
    )
    parser.add_argument("--problem", nargs="*", default=None, help="only these problems")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds per problem")
    options = parser.parse_args()
    by_set: dict[str, list[Line]] = {}
    print(f"{'problem':13s} {'seed':>4s} {'recovered':9s} {'seconds':>7s}  expression")
    for name in options.set:
        for problem in problem_set(name):
            if options.problem and problem.name not in options.problem:
                continue
            for seed in options.seeds:
                line = run(problem, seed, options.time_limit)
                by_set.setdefault(name, []).append(line)
                mark = "yes" if line.recovered else "NO"
                print(
                    f"{line.problem:13s} {seed:4d} {mark:9s} {line.seconds:7.2f}  {line.expression[:140]}", flush=True
                )
    print()
    for name, lines in by_set.items():
        print(summary(name, lines))
    print(summary("total", [line for lines in by_set.values() for line in lines]))


if __name__ == "__main__":
    main()
