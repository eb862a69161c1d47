"""The paper's 20 problems in 50 variables (supplement, Table "High-dimensional synthetic regression problems").

The data are the published ones, 500 rows each: every seed has the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from symenum.expressions import Expression
from symenum.problems.external import data_file
from symenum.problems.problem import Array, Problem

__all__ = ["TableProblem", "fifty_dim"]

_ORIGINAL = "https://github.com/intell-sci-comput/PSE, folder benchmark (synthetic_50d_N.csv and .txt)"
_COUNT = 20


@dataclass(frozen=True)
class TableProblem:
    """A law with a table of samples; `problem` knows the law and the range, `path` the rows (variables and y)."""

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
        """The table as it is; the seed does nothing."""
        return self._table[:, :-1], self._table[:, -1]

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        return self.problem.test(seed)

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        return self.problem.fresh(seed)


def fifty_dim() -> tuple[TableProblem, ...]:
    """The 20 problems; the files are looked at when a problem is sampled."""
    folder = data_file("fifty_dim", "fifty_dim", _ORIGINAL)
    law = Problem("", "x1", tuple(f"x{i + 1}" for i in range(50)), -1.0, 1.0, 500)
    problems = []
    for number in range(1, _COUNT + 1):
        stem = f"fifty_dim/synthetic_50d_{number}"
        path = data_file(f"{stem}.txt", "fifty_dim", _ORIGINAL)
        text = path.read_text(encoding="utf-8").strip().replace("x_", "x")
        problem = replace(law, name=f"Fifty-{number}", text=text)
        problems.append(TableProblem(problem, folder / f"synthetic_50d_{number}.csv"))
    return tuple(problems)
