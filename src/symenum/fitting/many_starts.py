"""Nonlinear least squares from many starts at once: models of columns whose outer constants are eliminated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EPSILON, EXACTNESS
from symenum.fitting.levenberg_marquardt import Elimination, evaluate, fit, held
from symenum.fitting.linear import least_squares_of_each
from symenum.fitting.program import Array, Flags, Whole
from symenum.fitting.uncertainty import errors_of
from symenum.scans.projection import off

__all__ = [
    "KINDS",
    "Ended",
    "Inner",
    "Model",
    "Polished",
    "Solved",
    "Starts",
    "feature_values",
    "polish",
    "race",
    "solve",
]


# --------------------------------------------------------------------------------------------------------------------
# Models of a few tensor operations as problems of `levenberg_marquardt`: many starts, columns computed by a head.
#
# A model gives, for inner parameters θ (B, k), the columns F (B, m, n) whose combination c·F is fitted to the target,
# and the derivatives of that combination. The combination is put at its least squares at every point, before
# derivatives are taken. Unlike `fitting.refine`, which takes expressions, a model here is a few tensor operations.


_LONGEST = 1.0  # of a step in any parameter: exponents are numbers near 1
_FIRST_STEPS, _SECOND_STEPS = 8, 10  # of a race
_DERIVATIVES = 1 << 20  # numbers in those of all starts that go at once: 8 MB, and about ten times that with the rest
_EXACT = EXACTNESS.fitted**2  # of the loss: no step can make this better
# A step that promises and gains less than this part of the loss is the last of its start. With n rows it moves θ by
# about the root of n times this of a standard error: 1e-5 for 100 rows.
_TOLERANCE = 1e-12


class Model(Protocol):
    """`columns(θ, members)`: F (B, m, n), and the way from coefficients (B, m) to the derivatives (B, k, n) of c·F."""

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]: ...


@dataclass(frozen=True)
class Starts:
    """Inner parameters (B, k) to start at, and which member of the model each one is (B,) int64."""

    theta: Tensor
    members: Tensor

    def take(self, which: Tensor) -> Starts:
        return Starts(self.theta[which], self.members[which])


@dataclass(frozen=True)
class Ended:
    """Where the starts led, and the loss (B,) for |t| = 1."""

    starts: Starts
    loss: Tensor

    def best(self, count: int) -> Starts:
        """The best so many, as starts."""
        return self.starts.take(torch.argsort(self.loss, stable=True)[:count])


@dataclass(frozen=True)
class Solved(Ended):
    """And the standard errors of θ there (B, k); inf where the data do not determine it."""

    errors: Tensor


@dataclass(frozen=True)
class _Columns:
    """The problems of some members of a model; their constants are θ alone, since c is eliminated at every point."""

    model: Model
    members: Tensor
    target: Tensor
    elimination: Elimination
    exact: float
    longest: float
    together: bool

    @property
    def floor(self) -> Array:
        """See `Problems`."""
        return np.full(len(self.members), self.exact)

    @property
    def groups(self) -> Whole:
        """See `Problems`."""
        return np.zeros(len(self.members), dtype=np.int64) if self.together else np.arange(len(self.members))

    def longest_step(self, constants: Array) -> Array:
        """See `Problems`."""
        return np.full_like(constants, self.longest)

    def without_idle(self, working: Flags) -> tuple[_Columns, Whole]:
        """See `Problems`."""
        kept = np.flatnonzero(working)
        less = Elimination(self.elimination.linear[:, kept])
        return replace(self, members=self.members[torch.from_numpy(kept)], elimination=less), kept

    def products(self, constants: Array) -> tuple[Array, Array]:
        """See `Problems`: the derivatives are those of the residual that the best combination leaves (Kaufman's)."""
        # A tensor of torch's own memory: MKL's products depend on how their operands are aligned, and NumPy's memory is
        # aligned in any way, so that the same starts could end at other last digits.
        theta = torch.tensor(constants.T)
        F, derivative = self.model.columns(theta, self.members)
        fits = least_squares_of_each(F, self.target)
        J = fits.off(derivative(fits.coefficients))
        block = torch.cat([J, fits.residual[:, None]], dim=1)
        products = held((block @ block.transpose(1, 2)).permute(1, 2, 0).numpy().copy())
        products[-1, -1][~torch.isfinite(F).all(dim=2).all(dim=1).numpy()] = np.inf
        return products, constants


def solve(
    model: Model,
    starts: Starts,
    target: Tensor,
    *,
    steps: int,
    budget: Budget,
    exact: float = _EXACT,
    longest: float = _LONGEST,
    together: bool = True,
) -> Solved:
    """Up to so many steps from every start; `target` (n,) has norm 1 and is multiplied by the roots of the weights.

    `exact`: a loss below this ends a start, and if they go `together` all of them. `longest`: of a step, in any
    parameter.
    """
    problems = _problems(model, starts, target, exact=exact, longest=longest, together=together)
    ended = _fit(problems, starts, steps, budget)
    state = evaluate(problems, ended.starts.theta.numpy().T)
    columns = model.columns(starts.theta[:1], starts.members[:1])[0].shape[1]
    free = max(1, len(target) - starts.theta.shape[1] - columns)
    normal = state.normal * (state.scale[:, None] * state.scale)
    return Solved(ended.starts, ended.loss, torch.from_numpy(errors_of(normal, state.loss / free).T))


def race(model: Model, starts: Starts, target: Tensor, survivors: int, budget: Budget) -> Ended:
    """The same for many starts, most of which lead nowhere: after a few steps a third of them goes on.

    So many at a time that memory is bounded, and a step is short beside any time limit.
    """
    together = max(1, _DERIVATIVES // (len(target) * starts.theta.shape[1]))
    parts: list[Ended] = []
    for at in range(0, len(starts.members), together):
        part = starts.take(torch.arange(at, min(at + together, len(starts.members))))
        parts.append(_fit(_problems(model, part, target), part, _FIRST_STEPS, budget))
        if budget.over() or float(parts[-1].loss.min()) < _EXACT:
            break
    first = _joined(parts)
    if float(first.loss.min()) < _EXACT:
        return first
    best = first.best(max(survivors, len(first.loss) // 3))
    return _fit(_problems(model, best, target), best, _SECOND_STEPS, budget)


def _problems(
    model: Model,
    starts: Starts,
    target: Tensor,
    *,
    exact: float = _EXACT,
    longest: float = _LONGEST,
    together: bool = True,
) -> _Columns:
    nonlinear = Elimination(np.zeros(starts.theta.T.shape, dtype=bool))
    return _Columns(model, starts.members, target, nonlinear, exact, longest, together)


def _fit(problems: _Columns, starts: Starts, steps: int, budget: Budget) -> Ended:
    found = fit(problems, starts.theta.numpy().T, steps=steps, tolerance=_TOLERANCE, budget=budget)
    theta = torch.tensor(found.constants.T)
    return Ended(Starts(theta, starts.members), torch.from_numpy(found.loss))


def _joined(parts: list[Ended]) -> Ended:
    theta, members = (torch.cat([getattr(part.starts, name) for part in parts]) for name in ("theta", "members"))
    return Ended(Starts(theta, members), torch.cat([part.loss for part in parts]))


# --------------------------------------------------------------------------------------------------------------------
# Pairs of features with one inner constant each, many at once: what their columns and derivatives are.
#
# Each problem has two features f(v; c₁) and g(w; c₂) and fits t by 1, f, g or by 1, f·g. Rows are already multiplied
# by the square roots of the weights where it says "weighted".


# The kinds of feature with one inner constant; "plain" is v itself.
KINDS = ("plain", "sin", "cos", "exp", "log", "inv", "sqrt")
_PLAIN, _SIN, _COS, _EXP, _LOG, _INV, _SQRT = range(len(KINDS))
_STEEPEST = 200.0  # of an exponent; beyond it a step went astray
_TO_THE_LAST_DIGIT = (4 * EPSILON) ** 2  # of the loss: a constant that nobody recognises is known to its last digits
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
    solved = solve(
        model, starts, target, steps=steps, budget=budget, exact=_TO_THE_LAST_DIGIT, longest=math.inf, together=False
    )
    # A plain feature's constant does nothing: it has no error.
    errors = torch.where(torch.isfinite(solved.errors), solved.errors, 0.0)
    return Polished(solved.starts.theta, errors, solved.loss.sqrt().clamp_max(_FAILED))
