"""Derivatives from noisy samples by local polynomials, splines or differences: smoothed states and derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_smoothing_spline

__all__ = [
    "DERIVATIVES",
    "CentralDifferences",
    "Differentiator",
    "Motion",
    "SavitzkyGolay",
    "Smoothed",
    "SmoothingSpline",
    "best_window",
    "even",
    "local_fit",
    "noise_level",
    "smooth",
]


# --------------------------------------------------------------------------------------------------------------------
# Local polynomials: a least-squares fit on the nearest points around each time, even steps or not.
#
# On even steps this is Savitzky and Golay's filter; the ends get the fit of the last full window. Fits are linear in
# the samples, so that the error of leaving one point out follows from its leverage, without a second fit.


Array = npt.NDArray[np.float64]
_BLOCK = 4096  # windows at once
_WINDOWS = (7, 9, 11, 13, 15, 17, 21, 25, 31, 37, 45, 55)
_NOISE_WINDOW, _NOISE_ORDER = 9, 4
_EVEN = 1e-6  # steps that differ by less than this part are equal
# The median of squared normal deviates is this part of their mean: a few bad points must not count.
_MEDIAN_OF_SQUARES = 0.4549


@dataclass(frozen=True)
class Smoothed:
    """Values and first and second derivatives (n, columns) at the times asked for, and the leverage (n,).

    `leverage` is the weight of a point in its own fit; it is NaN where times are not the samples' own.
    """

    values: Array
    first: Array
    second: Array
    leverage: Array


def even(t: Array) -> bool:
    """Whether the steps are equal up to rounding."""
    steps = np.diff(t)
    return bool(np.ptp(steps) <= _EVEN * np.mean(steps))


def local_fit(t: Array, X: Array, window: int, order: int = 4, at: Array | None = None) -> Smoothed:
    """Fits of degree `order` on the `window` samples (t (n,), X (n, columns)) nearest to each time `at`."""
    n = len(t)
    window = min(window, n)
    order = min(order, window - 1)
    times = t if at is None else at
    own = at is None
    start = np.clip(np.searchsorted(t, times) - window // 2, 0, n - window)
    if own and even(t):
        # On even steps the weights follow from the place in the window alone.
        places = np.arange(n) - start
        around = (np.arange(window)[None, :] - np.arange(window)[:, None]) * ((t[-1] - t[0]) / (n - 1))
        weights, scale = _weights(around, order)
        fits = [_fitted(weights[places[rows]], scale[places[rows]], X, start[rows]) for rows in _blocks(n)]
        leverage = weights[np.arange(window), 0, np.arange(window)][places]
    else:
        fits, leverages = [], []
        for rows in _blocks(len(times)):
            weights, scale = _weights(t[start[rows, None] + np.arange(window)] - times[rows, None], order)
            fits.append(_fitted(weights, scale, X, start[rows]))
            if own:
                places = np.arange(rows.start, rows.stop) - start[rows]
                leverages.append(weights[np.arange(len(places)), 0, places])
        leverage = np.concatenate(leverages) if own else np.full(len(times), np.nan)
    values, first, second = (np.concatenate([fit[part] for fit in fits]) for part in range(3))
    return Smoothed(values, first, second, leverage)


def _blocks(count: int) -> list[slice]:
    return [slice(a, min(a + _BLOCK, count)) for a in range(0, count, _BLOCK)]


def _weights(around: Array, order: int) -> tuple[Array, Array]:
    """The weights (m, 3, window) of the samples at times `around` (m, window) in the first Taylor coefficients at 0.

    Times are in units of the second result (m,).
    """
    scale = np.abs(around).max(axis=1)
    powers = (around / scale[:, None])[:, :, None] ** np.arange(order + 1)
    weights = np.linalg.pinv(powers)[:, :3]
    if weights.shape[1] < 3:
        weights = np.concatenate([weights, np.zeros((len(weights), 3 - weights.shape[1], weights.shape[2]))], axis=1)
    return weights, scale


def _fitted(weights: Array, scale: Array, X: Array, start: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    taylor = weights @ X[start[:, None] + np.arange(weights.shape[2])]
    scale = scale[:, None]
    return taylor[:, 0], taylor[:, 1] / scale, 2 * taylor[:, 2] / scale**2


def best_window(t: Array, x: Array, order: int = 4) -> int:
    """The window whose fits of x (n,) predict points that are left out best."""
    best, smallest = min(_WINDOWS[0], len(t)), np.inf
    for window in _WINDOWS:
        if window > len(t):
            break
        fit = local_fit(t, x[:, None], window, order)
        inside = slice(window // 2, len(t) - window // 2)
        # Where one point rules its own fit, leaving it out says nothing.
        missed = (x - fit.values[:, 0]) / np.maximum(1 - fit.leverage, 0.05)
        error = float(np.mean(missed[inside] ** 2))
        if error < smallest:
            best, smallest = window, error
    return best


def noise_level(t: Array, X: Array) -> Array:
    """The standard deviation (columns,) of independent errors of the samples X (n, columns): what no smooth curve fits.

    An upper bound where the motion itself is not smooth on the scale of a few samples.
    """
    fit = local_fit(t, X, _NOISE_WINDOW, _NOISE_ORDER)
    left = (X - fit.values) ** 2 / np.maximum(1 - fit.leverage, 0.05)[:, None]
    level: Array = np.sqrt(np.median(left, axis=0) / _MEDIAN_OF_SQUARES)
    return level


def smooth(t: Array, X: Array, windows: npt.NDArray[np.int64], order: int = 4, at: Array | None = None) -> Smoothed:
    """Each column of X with a window of its own."""
    fits = [local_fit(t, X[:, [i]], int(window), order, at) for i, window in enumerate(windows)]
    return Smoothed(
        np.hstack([fit.values for fit in fits]),
        np.hstack([fit.first for fit in fits]),
        np.hstack([fit.second for fit in fits]),
        fits[0].leverage,
    )


# --------------------------------------------------------------------------------------------------------------------
# Derivatives from noisy samples, one protocol: times and samples in, smoothed states and derivatives out.
#
# The weak form, which needs no derivative, has another shape and stands in `weak_form`.


@dataclass(frozen=True)
class Motion:
    """States and their first and second derivatives, each (n, states), at the samples' times."""

    states: Array
    first: Array
    second: Array


