"""Heads from outside the package: which there are, and how one of them is run so that a fault in it bears its name.

`symenum.plugins.register_head` checks a head before it comes here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from symenum.core.budget import Budget, CutShortError
from symenum.enumeration.shortlist import Candidate
from symenum.heads.features import Features
from symenum.heads.goal import Goal
from symenum.heads.head import Head

__all__ = ["HEADS", "RegisteredHead", "Wanted", "registered_heads"]

Wanted = Literal["slots", "layers", "extended"]


@dataclass(frozen=True)
class RegisteredHead:
    """`wanted`: the features that its scan gets; `late`: whether its stage comes after all others."""

    head: Head
    wanted: Wanted = "slots"
    late: bool = False

    @property
    def name(self) -> str:
        return self.head.name

    def scan(self, features: Features, goal: Goal, k: int, budget: Budget) -> list[Candidate]:
        """What the head finds; whatever goes wrong in it is an error with its name."""
        try:
            found = self.head.scan(features, goal, k, budget)
        except CutShortError:  # the time is over, which is no fault
            raise
        except Exception as error:
            raise RuntimeError(f"the head {self.name!r} raised {type(error).__name__}: {error}") from error
        if not isinstance(found, list) or not all(isinstance(one, Candidate) for one in found):
            raise TypeError(
                f"scan of the head {self.name!r} must return a list of Candidate, as Goal.fit and Goal.candidate give "
                f"them, not {found!r:.80}"
            )
        return found


HEADS: dict[str, RegisteredHead] = {}
"""By name, in the order of registration."""


def registered_heads() -> tuple[RegisteredHead, ...]:
    return tuple(HEADS.values())
