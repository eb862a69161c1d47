"""The constants of one form that the user wrote, known by their names: a*x + a*z has one constant, a.

Not for many expressions at once: `refine` does that, and takes each occurrence of a constant for one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows, stream
from symenum.expressions import Apply, Constant, Expression, Variable, fold
from symenum.fitting.batch_program import Array, Flags, Integers
from symenum.fitting.levenberg_marquardt import (
    LAST_DIGITS,
    Elimination,
    evaluate,
    fit,
    longest_step_by_size,
    zero_bad_derivatives,
)
from symenum.fitting.uncertainty import errors_of
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["FormFit", "derivatives", "fit_form", "judge_form", "linear_in"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_DRAWN_POINTS = 200  # points at which the loss is computed
_MAX_STARTS = 6  # the best of them, from which a fit starts
_DECADES = 2.0  # sizes of drawn constants: log-uniform from 10^-2 to 10^2
_COMPETITION_ROWS = 200  # on which starts compete
_MAX_STEPS = 200  # of Levenberg–Marquardt from each start

_TOLERANCE = 1e-15  # part of the loss, which is rounding: a step that promises and gains less is the last
_MAX_CONDITION = 1e14  # of scaled normal equations with an error of 1e-14: beyond it constants are not determined
_SAME = EXACTNESS.scanned_tie  # relative difference of the losses of one minimum that was reached twice
_EXACT = EXACTNESS.fitted**2  # part of the mean square of y: a loss below this is rounding

Average = Callable[[Array], Array]
"""Makes rows (rows, n) of values at points (points, n); linear in the values."""
_Affine = tuple[frozenset[str], frozenset[str]]  # names in which a node is affine, and names that occur in it
_Sloped = tuple[Tensor, dict[str, Tensor]]  # values and their derivatives by the names that occur


@dataclass(frozen=True)
class FormFit:
    """Constants and their standard errors by name, and the weighted mean square error.

    An error is inf where the data do not determine the constant. The loss is inf where no start gave finite values.
    """

    constants: Mapping[str, float]
    errors: Mapping[str, float]
    loss: float


def fit_form(
    form: Expression,
    starts: Mapping[str, float | None],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    *,
    steps: int = _MAX_STEPS,
    budget: Budget | None = None,
    seed: int = 0,
    average: Average | None = None,
) -> FormFit:
    """The values of least loss for the variables of `form` that `starts` names, each with its start or None.

    `columns`, y and weight are (rows,) float64, the weights sum to 1. With a start for each name there is one fit, of
    at most `steps` steps. Otherwise the missing starts are drawn at random (`seed`), and the best of several fits is
    taken. With `average` the columns are (points,), and y is compared with the average of the form; each name then
    needs a start.
    """
    names = tuple(starts)
    problem = _Problem(form, names, columns, y, weight, average)
    if not names:
        return problem.judged(np.zeros(0))
    fixed = {name: value for name, value in starts.items() if value is not None}
    budget = Budget() if budget is None else budget
    if len(fixed) == len(names):
        start = np.array(list(fixed.values()), dtype=np.float64)[:, None]
        return problem.judged(problem.solve(start, budget, steps)[:, 0])
    if average is not None:
        raise ValueError("a form that is averaged needs a start for each of its constants")
    competition = problem.on_rows(
        sample_rows(len(y), _COMPETITION_ROWS, seed, "rows on which starts of a form compete")
    )
    ended = competition.solve(competition.best_starts(_points(names, fixed, seed)), budget)
    return problem.judged(problem.solve(_best(competition, ended), budget)[:, 0])


def judge_form(
    form: Expression,
    constants: Mapping[str, float],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    factors: Tensor | None = None,
    average: Average | None = None,
) -> FormFit:
    """The loss and the standard errors of constants that stay where they are; data and `average` as in `fit_form`.

    `factors` (rows,) float64: those of a robust loss on the weights; the standard errors are then those of its minimum.
    """
    problem = _Problem(form, tuple(constants), columns, y, weight, average)
    return problem.judged(np.array(list(constants.values()), dtype=np.float64), factors)


def derivatives(form: Expression, names: Sequence[str], columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Values (…, rows) of the form, and its derivatives by the variables of those names (names, …, rows), float64.

    All columns have one shape (…, rows).
    """
    nothing = torch.zeros(next(iter(columns.values())).shape, dtype=torch.float64)

    def visit(node: Expression, operands: tuple[_Sloped, ...]) -> _Sloped:
        if isinstance(node, Variable):
            return columns[node.name], {node.name: torch.ones_like(nothing)} if node.name in names else {}
        if isinstance(node, Constant):
            return torch.full_like(nothing, float(node.value)), {}
        values = [value for value, _ in operands]
        result = node.operator.function(*values)
        slopes: dict[str, Tensor] = {}
        for place, (_, inner) in enumerate(operands):
            outer = node.operator.partial(place, result, *values) if inner else 0.0
            for name, slope in inner.items():
                slopes[name] = slopes.get(name, nothing) + outer * slope
        return result, slopes

    value, slopes = fold(form, visit)
    by_name = [slopes.get(name, nothing) for name in names]
    return value.to(torch.float64), torch.stack(by_name) if by_name else nothing[None][:0]


