"""Many small symmetric positive definite systems at once.

By hand, because LAPACK is called for one matrix after another, and in NumPy, whose calls cost less than torch's where
the arrays are this small.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "solve_positive"]

Array = npt.NDArray[np.float64]


def solve_positive(A: Array, b: Array) -> Array:
    """x (B, k) with A x = b for A (B, k, k) and b (B, k), by Cholesky; NaN where A is not positive definite."""
    size = b.shape[1]
    # The batch last: then each operation below runs along contiguous memory.
    L = np.ascontiguousarray(A.transpose(1, 2, 0))
    x = np.ascontiguousarray(b.T)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for j in range(size):
            L[j:, j] /= np.sqrt(L[j, j])  # NaN below zero
            x[j] /= L[j, j]
            if j + 1 < size:
                below = L[j + 1 :, j]
                L[j + 1 :, j + 1 :] -= below[:, None] * below
                x[j + 1 :] -= below * x[j]
        for j in range(size - 1, -1, -1):
            if j + 1 < size:
                x[j] -= (L[j + 1 :, j] * x[j + 1 :]).sum(axis=0)
            x[j] /= L[j, j]
    x[~np.isfinite(x)] = np.nan
    return np.ascontiguousarray(x.T)
