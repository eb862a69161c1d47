"""Random data sets of every kind: no crash, no hang, no wrong answer in silence, every refusal names the argument."""

from __future__ import annotations

import argparse
import re
import signal
import time
import traceback
import warnings
from collections import Counter
from types import FrameType

import numpy as np
from odd_data import OddData, odd_data

from symenum import PSERegressor
from symenum.expressions import parse

__all__ = ["add_arguments", "fault_of", "main", "raise_timeout"]

ARGUMENT = re.compile(r"\b(X|y|sample_weight|feature)\b")
_HANG_SECONDS = 60  # after which a fit counts as hanging: 200 times the default --max-time
_ROUNDING = 1e-9  # of the root mean square of y: errors of a prediction below it are rounding
_LATE_SECONDS = 1.0  # that a fit may take beyond its `max_time`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--max-time", type=float, default=0.3, help="of each fit")
    parser.add_argument("--verbose", action="store_true")


def main(options: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    slowest = 0.0
    signal.signal(signal.SIGALRM, raise_timeout)
    for seed in range(options.first, options.first + options.count):
        data = odd_data(seed)
        begin = time.monotonic()
        fault, result = fault_of(data, seed, options.max_time)
        seconds = time.monotonic() - begin
        slowest = max(slowest, seconds)
        counts["fault" if fault else result] += 1
        if fault or options.verbose:
            print(f"{seed}: {data.kind}: {fault or result} ({seconds:.2f} s)", flush=True)
    print("| data sets | fitted | refused | faults | slowest |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    print(f"| {options.count} | {counts['fitted']} | {counts['refused']} | {counts['fault']} | {slowest:.2f} s |")
    return 1 if counts["fault"] else 0


def raise_timeout(number: int, frame: FrameType | None) -> None:
    """For the alarm of a fit that hangs: an error that says where."""
    raise TimeoutError("".join(traceback.format_stack(frame)[-4:]))


def fault_of(data: OddData, seed: int, max_time: float) -> tuple[str | None, str]:
    """What is wrong (None: nothing), and whether the data were fitted, refused, or crashed the fit."""
    model = PSERegressor(max_time=max_time, random_state=seed, missing="error")
    signal.alarm(_HANG_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X, data.y, sample_weight=data.sample_weight)
    except (ValueError, TypeError) as error:
        if not ARGUMENT.search(str(error)):
            return f"the refusal names no argument: {type(error).__name__}: {error}", "refused"
        return (f"good data are refused: {error}" if data.usable else None), "refused"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {where.filename}:{where.lineno}: {error}", "crashed"
    finally:
        signal.alarm(0)
    return _wrong(model, data), "fitted"


def _wrong(model: PSERegressor, data: OddData) -> str | None:
    """Whether a reported loss is not that of `predict`, or a law cannot be read back."""
    y = np.asarray(data.y, dtype=np.float64).ravel().astype(np.longdouble)
    weight = np.ones(len(y)) if data.sample_weight is None else np.asarray(data.sample_weight)
    share = weight.astype(np.longdouble) / weight.astype(np.longdouble).sum()
    size = float(np.sqrt((share * y**2).sum()))
    if not len(model.front_):
        return "the front is empty"
    for i, entry in enumerate(model.front_):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = model.predict(data.X, index=i)
        used = share > 0
        if not np.isfinite(predicted[used]).all():
            return f"law {entry.expression} is not finite on the rows of the fit"
        loss = float((share[used] * (predicted[used].astype(np.longdouble) - y[used]) ** 2).sum())
        rounding = (_ROUNDING * size) ** 2
        if not abs(loss - entry.loss) <= 1e-6 * loss + rounding and loss != entry.loss:
            return f"law {entry.expression} has loss {loss!r}, and {entry.loss!r} is reported"
        if parse(str(entry.expression)) != entry.expression:
            return f"law {entry.expression} cannot be read back"
    if model.elapsed_ > model.max_time + _LATE_SECONDS:
        return f"the fit took {model.elapsed_:.2f} s"
    return None
