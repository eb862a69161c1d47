"""What a cluster brings and what it costs: real processes, real sockets.

    python benchmarks/cluster.py efficiency [--workers 1 2 4] [--inputs 9] [--repeats 1]
    python benchmarks/cluster.py equality [--settings 50] [--workers 3]
    python benchmarks/cluster.py overhead [--passes 20]
    python benchmarks/cluster.py faults [--kills 100] [--drivers 20] [--terms 20]
    python benchmarks/cluster.py islands [--laws 40] [--seconds 30] [--workers 4] [--jobs 3]
    python benchmarks/cluster.py model

Workers are those of Dask's LocalCluster, one thread each; where `distributed` is not installed, or with `--executor
processes`, they are processes of `concurrent.futures`. Each table says which.

`efficiency`: one pass of koza on so many inputs (9: 1e11 candidates) by one thread without a cluster and by so many
workers; seconds of the whole pass, banks included, and T1/(n Tn). `equality`: random networks, operators, rows, weights
and modes; the shortlist of the workers beside that of one process, bit for bit. `overhead`: passes of about a second by
one worker and without a cluster, in turn. `faults`: workers killed with -9 and -15 at random moments of passes, one
that is stopped (SIGSTOP), drivers that are killed and resumed, a cache that cannot be written; what came out beside
what should. `islands`: random laws recovered by one worker in some seconds, by several workers in as many, and by one
worker in as many times more. `model`: the constants of docs/scaling.md, measured here.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from symenum import PSRN, PSERegressor
from symenum.bench.judge import recovered
from symenum.bench.problems.random_laws import DEVELOPMENT, EVERY_OPERATOR
from symenum.cluster import Crew, connected, search_network
from symenum.cluster.check import measure_crew
from symenum.core.threads import cores_limited

ROWS, BEST = 32, 30  # of a pass: those of a search
ISLAND_SEED = 0
FAULT_INPUTS = 5  # of the passes in which workers are killed: 1.3e9 candidates, some seconds of one core
FAULT_WORKERS = 3
OVERHEAD_INPUTS = 5
RESUMED_STEPS = 24  # of the searches whose driver is killed
SETTLED = 60.0  # seconds for workers to join


@contextmanager
def cluster_of(workers: int, engine: str) -> Iterator[Crew]:
    """A crew of so many workers of one thread each, all of them there."""
    if engine == "dask":
        from distributed import LocalCluster

        made = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
    with connected(made if engine == "dask" else workers) as executor:
        crew = Crew(executor, silence=5.0)
        crew.gathered(workers, SETTLED)
        yield crew
    if engine == "dask":
        made.close()


def data_of(inputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2.0, (ROWS, inputs))
    return X, np.sin(X[:, 0]) * X[:, 1] + np.exp(-X[:, -1]) + 0.1 * rng.normal(size=ROWS)


def efficiency(options: argparse.Namespace) -> None:
    net = PSRN(options.inputs, "koza", 3, max_memory=8 << 30)
    print(f"{net.sizes[-1]:.3g} candidates, {ROWS} rows, best {BEST}; {options.executor}")
    alone, found = [], None
    for repeat in range(options.repeats):
        X, y = data_of(options.inputs, repeat)
        began = time.perf_counter()
        found = net.search(X, y, BEST, device="cpu", threads=1)
        alone.append(time.perf_counter() - began)
    print("| workers | seconds | candidates a second | efficiency | equal |\n|---|---|---|---|---|")
    base = statistics.median(alone)
    print(f"| none | {base:.1f} | {net.sizes[-1] / base:.3g} | 1 | |", flush=True)
    for workers in options.workers:
        with cluster_of(workers, options.executor) as crew:
            taken = []
            for repeat in range(options.repeats):
                X, y = data_of(options.inputs, repeat)
                began = time.perf_counter()
                together = search_network(net, X, y, BEST, crew=crew)
                taken.append(time.perf_counter() - began)
        seconds = statistics.median(taken)
        equal = "yes" if together == found else "NO"
        rate, part = net.sizes[-1] / seconds, base / (workers * seconds)
        print(f"| {workers} | {seconds:.1f} | {rate:.3g} | {part:.2f} | {equal} |", flush=True)


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
    with cluster_of(1, options.executor) as crew:
        for number in range(options.passes + 1):
            X, y = data_of(OVERHEAD_INPUTS, number)
            began = time.perf_counter()
            net.search(X, y, BEST, device="cpu", threads=1)
            between = time.perf_counter()
            search_network(net, X, y, BEST, crew=crew)
            if number:  # the first one reads the mask
                alone.append(between - began)
                together.append(time.perf_counter() - between)
    ratios = [b / a for a, b in zip(alone, together, strict=True)]
    print(f"{net.sizes[-1]:.3g} candidates, {len(alone)} passes each, in turn; {options.executor}")
    print(f"alone {statistics.median(alone):.3f} s, one worker {statistics.median(together):.3f} s, medians;")
    print(f"median of the ratios {statistics.median(ratios):.3f}")


def pid_of(crew: Crew) -> int | None:
    """The process of a worker at random."""
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
            expected = net.search(X, y, BEST, device="cpu", threads=1)
            over = threading.Event()
            struck: list[int] = []

            def strike(over: threading.Event = over, struck: list[int] = struck, left: int = count - done) -> None:
                while not over.wait(random.uniform(0.05, 1.5)) and len(struck) < left:
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
        lost = crew.lost
        if number == signal.SIGSTOP:
            for pid in stopped:
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


DRIVER = """
import sys, numpy as np, warnings
from symenum import PSERegressor
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    path, steps, resume = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "resume"
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 3))
    y = X[:, 0] * np.sin(1.3 * X[:, 1]) + np.exp(-0.4 * X[:, 2]) + 0.05 * rng.normal(size=60)
    settings = dict(cluster=2, max_iterations=steps, max_time=None)
    if resume:
        model = PSERegressor.resume(path, **settings)
    else:
        small = dict(operators=["+", "*"], constants=False, inputs=4, layers=2, random_state=0)
        model = PSERegressor(checkpoint=path, **small, **settings).fit(X, y)
    print("FRONT", model.n_iter_, [(entry.complexity, entry.loss) for entry in model.front_])
