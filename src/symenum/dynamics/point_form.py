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

__all__ = ["Form", "PointForm", "make_point_form"]

Array = npt.NDArray[np.float64]


class Form(Protocol):
    """Rows of equations: the left side of each, and the average of any right side over the same points."""

    @property
    def rows(self) -> int: ...
    @property
    def independent(self) -> int: ...
    def average(self, values: Array) -> Array: ...
    def left_side(self, state: int) -> Array: ...
    def noise_variance(self, state: int, slopes: Array) -> Array: ...


@dataclass(frozen=True)
class PointForm:
    """One row for each point. `left` (points, states): estimated derivatives.

    `noise` (states,): of the states that go into laws; `left_noise` (states,): of the derivatives, standard deviations.
    """

    left: Array
    noise: Array
    left_noise: Array

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

    def noise_variance(self, state: int, slopes: Array) -> Array:
        """The variance (rows,) that noise gives to left side minus f; slopes (points, states) of f by the states."""
        variance: Array = self.left_noise[state] ** 2 + (self.noise**2 * slopes**2).sum(axis=1)
        return variance


def make_point_form(
    pieces: Sequence[Piece], differentiate: Differentiator, order: int
) -> tuple[PointForm, Array, Array, Array]:
    """The form, and states, first and second derivatives (points, states) of all pieces."""
    motions = [differentiate(piece.t, piece.X) for piece in pieces]
    states = np.concatenate([motion.states for motion in motions])
    first = np.concatenate([motion.first for motion in motions])
    second = np.concatenate([motion.second for motion in motions])
    noise = np.median([noise_level(piece.t, piece.X) for piece in pieces], axis=0)
    # How much of the noise a differentiator lets through is seen by giving it more of it.
    random = np.random.default_rng(0)
    shaken = [differentiate(piece.t, piece.X + noise * random.normal(size=piece.X.shape)) for piece in pieces]
    moved = [
        np.concatenate([getattr(motion, part) for motion in shaken]) - before
        for part, before in (("states", states), ("first" if order == 1 else "second", first if order == 1 else second))
    ]
    through, left_noise = (np.sqrt(np.mean(change**2, axis=0)) for change in moved)
    return PointForm(first if order == 1 else second, through, left_noise), states, first, second
