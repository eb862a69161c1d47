"""kill -9 at random moments of a checkpointing fit: can it always be resumed, and is the front never worse?

One search is killed and taken up again, over and over, until it has done all its steps; then its front must be that of
the same search without a pause, and another search begins.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from tables import TABLES, Table

from symenum import PSERegressor
from symenum.front import Front
from symenum.search.checkpoint import read_checkpoint

__all__ = ["add_arguments", "main"]

STEPS = 12  # of a search: some seconds, so that it is killed and taken up again several times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--latest", type=float, default=1.5, help="seconds after the start of a process")
    parser.add_argument("--seed", type=int, default=0)


def main(options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    table = TABLES["60 rows x 2"]()
    kills = lost = worse = finished = different = before_first = 0
    seed = 0
    while kills < options.count:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint.json"
            known: Front | None = None
            while kills < options.count:
                done = _killed(table, path, seed, rng.uniform(0.0, options.latest))
                kills += not done
                if not path.exists():
                    before_first += 1
                    lost += known is not None
                    continue
                try:
                    front = read_checkpoint(path).front
                except ValueError as error:
                    print(error)
                    lost += 1
                    break
                worse += known is not None and not _not_worse(front, known)
                known = front
                if done:
                    finished += 1
                    different += front != _model(seed).fit(table.X, table.y).front_
                    break
        seed += 1
    print(
        "| kills | before the first checkpoint | not resumable | front worse | searches ended | not as uninterrupted |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    print(f"| {kills} | {before_first} | {lost} | {worse} | {finished} | {different} |")
    return 1 if lost or worse or different else 0


def _model(seed: int, checkpoint: Path | None = None) -> PSERegressor:
    # Steps of a few tenths of a second: a process that is killed after one second on average shall get somewhere.
    return PSERegressor(
        "arithmetic",
        max_time=None,
        max_iterations=STEPS,
        layers=2,
        inputs=4,
        top_k=5,
        constants=False,
        random_state=seed,
        checkpoint=checkpoint,
    )


def _killed(table: Table, path: Path, seed: int, after: float) -> bool:
    """A process that begins the search or goes on with it, killed after so many seconds; whether it came to the end."""
    child = os.fork()  # torch is imported already, which would take most of the time
    if child == 0:
        try:
            if path.exists():
                PSERegressor.resume(path)
            else:
                _model(seed, path).fit(table.X, table.y)
        except BaseException as error:
            print(f"a resumed fit failed: {type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    end = time.monotonic() + after
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            if status != 0:
                raise RuntimeError("a fit that was not killed has failed")
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


def _not_worse(after: Front, before: Front) -> bool:
    """Whether every law of before has one that is as simple and as good."""
    return all(any(new.complexity <= old.complexity and new.loss <= old.loss for new in after) for old in before)
