"""How many runners-up of the front should get one more coefficient: settings on random laws with noise; one table.

    python benchmarks/breadth.py [--laws 32] [--max-time 20] [--jobs 2] [--seed 0]

The laws are drawn, not chosen: trees of five or six operators on two columns with two or three inner coefficients,
and noise of 3% of y's spread. Each setting searches each law for the same time on one core. For every complexity from 4
to 20 the smallest loss at that complexity or below is divided by the smallest one of all settings. `behind` is the mean
of the logarithm of that ratio, `best` the share of laws and complexities where the ratio is below 1.01.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from multiprocessing import get_context
from multiprocessing.queues import Queue
from unittest.mock import patch

import numpy as np
import torch

from symenum import PSERegressor
from symenum.expressions import Expression, apply, evaluate, parse
from symenum.fitting import with_coefficients
from symenum.fitting.free_constants import free_constants, with_constants
from symenum.front import Front
from symenum.search import front_update, polish

OPERATORS = ("add", "sub", "mul", "div", "sin", "exp", "log", "tanh", "pow2")
ROWS = 200
NOISE = 0.03  # in standard deviations of y
COMPLEXITIES = range(4, 21)


@dataclass(frozen=True)
class Setting:
    """Runners-up of each complexity and in all, their largest loss over the front's, variants of the first step."""

    each: int
    all: int
    near: float
    variants: int


SETTINGS = {
    "front only": Setting(0, 0, 1.0, 1200),
    "few": Setting(2, 40, 3.0, 300),
    "near": Setting(6, 120, 3.0, 1200),
    "some": Setting(3, 60, 10.0, 1200),
    "more": Setting(6, 120, 10.0, 1200),
    "many": Setting(12, 240, 10.0, 2400),
    "far": Setting(12, 240, 100.0, 4800),
}
PATCHED = (
    (front_update, "_RUNNERS_UP_PER_COMPLEXITY"),
    (front_update, "_MAX_RUNNERS_UP"),
    (front_update, "_NEAR_FACTOR"),
    (polish, "_FIRST_VARIANTS"),
)
"""The constants of the search that a setting replaces, in the order of its fields."""


def draw(rng: np.random.Generator) -> tuple[Expression, dict[str, torch.Tensor], torch.Tensor]:
    """A law, its columns and its values (rows,): finite, with a spread of 0.05 to 1000, and without outliers."""
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
    """Three or four functions and two binary operators on three leaves, drawn at random."""
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
    """The tree with up to three coefficients at random places."""
    family = with_coefficients(tree)
    values = list(free_constants(family))
    for at in rng.permutation(len(values))[:3]:
        values[at] = float(np.round(rng.uniform(0.3, 2.5), 2))
    return with_constants(family, values)


def on_one_core(cores: Queue[int]) -> None:
    """Keep this worker on a core of its own."""
    os.sched_setaffinity(0, {cores.get()})


def searched(work: tuple[str, int, int, float]) -> list[float]:
    """The smallest loss at each complexity or below, in units of y's variance."""
    setting, seed, number, max_time = work
    rng = np.random.default_rng([seed, number])
    _, columns, clean = draw(rng)
    y = clean.numpy() + NOISE * float(clean.std()) * rng.normal(size=ROWS)
    model = PSERegressor(OPERATORS, max_time=max_time, random_state=0, device="cpu")
    with ExitStack() as patches:
        for (module, name), value in zip(PATCHED, astuple(SETTINGS[setting]), strict=True):
            patches.enter_context(patch.object(module, name, value))
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
    order = sorted(range(len(work)), key=lambda i: work[i][2])  # law by law: what else the machine does meets all alike
    context = get_context("spawn")
    cores: Queue[int] = context.Queue()
    for core in sorted(os.sched_getaffinity(0))[: options.jobs]:
        cores.put(core)
    with ProcessPoolExecutor(options.jobs, context, on_one_core, (cores,)) as pool:
        found = dict(zip(order, pool.map(searched, [work[i] for i in order]), strict=True))
    losses = np.array([found[i] for i in range(len(work))]).reshape(len(SETTINGS), options.laws, -1)
    behind = np.log(losses / losses.min(axis=0))
    print(f"{'setting':12s} {'each':>5s} {'all':>5s} {'near':>6s} {'variants':>8s} {'behind':>8s} {'best':>6s}")
    for (name, one), ratio in zip(SETTINGS.items(), behind, strict=True):
        best = float((ratio < math.log(1.01)).mean())
        print(f"{name:12s} {one.each:5d} {one.all:5d} {one.near:6.0f} {one.variants:8d}", end="")
        print(f" {ratio.mean():8.4f} {best:6.1%}")


if __name__ == "__main__":
    main()
