"""Many small problems of variable projection at once: inner constants by Levenberg–Marquardt, outer ones eliminated.

Each problem has two features f(v; c₁) and g(w; c₂) and fits t by 1, f, g or by 1, f·g. Rows are already multiplied by
the square roots of the weights where it says "weighted".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget

__all__ = ["KINDS", "Inner", "Polished", "feature_values", "polish"]

# The kinds of feature with one inner constant; "plain" is v itself.
KINDS = ("plain", "sin", "cos", "exp", "log", "inv", "sqrt")
_PLAIN, _SIN, _COS, _EXP, _LOG, _INV, _SQRT = range(len(KINDS))
_STEEPEST = 200.0  # of an exponent; beyond it a step went astray
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
class _State:
    residual: Tensor  # (B,) relative
    left: Tensor  # (B, n) weighted residual vectors
    J: Tensor  # (B, n, 2) Kaufman's Jacobian


def polish(
    t: Tensor, root: Tensor, first: Inner, second: Inner, *, product: bool, budget: Budget, steps: int = 40
) -> Polished:
    """The best inner constants near the given ones; t (n,) and the roots of the row weights (n,)."""
    weighted = t * root
    unit = root / root.norm()
    centred = weighted - (weighted @ unit) * unit
    size = float(centred.norm())
    c = torch.stack([first.c, second.c], dim=1)

    def at(c: Tensor) -> _State:
        return _linearise(c, first, second, root, unit, centred, size, product)

    state = at(c)
    damping = torch.full((len(c),), 1e-3, dtype=torch.float64)
    for _ in range(steps):
        if budget.over():
            break
        trial = c + _step(state, damping)
        new = at(trial)
        better = new.residual < state.residual
        c = torch.where(better[:, None], trial, c)
        state = _State(
            torch.where(better, new.residual, state.residual),
            torch.where(better[:, None], new.left, state.left),
            torch.where(better[:, None, None], new.J, state.J),
        )
        damping = torch.where(better, damping * 0.1, damping * 8).clamp(1e-15, 1e10)
    return Polished(c, _errors(state, len(t)), state.residual)


def _linearise(
    c: Tensor, first: Inner, second: Inner, root: Tensor, unit: Tensor, centred: Tensor, size: float, product: bool
) -> _State:
    f, df = feature_values(first.kind, first.v, c[:, 0])
    g, dg = feature_values(second.kind, second.v, c[:, 1])
    zero = torch.zeros_like(f)
    columns = [f * g] if product else [f, g]
    slopes = [[df * g], [f * dg]] if product else [[df, zero], [zero, dg]]

    def prepare(parts: list[Tensor]) -> Tensor:
        stacked = torch.stack(parts, dim=2) * root[:, None]
        return stacked - unit[:, None] * (unit @ stacked)[:, None, :]

    phi = prepare(columns)
    scale = phi.norm(dim=1, keepdim=True)
    fine = (torch.isfinite(phi).all(dim=2).all(dim=1)) & (scale > 0).all(dim=2).all(dim=1)
    phi = torch.where(fine[:, None, None], phi / scale, torch.zeros_like(phi))
    Q, R = torch.linalg.qr(phi)
    along = Q.transpose(1, 2) @ centred  # (B, columns)
    eye = torch.eye(R.shape[1], dtype=torch.float64)
    outer = torch.linalg.solve_triangular(R + 1e-14 * eye, along[:, :, None], upper=True)
    left = centred - (Q @ along[:, :, None])[:, :, 0]
    left = left - (Q @ (Q.transpose(1, 2) @ left[:, :, None]))[:, :, 0]
    columns_of_j = []
    for parts in slopes:
        j = ((prepare(parts) / scale) @ outer)[:, :, 0]
        j = j - (Q @ (Q.transpose(1, 2) @ j[:, :, None]))[:, :, 0]
        columns_of_j.append(torch.where(fine[:, None] & torch.isfinite(j), j, torch.zeros_like(j)))
    residual = left.norm(dim=1) / size
    residual = torch.where(fine & torch.isfinite(residual), residual, torch.full_like(residual, _FAILED))
    return _State(residual, left, torch.stack(columns_of_j, dim=2))


def _step(state: _State, damping: Tensor) -> Tensor:
    """The damped Gauss–Newton step (B, 2), by Cramer's rule; zero where the system is singular."""
    H = state.J.transpose(1, 2) @ state.J
    gradient = (state.J.transpose(1, 2) @ state.left[:, :, None])[:, :, 0]
    diagonal = torch.diagonal(H, dim1=1, dim2=2)
    H = H + torch.diag_embed(damping[:, None] * diagonal + 1e-14 * diagonal.amax(dim=1, keepdim=True) + 1e-300)
    determinant = H[:, 0, 0] * H[:, 1, 1] - H[:, 0, 1].square()
    step = (
        torch.stack(
            [
                H[:, 1, 1] * gradient[:, 0] - H[:, 0, 1] * gradient[:, 1],
                H[:, 0, 0] * gradient[:, 1] - H[:, 0, 1] * gradient[:, 0],
            ],
            dim=1,
        )
        / determinant[:, None]
    )
    return torch.where(torch.isfinite(step), step, torch.zeros_like(step))


def _errors(state: _State, rows: int) -> Tensor:
    """Standard errors (B, 2) of the constants; 0 for one that changes nothing (a plain feature's)."""
    H = state.J.transpose(1, 2) @ state.J
    sigma = state.left.norm(dim=1) / max(1, rows - 5) ** 0.5
    diagonal = torch.diagonal(H, dim1=1, dim2=2)
    determinant = (diagonal[:, 0] * diagonal[:, 1] - H[:, 0, 1].square()).clamp_min(0)
    both = torch.stack([diagonal[:, 1], diagonal[:, 0]], dim=1) / determinant[:, None]
    alone = 1 / diagonal
    variance = torch.where((determinant > 0)[:, None], both, alone)
    error = sigma[:, None] * variance.sqrt()
    return torch.where((diagonal > 0) & torch.isfinite(error), error, torch.zeros_like(error))
