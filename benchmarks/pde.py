"""Laws of fields, u_t = F(u, u_x, …): how often each is found, at several levels of noise; one table for each set.

    python benchmarks/pde.py [--sets marked own random] [--only NAME …] [--noise 0 1 5] [--seeds 3] [--max-time 30]

Sets: `marked` are the equations by which methods are compared, `own` other ones, `random` equations with random terms
and coefficients (`symenum.bench.problems.fields`). A system counts as recovered if the law that is marked has, for each
of its fields, the true set of terms; a constant is free. Behind the stroke: the largest relative error of its
coefficients, the worst of all recovered seeds. Noise is independent from sample to sample, in per cent of each field's
standard deviation. Without noise there is one run, with noise one for each seed. `--max-time` is for a system, all
fields together; `seconds` are the longest of a row, with those of the CPU, which a busy machine does not change much.
Windows were chosen on `own` and on `random` 0 to 19; `random` 100 and on are for tables only.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

from symenum import PDERegressor
from symenum.bench.judge import multiplied_out, same_structure
from symenum.bench.problems.fields import (
    FIELD_PROBLEMS,
    MARKED_PROBLEMS,
    FieldProblem,
    FieldSamples,
    random_problem,
    solve_fields,
)
from symenum.expressions import Expression, to_text
from symenum.expressions.algebra import as_product, as_sum, canonical, simplify

_DIGITS = 12  # to which constants are compared when terms are multiplied out


@dataclass(frozen=True)
class Run:
    """One fit. `error`: the largest relative error of a coefficient; None where the set of terms is another one."""

    error: float | None
    seconds: float
    cpu: float
    laws: dict[str, Expression]


def coefficients(law: Expression) -> dict[str, float]:
    """The number of each term, by the term as text; that of 1 is not among them."""
    whole = multiplied_out(law, _DIGITS)
    found: dict[str, float] = {}
    for added, term in as_sum(simplify(law if whole is None else whole)).terms:
        product = as_product(term)
        size = product.number if added else -product.number
        bare = type(product)(1, 1, product.factors, product.divisors).close()
        found[str(canonical(bare))] = size
    return found


def worst_error(found: Expression, law: Expression) -> float:
    """The largest relative error of a coefficient, for laws with the same terms."""
    true, ours = coefficients(law), coefficients(found)
    return max(abs(ours[term] / size - 1) for term, size in true.items())


def run(problem: FieldProblem, samples: FieldSamples, seed: int, max_time: float) -> Run:
    """Fit one draw of the noise."""
    begin, cpu = time.perf_counter(), time.process_time()
    model = PDERegressor(problem.operators, max_time=max_time, random_state=seed)
    model.fit(samples.fields, samples.t, *samples.axes)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    laws, true = model.best_expressions_, problem.trees
    if not all(same_structure(laws[name], law) for name, law in true.items()):
        return Run(None, seconds, cpu, laws)
    return Run(max(worst_error(laws[name], law) for name, law in true.items()), seconds, cpu, laws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=["marked", "own", "random"], choices=["marked", "own", "random"])
    parser.add_argument("--only", nargs="*", default=None, help="names of equations")
    parser.add_argument("--noise", nargs="*", type=float, default=[0, 1, 5], help="per cent of each field's spread")
    parser.add_argument("--seeds", type=int, default=3, help="draws of the noise")
    parser.add_argument("--first", type=int, default=100, help="the first of the random equations")
    parser.add_argument("--count", type=int, default=12, help="random equations")
    parser.add_argument("--max-time", type=float, default=30.0, help="seconds for a system")
    parser.add_argument("--misses", action="store_true", help="show the laws that were chosen instead")
    options = parser.parse_args()
    random = tuple(random_problem(options.first + i) for i in range(options.count))
    sets = {"marked": MARKED_PROBLEMS, "own": FIELD_PROBLEMS, "random": random}
    for name in options.sets:
        problems = [one for one in sets[name] if options.only is None or one.name in options.only]
        if not problems:
            continue
        print(f"\n{name}: recovered of {options.seeds} draws (1 without noise), largest error of a coefficient")
        print("| equation |" + "".join(f" {noise:g}% |" for noise in options.noise) + " seconds (CPU) |")
        print("|---|" + "---|" * (len(options.noise) + 1), flush=True)
        found = dict.fromkeys(options.noise, 0.0)
        for problem in problems:
            clean = solve_fields(problem)
            cells, every = [], []
            for noise in options.noise:
                seeds = range(options.seeds if noise else 1)
                runs = [run(problem, clean.noisy(noise / 100, seed), seed, options.max_time) for seed in seeds]
                errors = [one.error for one in runs if one.error is not None]
                found[noise] += len(errors) / len(runs)
                cells.append(f"{len(errors)}/{len(runs)}" + (f", {100 * max(errors):.2g}%" if errors else ""))
                every += runs
                if options.misses:
                    for seed, one in zip(seeds, runs, strict=True):
                        if one.error is None:
                            laws = "; ".join(f"{field}_t = {to_text(law, 4)}" for field, law in one.laws.items())
                            print(f"  {problem.name} {noise:g}% seed {seed}: {laws}")
            longest, cpu = max(one.seconds for one in every), max(one.cpu for one in every)
            print(f"| {problem.name} | " + " | ".join(cells) + f" | {longest:.1f} ({cpu:.1f}) |", flush=True)
        total = " | ".join(f"{value:.1f} of {len(problems)}" for value in found.values())
        print(f"| all | {total} | |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("error", RuntimeWarning)
    main()
