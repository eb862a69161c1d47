"""The work of each slice of each stage of the heads: estimated from sizes, and measured.

    python benchmarks/moves.py [--variables 1 2 5] [--rows 20 100] [--operators koza] [--slices 4] [--stage affine ...]

One line for each stage and shape of data: slices that were measured, the estimate, the mean and the longest measured
time of a slice, and estimate over mean. Only the first slices of a stage are measured (`--slices`). A summary says
how many stages are estimated within a factor of 2 and of 4, of those whose slices take more than 20 ms. "every" stands
for all operators.

Times are what two idle cores would need: processor time of the main thread, and half of that of the threads that it
waits for. So a busy machine does little harm.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from symenum.core.budget import NO_LIMIT
from symenum.core.target import check_target
from symenum.core.threads import single_threaded
from symenum.expressions import Variable
from symenum.heads import make_data
from symenum.heads.stages import SCAN_ROWS, AllHeads, Stage
from symenum.operators import OPERATORS, Operator, get_operators

CANDIDATES = 10  # that a head hands back, as in a search
CORES = 2  # of the reference machine
SHORT = 0.02  # seconds: shorter slices need no estimate
FEW_TRANSFORMS = 3  # stages for transforms that are measured: all are alike


@dataclass(frozen=True)
class Line:
    """One stage on one shape of data; `seconds` of its slices."""

    variables: int
    rows: int
    operators: str
    stage: str
    estimate: float
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.mean(self.seconds)

    @property
    def ratio(self) -> float:
        return self.estimate / self.mean

    def __str__(self) -> str:
        return (
            f"{self.variables:3d} {self.rows:4d} {self.operators:10s} {self.stage:32s} {len(self.seconds):3d} "
            f"{self.estimate:8.3f} {self.mean:8.3f} {max(self.seconds):8.3f} {self.ratio:7.2f}"
        )


def operators_of(name: str) -> tuple[Operator, ...]:
    return get_operators(tuple(OPERATORS)) if name == "every" else get_operators(name)


def make_heads(variables: int, rows: int, operators: str) -> AllHeads:
    """Heads on a law with noise, which no head finds exactly, so that no slice ends early."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 3, (variables, rows))
    y = x[0] * np.exp(x[1 % variables] / x[2 % variables]) + x[0] ** 3 * np.sin(x[4 % variables])
    y *= 1 + 0.05 * rng.normal(size=rows)
    target, _ = check_target(y, None, rows)
    slots = [Variable(f"x{i + 1}") for i in range(variables)]
    data = make_data(slots, torch.from_numpy(x), target, SCAN_ROWS)
    return AllHeads(data, operators_of(operators), CANDIDATES, registered=())


def stages_of(heads: AllHeads, wanted: Sequence[str]) -> Iterator[Stage]:
    for stage in (*heads.on_target(), *heads.on_transforms()[:FEW_TRANSFORMS]):
        if not wanted or stage.name in wanted:
            yield stage


def measured(stage: Stage, slices: int) -> tuple[float, ...]:
    """Seconds of the first `slices` slices of the stage."""
    seconds: list[float] = []
    while len(seconds) < slices and stage.scan(len(seconds)) is not None:
        main, everything = time.thread_time(), time.process_time()
        stage.run(len(seconds), NO_LIMIT)
        main, everything = time.thread_time() - main, time.process_time() - everything
        seconds.append(main + (everything - main) / CORES)
    return tuple(seconds)


def summary(lines: Sequence[Line]) -> str:
    long = [line for line in lines if line.mean > SHORT]
    within = {factor: sum(1 / factor <= line.ratio <= factor for line in long) for factor in (2, 4)}
    return f"{len(long)} stages above {SHORT} s: {within[2]} within a factor of 2, {within[4]} within 4"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variables", type=int, nargs="+", default=[1, 2, 3, 5, 8, 12, 50])
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 100, 400])
    parser.add_argument("--operators", nargs="+", default=["arithmetic", "koza", "every"])
    parser.add_argument("--slices", type=int, default=4, help="slices of a stage that are measured, at most")
    parser.add_argument("--stage", nargs="*", default=[], help="only these stages")
    options = parser.parse_args()
    lines: list[Line] = []
    print("vars rows operators  stage                         slices estimate     mean  longest   ratio")
    with single_threaded():
        for variables in options.variables:
            for rows in options.rows:
                for operators in options.operators:
                    heads = make_heads(variables, rows, operators)
                    for stage in stages_of(heads, options.stage):
                        if seconds := measured(stage, options.slices):
                            lines.append(Line(variables, rows, operators, stage.name, stage.work, seconds))
                            print(lines[-1], flush=True)
    print(summary(lines))


if __name__ == "__main__":
    main()
