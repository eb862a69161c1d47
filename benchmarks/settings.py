"""What values of a number constant do on random laws: how settings are chosen.

    python benchmarks/settings.py search.schedule._SHORT_OPENING 4 12 [--laws 73 124] [--max-time 10] [--jobs 2]

Each value is tried on each of the laws (`symenum.bench.problems.random_laws`, the set for development; `--laws` takes
them from one number to another, `--depth` of these depths only), with the same seed, on one core. The values of a law
run one after the other, so that all meet the same machine. Printed are the laws that each value recovers on the front,
and those that not all of them do. `benchmarks/constants.py` changes all constants a little instead.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from symenum import PSERegressor
from symenum.bench.judge import recovered
from symenum.bench.problems.random_laws import DEPTHS, DEVELOPMENT, EVERY_OPERATOR
from symenum.bench.report import wilson
from symenum.core.threads import available_cores, single_threaded

PACKAGE = "symenum"


@dataclass(frozen=True)
class Trial:
    """A law of the development set, searched with one value of the constant."""

    law: str
    constant: str  # its module, without the package, and its name
    value: float
    seconds: float


def found(trial: Trial) -> bool:
    """Whether a law of the front equals the random law."""
    module, _, name = trial.constant.rpartition(".")
    setattr(importlib.import_module(f"{PACKAGE}.{module}"), name, trial.value)
    law = DEVELOPMENT.law(trial.law)
    with single_threaded():
        model = PSERegressor(operators=EVERY_OPERATOR, max_time=trial.seconds, random_state=0, device="cpu")
        model.fit(*law.sample())
    return any(recovered(entry.expression, law) for entry in model.front_)


def laws_of(first: int, last: int, depths: Sequence[int]) -> list[str]:
    numbers = range(first, min(last, len(DEVELOPMENT)) + 1)
    return [f"{DEVELOPMENT.prefix}{number}" for number in numbers if DEVELOPMENT.shape(number)[0] in depths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("constant", help="such as search.schedule._SHORT_OPENING")
    parser.add_argument("values", type=float, nargs="+")
    parser.add_argument("--laws", type=int, nargs=2, default=(73, 124), metavar=("FIRST", "LAST"))
    parser.add_argument("--depth", type=int, nargs="+", choices=DEPTHS, default=list(DEPTHS))
    parser.add_argument("--max-time", type=float, default=10.0, help="seconds of a search")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes, each on one core")
    options = parser.parse_args()
    laws = laws_of(*options.laws, options.depth)
    trials = [Trial(law, options.constant, value, options.max_time) for law in laws for value in options.values]
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        results = dict(zip(trials, pool.map(found, trials), strict=True))
    print(f"{options.constant}, {len(laws)} laws, {options.max_time:g} s on one core each")
    for value in options.values:
        mine = {trial.law: got for trial, got in results.items() if trial.value == value}
        low, high = wilson(sum(mine.values()), len(mine))
        others = [trial.law for trial, got in results.items() if not got and mine[trial.law]]
        only = f"; not by all: {', '.join(dict.fromkeys(others))}" if others else ""
        print(f"{value:g}: {sum(mine.values())} recovered (95%: {low:.0%} to {high:.0%}){only}")


if __name__ == "__main__":
    main()
