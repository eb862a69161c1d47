"""Samples that lie far off a smooth motion, pulled in: least squares on them is then a robust fit.

Huber's pseudo-values: a sample becomes the local fit plus its residual, the residual cut at a few standard errors, and
the local fit is made again, until nothing moves. What is least squares afterwards, averages, smoothing and shooting,
sees a sample that is wrong by any amount as one that is wrong by those few errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from symenum.dynamics.derivatives import local_fit
from symenum.dynamics.trajectory import Piece

__all__ = ["without_outliers"]

Array = npt.NDArray[np.float64]

_CUT = 3.0  # standard errors: of 1000 samples with normal errors three are further off, and are hardly moved
_MEDIAN_OF_NORMAL = 0.6745  # median of the absolute value of a normal deviate
_MIN_FREEDOM = 0.05  # least 1 - leverage, as where noise levels are measured
_WINDOW = 15  # samples of a local fit: an outlier must be one of clearly more samples than a fit has coefficients
_ROUNDS = 50  # of fits; each takes the largest errors in by a good part, so that a dozen are usual
_STILL = 1e-3  # standard errors: a round that moves no sample by more is the last


def without_outliers(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with samples that are far off pulled in; those of smooth motion with normal errors stay."""
    return [replace(piece, X=_pulled_in(piece.t, piece.X)) for piece in pieces]


def _pulled_in(t: Array, X: Array) -> Array:
    """Samples (n, states) with each outlier within a few errors of the local fit."""
    found = X
    for _ in range(_ROUNDS):
        fit = local_fit(t, found, _WINDOW)
        spread = np.sqrt(np.maximum(1 - fit.leverage, _MIN_FREEDOM))[:, None]
        residual = X - fit.values
        # Of the samples as they were, whose median few outliers hardly move; in the fitted ones they shrink by rounds.
        errors = np.median(np.abs(residual / spread), axis=0) / _MEDIAN_OF_NORMAL
        limit = _CUT * errors * spread
        new = np.where(np.abs(residual) > limit, fit.values + np.clip(residual, -limit, limit), X)
        moved = np.abs(new - found) > _STILL * np.maximum(errors, np.finfo(np.float64).tiny)
        found = new
        if not moved.any():
            break
    return found
