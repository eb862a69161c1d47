"""Where a search stands, and what one step reports. Plain values: a search can be stopped, kept and taken up again."""

from __future__ import annotations

from dataclasses import dataclass

from symenum.enumeration.shortlist import Candidate
from symenum.front import Front

__all__ = ["State", "StepReport"]


@dataclass(frozen=True)
class State:
    """All that a search knows after `iteration` steps; random numbers follow from seed and iteration."""

    seed: int
    iteration: int
    front: Front
    generator: object = None  # the token generator's own state, once it has begun
    scored: int = 0
    elapsed: float = 0.0
    beside: tuple[Candidate, ...] = ()  # what the heads found that nearly stands on the front, until it is looked into


@dataclass(frozen=True)
class StepReport:
    """What callbacks are told after each step. `scored` and `rate` count candidates of the network's passes."""

    iteration: int
    stage: str
    seconds: float
    elapsed: float
    time_left: float | None
    scored: int
    rate: float
    front: Front
    message: str
