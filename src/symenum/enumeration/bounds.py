"""Lower bounds of the losses of a whole tile of candidates, as one matrix product.

For a form f of the columns v_i and v_j, the loss Σ w (f - y)² expands into terms that are each a function of i times a
function of j. With the rows scaled so that Σ w y² = 1, and x = √w·v, z = √w·y, s = |x|², a = x·z:

    |±x_i ± x_j - z|²  =  s_i + s_j ± 2 x_i·x_j - (±2 a_i) - (±2 a_j) + |z|²
    Σ w (v_i v_j - y)²  =  Σ (w v_i²)(v_j²) + Σ (-2 w y v_i)(v_j) + |z|²          (v_i/v_j: the same with 1/v_j)

so a tile of losses is left(i) · right(j)ᵀ + const. Rounding can make a computed loss wrong by at most γ times the sum
of the absolute terms (γ = K·u for K products summed in a precision of unit roundoff u). That error is bounded by

    sums:      γ (3 s_i + 3 s_j + 2)         since 2|a| ≤ s + 1
    products:  γ (2 Σ w f² + 1)              since 2|y f| ≤ y² + f²

and is taken off *inside* the product: what comes out is a number that the true loss cannot be below. Partial sums over
some of the rows are lower bounds as well, because the rest can only add.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.enumeration.forms import Family, Form
from symenum.enumeration.target import Target

__all__ = ["RowPart", "left_factors", "right_factors", "row_parts"]

# Beyond this the squares of squares of a column leave the range of the type: no bound, evaluate directly.
_RANGE = {torch.float32: 1e9, torch.float64: 1e75}


@dataclass(frozen=True)
class RowPart:
    """Some rows of the target, in units of its root mean square `scale`."""

    rows: slice
    weight: Tensor  # (rows,) float64; the weights of all parts together sum to 1
    y: Tensor  # (rows,) float64, divided by scale
    scale: float

    @property
    def constant(self) -> float:
        """|z|², the part of the loss that depends on no column."""
        return float((self.weight * self.y.square()).sum())


def row_parts(target: Target, size: int) -> list[RowPart]:
    """The target's rows in parts of at most `size`."""
    scale = target.mean_square**0.5
    slices = [slice(start, start + size) for start in range(0, target.rows, size)]
    return [RowPart(rows, target.weight[rows], target.y[rows] / scale, scale) for rows in slices]


def unit(dtype: torch.dtype, rows: int) -> float:
    """γ: the relative error of a sum of 2·rows + 2 products, with a few more for the rounding of the factors."""
    return (2 * rows + 10) * torch.finfo(dtype).eps / 2


def left_factors(form: Form, part: RowPart, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Factors (columns, K) of the columns `values` (columns, all rows) as v_i; None if they are out of range."""
    v = values[:, part.rows]
    gamma = unit(dtype, v.shape[1])
    if form.family is Family.SUM:
        x, own = _sum_terms(form.first, part, v, gamma)
        return _checked(torch.cat([x, own, torch.ones_like(own)], dim=1), x, dtype)
    v = v / part.scale**0.5
    square = part.weight * v.square() * (1 - 2 * gamma)
    cross = (-2 * form.first * part.weight * part.y) * v
    return _checked(torch.cat([square, cross], dim=1), v, dtype)


def right_factors(form: Form, part: RowPart, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Factors (columns, K) of the columns `values` (columns, all rows) as v_j; None if they are out of range."""
    v = values[:, part.rows]
    gamma = unit(dtype, v.shape[1])
    if form.family is Family.SUM:
        x, own = _sum_terms(form.second, part, v, gamma)
        return _checked(torch.cat([2 * form.first * form.second * x, torch.ones_like(own), own], dim=1), x, dtype)
    if form.family is Family.QUOTIENT:
        v = v.reciprocal()
        v[~torch.isfinite(v).all(dim=1)] = 0.0  # never a candidate: the bound of zero is as good as any
    v = v / part.scale**0.5
    return _checked(torch.cat([v.square(), v], dim=1), v, dtype)


def bound_constant(form: Form, part: RowPart, dtype: torch.dtype) -> float:
    """What must be added to a product of factors to make it a lower bound of the loss, in units of scale²."""
    gamma = unit(dtype, len(part.y))
    # Sums have their share of γ·2 in the factors already.
    return part.constant * (1 - gamma) - (0.0 if form.family is Family.SUM else gamma)


def _sum_terms(sign: int, part: RowPart, v: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    x = v * (part.weight.sqrt() / part.scale)
    s = x.square().sum(dim=1, keepdim=True)
    a = x @ (part.weight.sqrt() * part.y)
    return x, s * (1 - 3 * gamma) - 2 * sign * a[:, None] - gamma


def _checked(factors: Tensor, values: Tensor, dtype: torch.dtype) -> Tensor | None:
    if not bool((values.abs() <= _RANGE[dtype]).all()):
        return None
    return factors.to(dtype).contiguous()
