"""Many small symmetric positive definite systems at once."""

from __future__ import annotations

import numpy as np

from symenum.fitting.program import Array

__all__ = ["solve_positive"]

_LEAST_PIVOT = 1e-15


def solve_positive(A: Array, b: Array, diagonal: Array | float = 0.0) -> Array:
    """x (k, B) with (A + diagonal) x = b for A (k, k, B), b (k, B) and a diagonal (k, B), which make a diagonal near 1.

    Elimination without pivoting, all systems side by side: for systems of six, five times as fast as LAPACK one by one.
    Where A is singular, x is one of the solutions if there are any; it is NaN where A or b is.
    """
    k, size = len(b), b.shape[1]
    system = np.empty((k, k + 1, size))
    system[:, :k], system[:, k] = A, b
    np.einsum("iib->ib", system[:, :k])[...] += diagonal
    products = np.empty((k * k, size))  # one piece of memory for all of them: at these sizes a new one costs as much
    for j in range(k):
        row, below = system[j, j + 1 :], k - 1 - j
        row /= np.maximum(system[j, j], _LEAST_PIVOT)
        product = products[: below * (below + 1)].reshape(below, below + 1, size)
        np.multiply(system[j + 1 :, j, None], row, out=product)
        system[j + 1 :, j + 1 :] -= product
    x = system[:, k]
    for j in range(k - 1, 0, -1):
        x[:j] -= np.multiply(system[:j, j], x[j], out=products[:j])
    return x
