"""How many runners-up are worth a further coefficient: settings side by side on random laws with noise; one table.

    python benchmarks/breadth.py [--laws 32] [--max-time 20] [--jobs 2] [--seed 0]

The laws are drawn, not chosen: trees of five to seven operators on two columns with two or three inner coefficients,
noise of 3% of y's spread. Each setting searches each law for the same time on one core. For every complexity from 4 to
20 the least loss at it or below is compared with the best of all settings: `behind` is the mean of the logarithm of
that ratio, `best` the share of places where a setting is within 1% of the best one.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.queues import Queue

import numpy as np
import torch

from symenum import PSERegressor
from symenum.expressions import Expression, apply, evaluate, parse
from symenum.fitting import with_coefficients
from symenum.fitting.constants import free_constants, with_constants
from symenum.front import Front
from symenum.search import front_update as runners_up
from symenum.search import polish as coefficients

OPERATORS = ("add", "sub", "mul", "div", "sin", "exp", "log", "tanh", "pow2")
ROWS, NOISE = 200, 0.03
COMPLEXITIES = range(4, 21)
# Of each complexity, in all, times the front's loss, variants of the first step.
SETTINGS = {
    "front only": (0, 0, 1.0, 1200),
    "few": (2, 40, 3.0, 300),
    "near": (6, 120, 3.0, 1200),
    "some": (3, 60, 10.0, 1200),
    "more": (6, 120, 10.0, 1200),
    "many": (12, 240, 10.0, 2400),
    "far": (12, 240, 100.0, 4800),
}


def draw(rng: np.random.Generator) -> tuple[Expression, dict[str, torch.Tensor], torch.Tensor]:
    """A law, its columns and its values, all finite and neither flat nor wild."""
    columns = {name: torch.tensor(rng.uniform(0.5, 4, ROWS)) for name in ("x1", "x2")}
    while True:
        law = _with_numbers(_tree(rng), rng)
        y = evaluate(law, columns)
        spread = float(y.std())
        uses_both = {"x1", "x2"} <= {name for name in columns if name in str(law)}
        if (
            uses_both
            and bool(y.isfinite().all())
            and 0.05 < spread < 1e3
            and float((y - y.mean()).abs().max()) < 6 * spread
        ):
            return law, columns, y


def _tree(rng: np.random.Generator) -> Expression:
    """Five to seven operators of the set, put on top of each other at random."""
    parts = [parse(str(name)) for name in rng.choice(["x1", "x2"], 3)]
    for _ in range(rng.integers(3, 5)):
        name = str(rng.choice(["sin", "exp", "log", "tanh", "pow2"]))
        at = rng.integers(len(parts))
        parts[at] = apply(name, parts[at])
    while len(parts) > 1:
        name = str(rng.choice(["add", "sub", "mul", "div"]))
        parts = [*parts[2:], apply(name, parts[0], parts[1])]
    return parts[0]


def _with_numbers(tree: Expression, rng: np.random.Generator) -> Expression:
    """Up to three of the places for coefficients taken, the others 1."""
    family = with_coefficients(tree)
    values = list(free_constants(family))
    for at in rng.permutation(len(values))[:3]:
        values[at] = float(np.round(rng.uniform(0.3, 2.5), 2))
    return with_constants(family, values)


def on_one_core(cores: Queue[int]) -> None:
    """For each worker one of its own."""
    os.sched_setaffinity(0, {cores.get()})


def searched(work: tuple[str, int, int, float]) -> list[float]:
    """The least loss at each complexity, in units of y's variance."""
    setting, seed, number, max_time = work
    rng = np.random.default_rng([seed, number])
    _, columns, y = draw(rng)
    y = y.numpy() + NOISE * float(y.std()) * rng.normal(size=ROWS)
    each, most, near, variants = SETTINGS[setting]
    runners_up._EACH, runners_up._MOST, runners_up._NEAR = each, most, near
    coefficients._FIRST_VARIANTS = variants
    model = PSERegressor(OPERATORS, max_time=max_time, random_state=0, device="cpu")
    model.fit(np.column_stack([column.numpy() for column in columns.values()]), y)
    front: Front = model.front_
    least = (min((e.loss for e in front if e.complexity <= c), default=math.inf) for c in COMPLEXITIES)
    return [loss / float(np.var(y)) for loss in least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", type=int, default=32)
    parser.add_argument("--max-time", type=float, default=20.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    work = list(itertools.product(SETTINGS, [options.seed], range(options.laws), [options.max_time]))
    order = sorted(range(len(work)), key=lambda i: work[i][2])  # all settings of a law at about the same time
    context = get_context("spawn")
    cores: Queue[int] = context.Queue()
    for core in sorted(os.sched_getaffinity(0))[: options.jobs]:
        cores.put(core)
    with ProcessPoolExecutor(options.jobs, context, on_one_core, (cores,)) as pool:
        found = dict(zip(order, pool.map(searched, [work[i] for i in order]), strict=True))
    losses = np.array([found[i] for i in range(len(work))]).reshape(len(SETTINGS), options.laws, -1)
    behind = np.log(losses / losses.min(axis=0))
    print(f"{'setting':12s} {'each':>5s} {'most':>5s} {'near':>6s} {'variants':>8s} {'behind':>8s} {'best':>6s}")
    for (name, (each, most, near, variants)), ratio in zip(SETTINGS.items(), behind, strict=True):
        best = float((ratio < math.log(1.01)).mean())
        print(f"{name:12s} {each:5d} {most:5d} {near:6.0f} {variants:8d} {ratio.mean():8.4f} {best:6.1%}")


if __name__ == "__main__":
    main()
