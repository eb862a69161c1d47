"""ODEBench: laws of motion of textbooks with two solved trajectories each, for systems that find laws of motion.

The odd half of the 63 systems, on which symenum may be developed, is $SYMENUM_DATA/odebench_odd.json, not shipped: a
list of records with `id`, `dim`, `eqs` (the right-hand sides in x_0, x_1, …), `what`, and `runs`, each with the times
`t` and the states `y` (states, times). The first run is fitted; the second starts elsewhere and is never shown.

Noise is multiplicative, as ODEFormer has it: a sample x becomes (1 + level·ε)·x.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from symenum.bench.problems.problem import Array, MissingDataError, data_file, law_operators, rename
from symenum.expressions import Expression, parse

__all__ = ["MotionProblem", "Run", "odebench"]

_FILE = "odebench_odd.json"
_SOURCE = "https://github.com/sdascoli/odeformer, odeformer/odebench, systems with an odd number"
_NOISE_STREAM = 83  # of the random numbers of the noise


@dataclass(frozen=True)
class Run:
    """One solved trajectory: times t (points,) and states X (points, states), float64, without noise."""

    t: Array
    X: Array


@dataclass(frozen=True)
class MotionProblem:
    """x' = f(x) with its runs: the first is fitted, the second is there to judge. `texts`: f of each state."""

    name: str
    title: str
    texts: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(f"x{i + 1}" for i in range(len(self.texts)))

    @cached_property
    def laws(self) -> tuple[Expression, ...]:
        """The true right-hand sides."""
        return tuple(parse(text, law_operators()) for text in self.texts)

    @property
    def expression(self) -> str:
        """The laws in one line, for reports."""
        return "; ".join(self.texts)

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """Times (points, 1) and states (points, states) of the run to fit: the same for every seed."""
        return self.runs[0].t[:, None], self.runs[0].X

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        """Times (points, 1) and states (points, states) of the run from another start."""
        return self.runs[1].t[:, None], self.runs[1].X

    def noisy(self, noise: float, seed: int) -> tuple[Array, Array]:
        """Times (points,) and states (points, states) of the run to fit, each sample x being (1 + noise·ε)·x."""
        if not noise >= 0:
            raise ValueError(f"the noise level must be a number of at least 0, not {noise!r}")
        first = self.runs[0]
        if noise == 0:
            return first.t, first.X
        random = np.random.default_rng([seed, _NOISE_STREAM])
        return first.t, first.X * (1 + noise * random.standard_normal(first.X.shape))


def odebench() -> tuple[MotionProblem, ...]:
    """The systems of odebench_odd.json, called by their numbers."""
    return _read(str(data_file(_FILE, "odebench", _SOURCE)))


@cache
def _read(path: str) -> tuple[MotionProblem, ...]:
    try:
        return tuple(_problem(record) for record in json.loads(Path(path).read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise MissingDataError(
            f"{path} is no list of systems with runs ({error!r}). The public original: {_SOURCE}"
        ) from error


def _problem(record: Mapping[str, Any]) -> MotionProblem:
    names = {f"x_{i}": f"x{i + 1}" for i in range(int(record["dim"]))}
    texts = tuple(rename(text, names) for text in record["eqs"])
    return MotionProblem(f"odebench-{record['id']}", str(record["what"]), texts, _runs(record["runs"]))


def _runs(records: Sequence[Mapping[str, Any]]) -> tuple[Run, ...]:
    return tuple(
        Run(np.asarray(run["t"], dtype=np.float64), np.ascontiguousarray(np.asarray(run["y"], dtype=np.float64).T))
        for run in records
    )
