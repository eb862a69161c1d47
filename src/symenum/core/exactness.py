"""What is zero up to rounding: the one home of all thresholds that tell a law from an approximation.

The unit is the *relative residual*: the root mean square of what is left, as a part of the root mean square of y. The
relative loss, of mean squares, is its square. All thresholds follow from the machine epsilon by factors that say what
adds errors, so none depends on the units of y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

__all__ = [
    "EPSILON",
    "EXACTNESS",
    "Exactness",
    "is_exact",
    "is_exact_fit",
    "is_exact_sum",
    "is_flat",
    "is_tie",
    "loss_up_to",
    "row_rounding",
]

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Exactness:
    """The thresholds, from the smallest to the largest; relative residuals where nothing else is said."""

    # A law in doubles differs from its true values by a few epsilons, and by hundreds where its terms cancel. 450 are
    # enough for 99.3 % of 1,181 random laws of up to four layers (benchmarks/law_rounding.py).
    rounding: float = 450 * EPSILON
    """1e-13: two ways to write one law differ by no more."""

    stalled: float = rounding / 10
    """1e-14: an optimiser that is here cannot gain, even on a law whose own rounding is small."""

    law: float = 2 * rounding
    """2e-13: an expression this near to y is the law; both y and the expression are off by `rounding`."""

    fitted: float = 10 * rounding
    """1e-12: constants from an iterative fit that has ended may still miss their last digit."""

    noise_free: float = 100 * rounding
    """1e-11: data without noise, fitted by a sum whose terms may cancel by two digits."""

    scanned: float = 1e4 * rounding
    """1e-9: a scan or a solver may be this far from the exact fit, and constants must then be nice numbers."""

    logarithm: float = 1e5 * rounding
    """1e-8: the same for log|y|, where every row counts by its own size: small rows have lost a digit more."""

    flat: float = noise_free
    """Part of its largest value by which a column must vary: what is no noise in y is no variation of a column."""

    rank: float = rounding
    """Part of the largest singular value below which a direction is not seen by the data."""

    # A difference of numbers of size 1 is known to epsilon. With a part of √epsilon left, half of its digits are right.
    left: float = math.sqrt(EPSILON)
    """1.5e-8: part of a column, or of a sum of squares, that must be left when others are subtracted from it."""

    squares: float = rounding / 10
    """1e-14: of 1 - R², and of eigenvalues of normal equations: sums of some 45 rounded squares, relative to 1."""

    # A residual of r is known to epsilon/r, the loss to 2·epsilon/r: 1e-9 for residuals of 4e-7, as most data have.
    tie: float = 1e-9
    """Relative difference of two losses, or rewards, that are equal."""

    twins: float = 1e3 * tie
    """1e-6: the same where the residual is as small as `scanned`: one function may have been written in two ways."""

    row_roundings: float = 4.0
    """Times the rounding of one row (`row_rounding`): what a sum whose coefficients alone were fitted may leave."""

    inner_roundings: float = 1e3
    """Times the rounding of one row: what a sum may leave whose terms hold constants that were fitted before."""


EXACTNESS = Exactness()
"""The thresholds that the whole program uses."""


def loss_up_to(residual: float, mean_square: float) -> float:
    """The largest loss of a fit with that relative residual, where y has this mean square.

    >>> loss_up_to(0.1, 4.0)
    0.04000000000000001
    """
    return residual**2 * mean_square


def is_exact(loss: float, mean_square: float, within: float = EXACTNESS.law) -> bool:
    """Whether a loss is zero up to a relative residual of `within`; as it stands, whether y and a law are equal."""
    return loss <= loss_up_to(within, mean_square)


def row_rounding(largest: float) -> float:
    """The rounding error of a row whose terms have absolute values that sum up to `largest`."""
    return EPSILON * largest


def is_exact_sum(residual: float, size: float, rounding: float) -> bool:
    """Whether a sum of terms, its coefficients fitted, equals y.

    `residual` and `size` of y are root mean squares. `rounding`: that of the row with the largest terms. A residual
    above `law` will do where terms cancel, but not above `noise_free`.
    """
    cancelled = residual <= EXACTNESS.row_roundings * rounding and residual <= EXACTNESS.noise_free * size
    return residual <= EXACTNESS.law * size or cancelled


def is_exact_fit(residual: float, size: float, rounding: float) -> bool:
    """Whether what a fit leaves is rounding, not noise: then its constants are known to nearly all digits.

    As in `is_exact_sum`, but the terms may hold constants that are not known to the last digit.
    """
    near = residual <= EXACTNESS.noise_free * max(size, rounding)
    return near and residual <= EXACTNESS.inner_roundings * rounding


def is_flat(values: Tensor) -> Tensor:
    """Whether values (..., n), finite, are all equal up to rounding: a tensor of bool (...)."""
    return values.amax(dim=-1) - values.amin(dim=-1) <= EXACTNESS.flat * values.abs().amax(dim=-1)


def is_tie(one: float, other: float) -> bool:
    """Whether two losses of at least 0 are equal up to rounding.

    >>> is_tie(1.0, 1.0 + 1e-10), is_tie(1.0, 1.001)
    (True, False)
    """
    return abs(one - other) <= EXACTNESS.tie * max(one, other)
