"""Nonlinear least squares from many starts at once, for models whose outer constants are eliminated.

A model gives, for inner parameters θ (B, k), the columns F (B, m, n) whose combination c·F is fitted to the target, and
the derivatives of that combination. The combination is put at its least squares at every point, before derivatives are
taken. Unlike `refine`, which takes expressions, a model here is a few tensor operations. One model is here, for pairs
of features with one inner constant each (`fit_pairs`); the others are those of the heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.fitting.batch_program import Array, Flags, Integers
from symenum.fitting.levenberg_marquardt import LAST_DIGITS, Elimination, evaluate, fit, zero_bad_derivatives
from symenum.fitting.linear import least_squares_of_each
from symenum.fitting.uncertainty import errors_of
from symenum.scans.projection import orthogonal_part

__all__ = [
    "KINDS",
    "EndPoints",
    "EndPointsWithErrors",
    "FittedPairs",
    "InnerFeatures",
    "Model",
    "Starts",
    "feature_values",
    "fit_pairs",
    "race",
    "solve",
]

_MAX_DERIVATIVES = 1 << 20  # numbers in the derivatives of the starts at work: 8 MB, and about ten times that in all
_EXACT = EXACTNESS.fitted**2  # part of the target's mean square: a loss below this is rounding
# Part of the loss: a step that promises and gains less is the last of its start. With n rows such a step moves θ by
# about √(n·1e-12) standard errors: 1e-5 for 100 rows.
_TOLERANCE = 1e-12
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_LONGEST_STEP = 1.0  # in any parameter: exponents are numbers near 1
_FIRST_STEPS = 8  # of all starts of a race
_SECOND_STEPS = 10  # of the starts of a race that go on


class Model(Protocol):
    """A family of laws c·F(θ); all tensors float64 on the CPU."""

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """F (B, m, n) for θ (B, k) and members (B,), and a function from c (B, m) to derivatives (B, k, n) of c·F."""
        ...


@dataclass(frozen=True)
class Starts:
    """Inner parameters at which fits start."""

    theta: Tensor  # (B, k) float64
    members: Tensor  # (B,) int64: the member of the model that each start belongs to

    def take(self, which: Tensor) -> Starts:
        return Starts(self.theta[which], self.members[which])


@dataclass(frozen=True)
class EndPoints:
    """The points that the starts led to, and their losses (B,) for a target of norm 1."""

    starts: Starts
    loss: Tensor

    def best(self, count: int) -> Starts:
        """The `count` points of least loss, as starts."""
        return self.starts.take(torch.argsort(self.loss, stable=True)[:count])


@dataclass(frozen=True)
class EndPointsWithErrors(EndPoints):
    """The same with the standard errors (B, k) of θ there; inf where the data do not determine it."""

    errors: Tensor


@dataclass(frozen=True)
class _Columns:
    """The problems of some members of a model; their constants are θ alone, since c is eliminated at every point."""

    model: Model
    members: Tensor
    target: Tensor
    elimination: Elimination
    exact: float  # see `solve`
    longest: float
    together: bool

    @property
    def floor(self) -> Array:
        """See `Problems`."""
        return np.full(len(self.members), self.exact)

    @property
    def groups(self) -> Integers:
        """See `Problems`."""
        return np.zeros(len(self.members), dtype=np.int64) if self.together else np.arange(len(self.members))

    def longest_step(self, constants: Array) -> Array:
        """See `Problems`."""
        return np.full_like(constants, self.longest)

    def without_idle(self, working: Flags) -> tuple[_Columns, Integers]:
        """See `Problems`."""
        still = np.flatnonzero(working)
        elimination = Elimination(self.elimination.linear[:, still])
        return replace(self, members=self.members[torch.from_numpy(still)], elimination=elimination), still

    def products(self, constants: Array) -> tuple[Array, Array]:
        """See `Problems`: the derivatives are those of the residual that the best combination leaves (Kaufman's)."""
        # Copied into torch's own memory, which is aligned: the last digits of MKL's products depend on the alignment of
        # their operands, and that of NumPy's memory varies, so that the same starts could end at other last digits.
        theta = torch.tensor(constants.T)
        F, derivative = self.model.columns(theta, self.members)
        fits = least_squares_of_each(F, self.target)
        J = fits.orthogonal_part(derivative(fits.coefficients))
        block = torch.cat([J, fits.residual[:, None]], dim=1)
        products = zero_bad_derivatives((block @ block.transpose(1, 2)).permute(1, 2, 0).numpy().copy())
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
    longest: float = _LONGEST_STEP,
    together: bool = True,
) -> EndPointsWithErrors:
    """Up to `steps` steps from every start; `target` (n,) has norm 1 and is multiplied by the roots of the weights.

    `exact`: a loss below this ends a start; all starts end then if they go `together`. `longest`: the longest step in
    any parameter.
    """
    problems = _problems(model, starts, target, exact=exact, longest=longest, together=together)
    ended = _fit(problems, starts, steps, budget)
    state = evaluate(problems, ended.starts.theta.numpy().T)
    columns = model.columns(starts.theta[:1], starts.members[:1])[0].shape[1]
    spare_rows = max(1, len(target) - starts.theta.shape[1] - columns)
    normal = state.normal * (state.scale[:, None] * state.scale)
    return EndPointsWithErrors(ended.starts, ended.loss, torch.from_numpy(errors_of(normal, state.loss / spare_rows).T))


