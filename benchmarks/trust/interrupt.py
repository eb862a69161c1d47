"""SIGINT at random moments of a fit: is the front kept, and how long does it take?"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tables import TABLES

__all__ = ["add_arguments", "main"]

CHILD = """
import json, signal, sys, time
import numpy as np
sys.path.insert(0, {folder!r})
from tables import TABLES
from symenum import PSERegressor
table = TABLES[{name!r}]()
stage = ["set-up"]
for line in sys.stdin:
    model = PSERegressor(max_time=None, max_iterations=10**6, random_state=int(line),
                         callbacks=[lambda report: stage.__setitem__(0, "after " + report.stage)])
    stage[0] = "set-up"
    print("begin", flush=True)
    model.fit(table.X, table.y)
    end = time.time()
    fine = np.isfinite(model.predict(table.X[:100])).all() and len(model.front_) > 0
    print(json.dumps([end, bool(fine and model.interrupted_), len(model.front_), model.n_iter_, stage[0]]), flush=True)
"""


@dataclass(frozen=True)
class Moment:
    """One interrupt: when it came, how long the fit took to end, whether its front can be used, what ran before."""

    table: str
    after: float
    seconds: float
    kept: bool
    laws: int
    step: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--latest", type=float, default=8.0, help="seconds after the start of a fit")
    parser.add_argument("--seed", type=int, default=0)


def main(options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    moments: list[Moment] = []
    for i, name in enumerate(options.tables):
        count = options.count // len(options.tables) + (i < options.count % len(options.tables))
        moments += _interrupted(name, count, options.latest, rng)
    _show(moments)
    return 0 if all(moment.kept and moment.seconds < 1.0 for moment in moments) else 1


def _interrupted(name: str, count: int, latest: float, rng: random.Random) -> list[Moment]:
    code = CHILD.format(folder=str(Path(__file__).resolve().parent), name=name)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        found = [_one(child, child.stdin, child.stdout, name, rng.uniform(0.0, latest), seed) for seed in range(count)]
        child.stdin.close()
    return found


def _one(child: subprocess.Popen[str], to: IO[str], out: IO[str], name: str, after: float, seed: int) -> Moment:
    to.write(f"{seed}\n")
    to.flush()
    assert out.readline() == "begin\n"
    time.sleep(after + 0.05)  # the handler stands a moment after the word
    sent = time.time()
    child.send_signal(signal.SIGINT)
    end, kept, laws, steps, stage = json.loads(out.readline())
    return Moment(name, after, end - sent, kept, laws, f"{stage} ({steps} steps)")


def _show(moments: Sequence[Moment]) -> None:
    print("| data | interrupts | front kept | seconds to the end: median | largest | in |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for name in dict.fromkeys(moment.table for moment in moments):
        here = sorted((moment for moment in moments if moment.table == name), key=lambda moment: moment.seconds)
        middle, last = here[len(here) // 2], here[-1]
        kept = sum(moment.kept for moment in here)
        print(f"| {name} | {len(here)} | {kept} | {middle.seconds:.2f} | {last.seconds:.2f} | {last.step} |")
