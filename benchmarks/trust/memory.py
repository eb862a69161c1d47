"""The memory of a run: minute by minute, and under a limit.

Resident memory of this process beyond what it had before the fit, so the interpreter, torch and the data are not
counted.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path

from tables import TABLES, Table

from symenum import PSERegressor
from symenum.core.memory import memory_limit
from symenum.search import StepReport

__all__ = ["Peak", "add_arguments", "main", "resident"]

_POLL_SECONDS = 0.005  # between two readings of the resident memory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--table", default="200 rows x 4", choices=TABLES)
    parser.add_argument("--limits", nargs="*", default=[], help="max_memory of runs to compare, such as 500MB; 'none'")


def main(options: argparse.Namespace) -> int:
    return _limited(options) if options.limits else _long(options)


def _long(options: argparse.Namespace) -> int:
    table = TABLES[options.table]()
    before, begin, last = resident(), time.monotonic(), -1
    print("| minutes | MB | steps |\n| ---: | ---: | ---: |", flush=True)

    def tell(report: StepReport) -> None:
        nonlocal last
        minutes = int((time.monotonic() - begin) / 60)
        if minutes > last:
            last = minutes
            print(f"| {minutes} | {(resident() - before) / 1e6:.0f} | {report.iteration} |", flush=True)

    PSERegressor(max_time=60 * options.minutes, random_state=0, callbacks=[tell]).fit(table.X, table.y)
    return 0


def _limited(options: argparse.Namespace) -> int:
    table = TABLES[options.table]()
    within = True
    print("| max_memory | largest MB | steps | laws | best loss |\n| ---: | ---: | ---: | ---: | ---: |", flush=True)
    for limit in options.limits:
        child = os.fork()  # each in a process of its own: memory that one fit has not returned is not the next one's
        if child == 0:
            os._exit(0 if _within(table, limit, options.minutes) else 1)
        within &= os.waitpid(child, 0)[1] == 0
    return 0 if within else 1


def _within(table: Table, limit: str, minutes: float) -> bool:
    """Whether a fit keeps to the limit, up to a tenth of it."""
    before = resident()
    model = PSERegressor(max_time=60 * minutes, random_state=0, max_memory=None if limit == "none" else limit)
    with Peak() as peak:
        model.fit(table.X, table.y)
    taken = peak.largest - before
    best = model.front_[-1].loss
    print(f"| {limit} | {taken / 1e6:.0f} | {model.n_iter_} | {len(model.front_)} | {best:.4g} |", flush=True)
    return limit == "none" or taken <= 1.1 * memory_limit(limit)


class Peak:
    """Watches the resident memory from a thread of its own."""

    def __init__(self) -> None:
        self.largest = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            self.largest = max(self.largest, resident())


def resident() -> int:
    """Resident memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status does not say how much memory is resident")