def race(model: Model, starts: Starts, target: Tensor, survivors: int, budget: Budget) -> EndPoints:
    """The same for many starts, most of which lead nowhere: after 8 steps the best third, or `survivors`, goes on.

    The starts are worked on in parts, so that memory is bounded and a step is short compared with any time limit.
    """
    together = max(1, _MAX_DERIVATIVES // (len(target) * starts.theta.shape[1]))
    parts: list[EndPoints] = []
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
    longest: float = _LONGEST_STEP,
    together: bool = True,
) -> _Columns:
    nonlinear = Elimination(np.zeros(starts.theta.T.shape, dtype=bool))
    return _Columns(model, starts.members, target, nonlinear, exact, longest, together)


def _fit(problems: _Columns, starts: Starts, steps: int, budget: Budget) -> EndPoints:
    found = fit(problems, starts.theta.numpy().T, steps=steps, tolerance=_TOLERANCE, budget=budget)
    theta = torch.tensor(found.constants.T)
    return EndPoints(Starts(theta, starts.members), torch.from_numpy(found.loss))


def _joined(parts: list[EndPoints]) -> EndPoints:
    theta, members = (torch.cat([getattr(part.starts, name) for part in parts]) for name in ("theta", "members"))
    return EndPoints(Starts(theta, members), torch.cat([part.loss for part in parts]))


