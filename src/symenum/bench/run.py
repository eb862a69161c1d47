"""Runs jobs, each in a process with hard limits, judges what they found, and keeps a row for each, whatever happens.

A job's process is killed with all that it started when its time or its memory is over; nothing is asked of it. Memory
is the resident one of the process and all its children, looked at twenty times a second where the system shows it
(Linux); elsewhere the memory limit does nothing, and `watches_memory` says so.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from symenum.bench.jobs import BenchPlan, Job, Row
from symenum.bench.judge import Judge, judge_front
from symenum.bench.problems import Case, get_set
from symenum.bench.problems.problem import law_values
from symenum.bench.store import Store, machine_facts, package_versions
from symenum.bench.systems import Law
from symenum.expressions import Expression, parse

__all__ = [
    "Ending",
    "Limits",
    "Progress",
    "judge_again",
    "run_jobs",
    "run_limited",
    "run_plan",
    "watches_memory",
]

_START_SECONDS = 60.0  # to import torch on a busy machine, and to draw the data
_GRACE = (
    1.25  # times the limit that the system was told, before it is killed: some look at their clock between steps only
)
_MOST_LAWS = 60  # of a front that are kept and judged
_LOOK_SECONDS = 0.05  # between two looks at a process
_TAIL = 2000  # characters of what it said on stderr
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Command = Callable[[Path, Path], Sequence[str]]


@dataclass(frozen=True)
class Limits:
    """Of each run: seconds that the system is told to use, cores, and bytes of memory."""

    max_time: float = 60.0
    cores: int = 1
    memory: int = 8 << 30

    @property
    def hard_seconds(self) -> float:
        """After these the process is killed."""
        return _GRACE * self.max_time + _START_SECONDS


@dataclass(frozen=True)
class Progress:
    """Told after each run. `left` are the seconds that the rest will take, by what the runs so far took."""

    row: Row
    done: int
    total: int
    left: float


def worker_command(job: Path, result: Path) -> list[str]:
    """The command that runs one job."""
    return [sys.executable, "-m", "symenum.bench.worker", str(job), str(result)]


def run_plan(
    plan: BenchPlan,
    folder: Path,
    limits: Limits,
    version: str,
    command: str,
    *,
    parallel: int = 1,
    say: Callable[[str], None] = lambda line: None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Run what a folder of results lacks of a plan; `command` is kept there, `say` is told what users should know."""
    settings = {
        "version": version,
        "max_time": limits.max_time,
        "cores": limits.cores,
        "memory": limits.memory,
        "machine": machine_facts(),
        "versions": package_versions(name.partition(":")[0] for name in plan.systems),
    }
    store = Store(folder)
    with store.locked():
        for note in store.open(settings, command):
            say(note)
        done = sum(store.has(job) for job in plan.jobs)
        if done:
            say(f"{done} of {len(plan.jobs)} runs are done already.")
        run_jobs(plan.jobs, store, limits, version, parallel=parallel, tell=tell)


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    limits: Limits,
    version: str,
    *,
    parallel: int = 1,
    tell: Callable[[Progress], None] = lambda progress: None,
    command: Command = worker_command,
) -> int:
    """Run what is not done yet, `parallel` at a time; gives back how many were run. Ctrl-C keeps all that is done."""
    todo = [job for job in jobs if not store.has(job)]
    ended = threading.Event()
    lock = threading.Lock()
    begin = time.monotonic()
    done = 0

    places: queue.SimpleQueue[int] = queue.SimpleQueue()  # a run has its cores for itself
    for place in range(max(1, parallel)):
        places.put(place)

    def one(job: Job) -> None:
        nonlocal done
        if ended.is_set():
            return
        place = places.get()
        try:
            row, ending = _run(job, limits, version, command, place, ended.is_set)
        finally:
            places.put(place)
        if ending == "stopped":
            return
        with lock:
            row = _judged(row, judge)
            store.keep(row)
            done += 1
            left = (time.monotonic() - begin) / done * (len(todo) - done)
            tell(Progress(row, done, len(todo), left))

    with Judge() as judge, ThreadPoolExecutor(max(1, parallel)) as pool:
        futures = [pool.submit(one, job) for job in todo]
        try:
            for future in futures:
                future.result()
        except BaseException:
            ended.set()
            raise
    return done


def judge_again(store: Store, rows: Iterable[Row]) -> int:
    """Judge rows of a folder anew, after a change of the rules; gives back how many verdicts changed."""
    changed = 0
    with Judge() as judge:
        for row in rows:
            new = _judged(row, judge)
            if new != row:
                store.keep(new)
                changed += 1
    return changed


