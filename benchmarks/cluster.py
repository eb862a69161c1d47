"""What a cluster brings and what it costs: real processes, real sockets.

    python benchmarks/cluster.py efficiency [--workers 1 2 4] [--inputs 9] [--repeats 1]
    python benchmarks/cluster.py equality [--settings 50] [--workers 3]
    python benchmarks/cluster.py overhead [--passes 20]
    python benchmarks/cluster.py faults [--kills 100] [--drivers 20] [--terms 20]
    python benchmarks/cluster.py islands [--laws 40] [--seconds 30] [--workers 4] [--cores 4]
    python benchmarks/cluster.py model
    python benchmarks/cluster.py device [--limit 470] [--inputs 10] [--workers 1 4 8 16] [--laws 40] [--first 1]

Workers are those of Dask's LocalCluster, one thread each; where `distributed` is not installed, or with `--executor
processes`, they are processes of `concurrent.futures`. Each table says which.

`efficiency`: one pass of koza on so many inputs (9: 1e11 candidates) by one thread without a cluster and by so many
workers; seconds of the whole pass, banks included, and T1/(n Tn). `equality`: random networks, operators, rows, weights
and modes; the shortlist of the workers beside that of one process, bit for bit. `overhead`: passes of about a second by
one worker and without a cluster, in turn. `faults`: workers killed with -9 and -15 at random moments of passes, one
that is stopped (SIGSTOP), drivers that are killed and resumed, a cache that cannot be written; what came out beside
what should. `islands`: random laws recovered by one worker in some seconds, by several workers in as many, and by one
worker in as many times more. `model`: the constants of docs/scaling.md, measured here. `device`: on a machine that is
borrowed for some minutes, `efficiency` against one worker, beside as many processes that scan on their own (cores that
are threads of one core, or slow down together, are not the cluster's doing), and in the time that is left `islands`,
with as many laws as fit.
"""

from __future__ import annotations

import argparse
import heapq
import importlib
import importlib.util
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from pathlib import Path

import numpy as np
import torch

from symenum import PSRN, PSERegressor
from symenum.bench.judge import recovered
from symenum.bench.problems.random_laws import DEVELOPMENT, EVERY_OPERATOR, random_law
from symenum.cluster import Crew, LocalProcesses, connected, search_network
from symenum.cluster.check import measure_crew
from symenum.cluster.crew import Piece, Result, Worker
from symenum.core.budget import Budget
from symenum.core.threads import cores_limited

ROWS, BEST = 32, 30  # of a pass: those of a search
ISLAND_SEED = 0
ISLAND_WORKERS = 4  # of one search in `device`
WARMING = 8.0  # seconds in which a process has surely imported what an island needs
JUDGED = 2.0  # seconds after a search in which its front is compared with the law
STARTED = 25.0  # seconds in which all processes have started, and that are left at the end
FAULT_INPUTS = 4  # of the passes in which workers are killed: 2.9e8 candidates, 0.3 s of one core that is free
MOST_STRUCK = 3  # workers of one pass: a piece that has lost five of them is given up
FAULT_WORKERS = 3
OVERHEAD_INPUTS = 5
MODEL_PIECES, MODEL_PARTS = 200, 100  # that `model` measures
PRELOADED = [
    f"symenum.{room}"
    for room in ("cluster.network", "cluster.check", "estimator.regressor", "bench.judge", "bench.problems.random_laws")
]  # what a forked process finds imported
RESUMED_STEPS = 40  # of the searches whose driver is killed
WARM_PASS = 1.0  # seconds of a first pass, for which workers import what they need and read the mask
SETTLED = 60.0  # seconds for workers to join


@contextmanager
def cluster_of(workers: int, engine: str) -> Iterator[Crew]:
    """A crew of so many workers of one thread each, all of them there."""
    if engine == "dask":
        from distributed import LocalCluster

        made: object = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0")
    else:
        made = LocalProcesses(workers, forked) if engine == "forkserver" else workers
    with connected(made) as executor:
        crew = Crew(executor, silence=5.0)
        crew.gathered(workers, SETTLED)
        yield crew
    if engine == "dask":
        made.close()  # type: ignore[attr-defined]


def forked(count: int) -> ProcessPoolExecutor:
    """Processes that start at once: a server has imported everything, and forks them."""
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return ProcessPoolExecutor(count, mp_context=context)


