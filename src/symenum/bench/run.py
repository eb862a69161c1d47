"""Runs jobs, each in a process with hard limits, judges what they found, and keeps a row for each, also for failures.

A job's process, with all processes that it started, is killed when its time or its memory is over. Memory is the
resident memory of the process and all its children, read twenty times a second where the system shows it (Linux);
elsewhere memory is not limited, and `watches_memory` is false.
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
from typing import Literal, cast

from symenum.bench.jobs import BenchPlan, Job, Row
from symenum.bench.judge import Judge, agrees, judge_front
from symenum.bench.judge.errors import with_error_ratios, with_test_r2
from symenum.bench.judge.motion import judge_motion
from symenum.bench.problems import Case, MotionProblem, Protocol, get_set
from symenum.bench.problems.engineering import EngineeringLaw
from symenum.bench.store import Store, machine_facts, package_versions
from symenum.bench.systems import Law, Sighting, packages_of
from symenum.expressions import parse

__all__ = [
    "Ending",
    "Limits",
    "Progress",
    "judge_again",
    "run_jobs",
    "run_limited",
    "run_plan",
    "run_unjudged",
    "watches_memory",
]

# A process is killed after _GRACE · (the seconds that the system may use) + _START_SECONDS.
_GRACE = 1.25  # some systems read their clock between steps only
_START_SECONDS = 60.0  # to import torch on a busy machine, and to draw the data
_MAX_LAWS = 60  # most accurate laws of a front that are kept and judged: bounds the time of the judge
_POLL_SECONDS = 0.05  # between two readings of a process's memory and clock
_STDERR_BYTES = 2000  # of the end of a process's stderr, which a row keeps
_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096  # without sysconf there is no /proc either
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Command = Callable[[Path, Path], Sequence[str]]
"""Makes the command of a job from the paths of its JSON file and of the JSON file for its result."""


@dataclass(frozen=True)
class Limits:
    """The limits of each run: seconds that the system may use, cores, and bytes of memory."""

    max_time: float = 60.0
    cores: int = 1
    memory: int = 8 << 30

    @property
    def hard_seconds(self) -> float:
        """After these the process is killed."""
        return _GRACE * self.max_time + _START_SECONDS


@dataclass(frozen=True)
class Progress:
    """What is known after a run: its row, and how many of all runs are done.

    `seconds_left` are the seconds that the remaining runs will take, at the mean time of those that are done.
    """

    row: Row
    done: int
    total: int
    seconds_left: float


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
    run_dirs: Path | None = None,
    cluster: object = None,
    on_note: Callable[[str], None] = lambda line: None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Run the jobs of a plan that a folder of results lacks.

    `command` is the command line that the folder's manifest names. `run_dirs`: where each run of symenum keeps a folder
    of its own, for `symenum studio`. `cluster`: where the runs are done, see `symenum.cluster`; `parallel` and
    `run_dirs` are for runs on this machine. `on_note` gets lines for users, `on_progress` the progress after each run.
    """
    settings = {
        "version": version,
        "max_time": limits.max_time,
        "cores": limits.cores,
        "memory": limits.memory,
        "machine": machine_facts(),
        "versions": package_versions(packages_of(plan.systems)),
    }
    store = Store(folder)
    with store.locked():
        for note in store.open(settings, command):
            on_note(note)
        done = sum(store.has(job) for job in plan.jobs)
        if done:
            on_note(f"{done} of {len(plan.jobs)} runs are done already.")
        if cluster is None:
            run_jobs(plan.jobs, store, limits, version, parallel=parallel, run_dirs=run_dirs, on_progress=on_progress)
        else:
            _run_on_cluster(plan.jobs, store, limits, version, cluster, on_note, on_progress)


def _run_on_cluster(
    jobs: Iterable[Job],
    store: Store,
    limits: Limits,
    version: str,
    cluster: object,
    on_note: Callable[[str], None],
    on_progress: Callable[[Progress], None],
) -> None:
    """Run the jobs that are not in the store on a cluster; rows are judged and kept here."""
    from symenum.bench.on_cluster import run_on_crew
    from symenum.cluster import Crew, connected

    todo = [job for job in jobs if not store.has(job)]
    with Judge() as judge, connected(cluster) as executor:
        results = _Results(store, judge, len(todo), on_progress)
        crew = Crew(executor, memory=limits.memory, note=on_note)
        run_on_crew(todo, crew, limits, version, keep=results.keep, note=on_note)


