"""SRBench's problems with known laws: 120 equations of Feynman's lectures and 14 of Strogatz's book.

Published counts differ. 134 are all; 133 are those in PMLB, which lacks II.11.17; 130, the count of most published
tables, are without the three inverse trigonometric ones. The Feynman data are uniform samples of the laws: they are
drawn here, 10,000 for training as SRBench's subsample has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from symenum.problems.external import data_file
from symenum.problems.names import rename
from symenum.problems.problem import Case, Problem
from symenum.problems.strogatz import strogatz

__all__ = ["srbench", "srbench_130", "srbench_133", "srbench_feynman", "srbench_strogatz"]

_FEYNMAN_SOURCE = (
    "the formulas and ranges in https://github.com/EpistasisLab/pmlb, datasets/feynman_*/metadata.yaml, or "
    "FeynmanEquations.csv of https://space.mit.edu/home/tegmark/aifeynman.html"
)
_STROGATZ_SOURCE = "the formulas in https://github.com/lacava/ode-strogatz"
_NOT_IN_PMLB = ("II.11.17",)
_INVERSE_TRIGONOMETRIC = ("I.26.2", "I.30.5", "test_10")
_ROWS = 10_000


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
        _ROWS,
    )


def _read(relative: str, original: str) -> Any:
    path = data_file(relative, "srbench", original)
    return json.loads(path.read_text(encoding="utf-8"))
