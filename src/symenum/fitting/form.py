"""The constants of one given form, known by their names: a*x + a*z has one, however often it is written.

`refine` is for many expressions at once and takes each occurrence of a constant for one of its own. Here the form is
the user's, so that what two places share stays shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
import torch
from torch import Tensor

from symenum.enumeration.budget import Budget, CutShortError
from symenum.expressions import Apply, Constant, Expression, Variable, fold
from symenum.fitting.program import Array, Flags
from symenum.fitting.uncertainty import errors_of
from symenum.operators import ADDITIVE, Role

__all__ = ["FormFit", "derivatives", "fit_form", "judge_form", "linear_in"]

_DRAWS, _STARTS = 200, 6  # points that are looked at, and those of them from which a fit starts
_DECADES = 2.0  # starts have sizes from 10 to the minus this to 10 to this
_FEW_ROWS = 200  # starts compete on so many
_STEPS = 200
_TOLERANCE = 1e-15
_SINGULAR = 1e14  # the condition beyond which constants are not determined
_SAME = 1e-6  # two minima whose losses differ by less than this part are one
_EXACT = 1e-24  # of the mean square of y: a loss below this is rounding


_Affine = tuple[frozenset[str], frozenset[str]]
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
    steps: int = _STEPS,
    budget: Budget | None = None,
) -> FormFit:
    """The values of least loss for the variables of `form` that `starts` names; None: anywhere.

    `columns`, y and weight are (rows,) float64, the weights sum to 1. Where all starts are given, the fit goes from
    there and nowhere else, at most so many `steps`; otherwise the others are drawn, and the best of several fits is
    taken.
    """
    names = tuple(starts)
    problem = _Problem(form, names, columns, y, weight)
    if not names:
        return problem.judged(np.zeros(0))
    given = {name: value for name, value in starts.items() if value is not None}
    budget = Budget() if budget is None else budget
    if len(given) == len(names):
        return problem.judged(problem.solve(np.array(list(given.values()), dtype=np.float64), budget, steps))
    few = problem.at(_some(len(y)))
    ended: list[Array] = []
    for start in few.promising(_points(names, given)):
        if ended and budget.over():
            break
        ended.append(few.solve(start, budget))
    return problem.judged(problem.solve(_best(few, ended), budget))


def judge_form(
    form: Expression,
    constants: Mapping[str, float],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    factors: Tensor | None = None,
) -> FormFit:
    """The same for constants that stay where they are.

    `factors` (rows,): what a robust loss makes of the weights; the standard errors are then those of its minimum.
    """
    problem = _Problem(form, tuple(constants), columns, y, weight)
    return problem.judged(np.array(list(constants.values()), dtype=np.float64), factors)


def derivatives(form: Expression, names: Sequence[str], columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Values (rows,) of the form, and its derivatives by the variables of those names (names, rows), float64."""
    rows = len(next(iter(columns.values())))
    nothing = torch.zeros(rows, dtype=torch.float64)

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
    return value.to(torch.float64), torch.stack([slopes.get(name, nothing) for name in names]) if names else nothing[
        :0, None
    ]