def data_of(inputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2.0, (ROWS, inputs))
    return X, np.sin(X[:, 0]) * X[:, 1] + np.exp(-X[:, -1]) + 0.1 * rng.normal(size=ROWS)


def cpu_seconds(crew: Crew | None = None) -> tuple[float, float]:
    """Seconds of a processor that this process and the workers of a crew on this machine have had (Linux)."""
    ticks = 0
    for worker in crew.workers if crew else ():
        text = Path(f"/proc/{worker.facts['process'].rpartition(':')[2]}/stat").read_text(encoding="utf-8")
        ticks += sum(map(int, text.rpartition(")")[2].split()[11:13]))  # utime, stime
    return time.process_time(), ticks / os.sysconf("SC_CLK_TCK")


def efficiency(options: argparse.Namespace) -> None:
    net = PSRN(options.inputs, "koza", 3, max_memory=8 << 30)
    print(f"{net.sizes[-1]:.3g} candidates, {ROWS} rows, best {BEST}; {options.executor}")
    alone, processor, found = [], [], None
    for repeat in range(options.repeats):
        X, y = data_of(options.inputs, repeat)
        began, had = time.perf_counter(), time.process_time()
        found = net.search(X, y, BEST, device="cpu", threads=1)
        alone.append(time.perf_counter() - began)
        processor.append(time.process_time() - had)
    print("| workers | seconds | efficiency | CPU s of the driver | CPU s of the workers | CPU s alone / all | equal |")
    print("|---|---|---|---|---|---|---|")
    base, work = statistics.median(alone), statistics.median(processor)
    print(f"| none | {base:.1f} | 1 | {work:.2f} | | 1 | |", flush=True)
    for workers in options.workers:
        with cluster_of(workers, options.executor) as crew:
            taken, drivers, theirs = [], [], []
            for repeat in range(options.repeats):
                X, y = data_of(options.inputs, repeat)
                began, had = time.perf_counter(), cpu_seconds(crew)
                together = search_network(net, X, y, BEST, crew=crew)
                taken.append(time.perf_counter() - began)
                have = cpu_seconds(crew)
                drivers.append(have[0] - had[0])
                theirs.append(have[1] - had[1])
        seconds, driver, worker = map(statistics.median, (taken, drivers, theirs))
        equal = "yes" if together == found else "NO"
        part, useful = base / (workers * seconds), work / (driver + worker)
        print(
            f"| {workers} | {seconds:.1f} | {part:.2f} | {driver:.2f} | {worker:.2f} | {useful:.2f} | {equal} |",
            flush=True,
        )


def random_setting(seed: int) -> tuple[PSRN, np.ndarray, np.ndarray, dict[str, object]]:
    rng = np.random.default_rng([seed, 1])
    operators = [["koza"], ["arithmetic"], ["+", "-", "*", "/", "sqrt", "log"], ["+", "*", "pow", "sin"]][seed % 4]
    inputs, layers = int(rng.integers(2, 5)), 2 if seed % 4 == 3 else int(rng.integers(2, 4))
    rows = int(rng.choice([8, 32, 100, 400, 2500]))
    X = rng.uniform(*sorted(rng.uniform(-3, 3, 2)), (rows, inputs))
    y = X[:, 0] * X[:, 1] + rng.normal(0, rng.choice([1e-9, 0.1, 1.0]), rows)
    options = {
        "k": int(rng.integers(1, 100)),
        "sample_weight": rng.uniform(0.1, 3, rows) if rng.random() < 0.5 else None,
        "mode": str(rng.choice(["auto", "screen", "exact"] if rows < 1000 else ["auto", "screen"])),
    }
    return PSRN(inputs, operators[0] if len(operators) == 1 else operators, layers), X, y, options


def equality(options: argparse.Namespace) -> None:
    equal = 0
    with cluster_of(options.workers[0], options.executor) as crew:
        for seed in range(options.settings):
            net, X, y, settings = random_setting(seed)
            alone = net.search(X, y, device="cpu", **settings)
            together = search_network(net, X, y, crew=crew, **settings)
            equal += alone == together
            if alone != together:
                print(f"setting {seed} differs: {net!r}, {settings}")
    print(
        f"{equal} of {options.settings} shortlists equal bit for bit; {options.workers[0]} workers, {options.executor}"
    )


