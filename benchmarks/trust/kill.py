"""kill -9 at random moments of a checkpointing fit: can it always be resumed, and is the front never worse?

One search is killed and taken up again, over and over, until it has done all its steps; then its result must be that of
the same search without a pause, and another search begins. Most kills are early and some late, by the time that the
search takes without a pause, so that searches also come to their end; the last one is not killed any more. With
`--motion` it is a search for laws of motion.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tables import TABLES

from symenum import ODERegressor, PSERegressor
from symenum.dynamics.persistence import open_motion_checkpoint
from symenum.front import Front
from symenum.search.checkpoint import read_checkpoint

__all__ = ["add_arguments", "main"]

STEPS = 12  # of a search: some seconds, so that it is killed and taken up again several times
_CPU_TIMES = slice(11, 13)  # fields of /proc/PID/stat behind the name: ticks in the program, and in the system for it
MOTION_STEPS = 16  # of the search for each of two laws: a fifth of its time, before the fits to the trajectories
EARLY = (0.0, 0.4)  # when most processes are killed, in times of a search without a pause: its steps lie here
LATE = (0.4, 1.5)  # and the others: half of them come to the end, though fits to trajectories begin anew
LATE_ONES = 0.35  # part of the processes that are killed late


@dataclass(frozen=True)
class Trial:
    """A search that is killed: how it begins (its result comes back), goes on, and what its checkpoint holds."""

    begin: Callable[[int, Path | None], object]
    go_on: Callable[[Path], object]
    fronts: Callable[[Path], Sequence[Front | None]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--motion", action="store_true", help="searches for laws of motion")


def main(options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    trial = Trial(_begin_motion, _resume_motion, _motion_fronts) if options.motion else Trial(_begin, _resume, _fronts)
    kills = lost = worse = finished = different = before_first = 0
    begin = time.process_time()
    trial.begin(0, None)
    whole = time.process_time() - begin
    seed = 0
    while kills < options.count:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint.json"
            known: Sequence[Front | None] | None = None
            while True:
                after = whole * _moment(rng) if kills < options.count else math.inf
                done = _killed(trial, path, seed, after)
                kills += not done
                if not path.exists():
                    before_first += 1
                    lost += known is not None
                    continue
                try:
                    fronts = trial.fronts(path)
                except ValueError as error:
                    print(error)
                    lost += 1
                    break
                worse += known is not None and not all(map(_not_worse, fronts, known))
                known = fronts
                if done:
                    finished += 1
                    different += trial.go_on(path) != trial.begin(seed, None)
                    break
        seed += 1
    print(
        "| kills | before the first checkpoint | not resumable | front worse | searches ended | not as uninterrupted |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    print(f"| {kills} | {before_first} | {lost} | {worse} | {finished} | {different} |")
    return 1 if lost or worse or different else 0


def _moment(rng: random.Random) -> float:
    """When a process is killed, in times of a search without a pause."""
    return rng.uniform(*(LATE if rng.random() < LATE_ONES else EARLY))


def _begin(seed: int, checkpoint: Path | None) -> object:
    table = TABLES["60 rows x 2"]()
    # Steps of a few tenths of a second: a process that is killed after one second on average shall get somewhere.
    model = PSERegressor(
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
    return model.fit(table.X, table.y).front_


def _resume(path: Path) -> object:
    return PSERegressor.resume(path).front_


def _fronts(path: Path) -> Sequence[Front | None]:
    return [read_checkpoint(path).front]


def _begin_motion(seed: int, checkpoint: Path | None) -> object:
    model = ODERegressor(
        ["+", "-", "*"],
        max_time=None,
        max_iterations=MOTION_STEPS,
        layers=2,
        inputs=4,
        top_k=5,
        random_state=seed,
        checkpoint=checkpoint,
    )
    return _result(model.fit(*_motion(seed)))


def _motion(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A short run that no polynomial explains, so that the search makes all of its steps."""
    t = np.linspace(0.0, 6.0, 40)
    x = np.sin(1.3 * t) + 0.4 * np.sign(np.sin(2.1 * t))
    y = np.cos(0.7 * t) ** 3
    noise = 0.003 * np.random.default_rng(seed).normal(size=(len(t), 2))
    return np.column_stack([x, y]) + noise, t


def _resume_motion(path: Path) -> object:
    return _result(ODERegressor.resume(path))


def _result(model: ODERegressor) -> object:
    chosen = None if model.trajectories_ is None else model.trajectories_.laws
    return model.fronts_, model.best_expressions_, chosen


def _motion_fronts(path: Path) -> Sequence[Front | None]:
    names = list(ODERegressor().get_params())
    progress = open_motion_checkpoint(path, {}, names, with_data=True).progress
    return [None if one is None else one.front for one in progress]


def _killed(trial: Trial, path: Path, seed: int, after: float) -> bool:
    """A process that begins the search or goes on with it, killed after so many seconds; whether it came to the end."""
    child = os.fork()  # torch is imported already, which would take most of the time
    if child == 0:
        try:
            if path.exists():
                trial.go_on(path)
            else:
                trial.begin(seed, path)
        except BaseException as error:
            print(f"a resumed fit failed: {type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    begin = time.monotonic()
    while _seconds(child, begin) < after:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            if status != 0:
                raise RuntimeError("a fit that was not killed has failed")
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


def _seconds(child: int, begin: float) -> float:
    """Of the processor, that the child has had; where the system does not say, of the clock since `begin`."""
    status = Path(f"/proc/{child}/stat")
    if not status.exists():
        return time.monotonic() - begin
    user, system = status.read_text().rsplit(")", 1)[1].split()[_CPU_TIMES]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _not_worse(after: Front | None, before: Front | None) -> bool:
    """Whether every law of before has one that is as simple and as good, or as good but for chance by the front's rule.

    By that rule a law with fewer fitted constants takes the place of one that is better by no more than chance.
    """
    if before is None:
        return True
    if after is None:
        return False
    as_good = all(any(new.complexity <= old.complexity and new.loss <= old.loss for new in after) for old in before)
    return as_good or after.update(before).entries == after.entries
