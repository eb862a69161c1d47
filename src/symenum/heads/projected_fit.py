"""Nonlinear least squares for many starts at once: Levenberg–Marquardt on what is inside, what is outside eliminated.

A model gives, for inner parameters θ (B, k), the columns F (B, n, m) whose combination F·c is fitted to the target, and
the derivative of that combination. The combination is put at its least squares after every step (variable projection,
with Kaufman's Jacobian). Unlike `fitting.refine`, which takes expressions, a model here is a few tensor operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS

__all__ = ["Model", "Solved", "Starts", "race", "solve"]

_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-12, 1e8
_LONGEST = 1.0  # of a step in any parameter: exponents are numbers near 1
_TINY = 1e-14
_FIRST_STEPS, _SECOND_STEPS = 8, 10  # of a race
_DERIVATIVES = 1 << 20  # numbers in those of all starts that go at once: 8 MB, and about ten times that with the rest
_EXACT = EXACTNESS.fitted**2  # of the loss: no step can make this better


class Model(Protocol):
    """`columns(θ, members)`: F (B, n, m), and the way from coefficients (B, m) to the derivative (B, n, k) of F·c."""

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]: ...


@dataclass(frozen=True)
class Starts:
    """Inner parameters (B, k) to start at, and which member of the model each one is (B,) int64."""

    theta: Tensor
    members: Tensor

    def take(self, which: Tensor) -> Starts:
        return Starts(self.theta[which], self.members[which])


@dataclass(frozen=True)
class Solved:
    """Where the starts led, standard errors of θ there (B, k), coefficients (B, m), and the loss (B,) for |t| = 1."""

    starts: Starts
    errors: Tensor
    coefficients: Tensor
    loss: Tensor

    def joined(self, other: Solved) -> Solved:
        return Solved(
            Starts(
                torch.cat([self.starts.theta, other.starts.theta]),
                torch.cat([self.starts.members, other.starts.members]),
            ),
            torch.cat([self.errors, other.errors]),
            torch.cat([self.coefficients, other.coefficients]),
            torch.cat([self.loss, other.loss]),
        )

    def best(self, count: int) -> Starts:
        """The best so many, as starts."""
        return self.starts.take(torch.argsort(self.loss, stable=True)[:count])


@dataclass(frozen=True)
class _Point:
    theta: Tensor
    coefficients: Tensor
    left: Tensor  # (B, n)
    J: Tensor  # (B, n, k)
    loss: Tensor

    def better_of(self, new: _Point, better: Tensor) -> _Point:
        two, three = better[:, None], better[:, None, None]
        return _Point(
            torch.where(two, new.theta, self.theta),
            torch.where(two, new.coefficients, self.coefficients),
            torch.where(two, new.left, self.left),
            torch.where(three, new.J, self.J),
            torch.where(better, new.loss, self.loss),
        )


def solve(model: Model, starts: Starts, target: Tensor, *, steps: int, budget: Budget) -> Solved:
    """Up to so many steps from every start; `target` (n,) has norm 1 and is multiplied by the roots of the weights."""
    point = _at(model, starts.theta, starts.members, target)
    damping = torch.full_like(point.loss, _FIRST_DAMPING)
    for _ in range(steps):
        if budget.over() or float(point.loss.min()) < _EXACT:
            break
        new = _at(model, point.theta + _step(point, damping), starts.members, target)
        better = new.loss < point.loss
        point = point.better_of(new, better)
        damping = torch.where(better, damping / 5, damping * 4).clamp(_LEAST_DAMPING, _MOST_DAMPING)
    return Solved(Starts(point.theta, starts.members), _errors(point, len(target)), point.coefficients, point.loss)


def race(model: Model, starts: Starts, target: Tensor, survivors: int, budget: Budget) -> Solved:
    """The same for many starts, most of which lead nowhere: after a few steps a third of them goes on.

    So many at a time that memory is bounded, and a step is short beside any time limit.
    """
    together = max(1, _DERIVATIVES // (len(target) * starts.theta.shape[1]))
    first: Solved | None = None
    count = len(starts.members)
    for at in range(0, count, together):
        part = starts.take(torch.arange(at, min(at + together, count)))
        solved = solve(model, part, target, steps=_FIRST_STEPS, budget=budget)
        first = solved if first is None else first.joined(solved)
        if budget.over() or float(solved.loss.min()) < _EXACT:
            break
    assert first is not None  # whoever races has starts
    if float(first.loss.min()) < _EXACT:
        return first
    return solve(model, first.best(max(survivors, len(first.loss) // 3)), target, steps=_SECOND_STEPS, budget=budget)


def _at(model: Model, theta: Tensor, members: Tensor, target: Tensor) -> _Point:
    F, derivative = model.columns(theta, members)
    bad = ~torch.isfinite(F).all(dim=2).all(dim=1)
    F = torch.where(bad[:, None, None], torch.ones_like(F), F)
    size: Tensor = F.norm(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    Q, R = torch.linalg.qr(F / size)
    along = (Q.transpose(1, 2) @ target)[..., None]
    diagonal = R.diagonal(dim1=1, dim2=2)
    R = R + torch.diag_embed(torch.where(diagonal.abs() < _TINY, torch.full_like(diagonal, _TINY), 0.0))
    coefficients = torch.linalg.solve_triangular(R, along, upper=True)[..., 0] / size[:, 0]
    left = target - (Q @ along)[..., 0]
    J = derivative(coefficients)
    J = J - Q @ (Q.transpose(1, 2) @ J)
    J = torch.where(torch.isfinite(J).all(dim=1, keepdim=True), J, 0.0)
    loss = left.square().sum(dim=1).masked_fill_(bad, float("inf"))
    return _Point(theta, coefficients, left, J, loss)


def _step(point: _Point, damping: Tensor) -> Tensor:
    A = point.J.transpose(1, 2) @ point.J
    diagonal = A.diagonal(dim1=1, dim2=2)
    ridge = damping[:, None] * (diagonal + 1e-3 * diagonal.mean(dim=1, keepdim=True)) + 1e-300
    gradient = point.J.transpose(1, 2) @ point.left[..., None]
    step, failed = torch.linalg.solve_ex(A + torch.diag_embed(ridge), gradient)
    step = torch.where((failed == 0)[:, None], step[..., 0], 0.0)
    step = torch.where(torch.isfinite(step), step, 0.0)
    longest = step.abs().amax(dim=1, keepdim=True).clamp_min(_LONGEST)
    return step * (_LONGEST / longest)


def _errors(point: _Point, rows: int) -> Tensor:
    """Standard errors (B, k) for residuals of one size; infinite where a parameter does nothing."""
    J = point.J
    free = rows - J.shape[2] - point.coefficients.shape[1]
    scale = J.norm(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    A = (J / scale[:, None]).transpose(1, 2) @ (J / scale[:, None])
    inverse, _ = torch.linalg.inv_ex(A + 1e-13 * torch.eye(A.shape[1], dtype=A.dtype))
    variance = inverse.diagonal(dim1=1, dim2=2).clamp_min(0.0) * point.loss[:, None] / max(1, free)
    errors: Tensor = variance.sqrt() / scale
    return errors
