"""What `fit` may do to the data before the search: smooth y (`denoise`), and choose columns (`select_k_features`).

Both are PySR's: a Gaussian process for y, and the importances of a random forest for the columns. Both work on a part
of the rows where there are many. Their random numbers are the same for all seeds: when a search goes on with another
seed, it must find the same columns and the same y.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows, stream
from symenum.core.target import Target

# Forests and Gaussian processes of scikit-learn are imported where they are used: they take 0.2 of the 3.7 s of an
# import of PSERegressor, and few searches ask for them.
if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import ConstantKernel

__all__ = ["denoised", "important_columns"]

Array = npt.NDArray[np.float64]

_TREES, _TREE_DEPTH = 100, 3  # of the random forest: PySR's
_FOREST_ROWS = 1024  # rows that the forest sees: about a second for a thousand columns
_FOREST_COLUMNS = 100  # columns that a branch of a tree chooses from: a second for any number of columns
_KERNEL_ROWS = 200  # rows that the length scales are fitted on: the cost grows with the cube of the rows
_PROCESS_ROWS = 1000  # rows that the smooth values follow from: 8 MB of covariances
_RESTARTS = 2  # of the fit of length scales, from random ones
_NOISE = 1e-2  # variance of the noise that the fit starts from, in units of the variance of y
_NOISE_RANGE = (1e-10, 1e1)  # where it may end, in the same units
_SCALE_RANGE = (1e-2, 1e3)  # of length scales, in standard deviations of a column
_SEED = 0  # of everything random here, see above
_MAX_SCALES = 20  # columns that have a length scale each; with more of them all share one, for memory and time
_CHUNK = 4096  # rows that are predicted at a time: 32 MB of covariances


def important_columns(table: Tensor, target: Target, count: int) -> list[int]:
    """The indices of the `count` columns of the table (rows, features) that y depends on most, ascending.

    By the importances of a random forest; of columns that are equally important, the first ones.
    """
    features = table.shape[1]
    if count >= features:
        return list(range(features))
    from sklearn.ensemble import RandomForestRegressor

    rows = sample_rows(len(table), _FOREST_ROWS, _SEED, "rows of the random forest")
    forest = RandomForestRegressor(
        n_estimators=_TREES,
        max_depth=_TREE_DEPTH,
        max_features=min(features, _FOREST_COLUMNS),
        random_state=int(stream(_SEED, "random forest").integers(1 << 31)),
    )
    y = _standardised(target.y[:, None])[:, 0]
    forest.fit(_standardised(table)[rows].numpy(), y[rows].numpy(), target.weight[rows].numpy())
    order = np.argsort(-forest.feature_importances_, kind="stable")
    return sorted(order[:count].tolist())


def denoised(table: Tensor, target: Target) -> Target:
    """The target with y (rows,) smoothed over the table (rows, features) by a Gaussian process.

    The process has a length scale for each column (one for all, where there are many), and noise whose variance is
    fitted with them; a row of weight w has the noise of an average over w rows.
    """
    X = _standardised(table).numpy()
    middle = float((target.y * target.weight).sum())
    size = float(((target.y - middle).square() * target.weight).sum().sqrt())
    if not EXACTNESS.flat * abs(middle) < size < np.inf:
        return target  # y does not vary
    y = ((target.y - middle) / size).numpy()
    rows = sample_rows(len(X), _PROCESS_ROWS, _SEED, "rows of the Gaussian process").numpy()
    kernel = _fitted_kernel(X, y, sample_rows(len(X), _KERNEL_ROWS, _SEED, "rows of its kernel").numpy())
    signal, noise = kernel.k1, float(kernel.k2.noise_level)
    weight = target.weight.numpy()[rows]
    covariance = signal(X[rows]) + np.diag(noise * weight.mean() / weight)
    solved = np.linalg.solve(covariance, y[rows])
    parts = [signal(X[start : start + _CHUNK], X[rows]) @ solved for start in range(0, len(X), _CHUNK)]
    smooth = torch.from_numpy(np.concatenate(parts)) * size + middle
    return Target(smooth, target.weight) if bool(torch.isfinite(smooth).all()) else target


def _fitted_kernel(X: Array, y: Array, rows: Array) -> ConstantKernel:
    """The kernel of most likelihood on these rows: signal plus noise."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    columns = X.shape[1]
    start = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(columns) if columns <= _MAX_SCALES else 1.0, _SCALE_RANGE)
    process = GaussianProcessRegressor(
        start + WhiteKernel(_NOISE, _NOISE_RANGE),
        n_restarts_optimizer=_RESTARTS,
        random_state=int(stream(_SEED, "Gaussian process").integers(1 << 31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at the end of its range is a flat direction
        return process.fit(X[rows], y[rows]).kernel_


def _standardised(values: Tensor) -> Tensor:
    """Columns (rows, n) of mean 0 and standard deviation 1; a column that does not vary becomes 0."""
    scale = values.abs().amax(dim=0).clamp_min(torch.finfo(values.dtype).tiny)  # squares of huge values overflow
    scaled = values / scale
    centred = scaled - scaled.mean(dim=0)
    spread = centred.square().mean(dim=0).sqrt()
    return centred / torch.where(spread > 0, spread, torch.ones_like(spread))