def linear_in(form: Expression, names: Sequence[str]) -> frozenset[str]:
    """Variables among those names in which the form is affine jointly.

    Of a product of two parts only the part with more such variables counts. Nothing is expanded to find more.

    >>> from symenum.expressions import parse
    >>> sorted(linear_in(parse("a*sin(b*x) + c*x - c"), ["a", "b", "c"]))
    ['a', 'c']
    """
    nothing: frozenset[str] = frozenset()

    def visit(node: Expression, operands: tuple[_Affine, ...]) -> _Affine:
        """The names in which the node is affine, and the names that occur in it."""
        if not isinstance(node, Apply):
            found = frozenset([node.name]) if isinstance(node, Variable) and node.name in names else nothing
            return found, found
        (left, in_left), (right, in_right) = operands[0], operands[-1]
        occur, role = in_left | in_right, node.operator.role
        if role in ADDITIVE:
            return (left | right) - (in_left - left) - (in_right - right), occur
        if role is Role.NEGATION:
            return left, occur
        if role is Role.PRODUCT:
            return max(left - in_right, right - in_left, key=len), occur
        return (left - in_right if role is Role.QUOTIENT else nothing), occur

    return fold(form, visit)[0]


@dataclass(frozen=True)
class _Problem:
    """A form on some rows; points are constants (names, B)."""

    form: Expression
    names: tuple[str, ...]
    columns: Mapping[str, Tensor]
    y: Tensor
    weight: Tensor
    average: Average | None = None

    def on_rows(self, rows: Tensor) -> _Problem:
        """The same form on some of the rows (int64), the weights summing to 1 again."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        weight = self.weight[rows]
        return replace(self, columns=columns, y=self.y[rows], weight=weight / weight.sum())

    @property
    def mean_square(self) -> float:
        """The weighted mean square of y."""
        return float((self.y.square() * self.weight).sum())

    def residuals_and_slopes(self, points: Array) -> tuple[Array, Array]:
        """y minus the values (B, rows), and the values' derivatives (names, B, rows), both weighted."""
        shape = points.shape[1], len(next(iter(self.columns.values())))
        columns = {name: column.expand(shape) for name, column in self.columns.items()}
        columns |= {
            name: torch.from_numpy(row)[:, None].expand(shape) for name, row in zip(self.names, points, strict=True)
        }
        found, slopes = derivatives(self.form, self.names, columns)
        if self.average is not None:
            every = torch.cat([found[None], slopes])  # (1 + names, B, points)
            averaged = torch.from_numpy(self.average(every.flatten(0, 1).T.numpy())).T
            found, *rest = averaged.reshape(*every.shape[:2], -1)
            slopes = torch.stack(rest)
        root = self.weight.sqrt()
        return ((self.y - found) * root).numpy(), (slopes * root).numpy()

    def losses(self, points: Array) -> Array:
        """The weighted mean square errors (B,), inf where values are not finite."""
        residuals, _ = self.residuals_and_slopes(points)
        with np.errstate(over="ignore"):
            losses = (residuals**2).sum(axis=1)
        return np.where(np.isfinite(losses), losses, np.inf)

    def solve(self, points: Array, budget: Budget, steps: int = _MAX_STEPS) -> Array:
        """The points (names, B) that fits from these points reach; a point itself where the fit is no better."""
        if budget.over():
            return points
        starts = _Starts.of(self, points.shape[1])
        ended = fit(starts, points, steps=steps, tolerance=_TOLERANCE, budget=budget).constants
        return np.where(self.losses(ended) < self.losses(points), ended, points)

    def best_starts(self, points: Array) -> Array:
        """The best (names, at most 6) of the points, the linear constants at their least squares."""
        solved = evaluate(_Starts.of(self, points.shape[1]), points).constants
        return solved[:, np.argsort(self.losses(solved), kind="stable")[:_MAX_STARTS]]

    def judged(self, values: Array, factors: Tensor | None = None) -> FormFit:
        """The constants (names,) with their standard errors and loss; `factors` as in `judge_form`."""
        residuals, slopes = self.residuals_and_slopes(values[:, None])
        residual, slopes = residuals[0], slopes[:, 0]
        slopes = np.where(np.isfinite(slopes).all(axis=1, keepdims=True), slopes, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            loss = float((residual**2).sum())
        spare_rows = len(residual) - len(values)
        errors = np.full(len(values), np.inf)
        if len(values) and spare_rows > 0 and factors is None:
            errors = errors_of((slopes @ slopes.T)[..., None], np.array([loss / spare_rows]))[:, 0]
        elif len(values) and factors is not None:
            errors = _robust_errors(slopes.T, residual, factors.numpy())
        named = dict(zip(self.names, values.tolist(), strict=True))
        return FormFit(
            named, dict(zip(self.names, errors.tolist(), strict=True)), loss if np.isfinite(loss) else np.inf
        )


@dataclass(frozen=True)
class _Starts:
    """Several starts of one form as problems of `levenberg_marquardt`, each a group of its own."""

    problem: _Problem
    elimination: Elimination

    @staticmethod
    def of(problem: _Problem, count: int) -> _Starts:
        inside = linear_in(problem.form, problem.names)
        linear = np.array([name in inside for name in problem.names])
        return _Starts(problem, Elimination(np.repeat(linear[:, None], count, axis=1)))

    @property
    def floor(self) -> Array:
        """See `Problems`."""
        return np.full(self.elimination.linear.shape[1], LAST_DIGITS * self.problem.mean_square)

    @property
    def groups(self) -> Integers:
        """See `Problems`."""
        return np.arange(self.elimination.linear.shape[1])

    def longest_step(self, constants: Array) -> Array:
        """See `Problems`."""
        return longest_step_by_size(constants)

    def without_idle(self, working: Flags) -> tuple[_Starts, Integers]:
        """See `Problems`."""
        still = np.flatnonzero(working)
        return _Starts(self.problem, Elimination(self.elimination.linear[:, still])), still

    def products(self, constants: Array) -> tuple[Array, Array]:
        """See `Problems`."""
        residuals, slopes = self.problem.residuals_and_slopes(constants)
        lines = np.concatenate([slopes, residuals[None]]).transpose(1, 0, 2)
        with np.errstate(over="ignore", invalid="ignore"):
            products = lines @ lines.transpose(0, 2, 1)
        return zero_bad_derivatives(products.transpose(1, 2, 0).copy()), constants


def _points(names: Sequence[str], fixed: Mapping[str, float], seed: int) -> Array:
    """A point of ones and random points (names, N) of all sizes and signs; the `fixed` constants have their values."""
    random = stream(seed, "starts of a form")
    shape = _DRAWN_POINTS, len(names)
    points = 10 ** random.uniform(-_DECADES, _DECADES, shape) * random.choice([-1.0, 1.0], shape)
    points[0] = 1.0
    for place, name in enumerate(names):
        if name in fixed:
            points[:, place] = fixed[name]
    return np.ascontiguousarray(points.T)


def _best(problem: _Problem, ended: Array) -> Array:
    """The point (names, 1) of least loss; among equally good ones that with the smallest constants.

    Equally good points are common: a phase may be off by full turns.
    """
    losses = problem.losses(ended)
    good = np.flatnonzero(losses <= max(losses.min() * (1 + _SAME), _EXACT * problem.mean_square))
    smallest = np.abs(ended[:, good]).sum(axis=0).argmin()
    return ended[:, good[smallest], None]


def _robust_errors(slopes: Array, residual: Array, factors: Array) -> Array:
    """Standard errors (k,) at the minimum of Σ ρ(residual), from the sandwich covariance A⁻¹BA⁻¹.

    A is the derivative of the gradient and B the scatter of the rows' contributions to it. `slopes` (rows, k),
    `residual` (rows,), and the `factors` (rows,) that ρ puts on the weights.
    """
    rows, k = slopes.shape
    A = slopes.T @ (slopes * factors[:, None])
    pulls = slopes * (factors * residual)[:, None]
    scale = np.sqrt(np.diag(A))
    if rows <= k or not np.isfinite(A).all() or (scale == 0).any():
        return np.full(k, np.inf)
    scaled = A / (scale[:, None] * scale)
    if np.linalg.cond(scaled) > _MAX_CONDITION:
        return np.full(k, np.inf)
    inverse = np.linalg.inv(scaled) / (scale[:, None] * scale)
    covariance = inverse @ (pulls.T @ pulls) @ inverse * rows / (rows - k)
    return np.asarray(np.sqrt(np.diag(covariance)))
