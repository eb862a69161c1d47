"""What an adapter of a system must do, what it returns, and how a rival's expressions become laws of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from symenum.bench.problems.problem import Array, law_values
from symenum.expressions import Expression, to_text

__all__ = [
    "Found",
    "Law",
    "MotionSystem",
    "NotInstalledError",
    "Predictor",
    "Sighting",
    "System",
    "as_laws",
    "variable_names",
]


class NotInstalledError(ImportError):
    """A rival's package is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Law:
    """One law as text of our grammar, in the variables x1, x2, …

    `complexity` is the paper's weighted count, `loss` the mean squared error on the training data.
    """

    text: str
    complexity: int
    loss: float


@dataclass(frozen=True)
class Sighting:
    """When an expression first stood on the front: seconds after the search began, and its text."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Predictor:
    """A fitted model that is no law: `predict` maps X (rows, variables) to values (rows,), `size` counts its nodes."""

    predict: Callable[[Array], Array]
    size: int


@dataclass(frozen=True)
class Found:
    """The laws from simple to accurate, the index of the law that the system itself chooses, and how it ended.

    A system that finds no law, such as a forest, gives a `predictor` and no laws.

    `sightings`, in the order of time, are the members that the front has had, where the system tells them. `seconds`
    are those of the search, where the system measures them itself; the worker measures `fit` where it is None.
    """

    laws: tuple[Law, ...]
    selected: int
    ended: str = ""
    sightings: tuple[Sighting, ...] = ()
    seconds: float | None = None
    predictor: Predictor | None = None


class MotionSystem(Protocol):
    """A configuration of a system that also finds laws of motion."""

    def fit_motion(
        self, t: Array, X: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int
    ) -> Found:
        """Search x' = f(x) for a trajectory X (points, states) at times t (points,).

        `Found.laws` has one law for each state, those that the system chooses, in x1, x2, …
        """
        ...


class System(Protocol):
    """One configuration of a system, as a benchmark drives it."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        """Search a law of y (rows,) in X (rows, variables), float64 both, for `max_time` seconds on so many cores.

        `operators` are names or signs of our table.
        """
        ...


def variable_names(count: int) -> tuple[str, ...]:
    """x1, x2, …: the names of the columns in the laws of all systems."""
    return tuple(f"x{i + 1}" for i in range(count))


def as_laws(expressions: Iterable[Expression], X: Array, y: Array) -> tuple[Law, ...]:
    """Laws from the largest to the smallest loss on X (rows, variables) and y (rows,).

    The loss is computed here: with its protected operators or single precision a rival may report that of another
    function.
    """
    names = variable_names(X.shape[1])
    laws = []
    for expression in dict.fromkeys(expressions):
        with np.errstate(all="ignore"):
            loss = float(np.mean(np.square(law_values(expression, names, X) - y)))
        laws.append(Law(to_text(expression), expression.complexity, loss if np.isfinite(loss) else float("inf")))
    return tuple(sorted(laws, key=lambda law: (-law.loss, law.complexity)))
