"""Any benchmark with the seconds of its searches counted in processor time, for a machine that is not free.

    python benchmarks/processor_time.py benchmarks/shapes.py --laws 40 --seconds 5

Inside of `fit` the monotonic clock is the processor time of the process, all of its threads together: a search with
max_time=20 gets as much work as 20 s on one free core would give it, whatever runs beside it. Outside of `fit`, and in
what benchmarks print as seconds, time is that of the wall. For searches on one thread; processes that a search starts
have clocks of their own.
"""

# What waits with a timeout keeps the clock of the wall: these modules are imported before it is exchanged.
import argparse
import concurrent.futures
import inspect
import multiprocessing.connection
import queue
import runpy
import selectors
import sys
import threading
import time
from functools import wraps
from pathlib import Path
from typing import Any

__all__ = ["main"]

_BEFORE = (concurrent.futures, multiprocessing.connection, queue, selectors, threading)
_wall = time.monotonic
_fits = 0  # that are running, one inside another


def _clock() -> float:
    return time.process_time() if _fits else _wall()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the script")
    script = parser.parse_args().script
    if not script.is_file():
        parser.error(f"there is no file {script}")
    time.monotonic = _clock  # before symenum takes it as a default
    from symenum import PSERegressor

    fit = PSERegressor.fit

    @wraps(fit)
    def timed(self: Any, *arguments: Any, **options: Any) -> Any:
        global _fits
        _fits += 1
        try:
            return fit(self, *arguments, **options)
        finally:
            _fits -= 1

    timed.__signature__ = inspect.signature(fit)  # type: ignore[attr-defined]
    PSERegressor.fit = timed  # type: ignore[method-assign]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
