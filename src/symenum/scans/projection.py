"""Rows minus their projection on a background: what all least-squares scans share.

A row is a vector over the data, float64, already multiplied by the square roots of the row weights. A *background* is
an orthonormal set of rows (k, n); "off the background" means: minus the projection on it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from symenum.core.exactness import EXACTNESS

__all__ = [
    "orthogonal_part",
    "orthogonal_part_each",
    "orthonormal",
    "unit_orthogonal_part",
    "unit_orthogonal_part_of_one",
    "unit_rows",
]


_TINY = torch.finfo(torch.float64).tiny  # least norm that is divided by: so a zero row stays zero


def unit_rows(rows: Tensor) -> Tensor:
    """Rows (N, n) scaled to norm 1, without overflow or underflow; a zero row stays zero."""
    scaled = rows / rows.abs().amax(dim=1, keepdim=True).clamp_min_(_TINY)
    return scaled.div_(torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(_TINY))


def orthonormal(rows: Tensor) -> Tensor:
    """Orthonormal rows (rank, n) with the same span as `rows` (k, n), float64."""
    if not len(rows):
        return rows
    if len(rows) == 1:  # the usual case, the intercept; on a GPU a decomposition takes longer than a scan
        unit = unit_rows(rows)
        return unit[: int(bool(unit.any()))]
    _, S, Vh = torch.linalg.svd(unit_rows(rows), full_matrices=False)
    directions: Tensor = Vh[S / S[0].clamp_min(_TINY) > EXACTNESS.rank]
    return directions


def orthogonal_part(rows: Tensor, background: Tensor, *, times: int = 2) -> Tensor:
    """Rows (…, n) minus their projection on `background` (k, n, orthonormal), taken `times` times.

    After one subtraction the rounding error is relative to the row, after two it is relative to the remainder.
    """
    for _ in range(times):
        rows = rows - (rows @ background.T) @ background
    return rows


def orthogonal_part_each(rows: Tensor, units: Tensor, *, times: int = 2) -> Tensor:
    """Each of rows (m, n) minus its projection on its own unit (or zero) row: `units` (m, n), or one (n,) for all."""
    for _ in range(times):
        rows = rows - (rows * units).sum(dim=1, keepdim=True) * units
    return rows


def unit_orthogonal_part(rows: Tensor, background: Tensor) -> tuple[Tensor, Tensor]:
    """The rows (N, n) off `background` (k, n, orthonormal), scaled to norm 1, and the part (N,) that remained.

    The part is the norm of the remainder relative to the row's; near 0 for a row inside the span of the background,
    whose direction is then rounding noise.
    """
    remainder = unit_rows(rows)
    for _ in range(2):  # as in `orthogonal_part`, without a copy
        remainder.addmm_(remainder @ background.T, background, alpha=-1)
    return _unit_and_norm(remainder)


def unit_orthogonal_part_of_one(rows: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """`unit_orthogonal_part` off one unit row (n,), or off none (a zero row), by sums instead of matrix products.

    The result for a row does not depend on the other rows, to the last bit; in a matrix product it does.
    """
    return _unit_and_norm(orthogonal_part_each(unit_rows(rows), unit))


def _unit_and_norm(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (N, n) scaled to norm 1 in place, and their norms (N,)."""
    norm: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return rows.div_(norm.clamp_min(_TINY)[:, None]), norm
