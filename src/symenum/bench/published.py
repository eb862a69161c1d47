"""Published figures as data, to stand next to ours.

The per-problem and per-set tables are the paper's (Supplementary Tables, six sets and the 50 dimensions); the SRBench
rates are those published for the 130 problems (SRBench's own, the authors' figure for PSE and PySR, and Keplearn's).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["PublishedProblem", "PublishedSet", "published_problem", "published_set"]


@dataclass(frozen=True)
class PublishedProblem:
    """A method's recovery on one problem, in percent, and its mean time in seconds where it is published."""

    method: str
    recovery: float
    seconds: float | None


@dataclass(frozen=True)
class PublishedSet:
    """A method's figures on a set; percent and seconds."""

    method: str
    recovery: float | None
    r2: float | None
    seconds: float | None


def published_problem(problem: str) -> tuple[PublishedProblem, ...]:
    """What is published for a problem, by method; nothing for those that the paper does not have."""
    return tuple(
        PublishedProblem(row["method"], float(row["recovery_percent"]), _optional(row["seconds"]))
        for row in _rows("published_problems.csv")
        if row["problem"] == problem
    )


def published_set(name: str, noise: float = 0.0) -> tuple[PublishedSet, ...]:
    """What is published for a set at a level of noise, by method."""
    key = f"{name}@{noise:g}" if name.startswith("srbench") else name
    figures: dict[str, dict[str, float]] = {}
    for row in _rows("published_sets.csv"):
        if row["set"] == key:
            figures.setdefault(row["method"], {})[row["figure"]] = float(row["value"])
    return tuple(
        PublishedSet(method, by.get("recovery_percent"), by.get("r2_above_0.99_percent"), by.get("seconds"))
        for method, by in figures.items()
    )


def _optional(text: str) -> float | None:
    return float(text) if text else None


@cache
def _rows(file: str) -> tuple[dict[str, str], ...]:
    with files("symenum.data").joinpath(file).open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))
