"""What the fuzzing of tables (`fuzz`) and of trajectories (`motion_fuzz`) share: many fits of odd data, and a table."""

from __future__ import annotations

import argparse
import re
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["add_fuzz_arguments", "crash", "fuzzed", "raise_timeout", "refusal"]


def add_fuzz_arguments(parser: argparse.ArgumentParser, *, count: int, max_time: float) -> None:
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--max-time", type=float, default=max_time, help="of each fit")
    parser.add_argument("--verbose", action="store_true")


def fuzzed(
    options: argparse.Namespace,
    what: str,
    make: Callable[[int], Any],
    fault_of: Callable[[Any, int, float], tuple[str | None, str]],
) -> int:
    """Fit what `make` draws for each number; 1 if there was a fault. `what`: the word for it in the table."""
    counts: Counter[str] = Counter()
    slowest = 0.0
    signal.signal(signal.SIGALRM, raise_timeout)
    for seed in range(options.first, options.first + options.count):
        data = make(seed)
        begin = time.monotonic()
        fault, result = fault_of(data, seed, options.max_time)
        seconds = time.monotonic() - begin
        slowest = max(slowest, seconds)
        counts["fault" if fault else result] += 1
        if fault or options.verbose:
            print(f"{seed}: {data.kind}: {fault or result} ({seconds:.2f} s)", flush=True)
    print(f"| {what} | fitted | refused | faults | slowest |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    print(f"| {options.count} | {counts['fitted']} | {counts['refused']} | {counts['fault']} | {slowest:.2f} s |")
    return 1 if counts["fault"] else 0


def raise_timeout(number: int, frame: FrameType | None) -> None:
    """For the alarm of a fit that hangs: an error that says where."""
    raise TimeoutError("".join(traceback.format_stack(frame)[-4:]))


def refusal(error: Exception, argument: re.Pattern[str], *, usable: bool) -> str | None:
    """What is wrong with the refusal of data: it names no `argument`, or the data are `usable`; None: nothing."""
    if not argument.search(str(error)):
        return f"the refusal names no argument: {type(error).__name__}: {error}"
    return f"good data are refused: {error}" if usable else None


def crash(error: Exception) -> str:
    """The error and where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {where.filename}:{where.lineno}: {error}"
