"""Fourteen right-hand sides of seven systems of two equations (Strogatz, "Nonlinear Dynamics and Chaos").

The published files hold four runs of 10 s at 0.1 s. Only the formulas are taken from them: the trajectories are made
here, from starting points drawn as the generator of the originals draws them, and the target is the right-hand side on
them. SRBench splits them 75 to 25, by the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp

from symenum.expressions import Expression, parse
from symenum.problems.names import rename
from symenum.problems.problem import Array, defined_points, law_operators, law_values

__all__ = ["STARTS", "TrajectoryProblem", "strogatz"]

_RUNS, _STEPS, _STEP = 4, 100, 0.1
_TRAIN_SHARE = 0.75
_NAMES = ("x1", "x2")

# Four starting points for each system, drawn once around those of the original generator.
STARTS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "bacres": ((9.0, 12.8), (3.5, 13.1), (5.8, 9.9), (4.1, 8.7)),
    "barmag": ((1.1, 4.7), (5.9, 0.8), (3.4, 2.2), (0.4, 5.6)),
    "glider": ((6.2, 0.7), (4.3, -0.9), (5.1, 0.2), (3.6, -0.4)),
    "lv": ((1.0, 3.0), (4.0, 1.0), (8.0, 2.0), (3.0, 3.0)),
    "predprey": ((6.1, 11.2), (4.2, 9.1), (5.3, 10.4), (3.9, 8.8)),
    "shearflow": ((2.3, 0.6), (-1.4, 1.2), (0.8, -0.9), (-2.7, -0.5)),
    "vdp": ((0.8, 0.3), (0.2, 0.9), (0.5, 0.5), (0.9, 0.1)),
}


@dataclass(frozen=True)
class TrajectoryProblem:
    """One equation of a system of two; `system` are both right-hand sides, `text` is the one to find."""

    name: str
    text: str
    system: tuple[str, str]
    starts: tuple[tuple[float, float], ...]
    variables: tuple[str, ...] = _NAMES

    @cached_property
    def expression(self) -> Expression:
        """The law."""
        return parse(self.text, law_operators())

    @property
    def positive(self) -> bool:
        return bool((self._states > 0).all())

    @cached_property
    def _states(self) -> Array:
        """The states of all runs, (400, 2)."""
        laws = [parse(text, law_operators()) for text in self.system]

        def slope(time: float, state: Array) -> list[float]:
            return [float(law_values(law, _NAMES, state[None, :])[0]) for law in laws]

        times = _STEP * np.arange(_STEPS)
        # LSODA: van der Pol's equations are stiff.
        tight = {"method": "LSODA", "rtol": 1e-8, "atol": 1e-10}
        runs = [solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, **tight).y.T for start in self.starts]
        return np.concatenate(runs)

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        return self._split(seed)[0]

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        return self._split(seed)[1]

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        return defined_points(self, self._states.min(axis=0), self._states.max(axis=0), seed)

    def _split(self, seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        X = self._states
        y = law_values(self.expression, _NAMES, X)
        order = np.random.default_rng([seed, 17]).permutation(len(X))
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
