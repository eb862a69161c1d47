"""The plain form of x' = f(x): derivatives that a differentiator has estimated, point by point.

The same shape as `WeakForm`, for those who want to see what another derivative gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from symenum.dynamics.derivatives import Differentiator
from symenum.dynamics.local_polynomial import noise_level
from symenum.dynamics.trajectory import Piece
from symenum.dynamics.weak_form import Slopes
from symenum.enumeration.seeds import stream

__all__ = ["Form", "PointForm", "make_measured_form", "make_point_form"]

Array = npt.NDArray[np.float64]


class Form(Protocol):
    """Rows of equations: the left side of each, and the average of any right side over the same points."""

    @property
    def rows(self) -> int: ...
    @property
    def independent(self) -> int: ...
    def average(self, values: Array) -> Array: ...
    def left_side(self, state: int) -> Array: ...
    def noise_variance(self, state: int, slopes: Slopes) -> Array: ...


@dataclass(frozen=True)
class PointForm:
    """One row for each point. `left` (points, states): estimated derivatives of that `order`.

    `noise` (3, states): standard deviations of the errors of states, first and second derivatives.
    """

    left: Array
    order: int
    noise: Array

    @property
    def rows(self) -> int:
        return len(self.left)

    @property
    def independent(self) -> int:
        return self.rows

    def average(self, values: Array) -> Array:
        """The values (points, k) as they are."""
        return values

    def left_side(self, state: int) -> Array:
        """The derivative (points,) of a state."""
        return self.left[:, state]

    def noise_variance(self, state: int, slopes: Slopes) -> Array:
        """The variance (rows,) that noise gives to left side minus f; slopes as in the weak form."""
        variance = np.full(self.rows, self.noise[self.order, state] ** 2)
        for (other, order), slope in slopes.items():
            variance = variance + (self.noise[order, other] * slope) ** 2
        return variance


def make_point_form(
    pieces: Sequence[Piece], differentiate: Differentiator, order: int, seed: int = 0
) -> tuple[PointForm, Array, Array, Array]:
    """The form, and states, first and second derivatives (points, states) of all pieces."""
    motions = [differentiate(piece.t, piece.X) for piece in pieces]
    states = np.concatenate([motion.states for motion in motions])
    first = np.concatenate([motion.first for motion in motions])
    second = np.concatenate([motion.second for motion in motions])
    level = np.median([noise_level(piece.t, piece.X) for piece in pieces], axis=0)
    # How much of the noise a differentiator lets through is seen by giving it more of it.
    random = stream(seed, "noise on trajectories")
    shaken = [differentiate(piece.t, piece.X + level * random.normal(size=piece.X.shape)) for piece in pieces]
    after = [np.concatenate([getattr(motion, part) for motion in shaken]) for part in ("states", "first", "second")]
    moved = [change - before for change, before in zip(after, (states, first, second), strict=True)]
    noise = np.stack([np.sqrt(np.mean(change**2, axis=0)) for change in moved])
    return PointForm(first if order == 1 else second, order, noise), states, first, second


def make_measured_form(pieces: Sequence[Piece], measured: Sequence[Array], order: int) -> PointForm:
    """The form of derivatives (points, states) that were measured themselves, piece by piece."""

    def levels(parts: Sequence[Array]) -> Array:
        found = [noise_level(piece.t, part) for piece, part in zip(pieces, parts, strict=True)]
        return np.asarray(np.median(found, axis=0))

    left = levels(measured)
    states = levels([piece.X for piece in pieces])
    noise = np.stack([states, left if order == 1 else np.zeros_like(left), left])
    return PointForm(np.concatenate(measured), order, noise)
