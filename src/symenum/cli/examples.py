"""Data sets that ship with the package, for a first try: `symenum fit --example planets`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXAMPLES", "Example"]


@dataclass(frozen=True)
class Example:
    """A packaged file, what to search in it, and the law that history found."""

    file: str
    target: str
    drop: tuple[str, ...]
    max_time: float
    story: str
    known: str
    law: str


EXAMPLES = {
    "planets": Example(
        file="planets.csv",
        target="period_years",
        drop=("planet",),
        max_time=3.0,
        story="The eight planets: distance from the Sun (AU) and period (years). Which law gives the period?",
        known="Kepler's third law (1619), period_years**2 = distance_au**3",
        law="distance_au**(3/2)",
    )
}
