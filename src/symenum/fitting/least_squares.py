"""Linear least squares on a few columns, to the last digit that double precision gives.

For the handful of columns of one candidate (`least_squares`), or of each of many (`least_squares_of_each`). Scans of
all pairs and triples of columns have their own way (`scans`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS

__all__ = ["Fit", "Fits", "least_squares", "least_squares_of_each"]

Array = npt.NDArray[np.float64]

_TINY = float(np.finfo(np.float64).tiny)


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


@dataclass(frozen=True)
class Fits:
    """Of B sets of m columns: `coefficients` (B, m), `residual` (B, n), and an orthonormal `basis` (B, n, m) of each.

    `rank` (B,): the least length of a column off those before it, relative to its own; 0 where columns depend on each
    other, or are not finite. The coefficients mean nothing there.
    """

    coefficients: Tensor
    residual: Tensor
    basis: Tensor
    rank: Tensor

    def off(self, rows: Tensor) -> Tensor:
        """Rows (B, k, n) off the span of the columns."""
        return rows - (rows @ self.basis) @ self.basis.transpose(1, 2)


def least_squares_of_each(columns: Tensor, y: Tensor) -> Fits:
    """The coefficients c of least |y - c·columns| for each of many small sets: columns (B, m, n) and y (n,), float64.

    By QR decompositions of columns of one norm. Columns that are not finite are taken for zeros.
    """
    size = torch.linalg.vector_norm(columns, dim=2, keepdim=True)
    fine = torch.isfinite(size).all(dim=1, keepdim=True)
    unit = torch.where(fine, columns / size.clamp_min(_TINY), 0.0)
    Q, R = torch.linalg.qr(unit.transpose(1, 2))
    diagonal = R.diagonal(dim1=1, dim2=2)
    rank = diagonal.abs().amin(dim=1)
    R = R + torch.diag_embed(torch.where(diagonal.abs() < EXACTNESS.rank, EXACTNESS.rank, 0.0))
    along = (y @ Q)[..., None]
    coefficients = torch.linalg.solve_triangular(R, along, upper=True)[..., 0] / size[..., 0].clamp_min(_TINY)
    return Fits(coefficients, y - (Q @ along)[..., 0], Q, torch.where(fine[:, 0, 0], rank, 0.0))
