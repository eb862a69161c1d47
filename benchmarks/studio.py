"""What the studio costs a search, and how fast it answers.

    python benchmarks/studio.py overhead [--repeats 5] [--steps 60] [--rows 2000]
    python benchmarks/studio.py answers [--laws 200] [--rows 100000]

`overhead` runs one search of a fixed number of steps again and again, each time in a process of its own: without a
folder, with a folder (`run_dir`), with a studio on that folder that nobody looks at, and with a page attached. As the
studio's own page does, it takes at most two snapshots a second by events, and asks for the marked law and its plots
where that law is a new one. The four take turns, so that a load of the machine falls on all of them. It prints medians
of the seconds of `fit`, by the clock and of the processor, and ratios to the search with a folder alone.

`answers` makes a run with a front of many laws on many rows, and prints how long the server takes for each address: the
first time, and the median of ten more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np

from symenum import PSERegressor
from symenum.bench.problems.random_laws import DEVELOPMENT
from symenum.run_directory import FRONT

LAW = "Random-40"  # a law of depth 6 that is not found, so that every step works
NOISE = 0.05  # standard deviation, in units of that of y
SEARCH = """
import json, sys, time
import numpy as np
from symenum import PSERegressor
task = json.loads(sys.argv[1])
data = np.load(task["data"])
model = PSERegressor(max_time=None, max_iterations=task["steps"], random_state=0, run_dir=task["run_dir"])
wall, processor = time.perf_counter(), time.process_time()
model.fit(data["X"], data["y"])
print(time.perf_counter() - wall, time.process_time() - processor, model.n_iter_)
"""
REPEATED = 10  # requests after the first one


class Studio:
    """A studio in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "symenum", "studio", str(folder), "--port", "0", "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split(" ")
        self.address, _, self.token = words[-1].strip().partition("/?token=")

    def open(self, path: str, body: Any = None) -> Any:
        headers = {"X-Symenum-Token": self.token, "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(f"{self.address}{path}", content, headers), timeout=60)

    def get(self, path: str, body: Any = None) -> bytes:
        with self.open(path, body) as answer:
            content: bytes = answer.read()
            return content


@contextlib.contextmanager
def studio_on(folder: Path) -> Iterator[Studio]:
    studio = Studio(folder)
    try:
        yield studio
    finally:
        studio.process.terminate()
        studio.process.wait()


class Page(threading.Thread):
    """What a page does that looks at a run: events, and the marked law with its plots whenever that is a new one."""

    def __init__(self, studio: Studio, run: Path) -> None:
        super().__init__(daemon=True)
        self.studio, self.run_folder = studio, run
        self.ending = threading.Event()
        self.snapshots = self.requests = 0

    def run(self) -> None:
        while not (self.run_folder / FRONT).exists():
            if self.ending.wait(0.05):
                return
        name, seen = self.run_folder.name, None
        with self.studio.open(f"/api/runs/{name}/events") as stream:
            for line in stream:
                if self.ending.is_set():
                    return
                if not line.startswith(b"data: "):
                    continue
                self.snapshots += 1
                shown = json.loads(line[6:])
                marked = next((law for law in shown["front"] if law["index"] == shown["selected"]), None)
                if marked is not None and marked["text"] != seen:
                    law = f"/api/runs/{name}/laws/{marked['index']}"
                    answered = [self.ask(path) for path in (law, f"{law}/plots?points=2000")]
                    self.requests += sum(answered)
                    seen = marked["text"] if all(answered) else None

    def ask(self, path: str) -> bool:
        """Whether the law was still on the front: it may have left since the snapshot."""
        try:
            self.studio.get(path)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True


def search(data: Path, steps: int, run_dir: Path | None) -> tuple[float, float]:
    """Wall and processor seconds of a fit in a process of its own."""
    task = json.dumps({"data": str(data), "steps": steps, "run_dir": None if run_dir is None else str(run_dir)})
    done = subprocess.run([sys.executable, "-c", SEARCH, task], capture_output=True, text=True, check=True)
    wall, processor, _ = done.stdout.split()
    return float(wall), float(processor)


def with_page(data: Path, steps: int, folder: Path, run_dir: Path, counts: list[str]) -> tuple[float, float]:
    with studio_on(folder) as studio:
        page = Page(studio, run_dir)
        page.start()
        seconds = search(data, steps, run_dir)
        page.ending.set()
        counts.append(f"{page.snapshots} snapshots, {page.requests} requests")
    return seconds


def with_idle_studio(data: Path, steps: int, folder: Path, run_dir: Path) -> tuple[float, float]:
    with studio_on(folder):
        return search(data, steps, run_dir)


def overhead(repeats: int, steps: int, rows: int) -> None:
    """Print what a folder, a studio and a page cost a search."""
    random = np.random.default_rng(0)
    X, y = DEVELOPMENT.law(LAW).sample(0)
    take = random.integers(0, len(y), rows)
    X, y = X[take] * random.uniform(0.99, 1.01, X[take].shape), y[take]
    y = y + NOISE * y.std() * random.standard_normal(rows)
    counts: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.npz"
        np.savez(data, X=X, y=y)
        runs = folder / "runs"
        runs.mkdir()
        ways: dict[str, Callable[[Path], tuple[float, float]]] = {
            "without a folder": lambda run_dir: search(data, steps, None),
            "with a folder": lambda run_dir: search(data, steps, run_dir),
            "and a studio": lambda run_dir: with_idle_studio(data, steps, runs, run_dir),
            "and a page": lambda run_dir: with_page(data, steps, runs, run_dir, counts),
        }
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        search(data, 2, None)  # fills caches
        for i in range(repeats):
            order = list(ways) if i % 2 == 0 else list(reversed(ways))
            for way in order:
                run_dir = runs / f"{way.replace(' ', '-')}-{i}"
                found[way].append(ways[way](run_dir))
    print(f"{LAW}, {rows} rows, {X.shape[1]} columns, {steps} steps, {repeats} runs of each; page: {counts[-1]}")
    print(f"{'search':18} {'wall':>8} {'ratio':>6} {'processor':>10} {'ratio':>6}   all wall seconds")
    base = [statistics.median(one[k] for one in found["with a folder"]) for k in (0, 1)]
    for way, seconds in found.items():
        wall, processor = (statistics.median(one[k] for one in seconds) for k in (0, 1))
        each = " ".join(f"{one[0]:.2f}" for one in seconds)
        print(f"{way:18} {wall:8.2f} {wall / base[0]:6.3f} {processor:10.2f} {processor / base[1]:6.3f}   {each}")


def many_laws(count: int) -> list[dict[str, Any]]:
    """Laws of growing size: sums of powers and waves with constants."""
    laws, terms = [], []
    for i in range(count):
        terms.append(f"{1.5 / (i + 1):.6f}*sin({0.3 + 0.01 * i:.4f}*x{i % 5 + 1})*x{(i + 2) % 5 + 1}")
        text = " + ".join(terms[-12:])
        laws.append({"equation": text, "complexity": i + 1, "loss": 1 / (i + 1), "score": 0.1, "reward": 0.5})
    return laws


def answers(laws: int, rows: int) -> None:
    """Print the seconds of each address for a run with that front."""
    random = np.random.default_rng(0)
    X = random.uniform(0.5, 3.0, (rows, 5))
    y = np.sin(X[:, 0]) * X[:, 2] + 0.1 * random.standard_normal(rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        PSERegressor(max_time=None, max_iterations=1, random_state=0, run_dir=folder / "run").fit(X, y)
        front = folder / "run" / FRONT
        document = json.loads(front.read_text(encoding="utf-8"))
        document["fronts"][0].update(laws=many_laws(laws), selected=laws - 1)
        front.write_text(json.dumps(document), encoding="utf-8")
        with studio_on(folder) as studio:
            law = f"/api/runs/run/laws/{laws - 1}"
            constants = [one["value"] for one in json.loads(studio.get(law))["constants"]]
            moved = {"constants": [value * 1.01 for value in constants], "fit": False}
        addresses: dict[str, tuple[str, Any]] = {
            "the page": ("/", None),
            "the list of runs": ("/api/runs", None),
            "a snapshot": ("/api/runs/run", None),
            "a law": (law, None),
            "its plots": (f"{law}/plots?points=2000", None),
            "other constants": (f"{law}/try", moved),
            "fit again": (f"{law}/try", {**moved, "fit": True}),
        }
        print(f"{laws} laws, {rows:,} rows, {len(constants)} constants in the law")
        print(f"{'address':18} {'first':>9} {'median':>9} {'bytes':>10}")
        with studio_on(folder) as studio:
            for what, (path, body) in addresses.items():
                seconds, size = [], 0
                for _ in range(1 + REPEATED):
                    begin = time.perf_counter()
                    size = len(studio.get(path, body))
                    seconds.append(time.perf_counter() - begin)
                print(f"{what:18} {seconds[0]:7.3f} s {statistics.median(seconds[1:]):7.3f} s {size:10,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "answers"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--laws", type=int, default=200)
    parser.add_argument("--rows", type=int, help="default: 2,000 for overhead, 100,000 for answers")
    options = parser.parse_args()
    if options.what == "overhead":
        overhead(options.repeats, options.steps, options.rows or 2_000)
    else:
        answers(options.laws, options.rows or 100_000)


if __name__ == "__main__":
    main()
