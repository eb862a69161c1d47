"""Simulated motions that several test modules share."""

from __future__ import annotations

import numpy as np

from symenum.dynamics.simulate import right_side, simulate
from symenum.expressions import parse

LOTKA_VOLTERRA = ("1.1*x1 - 0.4*x1*x2", "0.1*x1*x2 - 0.4*x2")


def motion(laws, start, t, order=1):
    """States (times, states) of the laws in x1, x2, …"""
    count = len(laws)
    names = [f"x{i + 1}" for i in range(count)]
    if order == 2:
        names += [f"x{i + 1}_dot" for i in range(count)]
    right = right_side([parse(law) for law in laws], names, None, order)
    done = simulate(right, np.array(start, dtype=float), np.asarray(t, dtype=float), max_time=None)
    assert done.stopped is None
    return done.states[:, :count]


def noisy(X, part, seed=0):
    return X + part * X.std(axis=0) * np.random.default_rng(seed).normal(size=X.shape)


def predator_and_prey(t):
    return motion(LOTKA_VOLTERRA, (10.0, 5.0), t)