def overhead(options: argparse.Namespace) -> None:
    net = PSRN(OVERHEAD_INPUTS, "koza", 3)
    alone, together = [], []
    processor: dict[str, list[float]] = {"alone": [], "driver": [], "worker": []}
    with cluster_of(1, options.executor) as crew:
        for number in range(options.passes + 1):
            X, y = data_of(OVERHEAD_INPUTS, number)
            began, had = time.perf_counter(), cpu_seconds(crew)
            net.search(X, y, BEST, device="cpu", threads=1)
            between, has = time.perf_counter(), cpu_seconds(crew)
            search_network(net, X, y, BEST, crew=crew)
            if number:  # the first one reads the mask
                alone.append(between - began)
                together.append(time.perf_counter() - between)
                have = cpu_seconds(crew)
                for who, seconds in zip(processor, (has[0] - had[0], have[0] - has[0], have[1] - has[1]), strict=True):
                    processor[who].append(seconds)
    ratios = [b / a for a, b in zip(alone, together, strict=True)]
    print(f"{net.sizes[-1]:.3g} candidates, {len(alone)} passes each, in turn; {options.executor}")
    print(f"alone {statistics.median(alone):.3f} s, one worker {statistics.median(together):.3f} s, medians;")
    print(f"median of the ratios {statistics.median(ratios):.3f}")
    print("CPU seconds, medians: " + ", ".join(f"{who} {statistics.median(one):.3f}" for who, one in processor.items()))


def pid_of(crew: Crew) -> int | None:
    """The process of a worker at random."""
    pool = getattr(crew.executor, "_pool", None)
    if pool is not None:  # whose processes are started anew when one has died
        pids = list(pool._processes or {})
    else:
        pids = [int(worker.facts["process"].rpartition(":")[2]) for worker in crew.workers]
    return random.choice(pids) if pids else None


def send(crew: Crew, number: signal.Signals) -> int | None:
    """Send a signal to a worker at random; its process, or None where it was gone already."""
    pid = pid_of(crew)
    if pid is not None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return None
    return pid


