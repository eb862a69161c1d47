"""The evidence for a law, in nats: the log-likelihood of the rows under it, less the price of writing the law down.

The residuals are noise of unknown size with the tails of Student's t, so that a few outliers do not decide. A law pays
for each of its symbols, the more the more rows there are. Differences of evidence count: a law with 3 nats more is e³ =
20 times as probable. Noise and price were chosen among many by benchmarks/choice.py, on random laws with noise and on
held-out rows of tables. For noise that grows with the values see `growing_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.seeds import sample_rows
from symenum.core.target import Training
from symenum.expressions import Expression, evaluate, walk
from symenum.fitting.losses import Loss, Squared
from symenum.heads.response import law_limit

__all__ = [
    "INDISTINCT",
    "evidence",
    "evidence_of_loss",
    "law_price",
    "noise_surprise",
    "rows_to_weigh_on",
]

Array = npt.NDArray[np.float64]

INDISTINCT = math.log(20.0)
"""Nats of evidence: a law that is less than 20 times less probable than another cannot be told from it, as at 95%."""
# Degrees of freedom of Student's t. With 8 a normal residual of 3 standard deviations counts as 2.6, one of 30 as 8;
# up to a ninth of the rows may be outliers, with 2 up to a third. benchmarks/choice.py.
_DEGREES = 8.0
_ROBUST_DEGREES = 2.0  # where the user has asked for a loss that outliers do not decide
_PRICE = 1 / 3  # of a symbol, in logarithms of the number of rows; a factor of 1.2 either way is worse on tables
_ROWS = 20_000  # rows that are looked at, drawn at random: a law takes 5 ms
_STEPS = 100  # of the fixed point for the scale of the noise; it needs 10 to 40
_CONVERGED = 1e-9  # relative change of the squared scale
_NORMAL_START = 2.2  # variance of a normal distribution, in units of the median of the squares
_MIN_SQUARE = 1e-300  # near the smallest normal double: logarithms are taken of squares of at least this


def evidence(
    laws: Sequence[Expression],
    training: Training,
    floor: float,
    loss: Loss | None = None,
    *,
    most_rows: int = _ROWS,
) -> tuple[float, ...]:
    """The evidence for each law on these rows, up to a number that is common to all; -inf where one is not finite.

    `floor`: losses up to it are zero up to rounding. `loss`: what the laws were fitted by, if not the mean square.
    `most_rows`: rows that are looked at, if there are more.
    """
    loss = Squared() if loss is None else loss
    rows = training.target.rows
    part = rows_to_weigh_on(training, most_rows)
    target = part.target
    factors = loss.row_weights(target.y)
    scale = target.rows * (target.weight if factors is None else target.weight * factors)
    by_rows = loss.rows(target.y, target.y) is not None  # else only all rows together have a loss
    degrees = _ROBUST_DEGREES if loss.robust else _DEGREES
    if loss.robust:  # its own floor is no square
        floor = law_limit(target)
    found = []
    for law in laws:
        values = evaluate(law, part.columns).to(torch.float64)
        squares = (scale * (values - target.y).square()).numpy()
        if not bool(np.isfinite(squares).all()):
            likelihood = -math.inf
        elif by_rows:
            likelihood = -noise_surprise(squares, floor, degrees)
        else:
            total = loss.total(target.y, values, target.weight) - min(floor, 0.0)  # a loss may be negative
            likelihood = evidence_of_loss(total, max(floor, 0.0), target.rows)
        found.append(likelihood * rows / target.rows - law_price(law, rows))
    return tuple(found)


def rows_to_weigh_on(training: Training, most_rows: int) -> Training:
    """The rows, or so many of them; of the same rows always the same."""
    return training.at(sample_rows(training.target.rows, most_rows, 0, "rows that laws are weighed on"))


def evidence_of_loss(loss: float, floor: float, rows: int) -> float:
    """The log-likelihood of rows with a mean square of `loss` under normal noise of the size that suits it best."""
    return -0.5 * rows * (math.log(max(loss, floor, _MIN_SQUARE)) + 1 + math.log(2 * math.pi))


def noise_surprise(squares: Array, floor: float, degrees: float = _DEGREES) -> float:
    """Minus the log-likelihood of residuals with these squares (rows,) under Student's t at its likeliest scale."""
    least = max(floor, _MIN_SQUARE)
    if float(squares.mean()) <= least:
        squares = np.full_like(squares, least)
    scale = max(_NORMAL_START * float(np.median(squares)), least)
    for _ in range(_STEPS):
        new = max(float(np.mean((degrees + 1) * squares / (degrees + squares / scale))), least)
        change, scale = abs(new / scale - 1), new
        if change < _CONVERGED:
            break
    tails = 0.5 * (degrees + 1) * float(np.log1p(squares / (degrees * scale)).sum())
    return tails + len(squares) * (0.5 * math.log(scale) - _log_peak(degrees))


@cache
def _log_peak(degrees: float) -> float:
    """The logarithm of the density of Student's t at zero."""
    return math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)


def law_price(law: Expression, rows: int) -> float:
    """Nats to write a law down: a third of the logarithm of the rows for each operator, variable and constant.

    A fitted constant with its operator costs two thirds of it: the half of BIC, which is what the rows support of its
    digits, and a sixth for having been put there.
    """
    return _PRICE * math.log(max(2, rows)) * sum(1 for _ in walk(law))
