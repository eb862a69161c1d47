"""Symmetries of y: directions in which a few slots can move together while y only scales, or shifts, with them.

Scaling: x_i → λ^s_i·x_i makes y → λ^c·y, so that y = x_k^(c/s_k)·g(invariants). A slot alone is a power factor; two
make a product or quotient; with more it is dimensional analysis without units. Translation: x_i → x_i + s_i·λ makes y →
y + c·λ: differences and sums. Both show in the slopes of a surface; the better a direction, the less is left of
Σ s_i·x_i·∂y/∂x_i - c·y (or Σ s_i·∂y/∂x_i - c).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.heads.reductions.surface import Surface

__all__ = ["Symmetry", "symmetries"]

_ENTRIES = {1: (1,), 2: (1, 2, 3), 3: (1, 2)}  # sizes of s_i by the number of slots that take part
_MOST_DEGREE = 6


@dataclass(frozen=True)
class Symmetry:
    """The slots that take part, their whole numbers s, the degree c, and what is left of it, relative, on a surface."""

    scaling: bool
    members: tuple[int, ...]
    direction: tuple[int, ...]
    degree: Fraction
    left: float = 0.0

    def __str__(self) -> str:
        moves = ", ".join(f"{place}: {step}" for place, step in zip(self.members, self.direction, strict=True))
        return f"{'scaling' if self.scaling else 'translation'} {{{moves}}}, degree {self.degree}"


def symmetries(surface: Surface, X: Tensor, weight: Tensor, members: int, budget: Budget = NO_LIMIT) -> list[Symmetry]:
    """All of so many slots, X (slots, rows), the best first; of each set of slots and kind the best two.

    Whole numbers above 1 must be the better for it: near a symmetry there is always one of larger numbers.
    """
    found: list[Symmetry] = []
    for scaling in (True, False):
        along = surface.slopes * X if scaling else surface.slopes
        by = surface.values if scaling else torch.ones_like(surface.values)
        columns = torch.cat([along, by[None]]) * weight.sqrt()
        gram = columns @ columns.T
        usable = (X != 0).all(dim=1) if scaling else torch.ones(len(X), dtype=torch.bool)
        slots = torch.nonzero(usable).flatten().tolist()
        for chosen in itertools.combinations(slots, members):
            budget.check()
            ways = [_at(gram, scaling, chosen, direction) for direction in _directions(members)]
            found += sorted(ways, key=_rank)[:2]
    return sorted(found, key=_rank)


def _rank(symmetry: Symmetry) -> float:
    return symmetry.left * (1 + sum(map(abs, symmetry.direction)) - len(symmetry.members))


def _directions(members: int) -> Iterator[tuple[int, ...]]:
    """Whole vectors without a common divisor; of s and -s one."""
    sizes = _ENTRIES[members]
    signed = [size * sign for size in sizes for sign in (1, -1)]
    for first in sizes:
        for rest in itertools.product(signed, repeat=members - 1):
            if math.gcd(first, *rest) == 1:
                yield (first, *rest)


def _at(gram: Tensor, scaling: bool, members: tuple[int, ...], direction: tuple[int, ...]) -> Symmetry:
    """The direction with its degree: a multiple of 1/2 for scaling, a whole number for translation of one slot."""
    whole = torch.zeros(len(gram), dtype=gram.dtype)
    whole[list(members)] = torch.tensor(direction, dtype=gram.dtype)
    norm = float(gram[-1, -1])
    ratio = float(whole @ gram[-1]) / norm if norm > 0 else 0.0
    degree = Fraction(0)
    if scaling:
        degree = Fraction(round(2 * max(-_MOST_DEGREE, min(_MOST_DEGREE, ratio))), 2)
    elif len(members) == 1:
        degree = Fraction(round(max(-_MOST_DEGREE, min(_MOST_DEGREE, ratio))))
    whole[-1] = -float(degree)
    size = float(whole.square() @ gram.diagonal())
    left = float(whole @ gram @ whole)
    return Symmetry(scaling, members, direction, degree, math.sqrt(max(left, 0.0) / size) if size > 0 else 0.0)
