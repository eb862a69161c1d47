"""What other values of constants do on random laws and on measured tables: how settings are chosen.

    python benchmarks/settings.py [VARIANT ...] [--laws 1 48] [--noisy 1 24] [--tables 2] [--max-time 20] [--jobs 2]
    python benchmarks/settings.py search.schedule._SHORT_OPENING=4 search.schedule._OPENING_SHARE=0.3,heads.work._FIT=1

A variant is one or several constants with another value, or shares of moves such as shares.network=0.6, separated by
commas; the code as it is comes first. Each is tried with the same seed, on one core, on

- random laws without noise (`--laws`: from one number to another of the development set; `--depth` of these depths
  only, `--rows` with so many rows): recovered on the front, and the mean of log10(1 - R²) of the best law of the front
  on fresh rows;
- random laws with 300 rows and 10% of noise (`--noisy`): runs in which the mean square error of the marked law, and of
  the best one of the front, against the law without noise is below 0.05 of the noise variance;
- every n-th table of PMLB below $SYMENUM_DATA (`--tables n`): the mean R² of the marked law, and of the best one of the
  front, on the quarter of the rows that is held out.

The variants of a problem run one after the other, so that all meet the same machine. `--seconds-limit` starts no run
after so many seconds: only problems that all variants have done count. `benchmarks/constants.py` changes all constants
a little instead.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

from symenum import PSERegressor
from symenum.bench.judge import recovered
from symenum.bench.problems.measured import pmlb
from symenum.bench.problems.problem import Array, with_noise
from symenum.bench.problems.random_laws import DEPTHS, DEVELOPMENT, EVERY_OPERATOR
from symenum.core.threads import available_cores, single_threaded

PACKAGE = "symenum"
AS_IT_IS = "as it is"
SHARES = "shares"  # in the place of a module
NOISE = 0.1  # in units of the standard deviation of y
NOISY_ROWS = 300
RIGHT = 0.05  # of the noise variance: the largest error of a law that is right
LEAST_UNEXPLAINED = 1e-12  # of the variance of y: less is rounding
LOWEST_R2 = -1.0  # lower values count as this in means

KINDS = ("law", "noisy law", "table")


@dataclass(frozen=True)
class Trial:
    """A problem of one kind, searched with one variant."""

    kind: str
    problem: str
    variant: str
    max_time: float
    rows: int | None


@dataclass(frozen=True)
class Result:
    """Two figures of a run, see above; its turns of the network, and the complexity of the marked law."""

    first: float
    second: float
    passes: int
    complexity: int


def run(trial: Trial, deadline: float) -> Result | None:
    """The figures of a run; None after the deadline, a time of the machine's clock."""
    if time.time() > deadline:
        return None
    for setting in trial.variant.split(",") if trial.variant != AS_IT_IS else ():
        constant, value = setting.split("=")
        module, _, name = constant.rpartition(".")
        if module != SHARES:
            owner = importlib.import_module(f"{PACKAGE}.{module}")
            setattr(owner, name, type(getattr(owner, name))(float(value)))
    return {"law": on_law, "noisy law": on_noisy_law, "table": on_table}[trial.kind](trial)


def shares_of(variant: str) -> dict[str, float] | None:
    """The shares of moves that a variant sets."""
    settings = [setting.removeprefix(f"{SHARES}.") for setting in variant.split(",") if setting.startswith(SHARES)]
    return {name: float(value) for name, value in (setting.split("=") for setting in settings)} or None


def searched(X: Array, y: Array, trial: Trial, operators: Sequence[str] | None) -> PSERegressor:
    given = {} if operators is None else {"operators": operators}
    shares = shares_of(trial.variant)
    model = PSERegressor(max_time=trial.max_time, random_state=0, device="cpu", shares=shares, **given)
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def errors(model: PSERegressor, X: Array, y: Array) -> list[float]:
    """The mean square errors of the laws of the front; infinite where a law is not finite."""
    with np.errstate(all="ignore"):
        found = [float(np.mean((model.predict(X, index=at) - y) ** 2)) for at in range(len(model.front_))]
    return [one if math.isfinite(one) else math.inf for one in found]


def on_law(trial: Trial) -> Result:
    law = DEVELOPMENT.law(trial.problem)
    law = law if trial.rows is None else replace(law, rows=trial.rows)
    model = searched(*law.sample(), trial, EVERY_OPERATOR)
    X, y = law.test()
    left = max(min(errors(model, X, y)) / float(np.var(y)), LEAST_UNEXPLAINED)
    found = any(recovered(entry.expression, law) for entry in model.front_)
    return summary(model, found, math.log10(left))


def on_noisy_law(trial: Trial) -> Result:
    law = replace(DEVELOPMENT.law(trial.problem), rows=NOISY_ROWS)
    X, y = law.sample()
    model = searched(X, with_noise(y, NOISE, "std", DEVELOPMENT.number(trial.problem)), trial, EVERY_OPERATOR)
    found = [error / (NOISE**2 * float(np.var(y))) for error in errors(model, *law.test())]
    return summary(model, found[model.selected_index_] < RIGHT, min(found) < RIGHT)


