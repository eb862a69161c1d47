"""Same data, seed and iteration limit: the same front bit for bit, whatever the machine does beside it.

Each fit runs in a process of its own, because the number of threads and the order of hashes are the whole process's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_SECONDS = 900  # for one process, on a machine that others use too
_THREADS = ("1", "2", "4")

# Prints what was found: text, losses and constants to the last bit, as JSON.
_REPORT = """
import json, os, sys

threads, folder = int(sys.argv[1]), sys.argv[2]
# What the package's own threads are counted by; there may be more of them than cores.
os.sched_getaffinity = lambda process: set(range(threads))
os.cpu_count = lambda: threads

import numpy as np
import torch
from symenum import ODERegressor, PSERegressor
from symenum.expressions import Constant, walk

torch.set_num_threads(threads)
random = np.random.default_rng(5)

def written(front):
    return [
        [str(entry.expression), entry.loss.hex()]
        + [float(node.value).hex() for node in walk(entry.expression) if isinstance(node, Constant)]
        for entry in front
    ]

def tell(*fronts, **more):
    print(json.dumps({"fronts": [written(front) for front in fronts], **more}))

def regressor(iterations, **settings):
    return PSERegressor(max_iterations=iterations, max_time=None, random_state=3, device="cpu", **settings)
"""

# A law that heads find at once; and noise, on which every kind of step does its work. Moves of many cheap turns have no
# share, nor has the dearest one, so that the first pass of the network comes after two seconds; the slow test has all.
_SHORT = """
X = random.uniform(0.5, 3.0, (100, 3))
exact = regressor(12).fit(X, 2.5 * X[:, 0] ** 2 / X[:, 1] + np.sqrt(X[:, 2]))
X = random.uniform(0.5, 3.0, (60, 2))
y = X[:, 0] * np.sin(X[:, 1]) + 0.7 * X[:, 1] ** 2
left_out = ["transforms", "features times a polynomial", "two terms on a polynomial", "sums of terms"]
left_out += ["growth of simple laws", "near meetings"]
noisy = regressor(45, operators=["+", "*", "sin"], layers=2, inputs=4, shares=dict.fromkeys(left_out, 0.0))
noisy.fit(X, y + 0.05 * y.std() * random.normal(size=60))
tell(exact.front_, noisy.front_, scored=noisy.scored_)
"""

# All operators on a larger table; the same search from a checkpoint in its middle; and laws of motion. Two layers: the
# passes of three on four variables, of 4e9 candidates each, take ten minutes for the same.
_WHOLE = """
X = random.uniform(0.5, 3.0, (300, 3))
y = X[:, 0] * np.sin(X[:, 1]) + 0.7 * X[:, 2] ** 2 / (X[:, 1] + X[:, 0])
y += 0.05 * y.std() * random.normal(size=300)
whole = regressor(60, layers=2).fit(X, y)
regressor(43, layers=2, checkpoint=folder).fit(X, y)
resumed = PSERegressor.resume(folder, X, y, max_iterations=60)

times = np.linspace(0, 8, 400)
states = np.column_stack([np.cos(times), -np.sin(times)]) + 0.01 * random.normal(size=(400, 2))
motion = ODERegressor(max_iterations=6, max_time=None, random_state=3).fit(states, times)
tell(whole.front_, resumed.front_, *motion.fronts_.values(), scored=whole.scored_)
"""


def _start(script: str, folder: Path, *, threads: str, hashes: str) -> subprocess.Popen[str]:
    """A new process with so many threads and that order of hashes."""
    environment = {**os.environ, "PYTHONHASHSEED": hashes}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[name] = threads
    return subprocess.Popen(
        [sys.executable, "-c", _REPORT + script, threads, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _ended(process: subprocess.Popen[str]) -> str:
    """What it has printed."""
    try:
        printed, errors = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return printed


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    """So many processes that do nothing but keep cores busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_the_front_is_the_same_whatever_the_threads_the_hashes_and_the_load(tmp_path: Path) -> None:
    with _busy(1):
        running = [_start(_SHORT, tmp_path, threads=threads, hashes=threads) for threads in ("1", "4")]
        found = [_ended(process) for process in running]
    told = json.loads(found[0])
    assert all(told["fronts"]), "nothing was found"
    assert told["scored"] > 0, "no pass with tokens"
    assert found[0] == found[1]


@pytest.mark.slow
def test_ten_runs_resumed_ones_and_laws_of_motion_are_the_same(tmp_path: Path) -> None:
    seen = set()
    for turn in range(10):
        with _busy(turn % 3):
            folder = tmp_path / str(turn)
            process = _start(_WHOLE, folder, threads=_THREADS[turn % 3], hashes=str(turn))
            seen.add(_ended(process))
    assert len(seen) == 1
    told = json.loads(seen.pop())
    assert told["scored"] > 0, "no pass with tokens"
    assert told["fronts"][0] == told["fronts"][1], "resumed in the middle, another front"
