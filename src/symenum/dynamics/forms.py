"""The two forms of x' = f(x): weak, averaged over smooth windows, and plain, with derivatives at points.

The weak form needs no derivative: with a window φ that vanishes at its ends, ∫φ f(x) = -∫φ' x. On even steps the
windows are one row of weights that slides along the samples. φ = (1 - u²)^p and its derivatives up to the order p - 1
vanish at the ends, so that sums are nearly as good as integrals. Uneven samples are first put on even steps by local
polynomials.

The plain form takes derivatives that were measured, or that a differentiator has estimated.
"""

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
    "WINDOW_POWER",
    "Form",
    "Grid",
    "PointForm",
    "Slopes",
    "WeakForm",
    "half_width",
    "make_grid",
    "make_measured_form",
    "make_point_form",
    "window_weights",
]

Array = npt.NDArray[np.float64]
Slopes = Mapping[tuple[int, int], Array]
"""Derivatives (points,) of a law along the motion, by (state, k): with respect to the k-th derivative of the state."""

WINDOW_POWER = 4
"""p of the windows: up to the third derivative they vanish at their ends, and second ones are needed."""
_COLUMNS_AT_ONCE = 64  # columns of one Fourier transform: bounds its memory
_MIN_INDEPENDENT = 3  # rows that every form counts as independent at least

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_WINDOWS_PER_HALF_WIDTH = 5  # windows that begin within half a width: overlapping ones say little new
_MAX_HALF_WIDTH = 0.25  # half a window, as a part of the longest piece
_MIN_HALF_WIDTH = 8  # half a window, in points
_MIN_HALF_WIDTH_SHORT = 4  # half a window, in points, where the longest piece is short
_HALF_WIDTH_FACTOR = 0.6  # half a window, in windows of the local polynomials
_INDEPENDENT_DISTANCE = 0.5  # half widths between windows that count as independent