def on_table(trial: Trial) -> Result:
    (table,) = (one for one in pmlb() if one.name == trial.problem)
    model = searched(*table.sample(), trial, None)
    X, y = table.test()
    found = [max(LOWEST_R2, 1 - error / float(np.var(y))) for error in errors(model, X, y)]
    return summary(model, found[model.selected_index_], max(found))


def summary(model: PSERegressor, first: float, second: float) -> Result:
    passes = int(model.schedule_.set_index("move").turns.get("network", 0))
    return Result(float(first), float(second), passes, model.front_[model.selected_index_].complexity)


def trials_of(options: argparse.Namespace, variants: Sequence[str]) -> Iterator[Trial]:
    """All runs; the kinds of problems in turn, so that an early end leaves some of each."""
    laws, noisy = (
        [
            f"{DEVELOPMENT.prefix}{number}"
            for number in range(first, min(last, len(DEVELOPMENT)) + 1)
            if DEVELOPMENT.shape(number)[0] in options.depth
        ]
        for first, last in (options.laws, options.noisy)
    )
    tables = [table.name for table in pmlb()[:: options.tables]] if options.tables else []
    problems = [(kind, at / len(names), name) for kind, names in zip(KINDS, (laws, noisy, tables), strict=True)
                for at, name in enumerate(names)]  # fmt: skip
    for kind, _, name in sorted(problems, key=lambda one: one[1]):
        for variant in variants:
            yield Trial(kind, name, variant, options.max_time, options.rows)


TITLES: dict[str, tuple[str, str, Callable[[Sequence[float]], str], Callable[[Sequence[float]], str]]] = {
    "law": ("recovered", "log10 left", lambda all_: f"{sum(all_):.0f}", lambda all_: f"{statistics.mean(all_):.2f}"),
    "noisy law": ("marked right", "on the front", lambda all_: f"{sum(all_):.0f}", lambda all_: f"{sum(all_):.0f}"),
    "table": (
        "R² marked",
        "best",
        lambda all_: f"{statistics.mean(all_):.4f}",
        lambda all_: f"{statistics.mean(all_):.4f}",
    ),
}


def print_table(results: dict[Trial, Result], variants: Sequence[str]) -> None:
    for kind, (first, second, of_first, of_second) in TITLES.items():
        done = [
            {trial.problem for trial in results if (trial.kind, trial.variant) == (kind, variant)}
            for variant in variants
        ]
        problems = set.intersection(*done)
        if not problems:
            continue
        print(f"\n{kind}, {len(problems)} problems{first:>16s}{second:>14s}  turns of the network   size")
        for variant in variants:
            mine = [one for trial, one in results.items()
                    if (trial.kind, trial.variant) == (kind, variant) and trial.problem in problems]  # fmt: skip
            turns = statistics.mean([one.passes for one in mine])
            size = statistics.median([one.complexity for one in mine])
            figures = of_first([one.first for one in mine]), of_second([one.second for one in mine])
            print(f"{figures[0]:>34s}{figures[1]:>14s}{turns:>22.1f}{size:>7g}  {variant}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", help="such as search.schedule._SHORT_OPENING=4")
    for name, last in (("laws", 48), ("noisy", 24)):
        parser.add_argument(f"--{name}", type=int, nargs=2, default=(1, last), metavar=("FIRST", "LAST"))
    parser.add_argument("--depth", type=int, nargs="+", choices=DEPTHS, default=list(DEPTHS))
    parser.add_argument("--rows", type=int, help="of laws without noise; 200 without this option")
    parser.add_argument("--tables", type=int, default=0, metavar="N", help="every N-th table of PMLB; 0: none")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds of a search")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes, each on one core")
    parser.add_argument("--seconds-limit", type=float, default=math.inf, help="seconds after which no run begins")
    options = parser.parse_args()
    variants = [AS_IT_IS, *options.variants]
    os.environ["OMP_NUM_THREADS"] = "1"
    deadline = time.time() + options.seconds_limit
    results: dict[Trial, Result] = {}
    # A process for each run, since a variant changes modules; what they import is imported once.
    context = get_context("forkserver")
    context.set_forkserver_preload(["symenum.estimator.regressor", "symenum.bench.judge", "symenum.bench.problems"])
    with ProcessPoolExecutor(options.jobs, mp_context=context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(run, trial, deadline): trial for trial in trials_of(options, variants)}
        for done in as_completed(waiting):
            found = done.result()
            if found is not None:
                results[waiting[done]] = found
    print(f"{options.max_time:g} s on one core each")
    print_table(results, variants)
    print("\nlaws that not all recover:")
    for law in sorted({trial.problem for trial in results if trial.kind == "law"}):
        got = {
            trial.variant
            for trial, one in results.items()
            if trial.problem == law and trial.kind == "law" and one.first
        }
        if 0 < len(got) < len(variants):
            print(f"  {law}: {'; '.join(variant for variant in variants if variant in got)}")


if __name__ == "__main__":
    main()
