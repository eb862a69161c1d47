"""A benchmark problem: the law, the range and number of its samples, noise on its target, and files from outside.

Its variables are x1, x2, … whatever its source calls them, since systems are given arrays. Whether a law has been found
is not decided here but in `symenum.bench.judge`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import sympy
import torch

from symenum.expressions import Expression, evaluate, parse, variables
from symenum.operators import Operator, make_operator

__all__ = [
    "VARIABLE",
    "Array",
    "Case",
    "MissingDataError",
    "NoiseKind",
    "Problem",
    "data_file",
    "defined_points",
    "law_operators",
    "law_values",
    "rename",
    "with_noise",
]

Array = npt.NDArray[np.float64]

_FRESH_ROWS = 1000  # points on which laws are compared
_OVERSAMPLING = 20  # half of a range, or more, may lie outside the law's domain

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


NoiseKind = Literal["std", "rms"]
"""`std`: the paper's, level·std(y) (supplement, "Summary of Problem Sets"); `rms`: SRBench's, level·√mean(y²)."""


def with_noise(y: Array, level: float, kind: NoiseKind, seed: int) -> Array:
    """y (rows,) with Gaussian noise of that level; level 0 gives y back unchanged."""
    if not level >= 0:
        raise ValueError(f"the noise level must be a number of at least 0, not {level!r}")
    if level == 0:
        return y
    scale = float(np.std(y)) if kind == "std" else float(np.sqrt(np.mean(np.square(y))))
    noisy: Array = y + level * scale * np.random.default_rng([seed, 71]).standard_normal(len(y))
    return noisy


_NAME = re.compile(r"[A-Za-z_]\w*")


def rename(text: str, names: Mapping[str, str]) -> str:
    """The text with whole names replaced; functions and pi stay unless they are named too.

    >>> rename("x*exp(-x)/xy", {"x": "x1"})
    'x1*exp(-x1)/xy'
    """
    return _NAME.sub(lambda match: names.get(match.group(), match.group()), text)


VARIABLE = "SYMENUM_DATA"


class MissingDataError(FileNotFoundError):
    """A problem set needs files that are not there; the message says which, and where the public original is."""

    def __str__(self) -> str:
        return str(self.args[0])


def data_file(relative: str, needed_by: str, original: str) -> Path:
    """The path of a file or folder below $SYMENUM_DATA that exists."""
    root = os.environ.get(VARIABLE)
    if not root:
        raise MissingDataError(
            f"the problem set {needed_by} needs {relative}: set {VARIABLE} to the folder that holds it. "
            f"The public original: {original}"
        )
    path = Path(root) / relative
    if not path.exists():
        raise MissingDataError(
            f"the problem set {needed_by} needs {path}, which does not exist ({VARIABLE} is {root!r}). "
            f"The public original: {original}"
        )
    return path
