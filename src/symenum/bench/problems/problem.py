"""A benchmark problem: the law, the range and number of its samples, noise on its target, and the files it needs.

Its variables are x1, x2, … whatever its source calls them, since systems get arrays without names. Whether a law has
been found is not decided here but in `symenum.bench.judge`.
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
    "DATA_FOLDER",
    "Array",
    "Case",
    "Dataset",
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

_FRESH_ROWS = 1000  # points on which two laws are compared
_OVERSAMPLING = 20  # points drawn for each fresh one: half of a range, or more, may lie outside the law's domain
# The seed s draws its data from streams 1000·s + one of these, so that training, test and fresh points never coincide.
_TRAIN, _TEST, _FRESH = 17, 53, 99
_NOISE_STREAM = 71  # of the random numbers of the noise


class Dataset(Protocol):
    """Rows to fit and rows to test on. A measured table is no more than this: nobody knows its law.

    `sample` and `test` give X (rows, variables) and y (rows,), float64: the training data, and other points of the same
    range, or rows of the table that were held out.
    """

    @property
    def name(self) -> str: ...
    @property
    def variables(self) -> tuple[str, ...]: ...
    def sample(self, seed: int = 0) -> tuple[Array, Array]: ...
    def test(self, seed: int = 0) -> tuple[Array, Array]: ...


class Case(Dataset, Protocol):
    """A problem whose law is known. Problems with tables or trajectories have classes of their own.

    `fresh` gives X (rows, variables) and y (rows,), float64: points of a range twice as wide as that of `sample`.
    """

    @property
    def expression(self) -> Expression: ...
    @property
    def positive(self) -> bool:
        """Whether all samples of all variables are above zero; SymPy may then simplify more."""
        ...

    def fresh(self, seed: int = 0) -> tuple[Array, Array]: ...


@cache
def law_operators() -> tuple[Operator, ...]:
    """Functions in laws of public sets that are not in the table of operators."""
    return (
        make_operator("asin", torch.asin, sympy_function=sympy.asin, mpmath="asin"),
        make_operator("acos", torch.acos, sympy_function=sympy.acos, mpmath="acos"),
        make_operator("cot", lambda x: 1 / torch.tan(x), sympy_function=sympy.cot, mpmath="cot"),
    )


def law_values(expression: Expression, names: tuple[str, ...], X: Array) -> Array:
    """An expression's values (rows,) on X (rows, variables), float64; `names` are the variables in X's order."""
    columns = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(names)}
    return np.asarray(evaluate(expression, columns), dtype=np.float64)


def defined_points(case: Case, low: Array, high: Array, seed: int, rows: int = _FRESH_ROWS) -> tuple[Array, Array]:
    """Up to `rows` uniform points of a range twice as wide as (low, high) at which the law is defined."""
    middle, half = (low + high) / 2, high - low  # half of the wide range is all of the other
    generator = np.random.default_rng(1000 * seed + _FRESH)
    X = generator.uniform(middle - half, middle + half, (_OVERSAMPLING * rows, len(case.variables)))
    y = law_values(case.expression, case.variables, X)
    defined = np.isfinite(y)
    return X[defined][:rows], y[defined][:rows]


@dataclass(frozen=True)
class Problem:
    """A law as text of our grammar, with `rows` samples of its variables from `low` to `high`.

    A bound is one number for all variables, or one number for each.
    """

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
        count = len(self.variables)
        return (
            np.broadcast_to(np.asarray(self.low, dtype=np.float64), (count,)),
            np.broadcast_to(np.asarray(self.high, dtype=np.float64), (count,)),
        )

    @property
    def positive(self) -> bool:
        return bool((self.bounds[0] >= 0).all())

    def values(self, X: Array, expression: Expression | None = None) -> Array:
        """The values (rows,) of the law, or of another expression in its variables, on X (rows, variables)."""
        return law_values(expression or self.expression, self.variables, X)

    def sample(self, seed: int = 0) -> tuple[Array, Array]:
        """X (rows, variables) and y (rows,), float64; equidistant samples are the same for every seed."""
        if self.sampling == "equidistant":
            low, high = self.bounds
            X = np.linspace(low, high, self.rows)
            return X, self.values(X)
        return self._uniform(seed, _TRAIN, self.rows)

    def test(self, seed: int = 0) -> tuple[Array, Array]:
        """1,000 uniform points of the same range that are not in `sample`."""
        return self._uniform(seed, _TEST, _FRESH_ROWS)

    def fresh(self, seed: int = 0) -> tuple[Array, Array]:
        """Up to 1,000 uniform points of a range twice as wide at which the law is defined."""
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
    noisy: Array = y + level * scale * np.random.default_rng([seed, _NOISE_STREAM]).standard_normal(len(y))
    return noisy


_NAME = re.compile(r"[A-Za-z_]\w*")


def rename(text: str, names: Mapping[str, str]) -> str:
    """The text with whole names replaced; names of functions and pi stay unless they are in `names` too.

    >>> rename("x*exp(-x)/xy", {"x": "x1"})
    'x1*exp(-x1)/xy'
    """
    return _NAME.sub(lambda match: names.get(match.group(), match.group()), text)


DATA_FOLDER = "SYMENUM_DATA"
"""The environment variable that names the folder of files from outside."""


class MissingDataError(FileNotFoundError):
    """A problem set needs files that are not there; the message says which, and where the public original is."""

    def __str__(self) -> str:
        return str(self.args[0])


def data_file(relative: str, needed_by: str, original: str) -> Path:
    """The path of a file or folder below $SYMENUM_DATA that exists."""
    root = os.environ.get(DATA_FOLDER)
    if not root:
        raise MissingDataError(
            f"the problem set {needed_by} needs {relative}: set {DATA_FOLDER} to the folder that holds it. "
            f"The public original: {original}"
        )
    path = Path(root) / relative
    if not path.exists():
        raise MissingDataError(
            f"the problem set {needed_by} needs {path}, which does not exist ({DATA_FOLDER} is {root!r}). "
            f"The public original: {original}"
        )
    return path
