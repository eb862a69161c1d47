"""Random data sets of every kind: no crash, no hang, no wrong answer in silence, every refusal names the argument."""

from __future__ import annotations

import argparse
import re
import signal
import warnings

import numpy as np
from fuzzed import add_fuzz_arguments, crash, fuzzed, refusal
from odd_data import OddData, odd_data

from symenum import PSERegressor
from symenum.expressions import parse

__all__ = ["add_arguments", "fault_of", "main"]

ARGUMENT = re.compile(r"\b(X|y|sample_weight|feature)\b")
_HANG_SECONDS = 60  # after which a fit counts as hanging: 200 times the default --max-time
_LATE_SECONDS = 1.0  # that a fit may take beyond its `max_time`
_ROUNDING = 1e-9  # of the root mean square of y: errors of a prediction below it are rounding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_fuzz_arguments(parser, count=2000, max_time=0.3)


def main(options: argparse.Namespace) -> int:
    return fuzzed(options, "data sets", odd_data, fault_of)


def fault_of(data: OddData, seed: int, max_time: float) -> tuple[str | None, str]:
    """What is wrong (None: nothing), and whether the data were fitted, refused, or crashed the fit."""
    model = PSERegressor(max_time=max_time, random_state=seed, missing="error")
    signal.alarm(_HANG_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X, data.y, sample_weight=data.sample_weight)
    except (ValueError, TypeError) as error:
        return refusal(error, ARGUMENT, usable=data.usable), "refused"
    except Exception as error:
        return crash(error), "crashed"
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
