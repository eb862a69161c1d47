"""Rows off a background: the projections that all least-squares scans share.

Rows are vectors over the data, already multiplied by the square roots of the row weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS

__all__ = ["off", "off_each", "orthonormal", "project_off", "project_off_one", "unit_rows"]


_TINY = torch.finfo(torch.float64).tiny


def unit_rows(rows: Tensor) -> Tensor:
    """Rows (N, n) scaled to norm 1, whatever their scale; a zero row stays zero."""
    scaled = rows / rows.abs().amax(dim=1, keepdim=True).clamp_min_(_TINY)
    return scaled.div_(torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(_TINY))


def orthonormal(rows: Tensor) -> Tensor:
    """Orthonormal rows (rank, n) of one span with `rows` (k, n), float64."""
    if not len(rows):
        return rows
    if len(rows) == 1:  # the intercept alone, as a rule; on a GPU a decomposition takes longer than a scan
        unit = unit_rows(rows)
        return unit[: int(bool(unit.any()))]
    _, S, Vh = torch.linalg.svd(unit_rows(rows), full_matrices=False)
    directions: Tensor = Vh[S / S[0].clamp_min(_TINY) > EXACTNESS.rank]
    return directions


def off(rows: Tensor, background: Tensor, *, times: int = 2) -> Tensor:
    """What is left of rows (…, n) off the span of `background` (k, n, orthonormal).

    Once leaves an error of the size of rounding relative to the row, twice relative to what is left of it.
    """
    for _ in range(times):
        rows = rows - (rows @ background.T) @ background
    return rows


def off_each(rows: Tensor, units: Tensor, *, times: int = 2) -> Tensor:
    """What is left of each of rows (m, n) off the unit row (or zero) of its own, units (m, n)."""
    for _ in range(times):
        rows = rows - (rows * units).sum(dim=1, keepdim=True) * units
    return rows


def project_off(rows: Tensor, background: Tensor) -> tuple[Tensor, Tensor]:
    """Unit rows (N, n) of what is left of `rows` off the span of `background` (k, n, orthonormal), and how much (N,).

    How much: the norm left, relative to the row's; near 0 for a row inside the span, whose direction is then noise.
    """
    left = unit_rows(rows)
    for _ in range(2):  # as in `off`, without a copy
        left.addmm_(left @ background.T, background, alpha=-1)
    norm: Tensor = torch.linalg.vector_norm(left, dim=1)
    return left.div_(norm.clamp_min(_TINY)[:, None]), norm


def project_off_one(rows: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """`project_off` for a background of one unit row (n,), or none (a zero row), by sums instead of matrix products.

    What becomes of a row does not depend on the rows beside it, to the last digit; in a matrix product it does.
    """
    left = unit_rows(rows)
    for _ in range(2):
        left = left - (left * unit).sum(dim=1, keepdim=True) * unit
    norm: Tensor = torch.linalg.vector_norm(left, dim=1)
    return left.div_(norm.clamp_min(_TINY)[:, None]), norm
