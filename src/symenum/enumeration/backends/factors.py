"""The factors of the bounds on tensor cores: as `enumeration.bounds`, for products of TF32 numbers.

A TF32 number has 11 significant bits. Factors are rounded to it, so that the tensor core multiplies exactly what it is
given; each factor is then wrong by at most 2⁻¹¹ of itself, and a product by 2⁻¹⁰. Sums are taken in float32, where a
tensor core may cut off instead of round, so an addition counts 2⁻²³. With γ the sum of both, z = √w·y and x = √w·v in
units of |z|, r = v or 1/v, s = |x|² and a = x·z, the bounds are

    sums:      s_i + s_j ± 2 x_i·x_j ∓ 2 a_i ∓ 2 a_j + 1  -  γ (s_i + s_j)         since 2|x_i x_j| ≤ x_i² + x_j²
    products:  Σ w v_i² r_j² ∓ 2 Σ w y v_i r_j + 1  -  γ (2 Σ w v_i² r_j² + 1)      since 2|y f| ≤ y² + f²

and _SLACK covers the float32 operations that add the parts up. γ is 1e-3 for 20 rows. That is coarse, and enough: on
the benchmark 150 of 5 million units are left, which cost nothing in double precision.

Columns out of range have an own term so low that all of their units are evaluated; those beyond the end of the bank
have one so high that none is. The own terms of products are summed by the tensor core too, in four places behind the
rows.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

__all__ = ["OUT_OF_RANGE", "Factors", "inner_size"]

OUT_OF_RANGE = 1e9  # in units of y's root mean square: the product of two squares must stay below 3e38
_ROUNDING = 2.0**-10 * 1.01
_ADDITION = 2.0**-23
_SLACK = 2.0**-18
_ALWAYS, _NEVER = -1e35, 1e33  # own terms; finite, so that nothing becomes NaN
_COLUMNS = 16  # of a program


def inner_size(rows: int) -> tuple[int, int]:
    """The inner dimension K of the products, and the part of it that is multiplied at a time."""
    need = rows + 4
    if need <= 64:
        size = 16 if need <= 16 else 32 if need <= 32 else 64
        return size, size
    return -(-need // 64) * 64, 64


def margin(rows: int) -> float:
    """γ for sums of that many products."""
    return _ROUNDING + (1.25 * inner_size(rows)[0] + 16) * _ADDITION


class Factors:
    """Buffers for the factors of a bank of `columns` × `rows`; (columns, K) or (columns,) float32."""

    def __init__(self, columns: int, rows: int, device: torch.device, kernels: ModuleType) -> None:
        K, self._part = inner_size(rows)
        self._kernels = kernels
        self._rows = rows
        self.x, left, left2, right, right2, inverse, inverse2 = torch.empty(7, columns, K, device=device)
        self.own, self.along = torch.empty(2, columns, device=device)
        self.product = (left, left2, right, right2)
        self.quotient = (left, left2, inverse, inverse2)
        self.transposed = torch.empty(rows, columns, dtype=torch.float64, device=device)

    def make(self, values: Tensor, counts: Tensor, y: Tensor, weight: Tensor, scale2: Tensor) -> None:
        """For `values` (columns, rows), y, weight (rows,) and the mean square of y, all float64 on the device."""
        columns, K = self.x.shape
        self._kernels.make_factors[(columns // _COLUMNS,)](
            values, y, weight, scale2, counts, self._rows, columns,
            self.x, self.own, self.along, *self.product, *self.quotient[2:], self.transposed,
            margin(self._rows), _SLACK, OUT_OF_RANGE, _ALWAYS, _NEVER,
            K=K, BK=self._part, COLUMNS=_COLUMNS,
        )  # fmt: skip
