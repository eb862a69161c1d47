"""Linear least squares on a few columns, to the last digit that double precision gives.

For the handful of columns of one candidate; the heads' scans have their own, batched ways.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.exactness import EXACTNESS

__all__ = ["Fit", "least_squares"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """`coefficients` (k,), `residual` (n,), and `sensitivity` (k,): the standard error of each for unit noise."""

    coefficients: Array
    residual: Array
    sensitivity: Array
    full_rank: bool

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.residual**2))) if len(self.residual) else 0.0


def svd(A: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition U, S, Vᵀ of A (n, k).

    By torch, whose threads callers can limit: NumPy's own make a fit of 50 columns ten times slower on
    a busy machine.
    """
    U, S, Vh = torch.linalg.svd(torch.from_numpy(np.ascontiguousarray(A)), full_matrices=False)
    return U.numpy(), S.numpy(), Vh.numpy()


def least_squares(A: Array, y: Array) -> Fit:
    """The coefficients c of least |y - A c|, for A (n, k) and y (n,), float64; of least norm where A is singular.

    Columns are scaled to one norm first, so that their units do not matter, and the solution is refined once.
    """
    scale = np.max(np.abs(A), axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    B = A / scale
    norm = np.sqrt((B**2).sum(axis=0))
    norm[norm == 0.0] = 1.0
    B, scale = B / norm, scale * norm
    U, S, Vt = svd(B)
    good = (S > 0) & (EXACTNESS.rank * S.max(initial=0.0) < S)
    W = Vt[good].T / S[good]
    Ut = U[:, good].T
    c = W @ (Ut @ y)
    c = c + W @ (Ut @ (y - B @ c))
    sensitivity = np.sqrt((W**2).sum(axis=1)) / scale
    return Fit(c / scale, y - B @ c, sensitivity, bool(good.all()) and len(S) == A.shape[1])
