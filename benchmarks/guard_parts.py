"""The measurements of the guard: one function for each part, each in a process of its own.

    python benchmarks/guard_parts.py PART FILE     # guard.py calls this; FILE gets the part's figures as JSON

Every figure is the better the higher it is. guard.py says how a part is run (two cores, no GPU) and compares.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).parent / "trust"))  # the scripts there are no package

import fuzz
from chaotic import PROTOCOLS as CHAOTIC_PROTOCOLS
from chaotic import Rates
from chaotic import run as run_chaotic
from emps import paper_front as emps_front
from engine import data as engine_data
from fuzzed import raise_timeout
from heads import pair_heads
from odd_data import odd_data

from symenum import PSRN, PSERegressor
from symenum.bench.judge import same_structure
from symenum.bench.problems import get_set
from symenum.bench.problems.experiments import CHAOTIC, EMPS_LAW, load_emps
from symenum.selection import reward

Figures = dict[str, dict[str, Any]]  # name: value, of (the highest value possible, or None), words (information)
Row = dict[str, Any]  # one run of `symenum bench run`, as it is in its folder of results

SIX_SETS = ("nguyen", "nguyen_c", "r", "r_star", "livermore", "feynman")

# Seconds for each run. The longest run of the six sets took 3.9 s (bench run, commit f486af8), so 20 s
# leave a slow machine enough; fifty_dim takes less (RESULTS.md). The longest solved run of srbench_130 took 6.6 s near
# other processes. With noise no law fits up to rounding, so each of the 44 runs uses all its time: 7 s are 44 · 7 / 2 =
# 154 s of the guard's 12 minutes, without the start of the processes.
EXACT_SECONDS = 20.0
SRBENCH_SECONDS = {0.0: 10.0, 0.01: 7.0}
EVERY = 3  # the problems 1, 4, 7, … of srbench_130

CHAOTIC_NOISE = 0.05
CHAOTIC_SECONDS = 10.0  # for each equation, as in RESULTS.md
EMPS_SECONDS = 15.0  # RESULTS.md: 10 s found the law with 20 of 20 seeds
FUZZ_TABLES = 200
FUZZ_SECONDS = 0.3  # for each fit, the default of trust/fuzz.py

SPEED_ROWS = 20
SPEED_COLUMNS = 14_000  # about those of the koza-5 bank, as in heads.py
SPEED_WIDTH = 64  # the shortlist of each scan, as in heads.py
SPEED_REPEATS = 9  # odd, so that the median is one of them

PLAIN_COLUMNS = 1200
PLAIN_TILE = 10  # columns: the values of a tile are 20 rows × 10 × 1,200 doubles, 1.9 MB, which a core's cache holds
PLAIN_REPEATS = 5


def six() -> Figures:
    """The paper's six small sets, one seed: solved problems of each."""
    rows = bench(SIX_SETS, max_time=EXACT_SECONDS)
    plain = plain_seconds()
    return {name: solved([row for row in rows if row["job"]["set"] == name], plain) for name in SIX_SETS}


def srbench() -> Figures:
    """Every third problem of srbench_130, without and with noise, one seed."""
    problems = [problem.name for problem in get_set("srbench_130").problems()][::EVERY]
    plain = plain_seconds()
    return {
        f"noise {noise:g}": solved(bench(["srbench_130"], max_time=seconds, noise=noise, problems=problems), plain)
        for noise, seconds in SRBENCH_SECONDS.items()
    }


def fifty_dim() -> Figures:
    """The 20 problems with fifty variables."""
    return {"solved": solved(bench(["fifty_dim"], max_time=EXACT_SECONDS), plain_seconds())}


def bench(sets: Sequence[str], *, max_time: float, noise: float = 0.0, problems: Sequence[str] = ()) -> list[Row]:
    """`symenum bench run` with one seed, two problems at a time on one core each; all its rows."""
    only = [word for name in problems for word in ("--problem", name)]
    with tempfile.TemporaryDirectory(prefix="symenum-guard-") as folder:
        command = [
            *(sys.executable, "-m", "symenum", "bench", "run", *sets, *only, "--noise", f"{noise:g}", "--seeds", "1"),
            *("--max-time", f"{max_time:g}", "--jobs", "2", "--cores", "1", "--out", folder),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder, "runs").glob("*.json"))]


def solved(rows: Sequence[Row], plain: float) -> dict[str, Any]:
    """The number of solved problems; in words the median time, and the problems that were lost."""
    if not rows:
        raise RuntimeError("symenum bench run left no rows")
    seconds = statistics.median(row["wall"] if row["seconds"] is None else row["seconds"] for row in rows)
    words = f"median {seconds:.2f} s = {seconds / plain:.2f} plain passes"
    lost = [
        row["job"]["problem"] + ("" if row["ended"] == "done" else f" ({row['ended']})")
        for row in rows
        if not row["solved"]
    ]
    if lost:
        words += f"; lost: {', '.join(lost)}"
    return {"value": sum(row["solved"] for row in rows), "of": len(rows), "words": words}


def chaotic() -> Figures:
    """The equations of the sixteen chaotic systems at 5% noise, one seed, by our protocol; two systems at a time."""
    context = multiprocessing.get_context("spawn")
    cores = context.Queue()
    for core in sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ():
        cores.put(core)
    with ProcessPoolExecutor(2, context, initializer=_take_a_core, initargs=(cores,)) as pool:
        rates = list(pool.map(_chaotic_rates, range(len(CHAOTIC))))
    names = [f"{system.name} {variable}" for system in CHAOTIC for variable in system.variables]
    figures: Figures = {}
    for what, found in (("on the front", [rate.front for rate in rates]), ("chosen", [rate.chosen for rate in rates])):
        lost = [name for name, one in zip(names, np.concatenate(found), strict=True) if not one]
        words = f"lost: {', '.join(lost)}" if lost else ""
        figures[what] = {"value": len(names) - len(lost), "of": len(names), "words": words}
    return figures


