"""Derivatives from noisy samples, one protocol: times and samples in, smoothed states and derivatives out.

The weak form, which needs no derivative, has another shape and stands in `weak_form`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_smoothing_spline

from symenum.dynamics.local_polynomial import best_window, smooth

__all__ = ["DERIVATIVES", "CentralDifferences", "Differentiator", "Motion", "SavitzkyGolay", "SmoothingSpline"]

Array = npt.NDArray[np.float64]


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
