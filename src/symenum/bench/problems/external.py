"""Problem sets whose formulas or tables do not ship with symenum: SRBench's, and the paper's 20 in 50 variables.

SRBench has 120 equations of Feynman's lectures and 14 of Strogatz's book. Published counts differ: 134 are all; 133 are
those in PMLB, which lacks II.11.17; 130, the count of most published tables, are those of PMLB without the three
inverse trigonometric ones.

The Feynman data are drawn here as uniform samples of the laws, 10,000 rows for training, as many as SRBench takes. The
Strogatz equations are the fourteen right-hand sides of seven systems of two equations ("Nonlinear Dynamics and Chaos").
The published files hold four trajectories of 10 s with a step of 0.1 s. Only the formulas are taken from them: the
trajectories are made here, from starting points drawn as the original generator draws them, and the target is the
right-hand side on them. The seed splits the rows 75 to 25 into training and test rows, as SRBench does.

The 20 problems in 50 variables are those of the supplement (Table "High-dimensional synthetic regression problems").
Their data are the published ones, 500 rows each, the same for every seed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from symenum.bench.problems.problem import (
    Array,
    Case,
    Problem,
    data_file,
    defined_points,
    law_operators,
    law_values,
    rename,
)
from symenum.expressions import Expression, parse

__all__ = [
    "STARTS",
    "TableProblem",
    "TrajectoryProblem",
    "fifty_dim",
    "srbench",
    "srbench_130",
    "srbench_133",
    "srbench_feynman",
    "srbench_strogatz",
    "strogatz",
]

# SRBench: Feynman's equations, and the counts of published tables

_FEYNMAN_SOURCE = (
    "the formulas and ranges in https://github.com/EpistasisLab/pmlb, datasets/feynman_*/metadata.yaml, or "
    "FeynmanEquations.csv of https://space.mit.edu/home/tegmark/aifeynman.html"
)
_STROGATZ_SOURCE = "the formulas in https://github.com/lacava/ode-strogatz"
_NOT_IN_PMLB = ("II.11.17",)
_INVERSE_TRIGONOMETRIC = ("I.26.2", "I.30.5", "test_10")
_FEYNMAN_ROWS = 10_000  # SRBench's largest training sample


@cache
def srbench_feynman() -> tuple[Problem, ...]:
    """All 120 Feynman equations."""
    return tuple(_feynman(record) for record in _read("srbench/feynman.json", _FEYNMAN_SOURCE))


@cache
def srbench_strogatz() -> tuple[Case, ...]:
    """All 14 Strogatz equations."""
    return strogatz(_read("srbench/strogatz.json", _STROGATZ_SOURCE))


def srbench() -> tuple[Case, ...]:
    """All 134."""
    return (*srbench_feynman(), *srbench_strogatz())


def srbench_133() -> tuple[Case, ...]:
    """Those that PMLB holds."""
    return tuple(problem for problem in srbench() if problem.name not in _NOT_IN_PMLB)


def srbench_130() -> tuple[Case, ...]:
    """Those of most published tables."""
    return tuple(problem for problem in srbench_133() if problem.name not in _INVERSE_TRIGONOMETRIC)


def _feynman(record: Mapping[str, Any]) -> Problem:
    ranges = record["variables"]
    names = {variable["name"]: f"x{i + 1}" for i, variable in enumerate(ranges)}
    return Problem(
        record["name"],
        rename(record["formula"], names),
        tuple(names.values()),
        tuple(float(variable["low"]) for variable in ranges),
        tuple(float(variable["high"]) for variable in ranges),
        _FEYNMAN_ROWS,
    )


def _read(relative: str, original: str) -> Any:
    path = data_file(relative, "srbench", original)
    return json.loads(path.read_text(encoding="utf-8"))


# SRBench: Strogatz's equations

_TRAJECTORY_ROWS = 100  # of one starting point, as in the published files
_TIME_STEP = 0.1  # seconds, as in the published files
_TRAIN_SHARE = 0.75  # of the rows: SRBench's split
_SPLIT_STREAM = 17  # of the random numbers that split the rows
_STATE_NAMES = ("x1", "x2")

STARTS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "bacres": ((9.0, 12.8), (3.5, 13.1), (5.8, 9.9), (4.1, 8.7)),
    "barmag": ((1.1, 4.7), (5.9, 0.8), (3.4, 2.2), (0.4, 5.6)),
    "glider": ((6.2, 0.7), (4.3, -0.9), (5.1, 0.2), (3.6, -0.4)),
    "lv": ((1.0, 3.0), (4.0, 1.0), (8.0, 2.0), (3.0, 3.0)),
    "predprey": ((6.1, 11.2), (4.2, 9.1), (5.3, 10.4), (3.9, 8.8)),
    "shearflow": ((2.3, 0.6), (-1.4, 1.2), (0.8, -0.9), (-2.7, -0.5)),
    "vdp": ((0.8, 0.3), (0.2, 0.9), (0.5, 0.5), (0.9, 0.1)),
}
"""Four starting points of each system, drawn once around those of the original generator."""


@dataclass(frozen=True)
class TrajectoryProblem:
    """One equation of a system of two: `system` holds both right-hand sides, `text` is the one to find."""

    name: str
    text: str
    system: tuple[str, str]
    starts: tuple[tuple[float, float], ...]
    variables: tuple[str, ...] = _STATE_NAMES

    @cached_property
    def expression(self) -> Expression:
        """The law."""
        return parse(self.text, law_operators())

    @property
    def positive(self) -> bool:
        return bool((self._states > 0).all())

    @cached_property
    def _states(self) -> Array:
        """The states of all trajectories, (400, 2), one after another."""
        laws = [parse(text, law_operators()) for text in self.system]

        def slope(time: float, state: Array) -> list[float]:
            return [float(law_values(law, _STATE_NAMES, state[None, :])[0]) for law in laws]

        times = _TIME_STEP * np.arange(_TRAJECTORY_ROWS)
        # LSODA: van der Pol's equations are stiff.
        solver = {"method": "LSODA", "rtol": 1e-8, "atol": 1e-10}
        states = [solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, **solver).y.T for start in self.starts]
        return np.concatenate(states)

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        return self._split(seed)[0]

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        return self._split(seed)[1]

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        return defined_points(self, self._states.min(axis=0), self._states.max(axis=0), seed)

    def _split(self, seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        X = self._states
        y = law_values(self.expression, _STATE_NAMES, X)
        order = np.random.default_rng([seed, _SPLIT_STREAM]).permutation(len(X))
        train, test = np.split(order, [int(_TRAIN_SHARE * len(X))])
        return (X[train], y[train]), (X[test], y[test])


def strogatz(systems: Sequence[Mapping[str, object]]) -> tuple[TrajectoryProblem, ...]:
    """The problems of systems as `srbench/strogatz.json` has them: name, variables x and y, two equations."""
    problems = []
    for system in systems:
        name, equations = str(system["name"]), system["equations"]
        assert isinstance(equations, list)
        both = tuple(rename(str(text), {"x": "x1", "y": "x2"}) for text in equations)
        for i, text in enumerate(both):
            problems.append(TrajectoryProblem(f"{name}{i + 1}", text, (both[0], both[1]), STARTS[name]))
    return tuple(problems)


# The paper's problems in 50 variables

_FIFTY_SOURCE = "https://github.com/intell-sci-comput/PSE, folder benchmark (synthetic_50d_N.csv and .txt)"
_FIFTY_PROBLEMS = 20  # files synthetic_50d_1 to synthetic_50d_20


@dataclass(frozen=True)
class TableProblem:
    """A law with a table of samples: `problem` has the law and the ranges, the file `path` the rows (variables, y)."""

    problem: Problem
    path: Path

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def variables(self) -> tuple[str, ...]:
        return self.problem.variables

    @property
    def expression(self) -> Expression:
        return self.problem.expression

    @property
    def positive(self) -> bool:
        return self.problem.positive

    @cached_property
    def _table(self) -> Array:
        return np.loadtxt(self.path, delimiter=",")

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """The table as it is, the same for every seed."""
        return self._table[:, :-1], self._table[:, -1]

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        return self.problem.test(seed)

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        return self.problem.fresh(seed)


def fifty_dim() -> tuple[TableProblem, ...]:
    """The 20 problems; a table is read when its problem is sampled."""
    folder = data_file("fifty_dim", "fifty_dim", _FIFTY_SOURCE)
    law = Problem("", "x1", tuple(f"x{i + 1}" for i in range(50)), -1.0, 1.0, 500)
    problems = []
    for number in range(1, _FIFTY_PROBLEMS + 1):
        stem = f"fifty_dim/synthetic_50d_{number}"
        path = data_file(f"{stem}.txt", "fifty_dim", _FIFTY_SOURCE)
        text = path.read_text(encoding="utf-8").strip().replace("x_", "x")
        problem = replace(law, name=f"Fifty-{number}", text=text)
        problems.append(TableProblem(problem, folder / f"synthetic_50d_{number}.csv"))
    return tuple(problems)
