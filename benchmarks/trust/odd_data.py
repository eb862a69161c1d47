"""Random data sets of every kind that people hand to `fit`, and whether `fit` may refuse them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas
import scipy.sparse

__all__ = ["OddData", "odd_data"]

Array = npt.NDArray[Any]

NAMES = (
    "a b", "", "x1", "lambda", "pi", "__import__('os').system('echo bad')", "1", "naïve", "x\ny", "π", "🙂", "sin",
    "E", "a" * 300, "x**2", "-", "None", "{0}", "%s", "\\frac", "if", "x1 ", "X1",
)  # fmt: skip


@dataclass(frozen=True)
class OddData:
    """What is handed to `fit`. `usable`: whether it is plain finite numbers, so that there is no reason to refuse."""

    X: Any
    y: Any
    sample_weight: Any
    usable: bool
    kind: str


def odd_data(seed: int) -> OddData:
    """The data set of that number."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([1, 2, 3, 5, 12, 40, 150, 1000, 5000], p=[0.03, 0.04, 0.08, 0.1, 0.15, 0.25, 0.2, 0.1, 0.05]))
    columns = int(rng.choice([1, 2, 3, 6, 15, 40, 100], p=[0.2, 0.25, 0.25, 0.15, 0.07, 0.05, 0.03]))
    kinds = [f"{rows}x{columns}"]
    X = _values(rng, rows, columns, kinds)
    y = _target(rng, X, kinds)
    weight = _weight(rng, rows, kinds)
    _spoil(rng, X, y, kinds)
    usable = rows >= 2 and bool(np.isfinite(X).all()) and _in_range(y) and _fine(weight)
    X, y, usable = _dressed(rng, X, y, usable, kinds)
    return OddData(X, y, weight, usable, ", ".join(kinds))


def _values(rng: np.random.Generator, rows: int, columns: int, kinds: list[str]) -> Array:
    size = (rows, columns)
    choices = (rng.normal, lambda size: rng.uniform(0.5, 3, size), lambda size: rng.integers(-3, 4, size),
               lambda size: rng.lognormal(size=size), lambda size: np.sort(rng.normal(size=size), axis=0))  # fmt: skip
    X = np.array(choices[rng.integers(5)](size=size), dtype=float)
    if rng.random() < 0.25:
        power = float(rng.choice([-300, -150, -30, -8, 8, 30, 150, 300]))
        which = rng.random(columns) < 0.7
        X[:, which] *= 10.0**power
        kinds.append(f"X 1e{power:g}")
    if rng.random() < 0.15:
        X[:, rng.integers(columns)] = rng.choice([0.0, 1.0, -7.5, 1e300])
        kinds.append("constant column")
    if columns > 1 and rng.random() < 0.15:
        X[:, 1] = X[:, 0] * rng.choice([1.0, -1.0, 2.0])
        kinds.append("duplicate column")
    if rows > 3 and rng.random() < 0.1:
        X[rows // 2 :] = X[: rows - rows // 2]
        kinds.append("duplicate rows")
    return X


def _target(rng: np.random.Generator, X: Array, kinds: list[str]) -> Array:
    rows, columns = X.shape
    a, b = X[:, rng.integers(columns)], X[:, rng.integers(columns)]
    with np.errstate(all="ignore"):
        choices = [a * b, a + 2 * b + 1, np.sin(a) * b, a / b, rng.normal(size=rows), np.full(rows, 3.0), a, np.exp(a)]
        y = np.array(choices[rng.integers(len(choices))])
        if not np.isfinite(y).all():
            y = rng.normal(size=rows)
        if rng.random() < 0.3:
            y = y + 0.1 * (np.std(y) or 1.0) * rng.normal(size=rows)
        if rng.random() < 0.2:
            power = float(rng.choice([-300, -150, -30, 30, 150, 300]))
            y = y * 10.0**power
            kinds.append(f"y 1e{power:g}")
    return y


def _weight(rng: np.random.Generator, rows: int, kinds: list[str]) -> Array | None:
    draw = rng.random()
    if draw < 0.85:
        return None
    weight = rng.uniform(0, 2, rows)
    if draw < 0.89:
        weight[rng.random(rows) < 0.5] = 0.0
    elif draw < 0.91:
        weight[0] = rng.choice([-1.0, np.nan, np.inf])
    elif draw < 0.93:
        weight *= 10.0 ** float(rng.choice([-300, 300]))
    kinds.append("weights")
    return weight


def _in_range(y: Array) -> bool:
    """Whether the squares of y are numbers; where they are not, `fit` says that y must be rescaled."""
    largest = np.abs(y).max()
    return bool(np.isfinite(y).all()) and (largest == 0.0 or 1e-140 < largest < 1e140)


def _fine(weight: Array | None) -> bool:
    if weight is None:
        return True
    return bool(np.isfinite(weight).all() and (weight >= 0).all() and (weight > 0).sum() >= 2)


def _spoil(rng: np.random.Generator, X: Array, y: Array, kinds: list[str]) -> None:
    if rng.random() < 0.1:
        where = X if rng.random() < 0.5 else y[:, None]
        where[rng.integers(len(where)), rng.integers(where.shape[1])] = rng.choice([np.nan, np.inf, -np.inf])
        kinds.append("not finite")


def _dressed(rng: np.random.Generator, X: Array, y: Array, usable: bool, kinds: list[str]) -> tuple[Any, Any, bool]:
    """The same numbers as another type or layout; what changes the numbers says whether they still can be used."""
    dress = str(rng.choice(["plain", "plain", "int", "bool", "object", "float16", "fortran", "read-only", "sparse",
                            "pandas", "pandas", "list", "column y", "text", "float32", "strided"]))  # fmt: skip
    kinds.append(dress)
    with np.errstate(all="ignore"):
        if dress == "int" and usable and np.abs(X).max() < 2**62:
            return X.astype(np.int64), np.round(y).astype(np.int64) if np.abs(y).max() < 2**62 else y, True
        if dress == "bool":
            return np.nanmedian(X) < X, y, bool(usable)
        if dress == "object":
            return X.astype(object), y.astype(object), usable
        if dress in ("float16", "float32"):
            small = X.astype(dress)
            return small, y, usable and bool(np.isfinite(small).all())
    if dress == "fortran":
        return np.asfortranarray(X), y, usable
    if dress == "read-only":
        X.setflags(write=False)
        y.setflags(write=False)
    if dress == "strided":
        return np.repeat(X, 2, axis=1)[:, ::2], np.repeat(y, 2)[::2], usable
    if dress == "sparse":
        return scipy.sparse.csr_matrix(X), y, False
    if dress == "pandas":
        names = list(rng.choice(NAMES, X.shape[1], replace=X.shape[1] > len(NAMES)))
        twice = len(set(names)) < len(names)
        frame = pandas.DataFrame(X, columns=[str(name) for name in names])
        return frame, pandas.Series(y, name="y"), usable and not twice
    if dress == "list":
        return X.tolist(), y.tolist(), usable
    if dress == "column y":
        return X, y[:, None], usable
    if dress == "text":
        return X.astype(str), np.array(["a"] * len(y)), False
    return X, y, usable
