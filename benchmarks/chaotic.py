"""Sixteen chaotic systems at four noise levels: how often each law of motion is found; one table.

    python benchmarks/chaotic.py [--protocol ours paper] [--noise 1 2 5 10] [--seeds 5] [--max-time 30] [--same-noise]

An equation counts as found if a law of its front has its structure up to constants and a bias (the rule is stated in
`symenum.bench.judge.structure`); the number behind the stroke counts only the law that the model selects. A system's
rate is that of its worst equation.
`--max-time` is for each equation; most end long before it. `--same-noise` and `--derivative` change the protocol.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, replace

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
from symenum.dynamics import ODERegressor
from symenum.expressions import Expression, Variable, substitute, to_text

PROTOCOLS = {"ours": OURS, "paper": PAPER}


@dataclass(frozen=True)
class Rates:
    """Of one system: for each equation the share of the seeds that found it, on the front and as the chosen law.

    `seconds` are those of the processor that each fit took, per equation.
    """

    front: np.ndarray
    chosen: np.ndarray
    seconds: list[float]


def run(
    system: ChaoticSystem,
    protocol: MotionProtocol,
    noise: float,
    seeds: int,
    max_time: float | None,
    show_misses: bool,
    max_iterations: int | None = None,
) -> Rates:
    """The rates of one system at a level of noise (in standard deviations of each state), `max_time` per equation."""
    front = np.zeros((seeds, len(system.variables)))
    chosen = np.zeros_like(front)
    seconds: list[float] = []
    for seed in range(seeds):
        t, X = sample(system, protocol, noise, seed)
        start = time.process_time()
        model = ODERegressor(
            CHAOTIC_OPERATORS,
            derivative=protocol.derivative,
            max_time=None if max_time is None else max_time * len(system.variables),
            max_iterations=max_iterations,
            random_state=seed,
        ).fit(X, t)
        seconds.append((time.process_time() - start) / len(system.variables))
        for i, (state, law) in enumerate(zip(model.state_names_, _renamed(system), strict=True)):
            front[seed, i] = any(same_structure(entry.expression, law) for entry in model.fronts_[state])
            chosen[seed, i] = same_structure(model.best_expressions_[state], law)
            if show_misses and not chosen[seed, i]:
                where = "on the front" if front[seed, i] else "LOST"
                found = to_text(model.best_expressions_[state], 4)
                print(f"  {system.name} {system.variables[i]} seed {seed}: {where}; law {law}; chosen {found}")
    return Rates(front.mean(axis=0), chosen.mean(axis=0), seconds)


def _renamed(system: ChaoticSystem) -> list[Expression]:
    names = {name: Variable(f"x{i + 1}") for i, name in enumerate(system.variables)}
    return [substitute(law, names) for law in system.laws]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", nargs="*", default=["ours"], choices=list(PROTOCOLS))
    parser.add_argument("--noise", nargs="*", type=float, default=[1, 2, 5, 10], help="per cent of each state's spread")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--systems", nargs="*", default=None)
    parser.add_argument("--max-time", type=float, default=30.0, help="seconds per equation")
    parser.add_argument("--max-iterations", type=int, help="in place of a time: the load of the machine plays no part")
    parser.add_argument("--same-noise", action="store_true", help="one sequence of noise for all columns")
    parser.add_argument("--derivative", default=None, help="instead of the protocol's own")
    parser.add_argument("--misses", action="store_true", help="show the equations that were not chosen")
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
        for system in systems:
            cells = []
            for noise in options.noise:
                rates = run(
                    system, protocol, noise / 100, options.seeds, seconds_each, options.misses, options.max_iterations
                )
                table[noise].append(rates)
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
