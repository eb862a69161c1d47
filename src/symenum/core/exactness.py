"""What is zero up to rounding: the one home of all thresholds that tell a law from an approximation.

The unit is the *relative residual*: the root mean square of y minus the law, divided by the root mean square of y. The
relative loss, a quotient of mean squares, is its square. Each threshold is the machine epsilon times factors that say
where errors come from, so none depends on the units of y.
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
    "overflow_allowed",
    "row_rounding",
]

EPSILON = float(np.finfo(np.float64).eps)
"""2.2e-16: the distance from 1 to the next number in double precision."""


def overflow_allowed() -> np.errstate:
    """A context in which NumPy does not warn of values that are not finite; torch never does.

    Tables have any unit: a square of 1e-160 is 0, and its inverse infinite. Whoever computes such a value tests whether
    it is finite and leaves out what is not, so the warning would tell the user of nothing that he can change.
    """
    return np.errstate(all="ignore")


@dataclass(frozen=True)
class Exactness:
    """The thresholds; each is a relative residual, unless its own line says otherwise."""

    # A law in doubles differs from its true values by a few epsilons, and by hundreds where its terms cancel. 450 are
    # enough for 99.3 % of 1,181 random laws of up to four layers (benchmarks/law_rounding.py).
    rounding: float = 450 * EPSILON
    """1e-13: two ways to write one law differ by no more."""

    stalled: float = rounding / 10
    """1e-14: an optimiser stops at this residual: it cannot gain, even on a law whose own rounding is small."""

    law: float = 2 * rounding
    """2e-13: an expression this near to y is the law: y and the expression may each be wrong by `rounding`."""

    fitted: float = 10 * rounding
    """1e-12: an expression whose constants come from an iterative fit, which may miss their last digit."""

    noise_free: float = 100 * rounding
    """1e-11: a sum fitted to data without noise, whose terms may cancel by two digits."""

    scanned: float = 1e4 * rounding
    """1e-9: what a scan or a solver may leave of an exact law, if its constants are then recognised as numbers."""

    logarithm: float = 1e5 * rounding
    """1e-8: as `scanned` for a fit of log|y|, where the relative errors of small rows count: a digit more."""

    flat: float = noise_free
    """1e-11: a column is constant if its largest and smallest value differ by no more than this part of the largest."""

    rank: float = rounding
    """1e-13: a singular value below this part of the largest one is zero."""

    # A difference of numbers of size 1 has an error of epsilon. A difference of √epsilon has half of its digits right.
    remainder: float = math.sqrt(EPSILON)
    """1.5e-8: a column minus its projection, or a difference of sums of squares, below this part is zero."""

    squares: float = rounding / 10
    """1e-14: rounding error of 1 - R², and of eigenvalues of normal equations: of sums of some 45 squares near 1."""

    # A relative residual r has a relative error of epsilon/r, the loss one of 2·epsilon/r: 1e-9 for a residual of 4e-7.
    # The residuals of data with noise are larger.
    tie: float = 1e-9
    """Largest relative difference of two losses, or rewards, that count as equal."""

    scanned_tie: float = 1e3 * tie
    """1e-6: as `tie` for residuals below `scanned`, where two ways to write one function differ by more."""

    row_roundings: float = 4.0
    """Largest residual, in units of `row_rounding`, of an exact sum of which only the coefficients were fitted."""

    inner_roundings: float = 1e3
    """Largest residual, in units of `row_rounding`, of an exact sum whose terms hold constants that were fitted."""


EXACTNESS = Exactness()
"""The thresholds that the program uses."""


def loss_up_to(residual: float, mean_square: float) -> float:
    """The loss that belongs to a relative residual, for a y of that mean square.

    >>> loss_up_to(0.1, 4.0)
    0.04000000000000001
    """
    return residual**2 * mean_square


def is_exact(loss: float, mean_square: float, within: float = EXACTNESS.law) -> bool:
    """Whether the relative residual of a loss is at most `within`; by default, whether the expression is the law."""
    return loss <= loss_up_to(within, mean_square)


def row_rounding(largest: float) -> float:
    """The rounding error of a row whose terms have absolute values that sum up to `largest`."""
    return EPSILON * largest


def is_exact_sum(residual: float, size: float, rounding: float) -> bool:
    """Whether a sum of terms with fitted coefficients equals y.

    `residual`: the root mean square of what the sum leaves of y; `size`: that of y; `rounding`: the `row_rounding` of
    the row with the largest terms. Where terms cancel, the residual may exceed `law`, but not `noise_free`.
    """
    cancelled = residual <= EXACTNESS.row_roundings * rounding and residual <= EXACTNESS.noise_free * size
    return residual <= EXACTNESS.law * size or cancelled


def is_exact_fit(residual: float, size: float, rounding: float) -> bool:
    """Whether the residual of a fit is rounding, not noise, so that its constants have nearly all digits right.

    Arguments as in `is_exact_sum`, but the terms may hold constants whose last digit is wrong.
    """
    near = residual <= EXACTNESS.noise_free * max(size, rounding)
    return near and residual <= EXACTNESS.inner_roundings * rounding


def is_flat(values: Tensor) -> Tensor:
    """Whether values (..., n), float64 and finite, are equal up to rounding along the last axis: bool (...)."""
    return values.amax(dim=-1) - values.amin(dim=-1) <= EXACTNESS.flat * values.abs().amax(dim=-1)


def is_tie(one: float, other: float) -> bool:
    """Whether two losses, both at least 0, are equal up to rounding.

    >>> is_tie(1.0, 1.0 + 1e-10), is_tie(1.0, 1.001)
    (True, False)
    """
    return abs(one - other) <= EXACTNESS.tie * max(one, other)
