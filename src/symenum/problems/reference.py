"""The problems as the reference's files have them, where they differ from the paper's tables.

Points are the product of the counts of each axis, at most 1,000: 400 for "U(a, b, 20)" in two dimensions. Nguyen-7 is
sampled from 0 to 4, Nguyen-5c from -1 to 1, and Nguyen-12 has x^3 where Table S.1 prints x^2.
"""

from __future__ import annotations

from dataclasses import replace

from symenum.problems.problem import Problem
from symenum.problems.tables import PROBLEM_SETS

__all__ = ["reference_problems"]

_MOST_ROWS = 1000
_CHANGED = {
    "Nguyen-7": {"high": 4.0},
    "Nguyen-5c": {"low": -1.0, "high": 1.0},
    "Nguyen-12": {"text": "x1**4 - x1**3 + x2**2/2 - x2"},
}


def reference_problems(name: str) -> tuple[Problem, ...]:
    """The problems of one of the paper's sets as the reference runs them; each says so in its name."""
    return tuple(_reference(problem) for problem in PROBLEM_SETS[name])


def _reference(problem: Problem) -> Problem:
    rows = min(problem.rows ** len(problem.variables), _MOST_ROWS)
    changes = _CHANGED.get(problem.name, {})
    return replace(problem, name=f"{problem.name}-reference", rows=rows, **changes)  # type: ignore[arg-type]
