"""The band of a law: how far its values may be from the true ones, as a standard deviation at each point.

Three things are added up, as variances: the errors of the constants; the differences between the law and its
alternatives, by their weights; and what the law may have missed. The last is read off the residuals: where those of
neighbouring rows are alike, they are not noise. A Gaussian process with a few lengths and a few shares of the variance
says how much; that nothing was missed has a prior probability of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows
from symenum.core.target import Training
from symenum.expressions import Expression, evaluate
from symenum.selection.alternatives import Alternative
from symenum.selection.growing_noise import NoiseAround
from symenum.selection.influence import slopes_by_constants, with_named_constants

__all__ = ["Band", "make_band"]

Array = npt.NDArray[np.float64]
Columns = Mapping[str, Tensor]

_MISSED_ROWS = 400  # rows on which the missed part is read off: an eigendecomposition of them takes 50 ms
# Of the missed part, in units of the typical distance of two rows. The shortest is that of a part so rough that it
# cannot be told from noise: it keeps the band from vanishing. By the bands of benchmarks/choice.py.
_LENGTHS = (0.1, 0.25, 0.5, 1.0, 2.0)
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)  # of the variance of the residuals that may be missed, not noise
_NONE = 0.2  # prior probability that nothing is missed; with 0.5 bands of 95% hold 1 to 2% fewer of the true values
_LEAST_WEIGHT = 1e-3  # of a length and share that are still looked at
_BLOCK = 2000  # points at once, so that the products with all rows stay small


@dataclass(frozen=True)
class Band:
    """The standard deviations of a law's values; `around` is the law, `laws` are its alternatives.

    `missed` is in units of the `noise` around the law, where that grows.
    """

    around: Expression
    laws: tuple[_Sloped, ...]
    missed: _Missed | None
    noise: NoiseAround | None = None

    def std(self, columns: Columns) -> Array:
        """The standard deviation at each point (points,); columns (points,) float64 by name. NaN: not defined."""
        centre = evaluate(self.around, columns).to(torch.float64).numpy()
        variance = np.zeros(len(centre))
        with np.errstate(all="ignore"):
            for law in self.laws:
                values, spread = law.at(columns)
                variance += law.weight * (spread + (values - centre) ** 2)
            if self.missed is not None:
                unit = 1.0 if self.noise is None else self.noise.sizes(columns).numpy() ** 2
                variance += unit * self.missed.mean_square(columns)
            std: Array = np.where(np.isfinite(variance), np.sqrt(variance), np.nan)
        return std


def make_band(
    around: Expression,
    alternatives: Sequence[Alternative],
    training: Training,
    noise: NoiseAround | None = None,
    seed: int = 0,
) -> Band:
    """The band of a law, one of its alternatives, that was fitted on these rows; `noise`: around it, if it grows."""
    rows = training if noise is None else noise.weigh(training)
    laws = tuple(_sloped(one.law.expression, one.weight, rows) for one in alternatives)
    return Band(around, laws, _missed(around, training, seed, noise=noise), noise)


@dataclass(frozen=True)
class _Sloped:
    """An alternative with the covariance (k, k) of its fitted constants; `names` stand for these in `form`."""

    law: Expression
    weight: float
    form: Expression
    constants: Mapping[str, float]
    covariance: Array

    def at(self, columns: Columns) -> tuple[Array, Array]:
        """The values (points,), and their variances (points,) from the errors of the constants."""
        values, slopes = slopes_by_constants(self.form, self.constants, columns)
        return values, np.einsum("ip,ij,jp->p", slopes, self.covariance, slopes)


def _sloped(law: Expression, weight: float, training: Training) -> _Sloped:
    form, constants = with_named_constants(law)
    values, slopes = slopes_by_constants(form, constants, training.columns)
    target = training.target
    root = target.weight.sqrt().numpy()
    slopes = slopes * root
    residual = float((((values - target.y.numpy()) * root) ** 2).sum())
    size = np.sqrt((slopes**2).sum(axis=1))
    size[size == 0] = 1.0
    eigenvalues, vectors = np.linalg.eigh(slopes @ slopes.T / (size[:, None] * size))
    # What the rows do not determine does not move the values on them, so it has no part in the band.
    inverse = np.where(eigenvalues > EXACTNESS.remainder, 1 / np.maximum(eigenvalues, EXACTNESS.remainder), 0.0)
    determined = int((inverse > 0).sum())
    variance = residual / max(1, target.rows - determined)
    covariance = variance * (vectors * inverse) @ vectors.T / (size[:, None] * size)
    return _Sloped(law, weight, form, constants, covariance)


@dataclass(frozen=True)
class _Missed:
    """A Gaussian process on the residuals: the rows (n, d) in units of their spread, and each length and share."""

    names: tuple[str, ...]
    centre: Array
    spread: Array
    rows: Array
    models: tuple[_Process, ...]

    def mean_square(self, columns: Columns) -> Array:
        """The expected square (points,) of what the law has missed."""
        points = (np.stack([columns[name].numpy() for name in self.names], axis=1) - self.centre) / self.spread
        found = np.zeros(len(points))
        for begin in range(0, len(points), _BLOCK):
            block = points[begin : begin + _BLOCK]
            squares = _squared_distances(block, self.rows)
            found[begin : begin + _BLOCK] = sum(model.weight * model.mean_square(squares) for model in self.models)
        return found


@dataclass(frozen=True)
class _Process:
    """One length and share: `solved` (n,) and `inverse` (n, n) are the inverse covariance times residuals, and it."""

    weight: float
    length: float
    share: float
    variance: float
    solved: Array
    inverse: Array

    def mean_square(self, squared_distances: Array) -> Array:
        kernel = self.share * np.exp(-squared_distances / (2 * self.length**2))
        mean = kernel @ self.solved
        left = self.share - ((kernel @ self.inverse) * kernel).sum(axis=1)
        square: Array = mean**2 + self.variance * np.maximum(left, 0.0)
        return square


def _missed(
    law: Expression, training: Training, seed: int, none: float = _NONE, noise: NoiseAround | None = None
) -> _Missed | None:
    """The Gaussian process on the residuals of a law, in units of the noise where it grows; None: nothing to tell."""
    part = sample_rows(training.target.rows, _MISSED_ROWS, seed, "rows that tell what a law has missed")
    left = training.target.y - evaluate(law, training.columns).to(torch.float64)
    residual = (left if noise is None else left / noise.sizes(training.columns)).numpy()[part.numpy()]
    X = np.stack([column.numpy()[part.numpy()] for column in training.columns.values()], axis=1)
    spread = X.std(axis=0)
    varying = spread > 0
    if len(residual) < 3 or not varying.any() or not np.isfinite(residual).all() or not residual.any():
        return None
    names = tuple(name for name, used in zip(training.columns, varying, strict=True) if used)
    centre, spread = X.mean(axis=0)[varying], spread[varying]
    rows = (X[:, varying] - centre) / spread
    count = len(rows)
    squares = _squared_distances(rows, rows)
    typical = math.sqrt(float(squares[np.triu_indices(count, 1)].mean())) or 1.0
    size = float(np.mean(residual**2))
    found: list[tuple[float, float, float, float, Array, Array, Array]] = []
    for length in _LENGTHS:
        eigenvalues, vectors = np.linalg.eigh(np.exp(-squares / (2 * (length * typical) ** 2)))
        along = (vectors.T @ residual) ** 2
        for share in _SHARES:
            diagonal = share * np.maximum(eigenvalues, 0.0) + 1 - share
            variance = float(np.mean(along / diagonal))
            likelihood = -0.5 * (float(np.log(diagonal).sum()) + count * math.log(variance / size))
            found.append((likelihood, length * typical, share, variance, diagonal, vectors, along))
    # Against the model without a missed part, whose log-likelihood is 0 in these units.
    likelihoods = np.array([one[0] for one in found]) + math.log((1 - none) / none / len(found))
    top = max(0.0, float(likelihoods.max()))
    total = math.exp(-top) + float(np.exp(likelihoods - top).sum())
    models = []
    for weight, one in zip(np.exp(likelihoods - top) / total, found, strict=True):
        if weight >= _LEAST_WEIGHT:
            _, length, share, variance, diagonal, vectors, _ = one
            inverse = (vectors / diagonal) @ vectors.T
            models.append(_Process(float(weight), length, share, variance, inverse @ residual, inverse))
    return _Missed(names, centre, spread, rows, tuple(models))


def _squared_distances(points: Array, rows: Array) -> Array:
    """The squared distances (points, rows)."""
    squares = (points**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * points @ rows.T
    distances: Array = np.maximum(squares, 0.0)
    return distances
