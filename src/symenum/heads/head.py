"""The protocol of a head, the choice of which survivors of a scan are fitted, and heads from outside the package."""

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
    "Priced",
    "RegisteredHead",
    "Scan",
    "WantedFeatures",
    "choose",
    "fit_chosen",
    "registered_heads",
    "rounding_of",
]


LAST_FITS = 3
"""The number of survivors of a scan that are fitted even if the time is over."""
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_ENOUGH_LAWS = 5  # laws of one scan, after which no further survivor is fitted: the front takes the simplest
_MAX_NEARLY_EXACT = 40  # survivors that are exact up to rounding and are fitted, the simplest first


Scan = Callable[[Budget], list[Candidate]]
"""One slice of a stage: what it finds within the budget."""


@dataclass(frozen=True)
class Priced:
    """A scan whose work is known better than that of its stage's slices on average."""

    scan: Scan
    work: float

    def __call__(self, budget: Budget) -> list[Candidate]:
        return self.scan(budget)


class Head(Protocol):
    """One way to turn features into candidates, each with its best coefficients."""

    @property
    def name(self) -> str: ...

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """At least the best k by loss, in no order, and simpler ones that are the best of their complexity.

        When the budget is over: what was found so far, or CutShortError if that is nothing.
        """
        ...


def rounding_of(response: Response) -> float:
    """The residual that rounding of t alone leaves, relative to the root mean square of t less its mean."""
    t, root = response.scanned()
    weight = root.square()
    spread = float(((t - (t * weight).sum()).square() * weight).sum().sqrt())
    size = float((t.square() * weight).sum().sqrt())
    return max(EXACTNESS.rounding, 2 * EPSILON * size / spread) if spread > 0 else 1.0


@dataclass(frozen=True)
class Choice:
    """Indices of survivors, the most promising first; the first `nearly` of them are exact up to rounding."""

    indices: tuple[int, ...]
    nearly: int


def choose(residual: Tensor, complexity: Tensor, k: int, rounding: float = EXACTNESS.rounding) -> Choice:
    """Which of the scan's survivors to fit; `residual` (N,) float64, relative, and `complexity` (N,) int64.

    First those that are exact up to rounding, the simplest first; then the k with the smallest residual; and, where
    none is exact, for each complexity the best one that beats all simpler ones.
    """
    digits = torch.log10((residual / rounding).clamp_min(1.0)).floor()
    order = torch.argsort(complexity, stable=True)
    order = order[torch.argsort(digits[order], stable=True)]
    # Below this residual differences are rounding: the simplest comes first, not the one with the smallest residual.
    nearly = order[residual[order] <= max(EXACTNESS.scanned, 10 * rounding)][:_MAX_NEARLY_EXACT]
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
    """The candidates that `fit` makes of the chosen survivors, which it takes by index.

    Once a law is found, only survivors that are nearly exact are fitted, until there are `_ENOUGH_LAWS` laws. When the
    time is over, the first `LAST_FITS` are still fitted, so that the scan that found them was not in vain.
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


# Heads from outside the package. `symenum.plugins.register_head` checks a head before it comes here.

WantedFeatures = Literal["slots", "layers", "extended"]


@dataclass(frozen=True)
class RegisteredHead:
    """A head from outside. `wanted`: the features that its scan gets; `late`: whether its scan counts as dear.

    Features: those of the slots alone, of two layers, or of two layers extended by u(v) of every feature.
    """

    head: Head
    wanted: WantedFeatures = "slots"
    late: bool = False

    @property
    def name(self) -> str:
        return self.head.name

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """What the head finds; an exception in it is raised as a RuntimeError with its name."""
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
"""The registered heads by name, in the order of registration."""


def registered_heads() -> tuple[RegisteredHead, ...]:
    return tuple(HEADS.values())
