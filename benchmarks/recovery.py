"""The paper's 61 benchmark problems through PSERegressor with its defaults: one configuration, several seeds.

    python benchmarks/recovery.py [--set nguyen] [--seeds 0 1 2] [--problem Nguyen-5] [--max-time 60] [--device cpu]

A problem counts as recovered if an entry of the final front equals the law to 1e-9 on 1,000 fresh points of a range
twice as wide, and SymPy, asked whether the two are equal, does not say no within 10 s ("-": it did not answer). The
seed draws the data and seeds the search; the R and R* problems are equidistant: every seed has the same data.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

from symenum import PSERegressor
from symenum.bench.judge import SYMPY_SECONDS, Judge, data_points, recovered
from symenum.bench.problems import PROBLEM_SETS, Problem, problem_set
from symenum.expressions import Expression


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    problem: str
    seed: int
    recovered: bool
    sympy: str
    selected: bool
    seconds: float
    iterations: int
    expression: str


def sympy_says(found: Expression, problem: Problem, judge: Judge) -> str:
    """SymPy's "yes" or "no", or "-" where it cannot tell or takes too long."""
    texts, points = (str(found), str(problem.expression)), data_points(problem)
    answer = judge.ask("equal", *texts, SYMPY_SECONDS, positive=problem.positive, points=points)
    return answer if answer in ("yes", "no") else "-"


def run(problem: Problem, seed: int, max_time: float, device: str, judge: Judge) -> Line:
    """One problem, timed with everything that `fit` does."""
    X, y = problem.sample(seed)
    start = time.perf_counter()
    model = PSERegressor(max_time=max_time, random_state=seed, device=device).fit(X, y)
    seconds = time.perf_counter() - start
    names = dict(zip(model.variable_names_, problem.variables, strict=True))
    assert all(a == b for a, b in names.items()), "the tables name their variables x1, x2, … as symenum does"
    hits = [i for i, entry in enumerate(model.front_) if recovered(entry.expression, problem)]
    best = model.front_[hits[0]].expression if hits else model.front_[-1].expression
    says = sympy_says(best, problem, judge) if hits else "-"
    return Line(
        problem.name,
        seed,
        bool(hits) and says != "no",
        says,
        model.selected_index_ in hits,
        seconds,
        model.n_iter_,
        str(best),
    )


def summary(name: str, lines: list[Line]) -> str:
    right = sum(line.recovered for line in lines)
    chosen = sum(line.selected for line in lines)
    seconds = [line.seconds for line in lines]
    return (
        f"{name:10s} {right:3d} of {len(lines):3d} recovered ({chosen} of them chosen by the default rule), "
        f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.1f} s, all {sum(seconds):.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--set", nargs="*", default=[name for name in PROBLEM_SETS if name != "deep"], choices=list(PROBLEM_SETS)
    )
    parser.add_argument("--problem", nargs="*", default=None, help="only these problems")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds per problem")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    options = parser.parse_args()
    by_set: dict[tuple[str, int], list[Line]] = {}
    print(f"{'problem':13s} {'seed':>4s} {'recovered':9s} {'sympy':5s} {'seconds':>7s} {'steps':>5s}  expression")
    with Judge() as judge:
        for name in options.set:
            for problem in problem_set(name):
                if options.problem and problem.name not in options.problem:
                    continue
                for seed in options.seeds:
                    line = run(problem, seed, options.max_time, options.device, judge)
                    by_set.setdefault((name, seed), []).append(line)
                    mark = "yes" if line.recovered else "NO"
                    print(
                        f"{line.problem:13s} {seed:4d} {mark:9s} {line.sympy:5s} {line.seconds:7.2f} "
                        f"{line.iterations:5d}  {line.expression[:140]}",
                        flush=True,
                    )
    print()
    for (name, seed), lines in by_set.items():
        print(summary(f"{name} {seed}", lines))
    print(summary("total", [line for lines in by_set.values() for line in lines]))


if __name__ == "__main__":
    main()
