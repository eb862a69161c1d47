"""Derivatives from noisy samples: times and samples in, smoothed states and their derivatives out.

Three ways behind one protocol: local polynomials, smoothing splines, central differences. A local polynomial is fitted
by least squares to the samples nearest to each time, whether the steps are even or not; on even steps this is the
filter of Savitzky and Golay. The ends get the fit of the last full window. Fits are linear in the samples, so the error
of leaving one sample out follows from its leverage, without a second fit. The weak form, which needs no derivative, is
in `symenum.dynamics.forms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_smoothing_spline

__all__ = [
    "DERIVATIVES",
    "NOISE_WINDOW",
    "CentralDifferences",
    "Differentiator",
    "Motion",
    "SavitzkyGolay",
    "Smoothed",
    "SmoothingSpline",
    "best_windows",
    "even",
    "local_fit",
    "noise_level",
    "smooth",
]

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NOISE_WINDOW = 9
"""Samples of the windows that noise is measured in: short, so that the motion is smooth in them."""
_ORDER = 4  # degree of local polynomials: on a symmetric window second derivatives are exact up to t⁵
_DERIVATIVES = 3  # Taylor coefficients in use: value, first and second derivative
_WINDOWS_AT_ONCE = 4096  # windows whose weights are in memory together: 9 MB for 55 samples and degree 4
_LEFT_OUT = 1000  # samples by which a window is chosen, on uneven steps: their mean square is known to 5%
_DEPENDENT = 1e-8  # ratio of the diagonal of R below which columns count as dependent: half of the digits are left
_MEDIAN_OF_SQUARES = 0.4549  # median of squared normal deviates, in units of their mean: robust against bad points

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_WINDOWS = (7, 9, 11, 13, 15, 17, 21, 25, 31, 37, 45, 55)  # samples: windows to choose from
_EVEN = 1e-6  # largest relative difference of steps that count as equal
_MIN_FREEDOM = 0.05  # least 1 - leverage: where one sample rules its own fit, leaving it out says nothing


@dataclass(frozen=True)
class Smoothed:
    """Values and first and second derivatives (n, columns) at the times asked for, and the leverage (n,).

    `leverage`: the weight of a sample in its own fit; NaN where the times are not those of the samples.
    """

    values: Array
    first: Array
    second: Array
    leverage: Array


def even(t: Array) -> bool:
    """Whether the steps of the times t (n,) differ by at most a millionth of their mean."""
    steps = np.diff(t)
    return bool(np.ptp(steps) <= _EVEN * np.mean(steps))


def local_fit(
    t: Array, X: Array, window: int, order: int = _ORDER, at: Array | None = None, samples: Integers | None = None
) -> Smoothed:
    """Fits of degree `order` to the `window` samples nearest to each time of `at`, by default the samples' own.

    Samples are X (n, columns) at the ascending times t (n,). `samples`: at the times of these only, by their numbers.
    """
    n = len(t)
    window = min(window, n)
    order = min(order, window - 1)
    own_times = at is None
    numbers = np.arange(n) if samples is None else samples
    times = t[numbers] if at is None else at
    start = np.clip(np.searchsorted(t, times) - window // 2, 0, n - window)
    if own_times and samples is None and even(t):
        # On even steps the weights follow from the sample's place in the window alone.
        places = np.arange(n) - start
        around = (np.arange(window)[None, :] - np.arange(window)[:, None]) * ((t[-1] - t[0]) / (n - 1))
        weights, scale = _weights(around, order)
        fits = [_fitted(weights[places[rows]], scale[places[rows]], X, start[rows]) for rows in _blocks(n)]
        leverage = weights[np.arange(window), 0, np.arange(window)][places]
    else:
        weights_of = _weights if len(times) <= _WINDOWS_AT_ONCE else _weights_of_each
        fits, leverages = [], []
        for rows in _blocks(len(times)):
            weights, scale = weights_of(t[start[rows, None] + np.arange(window)] - times[rows, None], order)
            fits.append(_fitted(weights, scale, X, start[rows]))
            if own_times:
                places = numbers[rows] - start[rows]
                leverages.append(weights[np.arange(len(places)), 0, places])
        leverage = np.concatenate(leverages) if own_times else np.full(len(times), np.nan)
    values, first, second = (np.concatenate([fit[part] for fit in fits]) for part in range(_DERIVATIVES))
    return Smoothed(values, first, second, leverage)


def _blocks(count: int) -> list[slice]:
    return [slice(a, min(a + _WINDOWS_AT_ONCE, count)) for a in range(0, count, _WINDOWS_AT_ONCE)]


def _weights(around: Array, order: int) -> tuple[Array, Array]:
    """The weights (m, 3, window) that give the first three Taylor coefficients at 0 from samples, and the unit of time.

    `around` (m, window): times of the samples, 0 being the time of the fit. The coefficients are those in units of the
    second result (m,).
    """
    scale = np.abs(around).max(axis=1)
    powers = (around / scale[:, None])[:, :, None] ** np.arange(order + 1)
    return _three(np.linalg.pinv(powers)), scale


def _weights_of_each(around: Array, order: int) -> tuple[Array, Array]:
    """`_weights` of thousands of windows, each with steps of its own: by QR, four times as fast as by pseudo-inverses.

    Where samples lie so close together that their powers are hardly independent, pseudo-inverses are taken.
    """
    scale = np.abs(around).max(axis=1)
    powers = np.ones((*around.shape, order + 1))
    np.multiply.accumulate(
        np.broadcast_to((around / scale[:, None])[:, :, None], (*around.shape, order)), axis=2, out=powers[:, :, 1:]
    )
    Q, R = np.linalg.qr(powers)
    diagonal = np.abs(np.einsum("mkk->mk", R))
    if (diagonal.min(axis=1) <= _DEPENDENT * diagonal.max(axis=1)).any():
        return _three(np.linalg.pinv(powers)), scale
    return _three(np.linalg.solve(R, Q.transpose(0, 2, 1))), scale


def _three(weights: Array) -> Array:
    """The weights (m, 3, window) of the first three Taylor coefficients; zero for those that the fit does not have."""
    weights = weights[:, :_DERIVATIVES]
    if weights.shape[1] < _DERIVATIVES:
        missing = np.zeros((len(weights), _DERIVATIVES - weights.shape[1], weights.shape[2]))
        weights = np.concatenate([weights, missing], axis=1)
    return weights


def _fitted(weights: Array, scale: Array, X: Array, start: Integers) -> tuple[Array, Array, Array]:
    """Values, first and second derivatives, each (m, columns), of the fits to windows that begin at `start` (m,)."""
    taylor = weights @ X[start[:, None] + np.arange(weights.shape[2])]
    scale = scale[:, None]
    return taylor[:, 0], taylor[:, 1] / scale, 2 * taylor[:, 2] / scale**2


def best_windows(t: Array, X: Array, order: int = _ORDER) -> Integers:
    """The window (columns,), in samples, whose fits of each column of X (n, columns) predict left-out samples best.

    Best is the smallest mean square. On uneven steps, where each sample has weights of its own, up to a thousand
    samples are left out, evenly spread.
    """
    best = np.full(X.shape[1], min(_WINDOWS[0], len(t)))
    smallest = np.full(X.shape[1], np.inf)
    few = len(t) <= _LEFT_OUT or even(t)
    samples = np.arange(len(t)) if few else np.linspace(0, len(t) - 1, _LEFT_OUT).round().astype(np.int64)
    for window in _WINDOWS:
        if window > len(t):
            break
        fit = local_fit(t, X, window, order, samples=None if few else samples)
        inside = (samples >= window // 2) & (samples < len(t) - window // 2)
        missed = (X[samples] - fit.values) / np.maximum(1 - fit.leverage, _MIN_FREEDOM)[:, None]
        error = np.mean(missed[inside] ** 2, axis=0)
        best = np.where(error < smallest, window, best)
        smallest = np.minimum(error, smallest)
    return best


def noise_level(t: Array, X: Array) -> Array:
    """The standard deviation (columns,) of the independent errors of samples X (n, columns).

    The errors are what is not smooth in the samples: an upper bound where the motion itself is not smooth over nine.
    """
    fit = local_fit(t, X, NOISE_WINDOW)
    squares = (X - fit.values) ** 2 / np.maximum(1 - fit.leverage, _MIN_FREEDOM)[:, None]
    level: Array = np.sqrt(np.median(squares, axis=0) / _MEDIAN_OF_SQUARES)
    return level


def smooth(t: Array, X: Array, windows: Integers, order: int = _ORDER, at: Array | None = None) -> Smoothed:
    """Local fits with a window of its own (`windows` (columns,), in samples) for each column of X (n, columns)."""
    fits = [local_fit(t, X[:, [i]], int(window), order, at) for i, window in enumerate(windows)]
    return Smoothed(
        np.hstack([fit.values for fit in fits]),
        np.hstack([fit.first for fit in fits]),
        np.hstack([fit.second for fit in fits]),
        fits[0].leverage,
    )


# The protocol, and the ways to differentiate


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
    """Local polynomials. Without a `window` (samples), each state gets the one that predicts left-out samples best."""

    window: int | None = None
    order: int = _ORDER

    def __call__(self, t: Array, X: Array) -> Motion:
        windows = self.windows(t, X)
        fit = smooth(t, X, windows, self.order)
        return Motion(fit.values, fit.first, fit.second)

    def windows(self, t: Array, X: Array) -> Integers:
        """The window (states,) of each column."""
        if self.window is not None:
            return np.full(X.shape[1], self.window)
        return best_windows(t, X, self.order)


@dataclass(frozen=True)
class SmoothingSpline:
    """Cubic smoothing splines; the smoothness of each state by generalised cross-validation."""

    def __call__(self, t: Array, X: Array) -> Motion:
        # On the unit interval and in units of the range: the search for the smoothness depends on the units.
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