class Form(Protocol):
    """Rows of equations: the left side of each, and the average of any right side over the same points."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def independent(self) -> int:
        """About how many of the rows are independent."""
        ...

    def average(self, values: Array) -> Array:
        """The averages (rows, k) of values (points, k)."""
        ...

    def left_side(self, state: int) -> Array:
        """The derivative of a state (rows,), of the order of the equations."""
        ...

    def noise_variance(self, state: int, slopes: Slopes) -> Array:
        """The variance (rows,) that the noise of the samples gives to left side minus average of a law."""
        ...


# The weak form


def window_weights(half: int, order: int, step: float = 1.0, power: int = WINDOW_POWER) -> Array:
    """The weights (2·half + 1,) of ∫φ x, -∫φ' x, ∫φ'' x, …: averages of the derivative of that order of samples x.

    φ = (1 - u²)^power, with ∫φ = 1. Sums are not integrals: small multiples of φ are added, so that the averages of
    polynomials agree for all orders, up to t⁵ for first and second derivatives and two degrees more for each further
    pair.
    """
    u = np.arange(-half, half + 1) / half
    window = (1 - u**2) ** power
    unit: Array = window / window.sum()
    if order == 0:
        return unit
    plain = ((1 - np.polynomial.Polynomial([0, 1]) ** 2) ** power).deriv(order)(u)
    odd = order % 2
    corrections = 2 + (order - 1) // 2
    basis = np.stack([plain, *(unit * u ** (odd + 2 * i) for i in range(corrections))])
    powers = [odd + 2 * i for i in range(corrections + 1)]
    # math.perm(power, order) is 0 for a power below the order.
    wanted = [math.perm(k, order) * float(unit @ u ** max(0, k - order)) for k in powers]
    moments = np.stack([basis @ u**k for k in powers])
    weights: Array = np.linalg.solve(moments, wanted) @ basis / (half * step) ** order
    return weights


@dataclass(frozen=True)
class Grid:
    """A piece on even steps: samples `X`, smoothed ones and their derivatives, each (n, states); `U` (n, inputs)."""

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
        return window_weights(self.half, 0)

    def _weights(self, order: int, step: float) -> Array:
        """The weights (2·half + 1,) of ∫φ x, -∫φ' x or ∫φ'' x for order 0, 1 or 2."""
        return self._window if order == 0 else window_weights(self.half, order, step)

    @property
    def stride(self) -> int:
        return max(1, self.half // _WINDOWS_PER_HALF_WIDTH)

    @cached_property
    def rows(self) -> int:
        return len(self.average(np.zeros((sum(len(grid.t) for grid in self.grids), 1))))

    def average(self, values: Array) -> Array:
        """The averages (rows, k) of values (points of all grids, k)."""
        return self._slide(values, [self._window] * len(self.grids))

    def left_side(self, state: int) -> Array:
        """The averages (rows,) of the derivative of a state, from its samples alone."""
        # The mean is taken off: the rounding of a large offset would stay.
        samples = np.concatenate([grid.X[:, state] - grid.X[:, state].mean() for grid in self.grids])[:, None]
        return self._slide(samples, [self._weights(self.order, grid.step) for grid in self.grids])[:, 0]

    @property
    def independent(self) -> int:
        """About how many rows are independent: windows overlap."""
        return max(_MIN_INDEPENDENT, int(self.rows * self.stride / (_INDEPENDENT_DISTANCE * self.half)))

    def noise_variance(self, state: int, slopes: Slopes) -> Array:
        """The variance (rows,) that the noise of the samples gives to left side minus average of f.

        Noise enters through the left side and, to first order, through the slopes of f.
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
        """The variance (points,) of the errors of the samples of a state."""
        return np.concatenate([np.full(len(grid.t), grid.noise[state] ** 2) for grid in self.grids])

    def _places(self, points: int) -> npt.NDArray[np.int64]:
        """Where windows begin in a grid of so many points."""
        return np.arange(0, points - 2 * self.half, self.stride)

    def _slide(self, values: Array, weights: Sequence[Array]) -> Array:
        """Weighted sums (rows, k) of values (points, k) over all windows; `weights`: those of each grid."""
        parts = []
        start = 0
        for grid, weight in zip(self.grids, weights, strict=True):
            part = values[start : start + len(grid.t)]
            start += len(grid.t)
            places = self._places(len(part))
            if len(places):
                blocks = [
                    fftconvolve(part[:, a : a + _COLUMNS_AT_ONCE], weight[::-1, None], mode="valid", axes=0)[places]
                    for a in range(0, part.shape[1], _COLUMNS_AT_ONCE)
                ]
                parts.append(np.hstack(blocks))
        return np.concatenate(parts)


def half_width(grids: Sequence[Grid]) -> int:
    """Half a window, in points: 0.6 times the median window of the local polynomials that fit the samples best.

    Narrower windows leave more noise; wider ones average the motion away and leave few rows.
    """
    longest = max(len(grid.t) for grid in grids)
    usual = float(np.median([window for grid in grids for window in grid.windows]))
    wanted = max(_MIN_HALF_WIDTH, round(_HALF_WIDTH_FACTOR * usual))
    return max(_MIN_HALF_WIDTH_SHORT, min(wanted, int(_MAX_HALF_WIDTH * longest)))


# The plain form


@dataclass(frozen=True)
class PointForm:
    """One row for each point. `derivatives` (points, states): measured or estimated, of that `order`.

    `noise` (3, states): standard deviations of the errors of states, first and second derivatives.
    """

    derivatives: Array
    order: int
    noise: Array

    @property
    def rows(self) -> int:
        return len(self.derivatives)

    @property
    def independent(self) -> int:
        return self.rows

    def average(self, values: Array) -> Array:
        """The values (points, k) as they are."""
        return values

    def left_side(self, state: int) -> Array:
        """The derivative (points,) of a state."""
        return self.derivatives[:, state]

    def noise_variance(self, state: int, slopes: Slopes) -> Array:
        """The variance (rows,) that noise gives to left side minus f, to first order in the noise."""
        variance = np.full(self.rows, self.noise[self.order, state] ** 2)
        for (other, order), slope in slopes.items():
            variance = variance + (self.noise[order, other] * slope) ** 2
        return variance


def make_point_form(
    pieces: Sequence[Piece], differentiate: Differentiator, order: int, seed: int = 0
) -> tuple[PointForm, Array, Array, Array]:
    """The form, and states, first and second derivatives (points, states) of all pieces.

    `seed`: of the noise with which the differentiator is tried out.
    """
    motions = [differentiate(piece.t, piece.X) for piece in pieces]
    states = np.concatenate([motion.states for motion in motions])
    first = np.concatenate([motion.first for motion in motions])
    second = np.concatenate([motion.second for motion in motions])
    level = np.median([noise_level(piece.t, piece.X) for piece in pieces], axis=0)
    # How much noise a differentiator lets through is measured by adding as much again to the samples.
    random = stream(seed, "noise on trajectories")
    shaken = [differentiate(piece.t, piece.X + level * random.normal(size=piece.X.shape)) for piece in pieces]
    after = [np.concatenate([getattr(motion, part) for motion in shaken]) for part in ("states", "first", "second")]
    moved = [change - before for change, before in zip(after, (states, first, second), strict=True)]
    noise = np.stack([np.sqrt(np.mean(change**2, axis=0)) for change in moved])
    return PointForm(first if order == 1 else second, order, noise), states, first, second


def make_measured_form(pieces: Sequence[Piece], measured: Sequence[Array], order: int) -> PointForm:
    """The form of derivatives `measured` (points, states), one array for each piece."""

    def levels(parts: Sequence[Array]) -> Array:
        found = [noise_level(piece.t, part) for piece, part in zip(pieces, parts, strict=True)]
        return np.asarray(np.median(found, axis=0))

    left = levels(measured)
    states = levels([piece.X for piece in pieces])
    noise = np.stack([states, left if order == 1 else np.zeros_like(left), left])
    return PointForm(np.concatenate(measured), order, noise)
