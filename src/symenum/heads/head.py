"""The protocol of a head, heads from outside the package, and which survivors of a scan are worth a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.core.exactness import EPSILON, EXACTNESS
from symenum.expressions.candidate import Candidate
from symenum.heads.features import Features
from symenum.heads.response import Response

__all__ = [
    "HEADS",
    "LAST_FITS",
    "Choice",
    "Head",
    "RegisteredHead",
    "Wanted",
    "choose",
    "fit_chosen",
    "registered_heads",
    "rounding_of",
]


# --------------------------------------------------------------------------------------------------------------------
# The protocol of a head, and the choice, common to all, of which survivors of a scan are worth a fit.


_ENOUGH_LAWS = 5
LAST_FITS = 3  # the best, which are fitted even if the time is over
_SIMPLEST = 40  # of the nearly exact ones, so many are fitted


class Head(Protocol):
    """One way to turn features into candidates, each with its best coefficients."""

    @property
    def name(self) -> str: ...

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """At least the best k by loss, in no order, and simpler ones that are the best of their complexity.

        Where the budget is over, what was found so far; or CutShortError, if nothing could be.
        """
        ...


def rounding_of(response: Response) -> float:
    """The relative residual that rounding of t alone leaves, on the part of t that is not its mean."""
    t, root = response.scanned()
    weight = root.square()
    spread = float(((t - (t * weight).sum()).square() * weight).sum().sqrt())
    size = float((t.square() * weight).sum().sqrt())
    return max(EXACTNESS.rounding, 2 * EPSILON * size / spread) if spread > 0 else 1.0


@dataclass(frozen=True)
class Choice:
    """Indices of survivors, the most promising first; the first `nearly` of them may be exact up to rounding."""

    indices: tuple[int, ...]
    nearly: int


def choose(residual: Tensor, complexity: Tensor, k: int, rounding: float = EXACTNESS.rounding) -> Choice:
    """Which of the scan's survivors to fit.

    Those that are exact up to rounding by complexity; the best k; and the best of each complexity that none simpler
    beats. `residual` (N,) float64 relative, `complexity` (N,) int64.
    """
    digits = torch.log10((residual / rounding).clamp_min(1.0)).floor()
    order = torch.argsort(complexity, stable=True)
    order = order[torch.argsort(digits[order], stable=True)]
    # Below this, relative to the part of t that is to be explained, the simplest comes first, not the smallest.
    nearly = order[residual[order] <= max(EXACTNESS.scanned, 10 * rounding)][:_SIMPLEST]
    by_fit = torch.argsort(residual, stable=True)
    front: list[int] = []
    if not len(nearly):
        simple_first = by_fit[torch.argsort(complexity[by_fit], stable=True)]
        best = float("inf")
        for index, value in zip(simple_first.tolist(), residual[simple_first].tolist(), strict=True):
            if value < best:
                best = value
                front.append(index)
    picked = [*nearly.tolist(), *by_fit[:k].tolist(), *front]
    return Choice(tuple(dict.fromkeys(picked)), len(nearly))


def fit_chosen(
    response: Response, choice: Choice, fit: Callable[[int], Iterable[Candidate | None]], budget: Budget
) -> list[Candidate]:
    """The candidates that `fit` makes of the chosen survivors.

    Once the law is found, what is not nearly exact is no longer of interest, and of the others a few will do. When the
    time is over, a few of the most promising are still fitted: the scan that found them shall not be in vain.
    """
    out: list[Candidate] = []
    laws = 0
    for place, index in enumerate(choice.indices):
        if laws >= _ENOUGH_LAWS or (laws and place >= choice.nearly) or (place >= LAST_FITS and budget.over()):
            break
        found = [candidate for candidate in fit(index) if candidate is not None]
        out += found
        laws += any(response.data.is_law(candidate) for candidate in found)
    return out


# --------------------------------------------------------------------------------------------------------------------
# Heads from outside the package: which there are, and how one of them is run so that a fault in it bears its name.
#
# `symenum.plugins.register_head` checks a head before it comes here.


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

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """What the head finds; whatever goes wrong in it is an error with its name."""
        try:
            found = self.head.scan(features, response, k, budget)
        except CutShortError:  # the time is over, which is no fault
            raise
        except Exception as error:
            raise RuntimeError(f"the head {self.name!r} raised {type(error).__name__}: {error}") from error
        if not isinstance(found, list) or not all(isinstance(one, Candidate) for one in found):
            raise TypeError(
                f"scan of the head {self.name!r} must return a list of Candidate, as a Response makes "
                f"them, not {found!r:.80}"
            )
        return found


HEADS: dict[str, RegisteredHead] = {}
"""By name, in the order of registration."""


def registered_heads() -> tuple[RegisteredHead, ...]:
    return tuple(HEADS.values())
