"""The errors of samples: of one size, or growing with the state as a part of its value, whichever the samples show.

They are measured as what is not smooth in the samples over short windows. Between the two kinds lies
error² = a²·((1 - grows)·mean square of the state + grows·state²); the likelihood of what is not smooth says which
share `grows` it is. All figures are medians, so that a short stretch in which the motion itself is not smooth does not
decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.dynamics.derivatives import NOISE_WINDOW, local_fit
from symenum.dynamics.trajectory import Piece

__all__ = ["Noise", "measure_noise"]

Array = npt.NDArray[np.float64]

_SHARES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9996, 0.9999, 0.99999, 0.999999)
"""Of the square that grows with the state. Never all of it: a sample that happens to lie near zero has errors of its
own, if only of rounding, here at least 0.1 % of those of a sample of usual size."""
_LIKELIHOOD = 6.0  # nats by which growing errors must be more likely: two parameters and a wide margin
_MEDIAN_OF_NORMAL = 0.6745  # median of the absolute value of a normal deviate
_MIN_FREEDOM = 0.05  # least 1 - leverage, as where noise levels are measured
_NUMERICAL = 1e-5  # part of a state's spread: errors of solvers and of printed digits in data without noise
_TINY = 1e-300  # near the smallest normal double: a state that is zero throughout has errors too


@dataclass(frozen=True)
class Noise:
    """The errors of one state's samples: `level`·√((1 - grows)·mean square + grows·state²), and a numerical floor."""

    level: float
    grows: float
    mean_square: float
    floor: float

    def errors(self, values: Array) -> Array:
        """Standard deviations (n,) of samples whose true values are near `values` (n,)."""
        size = np.sqrt((1 - self.grows) * self.mean_square + self.grows * np.square(values))
        found: Array = np.hypot(self.level * size, self.floor)
        return found

    @property
    def numerical(self) -> float:
        """The mean square of the numerical floor in units of the samples' errors, at a state of usual size."""
        return self.floor**2 / (self.level**2 * self.mean_square + self.floor**2)

    def __str__(self) -> str:
        if self.grows > 0:
            return f"{100 * self.level:.2g}% of its value"
        return f"{self.level * np.sqrt(self.mean_square):.2g}"


def measure_noise(pieces: Sequence[Piece]) -> tuple[Noise, ...]:
    """The errors of each state's samples, from all pieces together."""
    smooth, rough = [], []
    for piece in pieces:
        fit = local_fit(piece.t, piece.X, NOISE_WINDOW)
        smooth.append(fit.values)
        rough.append((piece.X - fit.values) / np.sqrt(np.maximum(1 - fit.leverage, _MIN_FREEDOM))[:, None])
    X = np.concatenate([piece.X for piece in pieces])
    values, residuals = np.concatenate(smooth), np.concatenate(rough)
    return tuple(_of_state(X[:, i], values[:, i], residuals[:, i]) for i in range(X.shape[1]))


def _of_state(samples: Array, values: Array, residuals: Array) -> Noise:
    mean_square = max(float(np.mean(np.square(values))), _TINY)
    floor = max(_NUMERICAL * float(np.ptp(samples)), _TINY)
    best = None
    for grows in _SHARES:
        size = np.sqrt((1 - grows) * mean_square + grows * np.square(values))
        relative = np.abs(residuals) / size
        level = float(np.median(relative)) / _MEDIAN_OF_NORMAL
        # Minus the logarithm of Laplace's likelihood at its likeliest scale: few large residuals do not decide.
        surprise = len(size) * math.log(max(float(np.mean(relative)), _TINY)) + float(np.sum(np.log(size)))
        if best is None or surprise < best[0] - (_LIKELIHOOD if best[1] == 0 else 0.0):
            best = (surprise, grows, level)
    assert best is not None
    return Noise(best[2], best[1], mean_square, floor)
