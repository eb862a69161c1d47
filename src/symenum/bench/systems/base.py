"""How an adapter is asked, what it hands back, and how the expressions of a rival become laws of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from symenum.bench.problems.problem import Array, law_values
from symenum.expressions import Expression, to_text

__all__ = ["Found", "Law", "NotInstalledError", "System", "as_laws", "variable_names"]


class NotInstalledError(ImportError):
    """A rival's package is not there; the message says how to get it."""


@dataclass(frozen=True)
class Law:
    """One law as text of our grammar, with the variables x1, x2, …; `complexity` is the paper's weighted count."""

    text: str
    complexity: int
    loss: float


@dataclass(frozen=True)
class Found:
    """The laws from simple to accurate, the one that the system itself would choose, and how it ended."""

    laws: tuple[Law, ...]
    selected: int
    ended: str = ""


class System(Protocol):
    """One configuration of a system."""

    def fit(self, X: Array, y: Array, *, operators: Sequence[str], seed: int, max_time: float, cores: int) -> Found:
        """Search y (rows,) as a law of X (rows, variables) with operators of ours, by name, for `max_time` seconds."""
        ...


def variable_names(count: int) -> tuple[str, ...]:
    """x1, x2, …: what adapters call the columns."""
    return tuple(f"x{i + 1}" for i in range(count))


def as_laws(expressions: Iterable[Expression], X: Array, y: Array) -> tuple[Law, ...]:
    """Laws from simple to accurate, with the loss that the expression itself has on the data.

    A rival's own loss is not taken: protected operators and single precision would make it another function's.
    """
    names = variable_names(X.shape[1])
    laws = []
    for expression in dict.fromkeys(expressions):
        with np.errstate(all="ignore"):
            loss = float(np.mean(np.square(law_values(expression, names, X) - y)))
        laws.append(Law(to_text(expression), expression.complexity, loss if np.isfinite(loss) else float("inf")))
    return tuple(sorted(laws, key=lambda law: (-law.loss, law.complexity)))
