"""Sixteen chaotic systems at four noise levels: how often each law of motion is found; one table.

    python benchmarks/chaotic.py [--protocol ours paper] [--noise 1 2 5 10] [--seeds 5] [--max-time 30] [--jobs 1]

An equation counts as found if a law of its front has its structure up to constants and a bias (the rule is stated in
`symenum.bench.judge.structure`); the number behind the stroke counts only the law that the model selects. A system's
rate is that of its worst equation.
`--max-time` is for each equation. `--same-noise` and `--derivative` change the protocol. With `--jobs` trials run at
the same time, each with one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

from symenum.bench.judge import same_structure
from symenum.bench.problems.experiments import (
    CHAOTIC,
    CHAOTIC_OPERATORS,
    OURS,
    PAPER,
    ChaoticSystem,
    MotionProtocol,
    sample,
)
from symenum.core.threads import single_threaded
from symenum.dynamics import ODERegressor
from symenum.expressions import Expression, Variable, substitute, to_text

PROTOCOLS = {"ours": OURS, "paper": PAPER}


@dataclass(frozen=True)
class Trial:
    """One system at one level of noise (in standard deviations of each state) with one seed, and its limits.

    `max_time` is for each equation. `alone`: nothing runs beside it, so it may use all threads; else it has one.
    """

    system: ChaoticSystem
    protocol: MotionProtocol
    noise: float
    seed: int
    max_time: float | None
    max_iterations: int | None
    alone: bool = True

    def run(self) -> Verdicts:
        with nullcontext() if self.alone else single_threaded():
            return self._run()

    def _run(self) -> Verdicts:
        system, count = self.system, len(self.system.variables)
        t, X = sample(system, self.protocol, self.noise, self.seed)
        start = time.process_time()
        model = ODERegressor(
            CHAOTIC_OPERATORS,
            derivative=self.protocol.derivative,
            max_time=None if self.max_time is None else self.max_time * count,
            max_iterations=self.max_iterations,
            random_state=self.seed,
        ).fit(X, t)
        seconds = (time.process_time() - start) / count
        front, chosen, misses = [], [], []
        for variable, state, law in zip(system.variables, model.state_names_, _renamed(system), strict=True):
            front.append(any(same_structure(entry.expression, law) for entry in model.fronts_[state]))
            chosen.append(same_structure(model.best_expressions_[state], law))
            if not chosen[-1]:
                where = "on the front" if front[-1] else "LOST"
                found = to_text(model.best_expressions_[state], 4)
                misses.append(f"  {system.name} {variable} seed {self.seed}: {where}; law {law}; chosen {found}")
        return Verdicts(front, chosen, seconds, misses)


@dataclass(frozen=True)
class Verdicts:
    """Of one trial: for each equation whether its law is on the front, and whether it is the chosen one.

    `seconds` are those of the processor, per equation. `misses` say what was chosen instead.
    """

    front: list[bool]
    chosen: list[bool]
    seconds: float
    misses: list[str]


@dataclass(frozen=True)
class Rates:
    """Of one system: for each equation the share of the seeds that found it, on the front and as the chosen law."""

    front: np.ndarray
    chosen: np.ndarray
    seconds: list[float]

    @staticmethod
    def of(verdicts: Sequence[Verdicts]) -> Rates:
        front, chosen = (np.array([getattr(one, name) for one in verdicts]) for name in ("front", "chosen"))
        return Rates(front.mean(axis=0), chosen.mean(axis=0), [one.seconds for one in verdicts])


def run(
    system: ChaoticSystem,
    protocol: MotionProtocol,
    noise: float,
    seeds: int,
    max_time: float | None,
    max_iterations: int | None = None,
) -> Rates:
    """The rates of one system at a level of noise, one trial after another."""
    trials = [Trial(system, protocol, noise, seed, max_time, max_iterations) for seed in range(seeds)]
    return Rates.of([trial.run() for trial in trials])


def _renamed(system: ChaoticSystem) -> list[Expression]:
    names = {name: Variable(f"x{i + 1}") for i, name in enumerate(system.variables)}
    return [substitute(law, names) for law in system.laws]


def in_order(trials: Sequence[Trial], jobs: int) -> Iterator[Verdicts]:
    """The verdicts of the trials, so many of which run at the same time, each in a process with one thread."""
    if jobs == 1:
        yield from (trial.run() for trial in trials)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(Trial.run, trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", nargs="*", default=["ours"], choices=list(PROTOCOLS))
    parser.add_argument("--noise", nargs="*", type=float, default=[1, 2, 5, 10], help="per cent of each state's spread")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--systems", nargs="*", default=None, choices=[system.name for system in CHAOTIC])
    parser.add_argument("--max-time", type=float, default=30.0, help="seconds per equation")
    parser.add_argument("--max-iterations", type=int, help="in place of a time: the load of the machine plays no part")
    parser.add_argument("--same-noise", action="store_true", help="one sequence of noise for all columns")
    parser.add_argument("--derivative", default=None, help="instead of the protocol's own")
    parser.add_argument("--misses", action="store_true", help="show the equations that were not chosen")
    parser.add_argument("--jobs", type=int, default=1, help="trials at the same time, each with one thread")
    options = parser.parse_args()
    systems = [system for system in CHAOTIC if not options.systems or system.name in options.systems]
    seconds_each = None if options.max_iterations else options.max_time
    for name in options.protocol:
        protocol = PROTOCOLS[name]
        protocol = replace(protocol, same_noise=protocol.same_noise or options.same_noise)
        protocol = replace(protocol, derivative=options.derivative or protocol.derivative)
        print(f"protocol {name}: worst equation of each system, % of {options.seeds} seeds, front / chosen law")
        print(
            f"{'system':20s}" + "".join(f"{noise:>15g}%" for noise in options.noise) + "   CPU s/equation", flush=True
        )
        table: dict[float, list[Rates]] = {noise: [] for noise in options.noise}
        trials = [
            Trial(system, protocol, noise / 100, seed, seconds_each, options.max_iterations, options.jobs == 1)
            for system in systems
            for noise in options.noise
            for seed in range(options.seeds)
        ]
        verdicts = in_order(trials, options.jobs)
        for system in systems:
            cells = []
            for noise in options.noise:
                some = [next(verdicts) for _ in range(options.seeds)]
                for line in (line for one in some for line in one.misses if options.misses):
                    print(line)
                table[noise].append(rates := Rates.of(some))
                cells.append(f"{100 * rates.front.min():8.0f} /{100 * rates.chosen.min():5.0f} ")
            seconds = [second for noise in options.noise for second in table[noise][-1].seconds]
            print(f"{system.name:20s}" + "".join(cells) + f"   {statistics.median(seconds):.1f}", flush=True)
        cells = []
        for of_all_systems in table.values():
            front = np.mean([rates.front.min() for rates in of_all_systems])
            chosen = np.mean([rates.chosen.min() for rates in of_all_systems])
            cells.append(f"{100 * front:8.1f} /{100 * chosen:5.1f} ")
        print(f"{'mean':20s}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