class _Results:
    """Where the rows of `expected` runs go, from whichever thread: they are judged, kept, and told of."""

    def __init__(self, store: Store, judge: Judge, expected: int, on_progress: Callable[[Progress], None]) -> None:
        self._store, self._judge, self._expected, self._on_progress = store, judge, expected, on_progress
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.kept = 0

    def keep(self, row: Row) -> None:
        """Judge the row of one run and keep it."""
        with self._lock:
            row = _judged(row, self._judge)
            self._store.keep(row)
            self.kept += 1
            left = (time.monotonic() - self._began) / self.kept * (self._expected - self.kept)
            self._on_progress(Progress(row, self.kept, self._expected, left))


def run_unjudged(job: Job, limits: Limits, version: str, stop: Callable[[], bool]) -> Row:
    """Run one job in a process of its own, on whichever cores are free: its row, not judged yet."""
    return _run(job, limits, version, worker_command, None, None, stop)[0]


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    limits: Limits,
    version: str,
    *,
    parallel: int = 1,
    run_dirs: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    command: Command = worker_command,
) -> int:
    """Run the jobs that are not in the store, `parallel` at a time; gives back how many. Ctrl-C keeps what is done."""
    todo = [job for job in jobs if not store.has(job)]
    ended = threading.Event()
    places: queue.SimpleQueue[int] = queue.SimpleQueue()  # groups of cores: two runs at a time never share one
    for place in range(max(1, parallel)):
        places.put(place)

    def one(job: Job) -> None:
        if ended.is_set():
            return
        place = places.get()
        try:
            run_dir = None if run_dirs is None else run_dirs / job.key
            row, ending = _run(job, limits, version, command, place, run_dir, ended.is_set)
        finally:
            places.put(place)
        if ending == "stopped":
            return
        results.keep(row)

    with Judge() as judge, ThreadPoolExecutor(max(1, parallel)) as pool:
        results = _Results(store, judge, len(todo), on_progress)
        futures = [pool.submit(one, job) for job in todo]
        try:
            for future in futures:
                future.result()
        except BaseException:
            ended.set()
            raise
    return results.kept


def judge_again(store: Store, rows: Iterable[Row]) -> int:
    """Judge the rows of a folder again, after a change of the rules; gives back how many rows changed."""
    changed = 0
    with Judge() as judge:
        for row in rows:
            new = _judged(row, judge)
            if new != row:
                store.keep(new)
                changed += 1
    return changed


def _run(
    job: Job,
    limits: Limits,
    version: str,
    command: Command,
    place: int | None,
    run_dir: Path | None,
    stop: Callable[[], bool],
) -> tuple[Row, str]:
    """Run one job on the cores of a place (None: on any): its row, not judged yet, and how its process ended."""
    environment = {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(limits.cores))}
    with tempfile.TemporaryDirectory(prefix="symenum-bench-") as folder:
        job_path, result_path = Path(folder) / "job.json", Path(folder) / "result.json"
        record = {
            "job": asdict(job),
            "max_time": limits.max_time,
            "cores": limits.cores,
            "first_core": None if place is None else place * limits.cores,
            "run_dir": None if run_dir is None else str(run_dir.resolve()),
        }
        job_path.write_text(json.dumps(record), encoding="utf-8")
        ending = run_limited(
            command(job_path, result_path),
            seconds=limits.hard_seconds,
            memory=limits.memory,
            environment=environment,
            stop=stop,
        )
        result = result_path.read_text(encoding="utf-8") if result_path.exists() else None
    return _row(job, limits, version, ending, result), ending.how