def faults(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    random.seed(0)
    net = PSRN(FAULT_INPUTS, "koza", 3)
    print(f"passes of {net.sizes[-1]:.3g} candidates by {FAULT_WORKERS} workers, {options.executor}")
    print("| what | faults | passes or searches | right | pieces done again | longest |\n|---|---|---|---|---|---|")
    if options.only_drivers:
        driver_kills(options.drivers)
        return
    for what, number, count in (
        ("worker killed (-9)", signal.SIGKILL, options.kills),
        ("worker preempted (SIGTERM)", signal.SIGTERM, options.terms),
        ("worker hangs (SIGSTOP)", signal.SIGSTOP, 1),
    ):
        worker_faults(what, number, count, net, options.executor)
    full_disk(net, options.executor)
    driver_kills(options.drivers)


def worker_faults(what: str, number: signal.Signals, count: int, net: PSRN, engine: str) -> None:
    done = passes = right = 0
    longest = 0.0
    with cluster_of(FAULT_WORKERS, engine) as crew:
        while done < count:
            X, y = data_of(FAULT_INPUTS, passes)
            began = time.perf_counter()
            expected = net.search(X, y, BEST, device="cpu", threads=1)
            whole = time.perf_counter() - began
            over = threading.Event()
            struck: list[int] = []

            def strike(
                over: threading.Event = over,
                struck: list[int] = struck,
                left: int = min(MOST_STRUCK, count - done),
                whole: float = whole,
            ) -> None:
                while len(struck) < left and not over.wait(random.uniform(0.0, whole)):
                    pid = send(crew, number)
                    struck += [] if pid is None else [pid]

            thread = threading.Thread(target=strike)
            thread.start()
            began = time.perf_counter()
            found = search_network(net, X, y, BEST, crew=crew)
            longest = max(longest, time.perf_counter() - began)
            over.set()
            thread.join()
            passes += 1
            right += found == expected
            done += len(struck)
            stopped = struck
            if passes % 10 == 0:
                print(f"  {what}: {done} of {count}, {right} of {passes} right", file=sys.stderr, flush=True)
        lost = crew.lost
        if number == signal.SIGSTOP:
            for pid in stopped:
                with suppress(ProcessLookupError):  # the crew has ended it
                    os.kill(pid, signal.SIGCONT)  # else nobody can end it
    print(f"| {what} | {done} | {passes} | {right} | {lost} | {longest:.1f} s |", flush=True)


def full_disk(net: PSRN, engine: str) -> None:
    before = os.environ.get("SYMENUM_CACHE")
    os.environ["SYMENUM_CACHE"] = "/dev/full/cache"  # nothing can be written there
    try:
        with cluster_of(2, engine) as crew:
            X, y = data_of(FAULT_INPUTS, 99)
            began = time.perf_counter()
            right = search_network(net, X, y, BEST, crew=crew) == net.search(X, y, BEST, device="cpu", threads=1)
    finally:
        os.environ.pop("SYMENUM_CACHE")
        if before is not None:
            os.environ["SYMENUM_CACHE"] = before
    print(
        f"| a disk that cannot be written | 1 | 1 | {int(right)} | 0 | {time.perf_counter() - began:.1f} s |",
        flush=True,
    )


def drive(path: str, what: str, told: Connection) -> None:
    """A search on a cluster of two threads, begun or resumed from its checkpoint; tells its front at the end."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 3))
    y = X[:, 0] * np.sin(1.3 * X[:, 1]) + np.exp(-0.4 * X[:, 2]) + 0.05 * rng.normal(size=60)
    small = {"operators": ["+", "*", "sin"], "constants": False, "inputs": 4, "layers": 2, "random_state": 0}
    with ThreadPoolExecutor(2) as pool:
        limits = {"cluster": pool, "max_iterations": RESUMED_STEPS, "max_time": None}
        if what == "resume":
            model = PSERegressor.resume(path, **limits)
        else:
            model = PSERegressor(checkpoint=path, **small, **limits).fit(X, y)
    told.send((model.n_iter_, [(str(entry.expression), entry.loss) for entry in model.front_]))


def driven(path: Path, what: str, kill_after: float | None = None) -> object:
    """What the process of a driver has told; None where it was killed after so many seconds."""
    context = get_context("forkserver")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=drive, args=(str(path), what, theirs))
    process.start()
    theirs.close()
    ended = mine.poll(kill_after)
    if not ended:
        os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    try:
        return mine.recv() if ended else None
    except EOFError:
        return "it ended without a front"


def driver_kills(count: int) -> None:
    """Searches whose driver is killed at a random moment, and resumed: the front is that of a search in peace."""
    if not count:
        return
    get_context("forkserver").set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as folder:
        driven(Path(folder) / "warm.json", "fit")
        began = time.perf_counter()
        expected = driven(Path(folder) / "peace.json", "fit")
        whole = time.perf_counter() - began
        right, resumed, longest, tried, killed = 0, 0, 0.0, 0, 0
        while killed < count:
            tried += 1
            path = Path(folder) / f"{tried}.json"
            began = time.perf_counter()
            found = driven(path, "fit", random.uniform(0.1, 1.0) * whole)
            if found is None:
                killed += 1
                resumed += path.exists()
                found = driven(path, "resume" if path.exists() else "fit")
                longest = max(longest, time.perf_counter() - began)
                right += found == expected
                print(f"  driver: {killed} of {count}, {right} right, {resumed} resumed", file=sys.stderr, flush=True)
        what = f"driver killed (-9), {resumed} had a checkpoint to go on from"
        print(f"| {what} | {count} | {count} | {right} | 0 | {longest:.1f} s |", flush=True)


_pools: dict[int, ProcessPoolExecutor] = {}  # of this process, by the number of their processes


def workers_here(count: int) -> ProcessPoolExecutor:
    """So many processes that have imported what they need: those of a cluster run before a search begins."""
    if count not in _pools:
        pool = _pools[count] = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
        # A process of a pool that ends waits for its own processes; 100: before their queue is closed, which has 10.
        Finalize(None, pool.shutdown, exitpriority=100)
        with connected(pool) as executor:
            Crew(executor).gathered(count, SETTLED)
        list(pool.map(warmed, [WARMING] * count))
    return _pools[count]


def warmed(seconds: float) -> None:
    """Import what an island needs; the process is busy for so long, so that each of a pool gets one such call."""
    began = time.monotonic()
    importlib.import_module("symenum.estimator.islands")
    importlib.import_module("symenum.estimator.regressor")
    time.sleep(max(0.0, began + seconds - time.monotonic()))


def recovers(number: int, arm: str, seconds: float, workers: int) -> tuple[int, str, bool, float]:
    """Whether an arm recovers a random law, on the front, and the seconds of the search."""
    law = random_law(DEVELOPMENT, number)
    X, y = law.sample()
    warnings.simplefilter("ignore")
    cluster = workers_here(workers) if arm == "cluster" else None
    with cores_limited(1):
        began = time.monotonic()
        model = PSERegressor(
            EVERY_OPERATOR, max_time=seconds, random_state=ISLAND_SEED, device="cpu", cluster=cluster
        ).fit(X, y)
        taken = time.monotonic() - began
    return number, arm, any(recovered(entry.expression, law) for entry in model.front_), taken


@dataclass(frozen=True)
class Search:
    """One search of `islands`: the law's number, the arm, its seconds, and the cores that it takes."""

    number: int
    arm: str
    seconds: float
    cores: int


def searches(numbers: range, workers: int, seconds: float, cores: int) -> list[Search]:
    """Those of all arms, the long ones first."""
    arms = (("longer", workers * seconds, 1), ("cluster", seconds, workers), ("alone", seconds, 1))
    return [Search(number, arm, limit, min(count, cores)) for arm, limit, count in arms for number in numbers]


def makespan(todo: Sequence[Search], cores: int) -> float:
    """Seconds of all searches on so many cores, in the order in which `run_searches` starts them."""
    left, running, now, free = [*todo], list[tuple[float, int]](), 0.0, cores
    while left or running:
        for one in [*left]:
            if one.cores <= free:
                left.remove(one)
                free -= one.cores
                heapq.heappush(running, (now + one.seconds + JUDGED, one.cores))
        now, given = heapq.heappop(running)
        free += given
    return now


def run_searches(todo: Sequence[Search], cores: int, workers: int) -> list[tuple[Search, bool, float]]:
    """What each search has found; as many at once as there are cores for, each in a process of its own kind."""
    left, free, found = [*todo], cores, list[tuple[Search, bool, float]]()
    # Searches on a cluster run in processes of their own, whose workers stay from law to law.
    drivers = max(1, cores // workers)
    with (
        ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as single,
        ProcessPoolExecutor(drivers, mp_context=get_context("spawn")) as several,
    ):
        running: dict[Future[tuple[int, str, bool, float]], Search] = {}
        while left or running:
            for one in [*left]:
                if one.cores <= free:
                    left.remove(one)
                    free -= one.cores
                    pool = several if one.arm == "cluster" else single
                    running[pool.submit(recovers, one.number, one.arm, one.seconds, workers)] = one
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                one = running.pop(future)
                free += one.cores
                _, _, right, taken = future.result()
                found.append((one, right, taken))
                print(f"law {one.number}, {one.arm}: {'recovered' if right else 'not'}, {taken:.1f} s", flush=True)
    return found


def islands(options: argparse.Namespace) -> None:
    workers, seconds = options.workers[0], options.seconds
    cores = options.cores or len(os.sched_getaffinity(0))
    numbers = range(options.first, options.first + options.laws)
    print_islands(
        run_searches(searches(numbers, workers, seconds, cores), cores, workers), numbers, workers, seconds, cores
    )


def print_islands(
    found: Sequence[tuple[Search, bool, float]], numbers: range, workers: int, seconds: float, cores: int
) -> None:
    """The table of the arms, and the laws that only some of them recover."""
    print(
        f"random laws {numbers.start} to {numbers.stop - 1} of the development set, one thread for each worker, "
        f"searches side by side on {cores} cores"
    )
    print("| who | seconds | recovered | longest search |\n|---|---|---|---|")
    names = {"alone": "one worker", "cluster": f"{workers} workers (processes)", "longer": "one worker"}
    recovered_by: dict[str, set[int]] = {}
    for arm, limit in (("alone", seconds), ("cluster", seconds), ("longer", workers * seconds)):
        recovered_by[arm] = {one.number for one, right, _ in found if one.arm == arm and right}
        longest = max(taken for one, _, taken in found if one.arm == arm)
        print(f"| {names[arm]} | {limit:g} | {len(recovered_by[arm])} of {len(numbers)} | {longest:.1f} s |")
    for arm, other in (("cluster", "alone"), ("alone", "cluster"), ("cluster", "longer"), ("longer", "cluster")):
        print(f"recovered by `{arm}` and not by `{other}`: {sorted(recovered_by[arm] - recovered_by[other])}")


def device(options: argparse.Namespace) -> None:
    """Efficiency, then islands, within a limit: the machine is lent for some minutes."""
    end = time.monotonic() + options.limit
    cores = options.cores or len(os.sched_getaffinity(0))
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, {cores} cores, {options.executor}", flush=True)
    if not options.no_pass:
        passes_on_workers(options)
    for laws in range(options.laws, 0, -1):
        numbers = range(options.first, options.first + laws)
        todo = searches(numbers, ISLAND_WORKERS, options.seconds, cores)
        if makespan(todo, cores) + STARTED < end - time.monotonic():
            print(f"{laws} of {options.laws} laws fit into {end - time.monotonic():.0f} s", flush=True)
            found = run_searches(todo, cores, ISLAND_WORKERS)
            print_islands(found, numbers, ISLAND_WORKERS, options.seconds, cores)
            return
    print(f"no law fits into {end - time.monotonic():.0f} s")


def passes_on_workers(options: argparse.Namespace) -> None:
    """One pass by so many workers, the most first, and then the efficiency of each against one worker.

    A short pass on other rows comes first: workers stay for all passes of a search, and start once.
    """
    net = PSRN(options.inputs, "koza", 3, max_memory=8 << 30)
    X, y = data_of(options.inputs, 0)
    began = time.monotonic()
    print(f"{net.sizes[-1]:.4g} candidates, {ROWS} rows, best {BEST}; {options.executor}; ", end="")
    print(f"mask {time.monotonic() - began:.1f} s, once for an architecture", flush=True)
    first: dict[int, float] = {}
    taken: dict[int, float] = {}
    rates: dict[int, float] = {}
    lists = []
    for workers in sorted(options.workers, reverse=True):
        with cluster_of(workers, options.executor) as crew:
            began = time.perf_counter()
            search_network(net, *data_of(options.inputs, 1), BEST, crew=crew, time_limit=WARM_PASS)
            first[workers] = time.perf_counter() - began
            began = time.perf_counter()
            found = search_network(net, X, y, BEST, crew=crew, time_limit=options.pass_seconds)
            taken[workers] = time.perf_counter() - began
        rates[workers] = found.scored / taken[workers]
        lists += [found] if found.complete else []
        part = found.scored / net.sizes[-1]
        print(
            f"{workers} workers: {taken[workers]:.2f} s, {100 * part:.0f}% of the pass; "
            f"before it {first[workers]:.1f} s, in which workers that had just started scanned for {WARM_PASS:g} s",
            flush=True,
        )
    print("| workers | seconds | candidates a second | efficiency | as many processes on their own | of theirs |")
    print("|---|---|---|---|---|---|")
    base = min(taken)
    for workers in sorted(taken):
        part = base * rates[workers] / (workers * rates[base])
        apart = rate_apart(workers, options.inputs, options.apart_seconds)
        print(
            f"| {workers} | {taken[workers]:.1f} | {rates[workers]:.3g} | {part:.2f} | {apart:.3g} | "
            f"{rates[workers] / apart:.2f} |",
            flush=True,
        )
    same = all(one == lists[0] for one in lists)
    print(f"shortlists of {len(lists)} whole passes: " + ("all equal, bit for bit" if same else "NOT EQUAL"))
    sys.stdout.flush()


def rate_apart(count: int, inputs: int, seconds: float) -> float:
    """Candidates a second of so many processes at once that know nothing of each other: what the cores have to give."""
    pool = workers_here(count)
    return sum(pool.map(rate_alone, [inputs] * count, [seconds] * count))


def rate_alone(inputs: int, seconds: float) -> float:
    """Candidates a second of the scan of a pass by one thread; the bank is made before.

    Parts in a drawn order: those of sums come first in a pass, and take half as long as those of products.
    """
    net = PSRN(inputs, "koza", 3, max_memory=8 << 30)
    whole = net.numbered(*data_of(inputs, 0), BEST, threads=1)
    order = np.random.default_rng(0).permutation(len(whole.sizes))
    limit, done, pool = float("inf"), 0, whole.new_pool()
    began = time.perf_counter()
    for number in order:
        if time.perf_counter() - began > seconds:
            break
        found = whole.scan([int(number)], limit, Budget())
        done += found.done
        if found.finds is not None:
            pool.add(found.finds)
            limit = pool.limit
    return done / sum(whole.sizes) * net.sizes[-1] / (time.perf_counter() - began)


@dataclass
class Short:
    """So many of the cheapest pieces there are."""

    count: int
    sent: int = 0
    back: int = 0

    def next(self, worker: Worker) -> Piece | None:
        self.sent += 1
        return Piece("facts", self.sent) if self.sent <= self.count else None

    def done(self, piece: Piece, result: Result) -> None:
        self.back += 1

    def failed(self, piece: Piece, error: str) -> None:
        raise SystemExit(error)

    def finished(self) -> bool:
        return self.back == self.count


def model(options: argparse.Namespace) -> None:
    """Constants in CPU seconds, so that what else the machine does matters little; times of messages are wall times."""
    with cluster_of(1, options.executor) as crew:
        crew.run(Short(5), Budget())  # the first ones are slower
        began, had = time.perf_counter(), cpu_seconds(crew)
        crew.run(Short(MODEL_PIECES), Budget())
        taken, has = time.perf_counter() - began, cpu_seconds(crew)
        for one in measure_crew(crew):
            print(
                f"{options.executor}: a piece of work {1e3 * (has[0] - had[0]) / MODEL_PIECES:.2f} ms of the driver, "
                f"{1e3 * (has[1] - had[1]) / MODEL_PIECES:.2f} ms of the worker, {1e3 * taken / MODEL_PIECES:.1f} ms "
                f"there and back; {one.bandwidth / 1e6:.0f} MB a second"
            )
    print("| inputs | columns | parts | candidates | bank, s | scan of a part of the pass, candidates/s | merge, ms |")
    print("|---|---|---|---|---|---|---|")
    for inputs in options.model_inputs:
        net = PSRN(inputs, "koza", 3, max_memory=8 << 30)
        X, y = data_of(inputs, 0)
        columns = net.sizes[-2]
        whole = net.numbered(X, y, BEST, threads=1)
        had = time.process_time()
        parts = len(whole.sizes)
        bank = time.process_time() - had
        # Some parts spread evenly over the pass; all parts before them lower the limit, as they do in a pass.
        limit, pairs, seconds = float("inf"), 0, 0.0
        pool, merging, merges = whole.new_pool(), 0.0, 0
        step = max(1, parts // MODEL_PARTS)
        for first in range(0, parts, step):
            had = time.process_time()
            found = whole.scan([first], limit, Budget())
            seconds += time.process_time() - had
            pairs += found.done
            if found.finds is not None:
                had = time.process_time()
                pool.add(found.finds)
                limit = pool.limit
                merging += time.process_time() - had
                merges += 1
        rate = pairs / sum(whole.sizes) * net.sizes[-1] / seconds
        print(
            f"| {inputs} | {columns:,} | {parts} | {net.sizes[-1]:.3g} | {bank:.2f} | {rate:.3g} | "
            f"{1e3 * merging / max(1, merges):.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {one.__name__: one for one in (efficiency, equality, overhead, faults, islands, model, device)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of workers")
    parser.add_argument("--executor", choices=("auto", "dask", "processes", "forkserver"), default="auto")
    parser.add_argument("--inputs", type=int, default=10, help="of the pass: 10 are 1.84e11 candidates")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--settings", type=int, default=50)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--terms", type=int, default=20)
    parser.add_argument("--drivers", type=int, default=20)
    parser.add_argument("--only-drivers", action="store_true", help="of `faults` the last row only")
    parser.add_argument("--laws", type=int, default=40)
    parser.add_argument("--first", type=int, default=1, help="number of the first random law")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cores", type=int, help="cores for searches side by side; all of the machine by default")
    parser.add_argument("--limit", type=float, default=470.0, help="seconds of `device` in all")
    parser.add_argument("--model-inputs", type=int, nargs="+", default=[5, 6, 7, 9])
    parser.add_argument("--pass-seconds", type=float, default=170.0, help="after which a pass of `device` is cut")
    parser.add_argument("--apart-seconds", type=float, default=15.0, help="of the passes on their own in `device`")
    parser.add_argument("--no-pass", action="store_true", help="`device` without the pass")
    options = parser.parse_args()
    if options.executor == "auto":
        options.executor = "dask" if importlib.util.find_spec("distributed") else "processes"
    defaults = {"efficiency": [1, 2, 4], "equality": [3], "device": [1, 4, 8, 16]}
    options.workers = options.workers or defaults.get(options.command, [4])
    commands[options.command](options)


if __name__ == "__main__":
    main()
