"""Whether fits keep to `max_time` (within 1 s) and `max_memory` (within 10%): random calls, and the worst ten of each.

Every call runs in a process of its own. Results are added to a file as they come, so a run that was stopped goes on
where it ended. On a busy machine wall-clock time says little: `--busy` judges by the CPU time that a fit takes after
its time limit is over. Memory is what the process holds beyond what it held before the fit, as in `memory`.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from memory import Peak, resident

from symenum import PSERegressor
from symenum.core.memory import memory_limit
from symenum.selection import HELD_OUT, MODEL_SELECTIONS

__all__ = ["add_arguments", "main"]

Array = npt.NDArray[np.float64]

_SECONDS_OVER = 1.0  # that a fit may take beyond its max_time
_MEMORY_OVER = 1.1  # times max_memory that a fit may take
_SLOW_CALL = 0.05  # seconds of one call of the slow loss
_MOST_ROWS, _MOST_COLUMNS = 2e6, 5e3
_SHOWN = 10  # calls in each table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=float, default=3e7, help="numbers of a table, rows times columns, at most")
    parser.add_argument("--out", type=Path, default=Path("limits.jsonl"), help="file of the results; calls in it stay")
    parser.add_argument("--busy", action="store_true", help="judge by CPU time after the limit: others use the machine")


def main(options: argparse.Namespace) -> int:
    done = _read(options.out)
    for number in range(options.calls):
        if (options.seed, number) in done:
            continue
        call = random_call(options.seed, number, options.largest)
        result = _in_a_process(call)
        done[options.seed, number] = result
        with options.out.open("a") as file:
            file.write(json.dumps([options.seed, number, asdict(result)]) + "\n")
        if result.fault or result.seconds_over(options.busy) > _SECONDS_OVER or result.memory_part > _MEMORY_OVER:
            print(result.row(), flush=True)
    results = [done[options.seed, number] for number in range(options.calls)]
    return _print_worst(results, options.busy)


@dataclass(frozen=True)
class Call:
    """One random call of `fit`."""

    seed: tuple[int, int]
    rows: int
    columns: int
    loss: str
    model_selection: str
    max_time: float
    max_memory: str | None

    def __str__(self) -> str:
        memory = self.max_memory or "default memory"
        size = f"{self.rows:,} x {self.columns:,}"
        return f"{size}, {self.loss}, {self.model_selection}, {self.max_time:g} s, {memory}"


def random_call(seed: int, number: int, largest: float) -> Call:
    """The call of that number: rows and columns log-uniform, with at most `largest` numbers in the table."""
    rng = np.random.default_rng([seed, number])
    columns = int(np.exp(rng.uniform(0, np.log(_MOST_COLUMNS))))
    most = max(2.0, min(_MOST_ROWS, largest / columns))
    rows = int(np.exp(rng.uniform(np.log(2), np.log(most + 1))))
    return Call(
        (seed, number),
        rows,
        columns,
        str(rng.choice(list(LOSSES))),
        str(rng.choice([*MODEL_SELECTIONS, *HELD_OUT])),
        float(rng.choice([1.0, 2.0, 4.0])),
        [None, "400MB", "1GB"][int(rng.integers(3))],
    )


def _mean_square(y: Array, prediction: Array) -> float:
    return float(np.square(prediction - y).mean())


def _slow(y: Array, prediction: Array) -> float:
    end = time.thread_time() + _SLOW_CALL
    while time.thread_time() < end:
        pass
    return _mean_square(y, prediction)


def _log_likelihood(y: Array, prediction: Array) -> float:
    """Minus the mean log-likelihood of normal noise of size 0.01: negative for a law that fits."""
    return _mean_square(y, prediction) / (2 * 0.01**2) + float(np.log(0.01 * np.sqrt(2 * np.pi)))


LOSSES: dict[str, str | Callable[[Array, Array], float]] = {
    "mse": "mse",
    "mae": "mae",
    "huber": "huber",
    "log_cosh": "log_cosh",
    "relative": "relative",
    "a callable": _mean_square,
    "a slow callable": _slow,
    "a log-likelihood": _log_likelihood,
}


@dataclass(frozen=True)
class Result:
    """What a call took. `cpu_over`: CPU seconds after the time limit. `fault`: an error that is no refusal."""

    call: str
    max_time: float
    seconds: float
    cpu_over: float
    memory: int
    max_memory: int
    refused: str = ""
    fault: str = ""
    iterations: int = 0

    def seconds_over(self, busy: bool) -> float:
        return min(self.cpu_over, self.seconds - self.max_time) if busy else self.seconds - self.max_time

    @property
    def memory_part(self) -> float:
        return self.memory / self.max_memory

    def row(self) -> str:
        said = self.fault or self.refused or f"{self.iterations} steps"
        over = f"{self.seconds - self.max_time:+.2f} | {self.cpu_over:.2f}"
        return f"| {self.call} | {over} | {self.memory / 1e6:.0f} | {self.memory_part:.2f} | {said[:120]} |"


def _in_a_process(call: Call) -> Result:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            text = json.dumps(asdict(_run(call)))
        except BaseException as error:  # told to the parent, which counts it as a fault
            text = json.dumps(asdict(_failed(call, f"{type(error).__name__}: {error}")))
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return Result(**json.loads(text)) if text else _failed(call, f"the process ended with status {status}")


def _failed(call: Call, fault: str) -> Result:
    return Result(str(call), call.max_time, 0.0, 0.0, 0, memory_limit(call.max_memory), fault=fault)


def _run(call: Call) -> Result:
    X, y = _data(call)
    model = PSERegressor(
        max_time=call.max_time,
        max_memory=call.max_memory,
        loss=LOSSES[call.loss],
        model_selection=call.model_selection,
        random_state=call.seed[1],
    )
    validation = (X[:100].copy(), y[:100].copy()) if call.model_selection == "validation" else None
    before, at_limit = resident(), [time.process_time()]
    timer = threading.Timer(call.max_time, lambda: at_limit.append(time.process_time()))
    timer.daemon = True
    timer.start()
    refused = fault = ""
    begin = time.monotonic()
    with Peak() as peak, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y, validation=validation)
        except ValueError as error:
            refused = f"{error}"
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - begin
    cpu_over = time.process_time() - at_limit[1] if len(at_limit) > 1 else 0.0
    limit = memory_limit(call.max_memory)
    taken = max(0, peak.largest - before)
    steps = int(getattr(model, "n_iter_", 0))
    return Result(str(call), call.max_time, seconds, cpu_over, taken, limit, refused, fault, steps)


def _data(call: Call) -> tuple[Array, Array]:
    rng = np.random.default_rng([*call.seed, 1])
    X: Any = rng.uniform(0.5, 3.0, (call.rows, call.columns))
    y = np.sin(3 * X[:, 0]) / (X[:, -1] + np.exp(np.cos(X[:, 0] * X[:, -1]))) + np.tanh(X[:, 0] - X[:, -1]) + 3
    return X, y + 0.02 * np.std(y) * rng.normal(size=call.rows)


def _read(path: Path) -> dict[tuple[int, int], Result]:
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(seed, number): Result(**result) for seed, number, result in lines}


def _print_worst(results: list[Result], busy: bool) -> int:
    head = "| call | s over | CPU s over | MB | of max_memory | |\n| --- | ---: | ---: | ---: | ---: | --- |"
    late = sorted(results, key=lambda one: -one.seconds_over(busy))
    large = sorted(results, key=lambda one: -one.memory_part)
    faults = [one for one in results if one.fault]
    print(f"\nThe latest {_SHOWN} of {len(results)}:\n\n{head}", *(one.row() for one in late[:_SHOWN]), sep="\n")
    print(f"\nThe largest {_SHOWN}:\n\n{head}", *(one.row() for one in large[:_SHOWN]), sep="\n")
    if faults:
        print(f"\nFaults:\n\n{head}", *(one.row() for one in faults), sep="\n")
    too_late = sum(one.seconds_over(busy) > _SECONDS_OVER for one in results)
    too_large = sum(one.memory_part > _MEMORY_OVER for one in results)
    refused = sum(bool(one.refused) for one in results)
    print(
        f"\n{len(results)} calls: {too_late} more than {_SECONDS_OVER:g} s late, {too_large} more than 10% above "
        f"max_memory, {len(faults)} faults, {refused} refused"
    )
    return 1 if too_late or too_large or faults else 0
