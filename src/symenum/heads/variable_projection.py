"""Pairs of features with one inner constant each, many at once: what their columns and derivatives are.

Each problem has two features f(v; c₁) and g(w; c₂) and fits t by 1, f, g or by 1, f·g. Rows are already multiplied by
the square roots of the weights where it says "weighted".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EPSILON
from symenum.heads.projected_fit import Starts, solve
from symenum.heads.projection import off

__all__ = ["KINDS", "Inner", "Polished", "feature_values", "polish"]

# The kinds of feature with one inner constant; "plain" is v itself.
KINDS = ("plain", "sin", "cos", "exp", "log", "inv", "sqrt")
_PLAIN, _SIN, _COS, _EXP, _LOG, _INV, _SQRT = range(len(KINDS))
_STEEPEST = 200.0  # of an exponent; beyond it a step went astray
_EXACT = (4 * EPSILON) ** 2  # of the loss: a constant that nobody recognises is known to its last digits
_FAILED = 9.0  # a relative residual that is never the best


@dataclass(frozen=True)
class Inner:
    """Features: kind (B,) int64, the row v it is made of (B, n) and its constant (B,), float64."""

    kind: Tensor
    v: Tensor
    c: Tensor

    def take(self, which: Tensor, c: Tensor) -> Inner:
        """Some of them (int64), with other constants."""
        return Inner(self.kind[which], self.v[which], c)


@dataclass(frozen=True)
class Polished:
    """Both constants (B, 2), their standard errors for this residual (B, 2), and the relative residual (B,)."""

    c: Tensor
    error: Tensor
    residual: Tensor


def feature_values(kind: Tensor, v: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Values and derivatives by c (B, n) of features of these kinds (B,), rows v (B, n) and constants c (B,)."""
    value, slope = v.clone(), torch.zeros_like(v)
    for number in torch.unique(kind).tolist():
        if number == _PLAIN:
            continue
        mine = kind == number
        row, constant = v[mine], c[mine, None]
        product, shifted = constant * row, row + constant
        if number == _SIN:
            value[mine], slope[mine] = product.sin(), row * product.cos()
        elif number == _COS:
            value[mine], slope[mine] = product.cos(), -row * product.sin()
        elif number == _EXP:
            power = product.clamp(-_STEEPEST, _STEEPEST).exp()
            value[mine], slope[mine] = power, row * power
        elif number == _LOG:
            value[mine], slope[mine] = shifted.log(), 1 / shifted
        elif number == _INV:
            value[mine], slope[mine] = 1 / shifted, -1 / shifted.square()
        else:
            root = shifted.sqrt()
            value[mine], slope[mine] = root, 0.5 / root
    return value, slope


@dataclass(frozen=True)
class _Pairs:
    """The model (see `projected_fit`): θ (B, 2) holds both constants, all rows weighted and without their mean."""

    root: Tensor
    unit: Tensor
    first: Inner
    second: Inner
    product: bool

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """See `Model`."""
        f, df = feature_values(self.first.kind[members], self.first.v[members], theta[:, 0])
        g, dg = feature_values(self.second.kind[members], self.second.v[members], theta[:, 1])
        slopes = torch.stack([df * g, f * dg] if self.product else [df, dg], dim=1)
        columns = self._centred(torch.stack([f * g] if self.product else [f, g], dim=1))
        return columns, lambda coefficients: self._centred(slopes * coefficients[..., None])

    def _centred(self, rows: Tensor) -> Tensor:
        """Rows (B, k, n), weighted, off the constant."""
        return off(rows * self.root, self.unit[None], times=1)


def polish(
    t: Tensor, root: Tensor, first: Inner, second: Inner, *, product: bool, budget: Budget, steps: int = 40
) -> Polished:
    """The best inner constants near the given ones; t (n,) and the roots of the row weights (n,)."""
    unit = root / root.norm()
    centred = off(t * root, unit[None])
    model = _Pairs(root, unit, first, second, product)
    starts = Starts(torch.stack([first.c, second.c], dim=1), torch.arange(len(first.c)))
    target = centred / centred.norm().clamp_min(torch.finfo(torch.float64).tiny)
    # Constants are in units of the data, so that no step is too long; and a pair that is exact says nothing of others.
    solved = solve(model, starts, target, steps=steps, budget=budget, exact=_EXACT, longest=math.inf, together=False)
    # A plain feature's constant does nothing: it has no error.
    errors = torch.where(torch.isfinite(solved.errors), solved.errors, 0.0)
    return Polished(solved.starts.theta, errors, solved.loss.sqrt().clamp_max(_FAILED))