def _sin(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    angle = c * row
    return angle.sin(), row * angle.cos()


def _cos(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    angle = c * row
    return angle.cos(), -row * angle.sin()


def _exp(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    power = (c * row).clamp(-_MAX_EXPONENT, _MAX_EXPONENT).exp()
    return power, row * power


def _log(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    shifted = row + c
    return shifted.log(), 1 / shifted


def _inv(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    shifted = row + c
    return 1 / shifted, -1 / shifted.square()


def _sqrt(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    root = (row + c).sqrt()
    return root, 0.5 / root


def _plain(row: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return row, torch.zeros_like(row)


KINDS = ("plain", "sin", "cos", "exp", "log", "inv", "sqrt")
"""The kinds of feature with one inner constant; the number of a kind is its place here.

The constant is a factor of the argument of sin, cos and exp, and a summand of that of log, inv and sqrt.
"""
# For each kind the values and the derivatives by c (B, n), of rows (B, n) and constants (B, 1).
_FEATURES = (_plain, _sin, _cos, _exp, _log, _inv, _sqrt)
_MAX_EXPONENT = 200.0  # larger ones are clipped: exp(200) = 7e86, squared and summed, is far inside the doubles
_FAILED = 9.0  # a relative residual that is never the best: others are at most 1


@dataclass(frozen=True)
class InnerFeatures:
    """B features with one inner constant each."""

    kind: Tensor  # (B,) int64: a place in `KINDS`
    v: Tensor  # (B, n) float64: the rows that the features are made of
    c: Tensor  # (B,) float64: the constants

    def take(self, which: Tensor, c: Tensor) -> InnerFeatures:
        """Some of the features (int64), with other constants (B,)."""
        return InnerFeatures(self.kind[which], self.v[which], c)


@dataclass(frozen=True)
class FittedPairs:
    """The fitted constants of B pairs of features, float64."""

    c: Tensor  # (B, 2)
    error: Tensor  # (B, 2): standard errors
    residual: Tensor  # (B,): relative residuals


def feature_values(kind: Tensor, v: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Values and derivatives by c (B, n) of features of these kinds (B,), rows v (B, n) and constants c (B,)."""
    value, slope = torch.empty_like(v), torch.empty_like(v)
    for number in torch.unique(kind).tolist():
        mine = kind == number
        value[mine], slope[mine] = _FEATURES[number](v[mine], c[mine, None])
    return value, slope


@dataclass(frozen=True)
class _Pairs:
    """The model of pairs f(v; c₁), g(w; c₂): t is fitted by 1, f, g, or by 1, f·g. θ (B, 2) holds both constants.

    All rows are multiplied by the roots of the weights and are orthogonal to the constant.
    """

    root: Tensor  # (n,) of the weights
    unit: Tensor  # (n,) the same with norm 1: the direction of the constant
    first: InnerFeatures
    second: InnerFeatures
    product: bool

    def columns(self, theta: Tensor, members: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """See `Model`."""
        f, df = feature_values(self.first.kind[members], self.first.v[members], theta[:, 0])
        g, dg = feature_values(self.second.kind[members], self.second.v[members], theta[:, 1])
        slopes = torch.stack([df * g, f * dg] if self.product else [df, dg], dim=1)
        columns = self._centred(torch.stack([f * g] if self.product else [f, g], dim=1))
        return columns, lambda coefficients: self._centred(slopes * coefficients[..., None])

    def _centred(self, rows: Tensor) -> Tensor:
        """Rows (B, k, n), weighted, without their part along the constant."""
        return orthogonal_part(rows * self.root, self.unit[None], times=1)


def fit_pairs(
    t: Tensor,
    root: Tensor,
    first: InnerFeatures,
    second: InnerFeatures,
    *,
    product: bool,
    budget: Budget,
    steps: int = 40,
) -> FittedPairs:
    """The best inner constants near those of the features; t (n,) and the roots of the row weights (n,), float64.

    `product`: t is fitted by 1 and the product of both features, otherwise by 1 and both features.
    """
    unit = root / root.norm()
    centred = orthogonal_part(t * root, unit[None])
    model = _Pairs(root, unit, first, second, product)
    starts = Starts(torch.stack([first.c, second.c], dim=1), torch.arange(len(first.c)))
    target = centred / centred.norm().clamp_min(torch.finfo(torch.float64).tiny)
    # Constants are in units of the data, so that no step is too long. An exact pair does not end the others. A constant
    # that no rule recognises must be known to its last digits.
    solved = solve(
        model, starts, target, steps=steps, budget=budget, exact=LAST_DIGITS, longest=math.inf, together=False
    )
    # The constant of a plain feature does nothing, so that its error is inf: it counts as 0.
    errors = torch.where(torch.isfinite(solved.errors), solved.errors, 0.0)
    return FittedPairs(solved.starts.theta, errors, solved.loss.sqrt().clamp_max(_FAILED))
