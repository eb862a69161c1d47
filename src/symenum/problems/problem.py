"""A benchmark problem: the law, the range and number of its samples, and the quick test of recovery.

Its variables are x1, x2, … whatever its source calls them, since systems are given arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import sympy
import torch

from symenum.expressions import Expression, evaluate, parse, variables
from symenum.operators import Operator, make_operator

__all__ = ["Array", "Case", "Problem", "defined_points", "law_operators", "law_values", "recovered"]

Array = npt.NDArray[np.float64]

_FRESH_ROWS = 1000
_OVERSAMPLING = 20  # half of a range, or more, may lie outside the law's domain
_TOLERANCE = 1e-9
_ABSOLUTE = 1e-12  # times the median of |y|: near its zeros a law has no relative precision

_TRAIN, _TEST, _FRESH = 17, 53, 99  # streams of random numbers that never meet


class Case(Protocol):
    """What a benchmark needs of a problem; sets with data of their own (tables, trajectories) have other classes."""

    @property
    def name(self) -> str: ...
    @property
    def variables(self) -> tuple[str, ...]: ...
    @property
    def expression(self) -> Expression: ...
    @property
    def positive(self) -> bool:
        """Whether all samples of all variables are above zero; SymPy may then simplify more."""
        ...

    def sample(self, seed: int = 0) -> tuple[Array, Array]: ...
    def test(self, seed: int = 0) -> tuple[Array, Array]: ...
    def fresh(self, seed: int = 0) -> tuple[Array, Array]: ...


@cache
def law_operators() -> tuple[Operator, ...]:
    """Functions that laws of public sets use and no operator set of ours holds."""
    return (
        make_operator("asin", torch.asin, sympy_function=sympy.asin, mpmath="asin"),
        make_operator("acos", torch.acos, sympy_function=sympy.acos, mpmath="acos"),
        make_operator("cot", lambda x: 1 / torch.tan(x), sympy_function=sympy.cot, mpmath="cot"),
    )


def law_values(expression: Expression, names: tuple[str, ...], X: Array) -> Array:
    """An expression's values on rows X (n, variables)."""
    columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(names)}
    return np.asarray(evaluate(expression, columns), dtype=np.float64)


def defined_points(case: Case, low: Array, high: Array, seed: int, rows: int = _FRESH_ROWS) -> tuple[Array, Array]:
    """Up to `rows` uniform points of a range twice as wide as (low, high), those where the law is defined."""
    middle, half = (low + high) / 2, high - low
    generator = np.random.default_rng(1000 * seed + _FRESH)
    X = generator.uniform(middle - half, middle + half, (_OVERSAMPLING * rows, len(case.variables)))
    y = law_values(case.expression, case.variables, X)
    defined = np.isfinite(y)
    return X[defined][:rows], y[defined][:rows]


@dataclass(frozen=True)
class Problem:
    """`text` is the law in our own grammar; variables are sampled from `low` to `high`, one number or one for each."""

    name: str
    text: str
    variables: tuple[str, ...]
    low: float | tuple[float, ...]
    high: float | tuple[float, ...]
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
        return parse(self.text, law_operators())

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The lowest and highest values of the samples, (variables,) each."""
        wide = len(self.variables)
        return (
            np.broadcast_to(np.asarray(self.low, dtype=np.float64), (wide,)),
            np.broadcast_to(np.asarray(self.high, dtype=np.float64), (wide,)),
        )

    @property
    def positive(self) -> bool:
        return bool((self.bounds[0] >= 0).all())

    def values(self, X: Array, expression: Expression | None = None) -> Array:
        """The law, or another expression in its variables, on rows X (n, variables)."""
        return law_values(expression or self.expression, self.variables, X)

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """X (rows, variables) and y (rows,), float64; the seed does nothing for equidistant samples."""
        if self.sampling == "equidistant":
            low, high = self.bounds
            X = np.linspace(low, high, self.rows)
            return X, self.values(X)
        return self._uniform(seed, _TRAIN, self.rows)

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        """Points of the same range that `sample` does not hold."""
        return self._uniform(seed, _TEST, _FRESH_ROWS)

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        """Up to 1,000 uniform points of a range twice as wide, those where the law is defined."""
        return defined_points(self, *self.bounds, seed)

    def _uniform(self, seed: int, stream: int, rows: int) -> tuple[Array, Array]:
        X = np.random.default_rng(1000 * seed + stream).uniform(*self.bounds, (rows, len(self.variables)))
        return X, self.values(X)


def recovered(expression: Expression, problem: Case, seed: int = 0) -> bool:
    """Whether the expression is the law: equal to 1e-9 on 1,000 fresh points, all those where the law is defined.

    An expression that is not defined on one of them, sqrt(x)**2 for x, is not the law.
    """
    if set(variables(expression)) - set(problem.variables):
        return False
    X, y = problem.fresh(seed)
    values = law_values(expression, problem.variables, X)
    if not np.isfinite(values).all():
        return False
    allowed = _TOLERANCE * np.abs(y) + _ABSOLUTE * float(np.median(np.abs(y)))
    return bool((np.abs(values - y) <= allowed).all())
