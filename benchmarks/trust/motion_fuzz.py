"""Random trajectories of every kind: no crash, no hang, only finite answers, every refusal names the argument."""

from __future__ import annotations

import argparse
import re
import signal
import time
import warnings
from dataclasses import dataclass

import numpy as np
from fuzzed import add_fuzz_arguments, crash, fuzzed, refusal

from symenum.dynamics import ODERegressor

__all__ = ["OddMotion", "add_arguments", "fault_of", "main", "odd_motion"]

ARGUMENT = re.compile(r"\b(X|t|u|trajector|piece|stretch)")
_HANG_SECONDS = 120  # after which a fit counts as hanging
# Of the processor, since the machine is shared; that a fit may take beyond its `max_time`: long uneven records are
# smoothed first, which took 2 s for 10,000 points.
_LATE_SECONDS = 3.0
_LENGTHS = (3, 8, 9, 12, 30, 100, 256, 1000, 3000, 10_000)
_SCALES = (1e-200, 1e-130, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e130, 1e200)
_USABLE_SCALES = (1e-120, 1e120)  # squares of values far outside, or of rates with short steps, are no doubles: refused


@dataclass(frozen=True)
class OddMotion:
    """Trajectories, what is odd about them, and whether they can be fitted at all."""

    kind: str
    X: list[np.ndarray]
    t: list[np.ndarray]
    usable: bool


def odd_motion(seed: int) -> OddMotion:
    """The trajectories of that number."""
    random = np.random.default_rng(seed)
    states, pieces = int(random.integers(1, 4)), int(random.choice([1, 1, 1, 2, 3]))
    scale, noise = float(random.choice(_SCALES)), float(random.choice([0.0, 0.01, 0.1, 1.0]))
    kinds: list[str] = [f"{states} states, scale {scale:g}, noise {noise:g}"]
    X, t = [], []
    for _ in range(pieces):
        n = int(random.choice(_LENGTHS))
        steps = random.exponential(size=n) if random.random() < 0.3 else np.ones(n)
        times = np.cumsum(steps) * float(random.choice([1e-6, 0.05, 10.0]))
        phase = np.linspace(0, float(random.choice([0.3, 6.0, 60.0])), n)[:, None]
        motion = np.exp(-0.1 * phase) * np.cos(phase * (1 + np.arange(states)) + np.arange(states))
        X.append(scale * (motion + noise * random.normal(size=motion.shape)))
        t.append(times)
    usable = max(map(len, t)) >= 9 and _USABLE_SCALES[0] < scale < _USABLE_SCALES[1]
    odd = str(random.choice(["plain", "plain", "gaps", "tie", "back", "nan time", "constant", "rounded", "infinite"]))
    kinds.append(odd)
    if odd == "gaps":
        X[0][random.random(len(X[0])) < 0.2] = np.nan
        usable = False  # whether a stretch remains is for `fit` to say
    elif odd == "tie":
        t[0][1] = t[0][0]
    elif odd == "back":
        t[0][-1] = t[0][0] - 1
    elif odd == "nan time":
        t[0][len(t[0]) // 2] = np.nan
    elif odd == "constant":
        for one in X:
            one[:, 0] = scale
    elif odd == "rounded":
        X = [np.round(one, 1 - round(np.log10(scale))) if 1e-9 <= scale <= 1e9 else one for one in X]
    elif odd == "infinite":
        X[0][0, 0] = np.inf
        usable = usable and max(len(X[0]) - 1, *map(len, X[1:]), 0) >= 9
    if odd in ("tie", "back", "nan time"):
        usable = False
    return OddMotion(", ".join([*kinds, "x".join(str(len(one)) for one in t)]), X, t, usable)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_fuzz_arguments(parser, count=500, max_time=0.5)


def main(options: argparse.Namespace) -> int:
    return fuzzed(options, "trajectories", odd_motion, fault_of)


def fault_of(data: OddMotion, seed: int, max_time: float) -> tuple[str | None, str]:
    """What is wrong (None: nothing), and whether the trajectories were fitted, refused, or crashed the fit."""
    model = ODERegressor(max_time=max_time, random_state=seed)
    signal.alarm(_HANG_SECONDS)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X, data.t)
            late = time.process_time() - begin - max_time
            values = model.predict(data.X[-1][-1:])
    except (ValueError, TypeError) as error:
        return refusal(error, ARGUMENT, usable=data.usable), "refused"
    except Exception as error:
        return crash(error), "crashed"
    finally:
        signal.alarm(0)
    if not np.isfinite(values).all() and np.isfinite(data.X[-1][-1]).all():
        return f"predict is not finite: {model.best_expressions_}", "fitted"
    return (f"{late:.1f} s late" if late > _LATE_SECONDS else None), "fitted"
