"""The verdict on laws of motion: do they reproduce a trajectory, one from another start, and are they the true form?

A run is reproduced where the laws, integrated from its first point, have R² above 0.9 on every state. Two motions of a
chaotic system part whatever the law is, so there only the first Lyapunov time of a run counts. A system is chaotic on a
run where a small error of the start has grown, along the true law, beyond all that regular motion does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symenum.bench.judge.structure import same_structure
from symenum.bench.problems.motion import MotionProblem, Run
from symenum.bench.problems.problem import Array
from symenum.dynamics import simulate
from symenum.dynamics.simulate import right_side
from symenum.expressions import Expression

__all__ = ["MotionVerdict", "judge_motion", "judged_points", "run_r2"]

_REPRODUCED = 0.9  # least R² of every state: ODEFormer's threshold
_SECONDS = 20.0  # of one simulation: a law that takes longer than this is not of use either
_PERTURBATION = 1e-7  # relative error of the start that is followed: far above that of the solver, far below saturation
_CHAOTIC_GROWTH = 1e3  # of that error over the run; regular motion makes it grow as the time, in some tens of periods
_SATURATED = 1e-2  # part of the motion's spread: a larger error does not grow as a small one does
_LEAST_POINTS = 16  # of a run that are judged: fewer have no spread of their own
_STILL = 1e-9  # spread beside the size of a state, below which the state is constant up to rounding


@dataclass(frozen=True)
class MotionVerdict:
    """`r2` of the fitted run and of the second, each the worst of all states (None: the laws cannot be followed).

    `form`: whether all laws have the structure of the true ones. `forms`: of how many equations that is so.
    """

    r2: float | None
    second_r2: float | None
    form: bool
    forms: int

    @property
    def reproduced(self) -> bool:
        return self.r2 is not None and self.r2 > _REPRODUCED

    @property
    def second(self) -> bool:
        return self.second_r2 is not None and self.second_r2 > _REPRODUCED


def judge_motion(laws: Sequence[Expression], problem: MotionProblem) -> MotionVerdict:
    """The verdict on laws in x1, x2, …, one for each state."""
    forms = sum(same_structure(found, law) for found, law in zip(laws, problem.laws, strict=True))
    first, second = (run_r2(laws, problem, run) for run in problem.runs[:2])
    return MotionVerdict(first, second, forms == len(problem.laws), forms)


def run_r2(laws: Sequence[Expression], problem: MotionProblem, run: Run) -> float | None:
    """The worst R² of all states on the points of a run that count; None where the laws end before them."""
    points = judged_points(problem, run)
    t, X = run.t[:points], run.X[:points]
    found = _follow(laws, problem, t, X[0], X)
    if not np.isfinite(found).all():
        return None
    spread = np.square(X - X.mean(axis=0)).sum(axis=0)
    # A state that rests must be met as closely as its size can be written.
    least = len(t) * np.square(_STILL * np.abs(X).max(axis=0))
    missed = np.square(found - X).sum(axis=0)
    ratio = missed / np.maximum(spread, np.maximum(least, np.finfo(float).tiny))
    return float(1 - ratio.max())


def judged_points(problem: MotionProblem, run: Run) -> int:
    """How many points of a run count: all, or for chaotic motion those of the first Lyapunov time."""
    start, spread = run.X[0], float(np.abs(run.X - run.X.mean(axis=0)).max())
    moved = start + _PERTURBATION * np.maximum(np.abs(start), np.ptp(run.X, axis=0))
    true = _follow(problem.laws, problem, run.t, start, run.X)
    apart = np.linalg.norm(_follow(problem.laws, problem, run.t, moved, run.X) - true, axis=1)
    growth = apart / apart[0] if apart[0] > 0 else np.ones_like(apart)
    usable = np.isfinite(growth) & (apart < _SATURATED * spread)
    end = int(np.argmin(usable)) if not usable.all() else len(growth)
    if end < 2 or np.max(growth[:end]) < _CHAOTIC_GROWTH:
        return len(run.t)
    exponent = np.polyfit(run.t[:end] - run.t[0], np.log(np.maximum(growth[:end], np.finfo(float).tiny)), 1)[0]
    within = int(np.searchsorted(run.t, run.t[0] + 1 / exponent, side="right")) if exponent > 0 else len(run.t)
    return max(min(within, len(run.t)), min(_LEAST_POINTS, len(run.t)))


def _follow(laws: Sequence[Expression], problem: MotionProblem, t: Array, start: Array, X: Array) -> Array:
    """The motion (times, states) of laws from a start; NaN from where they cannot be followed."""
    right = right_side(laws, problem.variables, None, 1)
    return simulate(right, start, t, np.abs(X).max(axis=0), max_time=_SECONDS).states