class Differentiator(Protocol):
    """A way to differentiate: t (n,) ascending and X (n, states), finite; n is at least MIN_POINTS."""

    def __call__(self, t: Array, X: Array) -> Motion: ...


@dataclass(frozen=True)
class CentralDifferences:
    """Second-order differences of the samples as they are; for data without noise."""

    def __call__(self, t: Array, X: Array) -> Motion:
        first = np.gradient(X, t, axis=0, edge_order=2)
        return Motion(X.copy(), first, np.gradient(first, t, axis=0, edge_order=2))


@dataclass(frozen=True)
class SavitzkyGolay:
    """Local polynomials. Without a `window` (points), each state gets the one that predicts left-out points best."""

    window: int | None = None
    order: int = 4

    def __call__(self, t: Array, X: Array) -> Motion:
        windows = self.windows(t, X)
        fit = smooth(t, X, windows, self.order)
        return Motion(fit.values, fit.first, fit.second)

    def windows(self, t: Array, X: Array) -> npt.NDArray[np.int64]:
        """The window (states,) of each column."""
        if self.window is not None:
            return np.full(X.shape[1], self.window)
        return np.array([best_window(t, column, self.order) for column in X.T])


@dataclass(frozen=True)
class SmoothingSpline:
    """Cubic smoothing splines; the smoothness of each state by generalised cross-validation."""

    def __call__(self, t: Array, X: Array) -> Motion:
        # Splines of the unit interval: the search for the smoothness is not free of units.
        span = t[-1] - t[0]
        unit = (t - t[0]) / span
        scale = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
        splines = [make_smoothing_spline(unit, column / size) for column, size in zip(X.T, scale, strict=True)]
        states, first, second = (
            np.stack([spline.derivative(k)(unit) if k else spline(unit) for spline in splines], axis=1)
            * scale
            / span**k
            for k in range(3)
        )
        return Motion(states, first, second)


DERIVATIVES: dict[str, Differentiator] = {
    "savitzky_golay": SavitzkyGolay(),
    "central": CentralDifferences(),
    "spline": SmoothingSpline(),
}