def _row(job: Job, limits: Limits, version: str, ending: Ending, result: str | None) -> Row:
    """The row of a process that has ended with this result (JSON), or without one."""
    row = Row(job, version, limits.max_time, ending.how, ending.words, wall=ending.seconds, peak=ending.peak)
    if ending.how != "done":
        return row
    if result is None:
        return replace(row, ended="crashed", words="it ended without a result")
    found = json.loads(result)
    laws = tuple(Law(**law) for law in found["laws"])
    cut = max(0, len(laws) - _MAX_LAWS)  # the simplest laws are left out
    return replace(
        row,
        words=found["ended"],
        seconds=found["seconds"],
        laws=laws[cut:],
        selected=max(0, found["selected"] - cut),
        sightings=tuple(Sighting(**sighting) for sighting in found.get("sightings", ())),
        predicted=tuple(found.get("predicted", ())),
        size=found.get("size"),
    )


def _judged(row: Row, judge: Judge) -> Row:
    """The row with the verdicts on its laws, or on its predictions where the system gives no law."""
    if not row.laws and not row.predicted:
        return row
    problems = get_set(row.job.set)
    problem = problems.problem(row.job.problem)
    if isinstance(problem, MotionProblem):
        motion = judge_motion([parse(law.text) for law in row.laws], problem)
        return replace(row, judged=row.selected, motion=motion, structure=motion.form, solved=motion.form)
    row = with_test_r2(row, problem)
    if isinstance(problem, EngineeringLaw):
        return with_error_ratios(row, problem)
    if problems.protocol.rule == "held out" or not row.laws:
        return replace(row, judged=row.selected)
    case = cast(Case, problem)  # only the tables of "held out" have no law: `register_set` checks that
    front = [parse(law.text) for law in row.laws]
    protocol = problems.protocol.at(row.job.noise)
    judged, verdict = judge_front(front, row.selected, case, protocol, judge)
    return replace(
        row,
        judged=judged,
        numeric=verdict.numeric,
        symbolic=verdict.symbolic,
        structure=verdict.structure,
        solved=verdict.solved,
        found_at=_found_at(row, case, protocol) if verdict.solved else None,
    )


def _found_at(row: Row, case: Case, protocol: Protocol) -> float | None:
    """The seconds at which an expression that agrees with the law first stood on the front of a run that was solved.

    SymPy is not asked: an expression that only SymPy accepts counts from the end of the run.
    """
    for sighting in row.sightings:
        if agrees(parse(sighting.text), case, protocol):
            return sighting.seconds
    return row.seconds


# One command under limits


@dataclass(frozen=True)
class Ending:
    """How a command ended, after how many seconds, its largest memory in bytes, and the end of its stderr."""

    how: Literal["done", "crashed", "out of time", "out of memory", "stopped"]
    seconds: float
    peak: int
    words: str


def watches_memory() -> bool:
    """Whether the system shows the memory of processes, so that it can be limited."""
    return (_PROC / "self" / "statm").exists()


def run_limited(
    command: Sequence[str],
    *,
    seconds: float,
    memory: int,
    environment: Mapping[str, str] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Ending:
    """Run a command; kill it, with all that it started, after so many seconds, above `memory` bytes, or at `stop()`."""
    begin = time.monotonic()
    peak = 0
    how: Literal["out of time", "out of memory", "stopped"] | None = None
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
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
                time.sleep(_POLL_SECONDS)
        finally:
            _kill(process)
        taken = time.monotonic() - begin
        stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _STDERR_BYTES))
        words = stderr.read().decode(errors="replace").strip()
    return Ending(how or ("done" if process.returncode == 0 else "crashed"), taken, peak, words)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group, with processes that the command has left running."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.poll()  # all of the group have ended
    else:
        process.kill()
    process.wait()


def _memory(pid: int) -> int:
    """Resident bytes of a process and of all processes that it started; 0 where the system does not show them."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
        children = [
            int(child)
            for task in (_PROC / str(pid) / "task").iterdir()
            for child in (task / "children").read_text(encoding="ascii").split()
        ]
    except (OSError, IndexError, ValueError):  # it has just ended, or this is no Linux
        return 0
    return pages * _PAGE_BYTES + sum(_memory(child) for child in children)