def linear_in(form: Expression, names: Sequence[str]) -> frozenset[str]:
    """Variables among those names in which the form is affine jointly, as many as are easily seen.

    >>> from symenum.expressions import parse
    >>> sorted(linear_in(parse("a*sin(b*x) + c*x - c"), ["a", "b", "c"]))
    ['a', 'c']
    """
    nothing: frozenset[str] = frozenset()

    def visit(node: Expression, operands: tuple[_Affine, ...]) -> _Affine:
        """In which it is affine, and which occur at all."""
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
    form: Expression
    names: tuple[str, ...]
    columns: Mapping[str, Tensor]
    y: Tensor
    weight: Tensor

    def at(self, rows: Tensor) -> _Problem:
        columns = {name: column[rows] for name, column in self.columns.items()}
        weight = self.weight[rows]
        return replace(self, columns=columns, y=self.y[rows], weight=weight / weight.sum())

    def residual_and_slopes(self, values: Array) -> tuple[Array, Array]:
        """Residuals (rows,) and derivatives (rows, names), both weighted; a derivative that is not finite is 0."""
        parameters = {name: torch.full_like(self.y, float(v)) for name, v in zip(self.names, values, strict=True)}
        found, slopes = derivatives(self.form, self.names, {**self.columns, **parameters})
        root = self.weight.sqrt()
        finite = torch.isfinite(slopes).all(dim=1, keepdim=True)  # as an exponent's over a negative base
        slopes = torch.where(finite, slopes, torch.zeros_like(slopes))
        return ((found - self.y) * root).numpy(), (slopes * root).T.numpy()

    def loss(self, values: Array) -> float:
        residual = self.residual_and_slopes(values)[0]
        with np.errstate(over="ignore"):
            loss = float((residual**2).sum())
        return loss if np.isfinite(loss) else np.inf

    def solve(self, start: Array, budget: Budget, steps: int = _STEPS) -> Array:
        """The minimum that is reached from there, or in time; the start itself where values are not finite."""
        moves = (self.residual_and_slopes(start)[1] != 0).any(axis=0)
        if not np.isfinite(self.loss(start)) or not moves.any():
            return start

        def whole(some: Array) -> Array:
            values: Array = start.copy()
            values[moves] = some
            return values

        reached, least = start, np.inf

        def residual(some: Array) -> Array:
            nonlocal reached, least
            found = self.residual_and_slopes(whole(some))[0]
            loss = float((found**2).sum())
            if loss < least:
                reached, least = whole(some), loss
            if budget.over():
                raise CutShortError
            return found

        with np.errstate(all="ignore"), suppress(CutShortError):  # a step into the void is taken back
            ended = scipy.optimize.least_squares(
                residual,
                start[moves],
                lambda some: self.residual_and_slopes(whole(some))[1][:, moves],
                x_scale="jac",
                xtol=_TOLERANCE,
                ftol=_TOLERANCE,
                gtol=None,
                max_nfev=steps,
            )
            return whole(np.asarray(ended.x))
        return reached

    def promising(self, points: Array) -> list[Array]:
        """The best of the points (N, names), with what is linear at its least squares."""
        inside = linear_in(self.form, self.names)
        linear = np.array([name in inside for name in self.names])
        solved = [self._with_linear(point, linear) for point in points]
        return sorted(solved, key=self.loss)[:_STARTS]

    def judged(self, values: Array, factors: Tensor | None = None) -> FormFit:
        residual, slopes = self.residual_and_slopes(values)
        with np.errstate(over="ignore", invalid="ignore"):
            loss = float((residual**2).sum())
        free = len(residual) - len(values)
        errors = np.full(len(values), np.inf)
        if len(values) and free > 0 and factors is None:
            errors = errors_of(slopes.T @ slopes, loss / free)
        elif len(values) and factors is not None:
            errors = _robust_errors(slopes, residual, factors.numpy())
        named = dict(zip(self.names, values.tolist(), strict=True))
        return FormFit(
            named, dict(zip(self.names, errors.tolist(), strict=True)), loss if np.isfinite(loss) else np.inf
        )

    def _with_linear(self, point: Array, linear: Flags) -> Array:
        residual, slopes = self.residual_and_slopes(point)
        if not linear.any() or not np.isfinite(residual).all():
            return point
        shift = np.linalg.lstsq(slopes[:, linear], -residual, rcond=None)[0]
        moved: Array = point.copy()
        moved[linear] += shift
        return moved


def _some(rows: int) -> Tensor:
    if rows <= _FEW_ROWS:
        return torch.arange(rows)
    return torch.randperm(rows, generator=torch.Generator().manual_seed(0))[:_FEW_ROWS].sort().values


def _points(names: Sequence[str], given: Mapping[str, float]) -> Array:
    """Ones, and points (N, names) of all sizes and signs; what is given stays."""
    random = np.random.default_rng(0)
    shape = _DRAWS, len(names)
    points = 10 ** random.uniform(-_DECADES, _DECADES, shape) * random.choice([-1.0, 1.0], shape)
    points[0] = 1.0
    for place, name in enumerate(names):
        if name in given:
            points[:, place] = given[name]
    return np.asarray(points)


def _best(problem: _Problem, ended: list[Array]) -> Array:
    """The best end; of several that are as good (a phase may be off by full turns) that with the smallest constants."""
    losses = [problem.loss(end) for end in ended]
    floor = _EXACT * float((problem.y.square() * problem.weight).sum())
    limit = max(min(losses) * (1 + _SAME), floor)
    good = [end for end, loss in zip(ended, losses, strict=True) if loss <= limit]
    return min(good, key=lambda end: float(np.abs(end).sum()))


def _robust_errors(slopes: Array, residual: Array, factors: Array) -> Array:
    """Standard errors (k,) of the minimum of Σ ρ(r): A⁻¹BA⁻¹ with A the slope and B the scatter of its gradient."""
    rows, k = slopes.shape
    A = slopes.T @ (slopes * factors[:, None])
    pulls = slopes * (factors * residual)[:, None]
    scale = np.sqrt(np.diag(A))
    if rows <= k or not np.isfinite(A).all() or (scale == 0).any():
        return np.full(k, np.inf)
    scaled = A / (scale[:, None] * scale)
    if np.linalg.cond(scaled) > _SINGULAR:
        return np.full(k, np.inf)
    inverse = np.linalg.inv(scaled) / (scale[:, None] * scale)
    covariance = inverse @ (pulls.T @ pulls) @ inverse * rows / (rows - k)
    return np.asarray(np.sqrt(np.diag(covariance)))
