"""Data sets that ship with the package, for a first try: `symenum fit --example planets`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["EXAMPLES", "Example"]


@dataclass(frozen=True)
class Example:
    """A packaged file, what to search in it, and the law that history found."""

    file: str
    target: str
    drop: tuple[str, ...]
    settings: Mapping[str, object]
    """Instead of the defaults of `symenum fit`."""
    story: str
    known: str
    law: str


EXAMPLES = {
    "planets": Example(
        file="planets.csv",
        target="period_years",
        drop=("planet",),
        # The table is of mean orbits, in which Kepler's law holds to 0.06%, and has eight rows: what fits better is
        # chance, and the reward, which asks most for simplicity, says so.
        settings={"max_time": 2.0, "model_selection": "reward"},
        story="The eight planets: distance from the Sun (AU) and period (years). Which law gives the period?",
        known="Kepler's third law (1619) is period_years = distance_au**(3/2)",
        law="distance_au**(3/2)",
    )
}
