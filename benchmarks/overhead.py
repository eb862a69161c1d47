"""Where the time of a step of the search goes: scans of candidates, the heads around them, fitting, the rest.

    python benchmarks/overhead.py [--steps 4] [--rows 50] [--threads 2]

koza, 5 inputs, 3 layers, two variables. The steps from the raw variables are made first and not counted; then come
steps with tokens, each of which scans the network and all heads. Seconds of the wall clock; run it on free cores. A
part's seconds do not include those of other parts that it calls.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.core.target import check_target
from symenum.engine.network import PSRN
from symenum.heads import affine, one_feature
from symenum.heads.stages import Stage
from symenum.operators import get_operators
from symenum.scans import pairs
from symenum.search import Settings, make_task, start, step
from symenum.search.step import TOKENS

NETWORK, PAIRS, FAMILIES = "scan of the network", "scans of pairs", "scans of functions of one feature"
SCANS = (NETWORK, PAIRS, FAMILIES)
HEADS, REST = "heads around their scans", "all else: tokens, fitting, front"
PARTS: tuple[tuple[ModuleType | type, str, str], ...] = (
    (PSRN, "search", NETWORK),
    (pairs, "certified_scan", PAIRS),
    (affine, "certified_scan", PAIRS),
    (one_feature, "scan_families", FAMILIES),
    (Stage, "run", HEADS),
)
"""What is timed, and the part of the table that its time belongs to."""
PATCHED = tuple((owner, function) for owner, function, _ in PARTS)


class Clock:
    """Seconds of each part, without those of the parts that it calls."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((*SCANS, HEADS, REST), 0.0)
        self._running = [REST]
        self._since = time.perf_counter()

    def turn(self) -> None:
        """Add the time since the last turn to the part that is running."""
        now = time.perf_counter()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """The function, its time counted for the part."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self._running.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self._running.pop()

        return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    X = random.uniform(0.5, 3, (options.rows, 2))
    y = np.sin(3 * X[:, 0]) / (X[:, 1] + np.exp(np.cos(X[:, 0] * X[:, 1]))) + np.tanh(X[:, 0] - X[:, 1])
    target, _ = check_target(y + 0.02 * random.standard_normal(options.rows), None, options.rows)
    settings = Settings(operators=get_operators("koza"), inputs=5, layers=3, threads=options.threads)
    task = make_task(["x1", "x2"], torch.tensor(X), target, settings)
    state, name = start(task, 0), ""
    while name != TOKENS:  # the first such step makes what the later ones find in caches
        state, name = step(task, state, Budget())
    clocks: list[dict[str, float]] = []
    while len(clocks) < options.steps:
        clock = Clock()
        with ExitStack() as patches:
            for owner, function, part in PARTS:
                patches.enter_context(patch.object(owner, function, clock.timed(getattr(owner, function), part)))
            state, name = step(task, state, Budget())
        clock.turn()
        if name == TOKENS:  # in between there are steps of single heads
            clocks.append(clock.seconds)
    print(f"{'seconds':42s}" + "".join(f"{f'step {i + 1}':>10s}" for i in range(options.steps)))
    for part in clocks[0]:
        print(f"{part:42s}" + "".join(f"{seconds[part]:10.2f}" for seconds in clocks))
    totals = [sum(seconds.values()) for seconds in clocks]
    print(f"{'together':42s}" + "".join(f"{total:10.2f}" for total in totals))
    shares = [sum(seconds[part] for part in SCANS) / total for seconds, total in zip(clocks, totals, strict=True)]
    print(f"{'of that in scans':42s}" + "".join(f"{share:10.0%}" for share in shares))


if __name__ == "__main__":
    main()
