"""A benchmark problem: the law, the range and number of its samples, and the test of recovery."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from symenum.expressions import Expression, evaluate, parse, variables

__all__ = ["Problem", "recovered"]

Array = npt.NDArray[np.float64]

_FRESH_ROWS = 1000
_OVERSAMPLING = 20  # half of a range, or more, may lie outside the law's domain
_TOLERANCE = 1e-9
_ABSOLUTE = 1e-12  # times the median of |y|: near its zeros a law has no relative precision


@dataclass(frozen=True)
class Problem:
    """`text` is the law in our own grammar; each variable is sampled from `low` to `high`."""

    name: str
    text: str
    variables: tuple[str, ...]
    low: float
    high: float
    rows: int
    sampling: Literal["uniform", "equidistant"] = "uniform"

    def __post_init__(self) -> None:
        unknown = set(variables(self.expression)) - set(self.variables)
        if unknown:
            raise ValueError(f"{self.name}: {', '.join(sorted(unknown))} in the law but not among the variables")
        if self.sampling == "equidistant" and len(self.variables) != 1:
            raise ValueError(f"{self.name}: equidistant sampling needs one variable, not {len(self.variables)}")

    @cached_property
    def expression(self) -> Expression:
        """The law."""
        return parse(self.text)

    def values(self, X: Array, expression: Expression | None = None) -> Array:
        """The law, or another expression in its variables, on rows X (n, variables)."""
        columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(self.variables)}
        return np.asarray(evaluate(expression or self.expression, columns), dtype=np.float64)

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """X (rows, variables) and y (rows,), float64; the seed does nothing for equidistant samples."""
        if self.sampling == "equidistant":
            X = np.linspace(self.low, self.high, self.rows)[:, None]
        else:
            generator = np.random.default_rng(1000 * seed + 17)
            X = generator.uniform(self.low, self.high, (self.rows, len(self.variables)))
        return X, self.values(X)

    def fresh(self, seed: int = 0, rows: int = _FRESH_ROWS) -> tuple[Array, Array]:
        """Up to `rows` uniform points of a range twice as wide, those where the law is defined."""
        middle, half = (self.low + self.high) / 2, self.high - self.low
        generator = np.random.default_rng(1000 * seed + 99)
        X = generator.uniform(middle - half, middle + half, (_OVERSAMPLING * rows, len(self.variables)))
        y = self.values(X)
        defined = np.isfinite(y)
        return X[defined][:rows], y[defined][:rows]


def recovered(expression: Expression, problem: Problem, seed: int = 0) -> bool:
    """Whether the expression is the law: equal to 1e-9 on 1,000 fresh points, all those where the law is defined.

    An expression that is not defined on one of them, sqrt(x)**2 for x, is not the law.
    """
    if set(variables(expression)) - set(problem.variables):
        return False
    X, y = problem.fresh(seed)
    values = problem.values(X, expression)
    if not np.isfinite(values).all():
        return False
    allowed = _TOLERANCE * np.abs(y) + _ABSOLUTE * float(np.median(np.abs(y)))
    return bool((np.abs(values - y) <= allowed).all())