"""


def driver_kills(count: int) -> None:
    """Searches whose driver is killed at a random moment, and resumed: the front is that of a search in peace."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "driver.py"
        script.write_text(DRIVER, encoding="utf-8")

        def run(path: Path, what: str, kill_after: float | None = None) -> str | None:
            command = [sys.executable, str(script), str(path), str(RESUMED_STEPS), what]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
            try:
                text, _ = process.communicate(timeout=kill_after)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                return None
            return next((line for line in text.splitlines() if line.startswith("FRONT")), "no front")

        began = time.perf_counter()
        expected = run(Path(folder) / "peace.json", "fit")
        whole = time.perf_counter() - began
        right, longest = 0, 0.0
        for number in range(count):
            path = Path(folder) / f"{number}.json"
            began = time.perf_counter()
            found = run(path, "fit", random.uniform(0.3, 1.0) * whole)
            if found is None:
                found = run(path, "resume" if path.exists() else "fit")
            right += found == expected
            longest = max(longest, time.perf_counter() - began)
        print(f"| driver killed (-9) and resumed | {count} | {count} | {right} | 0 | {longest:.1f} s |", flush=True)


def recovers(number: int, arm: str, seconds: float, workers: int) -> tuple[int, str, bool]:
    """Whether an arm recovers a random law, on the front."""
    law = DEVELOPMENT.law(number)
    warnings.simplefilter("ignore")
    cluster = workers if arm == "cluster" else None
    with cores_limited(1):
        model = PSERegressor(
            EVERY_OPERATOR, max_time=seconds, random_state=ISLAND_SEED, device="cpu", cluster=cluster
        ).fit(*law.sample())
    return number, arm, any(recovered(entry.expression, law) for entry in model.front_)


def islands(options: argparse.Namespace) -> None:
    workers, seconds = options.workers[0], options.seconds
    arms = (("alone", seconds), ("cluster", seconds), ("longer", workers * seconds))
    numbers = range(options.first, options.first + options.laws)
    counts = {arm: set[int]() for arm, _ in arms}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        todo = [pool.submit(recovers, number, arm, limit, workers) for number in numbers for arm, limit in arms]
        for future in as_completed(todo):
            number, arm, found = future.result()
            if found:
                counts[arm].add(number)
    print(f"random laws {numbers.start} to {numbers.stop - 1} of the development set, one thread for each worker")
    print("| who | seconds | recovered |\n|---|---|---|")
    names = {"alone": "one worker", "cluster": f"{workers} workers (processes)", "longer": "one worker"}
    for arm, limit in arms:
        print(f"| {names[arm]} | {limit:g} | {len(counts[arm])} of {len(numbers)} |")
    print(f"by {workers} workers only, not by one in {seconds:g} s: {sorted(counts['cluster'] - counts['alone'])}")


def model(options: argparse.Namespace) -> None:
    with cluster_of(1, options.executor) as crew:
        for one in measure_crew(crew):
            print(
                f"{options.executor}: {one.rate:.3g} candidates a second and thread, {1e3 * one.answer:.2f} ms for a "
            )
            print(f"message there and back, {one.bandwidth / 1e6:.0f} MB a second")
    for inputs in (5, 6, 7):
        net = PSRN(inputs, "koza", 3)
        X, y = data_of(inputs, 0)
        began = time.perf_counter()
        columns = net.sizes[-2]
        masked = time.perf_counter() - began
        whole = net.numbered(X, y, BEST, threads=1)
        began = time.perf_counter()
        parts = len(whole.sizes)
        seconds = time.perf_counter() - began
        print(
            f"{inputs} inputs: mask {masked:.2f} s (once for an architecture), bank of {columns} {seconds:.2f} s, "
            f"{parts} parts, {net.sizes[-1]:.3g} candidates",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {one.__name__: one for one in (efficiency, equality, overhead, faults, islands, model)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of workers")
    parser.add_argument("--executor", choices=("auto", "dask", "processes"), default="auto")
    parser.add_argument("--inputs", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--settings", type=int, default=50)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--terms", type=int, default=20)
    parser.add_argument("--drivers", type=int, default=20)
    parser.add_argument("--laws", type=int, default=40)
    parser.add_argument("--first", type=int, default=1, help="number of the first random law")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument(
        "--jobs", type=int, default=1, help="random laws at a time; each takes the cores of its workers"
    )
    options = parser.parse_args()
    if options.executor == "auto":
        options.executor = "dask" if importlib.util.find_spec("distributed") else "processes"
    options.workers = options.workers or {"efficiency": [1, 2, 4], "equality": [3]}.get(options.command, [4])
    commands[options.command](options)


if __name__ == "__main__":
    main()