def _run(
    job: Job, limits: Limits, version: str, command: Command, place: int, stop: Callable[[], bool]
) -> tuple[Row, str]:
    """The row of a job, not judged yet, and how its process ended."""
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(limits.cores))}
    with tempfile.TemporaryDirectory(prefix="symenum-bench-") as folder:
        asked, answer = Path(folder) / "job.json", Path(folder) / "result.json"
        record = {
            "job": asdict(job),
            "max_time": limits.max_time,
            "cores": limits.cores,
            "first_core": place * limits.cores,
        }
        asked.write_text(json.dumps(record), encoding="utf-8")
        ending = run_limited(
            command(asked, answer),
            seconds=limits.hard_seconds,
            memory=limits.memory,
            environment=environment,
            stop=stop,
        )
        text = answer.read_text(encoding="utf-8") if answer.exists() else None
    return _row(job, limits, version, ending, text), ending.how


def _row(job: Job, limits: Limits, version: str, ending: Ending, text: str | None) -> Row:
    row = Row(job, version, limits.max_time, ending.how, ending.words, wall=ending.seconds, peak=ending.peak)
    if ending.how != "done":
        return row
    if text is None:
        return replace(row, ended="crashed", words="it ended without a result")
    found = json.loads(text)
    laws = tuple(Law(**law) for law in found["laws"])
    cut = max(0, len(laws) - _MOST_LAWS)  # the simplest ones go
    return replace(
        row,
        words=found["ended"],
        seconds=found["seconds"],
        laws=laws[cut:],
        selected=max(0, found["selected"] - cut),
    )


def _judged(row: Row, judge: Judge) -> Row:
    if not row.laws:
        return row
    problems = get_set(row.job.set)
    case = problems.problem(row.job.problem)
    front = [parse(law.text) for law in row.laws]
    judged, verdict = judge_front(front, row.selected, case, problems.protocol.at(row.job.noise), judge)
    return replace(
        row,
        judged=judged,
        numeric=verdict.numeric,
        symbolic=verdict.symbolic,
        structure=verdict.structure,
        solved=verdict.solved,
        r2=_r2(front[row.selected], case, row.job.seed),
    )


def _r2(expression: Expression, case: Case, seed: int) -> float | None:
    """R² of a law on clean points of the training range that were not trained on; None where it is not defined."""
    X, y = case.test(seed)
    with np.errstate(all="ignore"):
        error = float(np.square(law_values(expression, case.variables, X) - y).sum())
        spread = float(np.square(y - y.mean()).sum())
    return 1 - error / spread if np.isfinite(error) and spread > 0 else None


@dataclass(frozen=True)
class Ending:
    """How a command ended, after how long, with how much memory at most (bytes), and its last words."""

    how: Literal["done", "crashed", "out of time", "out of memory", "stopped"]
    seconds: float
    peak: int
    words: str


def watches_memory() -> bool:
    """Whether the memory of processes can be seen here."""
    return (_PROC / "self" / "statm").exists()


def run_limited(
    command: Sequence[str],
    *,
    seconds: float,
    memory: int,
    environment: Mapping[str, str] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Ending:
    """Run the command to its end, or to that of its time (seconds) or memory (bytes), or until `stop()` is true."""
    begin = time.monotonic()
    peak = 0
    how: Literal["out of time", "out of memory", "stopped"] | None = None
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                used = _memory(process.pid)
                peak = max(peak, used)
                if used > memory:
                    how = "out of memory"
                elif time.monotonic() - begin > seconds:
                    how = "out of time"
                elif stop():
                    how = "stopped"
                if how is not None:
                    break
                time.sleep(_LOOK_SECONDS)
        finally:
            _kill(process)
        taken = time.monotonic() - begin
        words.seek(max(0, words.seek(0, os.SEEK_END) - _TAIL))
        said = words.read().decode(errors="replace").strip()
    return Ending(how or ("done" if process.returncode == 0 else "crashed"), taken, peak, said)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group, also what the command has left behind."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.poll()  # nothing is left of it
    else:
        process.kill()
    process.wait()


def _memory(pid: int) -> int:
    """Resident bytes of a process and all below it; 0 where they cannot be seen."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
        children = [
            int(child)
            for task in (_PROC / str(pid) / "task").iterdir()
            for child in (task / "children").read_text(encoding="ascii").split()
        ]
    except (OSError, IndexError, ValueError):  # it has just ended, or this is no Linux
        return 0
    return pages * _PAGE + sum(_memory(child) for child in children)
