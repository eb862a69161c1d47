"""The two forms of x' = f(x): weak, averaged with smooth windows, and plain, with derivatives at points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.signal import fftconvolve

from symenum.core.seeds import stream
from symenum.dynamics.derivatives import Differentiator, SavitzkyGolay, even, noise_level, smooth
from symenum.dynamics.trajectory import Piece

__all__ = [
    "Form",
    "Grid",
    "PointForm",
    "Slopes",
    "WeakForm",
    "half_width",
    "make_grid",
    "make_measured_form",
    "make_point_form",
]


# --------------------------------------------------------------------------------------------------------------------
# The weak form: both sides of x' = f(x) averaged with smooth windows φ, so that ∫φ f(x) = -∫φ' x needs no derivative.
#
# On even steps the windows are one row of weights that slides along. φ = (1 - u²)^p and all its derivatives up to p -
# 1 vanish at the ends, so that plain sums are as good as integrals. Uneven samples are first put on even steps by
# local polynomials.


Array = npt.NDArray[np.float64]
Slopes = Mapping[tuple[int, int], Array]
_POWER = 4  # of the windows; the second derivative still vanishes at their ends
_STRIDE = 5  # windows per half width
_COLUMNS = 64  # at once
_WIDEST = 0.25  # of the longest piece, for half a window
_NARROWEST = 8
_FEWEST = 4  # where the data are few
_PER_WINDOW = 0.6  # half a window of the weak form, in windows of the local polynomials
_INDEPENDENT = 0.5  # windows so many half widths apart share so little that they count as independent


@dataclass(frozen=True)
class Grid:
    """A piece on even steps: `X` (n, states) samples, `smooth`, `first` and `second` (n, states), `U` (n, inputs)."""

    step: float
    t: Array
    X: Array
    smooth: Array
    first: Array
    second: Array
    U: Array
    noise: Array  # (states,) standard deviation of the samples' errors
    windows: npt.NDArray[np.int64]  # (states,) of the local polynomials


def make_grid(piece: Piece) -> Grid:
    """The piece on even steps; its own samples where they are even already."""
    windows = SavitzkyGolay().windows(piece.t, piece.X)
    noise = noise_level(piece.t, piece.X)
    if even(piece.t):
        fit = smooth(piece.t, piece.X, windows)
        step = float(np.mean(np.diff(piece.t)))
        return Grid(step, piece.t, piece.X, fit.values, fit.first, fit.second, piece.U, noise, windows)
    t = np.linspace(piece.t[0], piece.t[-1], len(piece.t))
    fit = smooth(piece.t, piece.X, windows, at=t)
    inputs = np.stack([np.interp(t, piece.t, column) for column in piece.U.T], axis=1) if piece.U.size else piece.U
    return Grid(float(t[1] - t[0]), t, fit.values, fit.values, fit.first, fit.second, inputs, noise, windows)


@dataclass(frozen=True)
class WeakForm:
    """Windows of `half` points to each side, on all grids; rows of all of them follow each other."""

    grids: tuple[Grid, ...]
    half: int
    order: int = 1  # of the derivative on the left-hand side

    @cached_property
    def _window(self) -> Array:
        u = np.arange(-self.half, self.half + 1) / self.half
        window = (1 - u**2) ** _POWER
        unit: Array = window / window.sum()
        return unit

    def _weights(self, order: int, step: float) -> Array:
        """The weights of ∫φ x, -∫φ' x or ∫φ'' x for order 0, 1 or 2.

        Sums are not integrals: a little of φ is added, so that all three agree exactly for polynomials up to t⁵.
        """
        if order == 0:
            return self._window
        u = np.arange(-self.half, self.half + 1) / self.half
        plain = ((1 - np.polynomial.Polynomial([0, 1]) ** 2) ** _POWER).deriv(order)(u)
        odd = order % 2
        basis = np.stack([plain, *(self._window * u**power for power in (odd, odd + 2))])
        powers = (odd, odd + 2, odd + 4)
        # math.perm(power, order) is 0 for a power below the order.
        wanted = [math.perm(k, order) * float(self._window @ u ** max(0, k - order)) for k in powers]
        moments = np.stack([basis @ u**power for power in powers])
        weights: Array = np.linalg.solve(moments, wanted) @ basis / (self.half * step) ** order
        return weights

    @property
    def stride(self) -> int:
        return max(1, self.half // _STRIDE)

    @cached_property
    def rows(self) -> int:
        return len(self.average(np.zeros((sum(len(grid.t) for grid in self.grids), 1))))

    def average(self, values: Array) -> Array:
        """The averages (rows, k) of values (points of all grids, k)."""
        return self._slide(values, [self._window] * len(self.grids))

    def left_side(self, state: int) -> Array:
        """The averages (rows,) of the derivative of a state, from its samples alone."""
        # Without their mean: a large offset would leave its rounding.
        samples = np.concatenate([grid.X[:, state] - grid.X[:, state].mean() for grid in self.grids])[:, None]
        return self._slide(samples, [self._weights(self.order, grid.step) for grid in self.grids])[:, 0]

    @property
    def independent(self) -> int:
        """About how many rows say something of their own: windows overlap."""
        return max(3, int(self.rows * self.stride / (_INDEPENDENT * self.half)))

    def noise_variance(self, state: int, slopes: Slopes) -> Array:
        """The variance (rows,) that the samples' noise gives to left side minus average of f.

        `slopes`: the derivatives (points,) of f by the k-th derivative of a state, by (state, k), along the motion.
        """
        points = sum(len(grid.t) for grid in self.grids)
        left = [self._weights(self.order, grid.step) for grid in self.grids]
        variance = self._slide(self._noise(state)[:, None], [weights**2 for weights in left])
        for (other, order), slope in slopes.items():
            through = [self._weights(order, grid.step) for grid in self.grids]
            size = self._noise(other) * np.broadcast_to(slope, points)
            variance += self._slide((size * slope)[:, None], [weights**2 for weights in through])
            if other == state:
                both = [2 * a * b for a, b in zip(left, through, strict=True)]
                variance -= self._slide(size[:, None], both)
        positive: Array = np.maximum(variance[:, 0], 0.0)
        return positive

    def _noise(self, state: int) -> Array:
        """The variance of the samples' errors at each point."""
        return np.concatenate([np.full(len(grid.t), grid.noise[state] ** 2) for grid in self.grids])

    def _places(self, points: int) -> npt.NDArray[np.int64]:
        return np.arange(0, points - 2 * self.half, self.stride)

    def _slide(self, values: Array, weights: Sequence[Array]) -> Array:
        parts = []
        start = 0
        for grid, weight in zip(self.grids, weights, strict=True):
            part = values[start : start + len(grid.t)]
            start += len(grid.t)
            places = self._places(len(part))
            if len(places):
                blocks = [
                    fftconvolve(part[:, a : a + _COLUMNS], weight[::-1, None], mode="valid", axes=0)[places]
                    for a in range(0, part.shape[1], _COLUMNS)
                ]
                parts.append(np.hstack(blocks))
        return np.concatenate(parts)


def half_width(grids: Sequence[Grid]) -> int:
    """Half a window, in points: about that of the local polynomials which follow the motion best.

    Too narrow windows drown the laws in noise, too wide ones average the motion away and leave few rows.
    """
    longest = max(len(grid.t) for grid in grids)
    usual = float(np.median([window for grid in grids for window in grid.windows]))
    return max(_FEWEST, min(max(_NARROWEST, round(_PER_WINDOW * usual)), int(_WIDEST * longest)))


# --------------------------------------------------------------------------------------------------------------------
# The plain form of x' = f(x): derivatives that a differentiator has estimated, point by point.
#
# The same shape as `WeakForm`, for those who want to see what another derivative gives.


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