def _take_a_core(cores: Any) -> None:
    """Keep this process of the pool on a core of its own, where the system allows it."""
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})


def _chaotic_rates(number: int) -> Rates:
    return run_chaotic(CHAOTIC[number], CHAOTIC_PROTOCOLS["ours"], CHAOTIC_NOISE, 1, CHAOTIC_SECONDS)


def emps() -> Figures:
    """The law of the positioning system by the paper's protocol, one seed: the reference law, or a better one.

    The protocol takes the law of the highest reward. A front that holds a law of a higher reward than the reference law
    is no failure, so that law counts too; `on the front` asks for the reference law itself.
    """
    data = load_emps()
    front = emps_front(data, 0, EMPS_SECONDS)
    law = front[data.select(front)]
    own, reference = (reward(data.test_loss(one), one.complexity) for one in (law.expression, data.reference_law()))
    same = same_structure(law.expression, EMPS_LAW)
    words = f"reward {own:.5f}, of the reference law {reference:.5f}; {str(law.expression)[:80]}"
    there = any(same_structure(entry.expression, EMPS_LAW) for entry in front)
    return {
        "law found": {"value": int(same or own >= reference), "of": 1, "words": words},
        "on the front": {"value": int(there), "of": 1, "words": ""},
    }


def fuzzed() -> Figures:
    """Tables of every kind that people hand to `fit`: those without a fault."""
    signal.signal(signal.SIGALRM, raise_timeout)
    faults = []
    for seed in range(FUZZ_TABLES):
        fault, _ = fuzz.fault_of(odd_data(seed), seed, FUZZ_SECONDS)
        if fault:
            faults.append(f"table {seed}: {fault}")
    return {"without a fault": {"value": FUZZ_TABLES - len(faults), "of": FUZZ_TABLES, "words": "; ".join(faults)}}


def speed() -> Figures:
    """How many plain passes take as long as one pass of the engine, of the heads, and one small fit.

    Each work is timed right after a plain pass, so that what else the machine does meets both; medians of the ratios.
    """
    x, y = engine_data(5, SPEED_ROWS)
    net = PSRN(5, "koza", 3)
    X = np.random.default_rng(0).uniform(-1, 1, (SPEED_ROWS, 2))
    law = np.sin(X[:, 0]) + np.sin(X[:, 1] ** 2)
    heads = pair_heads(y, SPEED_COLUMNS, SPEED_WIDTH, torch.Generator().manual_seed(0))
    works: dict[str, list[Callable[[], object]]] = {
        "engine": [lambda: net.search(x, y)],
        "two terms": [do for name, _, do in heads if name == "two terms"],
        "affine": [do for name, _, do in heads if name.startswith("affine")],
        "fit": [lambda: PSERegressor(max_time=EXACT_SECONDS, random_state=0).fit(X, law)],
    }
    ratios: dict[str, list[float]] = {name: [] for name in works}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(-1, SPEED_REPEATS):  # the first round only fills the caches
        for name, parts in works.items():
            plain = seconds_of([plain_pass])
            ours = seconds_of(parts)
            if number >= 0:
                ratios[name].append(plain / ours)
                seconds[name].append(ours)
    return {
        name: {
            "value": round(statistics.median(ratios[name]), 4),
            "of": None,
            "words": f"{statistics.median(seconds[name]):.3f} s; ratios {min(several):.3f} to {max(several):.3f}",
        }
        for name, several in ratios.items()
    }


def seconds_of(works: Sequence[Callable[[], object]]) -> float:
    start = time.perf_counter()
    for work in works:
        work()
    return time.perf_counter() - start


def plain_pass() -> float:
    """The least mean square error of all sums, differences, products and quotients of two of 1,200 columns.

    Nothing of it is symenum's, so what makes our code slower cannot make this slower. It is cut as our scans are, a
    tile for each of two threads, because code with other threads slows down differently beside other processes.
    """
    rng = np.random.default_rng(0)
    h = rng.uniform(1, 2, (SPEED_ROWS, PLAIN_COLUMNS))
    y = rng.uniform(1, 2, (SPEED_ROWS, 1, 1))

    def least(first: int) -> float:
        values = np.empty((SPEED_ROWS, PLAIN_TILE, PLAIN_COLUMNS))
        losses = []
        for operation in (np.add, np.subtract, np.multiply, np.divide):
            operation(h[:, first : first + PLAIN_TILE, None], h[:, None, :], out=values)
            np.subtract(values, y, out=values)
            np.square(values, out=values)
            losses.append(float(values.mean(axis=0).min()))
        return min(losses)

    with ThreadPoolExecutor(2) as pool:
        return min(pool.map(least, range(0, PLAIN_COLUMNS, PLAIN_TILE)))


def plain_seconds() -> float:
    """The seconds of a plain pass: the median of several."""
    return statistics.median(seconds_of([plain_pass]) for _ in range(PLAIN_REPEATS))


PARTS: dict[str, Callable[[], Figures]] = {
    "six": six,
    "srbench": srbench,
    "fifty_dim": fifty_dim,
    "chaotic": chaotic,
    "emps": emps,
    "fuzz": fuzzed,
    "speed": speed,
}


def main(part: str, result: str) -> None:
    figures = {f"{part}/{name}": figure for name, figure in PARTS[part]().items()}
    Path(result).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
