"""What an adapter hands back, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from symenum.problems.problem import Array

__all__ = ["Found", "Law", "NotInstalledError", "System"]


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

    def fit(self, X: Array, y: Array, *, operators: str, seed: int, max_time: float, cores: int) -> Found:
        """Search y (rows,) as a law of X (rows, variables) with one of our operator sets, for `max_time` seconds."""
        ...
