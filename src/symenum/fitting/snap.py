"""Fitted constants fixed at the numbers that people write, where the data do not object; the others are fitted anew.

`snap` does it for the coefficients of a linear fit. Zero is a nice number, so terms that are not needed leave. `tidy`
does it for all constants of an expression, inner ones too. Which numbers are nice, how far a constant may move and how
much the residual may grow is decided in `recognise`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EPSILON, EXACTNESS, is_exact, is_exact_fit, loss_up_to, row_rounding
from symenum.expressions import (
    Apply,
    Constant,
    Expression,
    Variable,
    apply,
    evaluate,
    fold,
    simplify,
    substitute,
    variables,
)
from symenum.fitting.free_constants import postfix, with_leaves
from symenum.fitting.linear import Array, Fit, least_squares
from symenum.fitting.recognise import RECOGNITION, Number, nice_number, plain_number, recognise
from symenum.fitting.refine import Refined, refine
from symenum.fitting.uncertainty import standard_errors
from symenum.operators.traits import Role

__all__ = ["Snapped", "snap", "tidy", "with_roots"]

_MAX_DECIMALS = 2  # digits after the point of a decimal that is written instead of a fraction: 2.25 for 9/4
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_BIAS = 2.0  # residuals that a term may be off in an exact fit: rounding errors of one sign do not average out
_ZERO_WINDOW = 0.05  # part of y: a term that is known worse than this is not known to be zero
_MIN_SIZE = 1e-3  # smaller constants count with this size where their relative errors are compared


@dataclass(frozen=True)
class Snapped:
    """`numbers` one for each column, and the root mean square of the weighted residual, relative to that of y."""

    numbers: tuple[Number, ...]
    relative_rms: float
    exact: bool  # up to rounding

    @property
    def unsnapped(self) -> int:
        """How many coefficients stayed floats."""
        return sum(not number.snapped for number in self.numbers)


@dataclass(frozen=True)
class _SnapRule:
    """How far the coefficients of one linear fit may move. All sizes are root mean squares over the rows."""

    floor: float  # the rounding error of one row
    base: float  # the residual of the fit with all coefficients free
    size: float  # of y
    rows: int
    columns: int
    exact: bool  # the fit leaves nothing but rounding

    def limit(self, fixed: int) -> float:
        """The largest residual allowed with `fixed` coefficients fixed."""
        return self.base * RECOGNITION.residual_growth(fixed, self.rows - self.columns, exact=self.exact)

    def means_zero(self, value: float, error: float, column: float) -> bool:
        """Whether a coefficient is zero within its error.

        In an exact fit its term must also be known: error · `column`, the size of its column, below 5% of y.
        """
        return abs(value) <= error and (not self.exact or error * column <= _ZERO_WINDOW * self.size)

    def sigma(self, fit: Fit, free: int) -> float:
        """The standard deviation of the noise, from a fit with `free` free coefficients; at least rounding."""
        total = math.sqrt(float((fit.residual**2).sum()) / max(self.rows - free, 1))
        return max(total, self.floor)


def snap(A: Array, y: Array, weight: Array | None = None, *, keep: bool = False) -> Snapped:
    """Fit y (n,) by the columns of A (n, k), float64, with row weights (n,), and fix coefficients at nice numbers.

    The coefficients are fixed one after another, the others fitted anew each time. `keep`: no column may leave (0 is
    not offered). With more columns than rows nothing is fixed.
    """
    columns = A.shape[1]
    if weight is not None:
        root = np.sqrt(weight / weight.mean())
        A, y = A * root[:, None], y * root
    rows = len(y)
    rule = _snap_rule(A, y)
    if rows > 2 * columns:
        A, y = _reduced(A, y)
    values = np.zeros(columns)
    numbers: list[Number | None] = [None] * columns
    free = list(range(columns))
    target = y
    fit = least_squares(A, target)
    while free:
        step = _fix_one(A, target, free, fit, rule, keep)
        if step is None:
            for position, j in enumerate(free):
                values[j] = fit.coefficients[position]
                numbers[j] = plain_number(float(values[j]))
            break
        j, number, fit = step
        values[j], numbers[j] = number.value, number
        free = [other for other in free if other != j]
        target = target - A[:, j] * number.value
    relative = _norm(y - A @ values) / math.sqrt(rows) / rule.size if rule.size > 0 else 0.0
    done = tuple(number for number in numbers if number is not None)
    return Snapped(done, relative, rule.exact)


def _reduced(A: Array, y: Array) -> tuple[Array, Array]:
    """A (k + 1, k) and y (k + 1,) with the same normal equations and the same residual norms as A (n, k) and y (n,)."""
    _, R = torch.linalg.qr(torch.from_numpy(np.column_stack([A, y])), mode="r")
    reduced: Array = R.numpy()
    return reduced[:, :-1], reduced[:, -1]


def _snap_rule(A: Array, y: Array) -> _SnapRule:
    rows, columns = A.shape
    size = _norm(y) / math.sqrt(rows)
    fit = least_squares(A, y)
    floor = row_rounding(float(np.max(np.abs(A) @ np.abs(fit.coefficients) + np.abs(y), initial=0.0)))
    exact = is_exact_fit(fit.rms, size, floor)
    return _SnapRule(
        floor,
        max(fit.rms, floor),
        size,
        rows,
        columns,
        exact,
    )


def _fix_one(
    A: Array, target: Array, free: list[int], fit: Fit, rule: _SnapRule, keep: bool
) -> tuple[int, Number, Fit] | None:
    """The best determined free coefficient with a nice number at which the others still fit y, and their fit."""
    if not fit.full_rank and len(free) > rule.rows:
        return None
    sigma = rule.sigma(fit, len(free))
    rarity = RECOGNITION.rarity(exact=rule.exact)
    offers: list[tuple[float, float, int, Number]] = []
    for position, j in enumerate(free):
        value = float(fit.coefficients[position])
        size = _norm(A[:, j]) / math.sqrt(rule.rows)
        error = RECOGNITION.window(value, sigma * float(fit.sensitivity[position]), exact=rule.exact)
        if rule.exact and size > 0:
            error = max(error, _BIAS * sigma / size)
        zero = not keep and rule.means_zero(value, error, size)
        number = nice_number(0.0, 0.0) if zero else nice_number(value, error, zero=False, rarity=rarity)
        if number is not None:
            relative = error / max(abs(value), _MIN_SIZE) if number.value else error
            offers.append((relative, number.cost, j, number))
    fixed = rule.columns - len(free) + 1
    for _, _, j, number in sorted(offers, key=lambda offer: offer[:3]):
        others = [other for other in free if other != j]
        refitted = least_squares(A[:, others], target - A[:, j] * number.value)
        if _norm(refitted.residual) <= rule.limit(fixed) * math.sqrt(rule.rows):
            return j, number, refitted
    return None


def _norm(values: Array) -> float:
    largest = float(np.max(np.abs(values), initial=0.0))  # squares of numbers near 1e200 would overflow
    return largest * float(np.sqrt(np.sum((values / largest) ** 2))) if largest > 0 else 0.0


@dataclass(frozen=True)
class _TidyRule:
    """How far the loss of one expression may grow."""

    exact: bool
    base: float  # the loss with all constants free, at least rounding
    rows: int
    constants: int  # free at the beginning

    def limit(self, fixed: int) -> float:
        """The largest loss allowed with `fixed` constants fixed."""
        return self.base * RECOGNITION.residual_growth(fixed, self.rows - self.constants, exact=self.exact) ** 2


def tidy(
    expression: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    budget: Budget | None = None,
    seed: int = 0,
) -> Refined:
    """The expression with its constants fixed at nice numbers one after another, the others refitted each time.

    Arguments as in `refine`. Whole numbers are nice already and stay. Terms whose coefficient becomes zero leave, and
    constants are folded (`simplify`). `constants` are those of the result, as if all of them were free.
    """
    budget = Budget() if budget is None else budget
    rows = len(y)
    weight = torch.full((rows,), 1 / rows, dtype=torch.float64) if weight is None else weight

    def with_held(held: Mapping[str, Number]) -> dict[str, Tensor]:
        return {**columns, **{name: torch.full_like(y, number.value) for name, number in held.items()}}

    def fit(candidate: Expression, held: Mapping[str, Number]) -> Refined:
        return refine([candidate], with_held(held), y, weight, starts=0, integers=False, budget=budget, seed=seed)[0]

    # A number that is held is a variable with one value, so that no fit moves it, whatever kind of number it is.
    held: dict[str, Number] = {}
    current = fit(simplify(expression), held)
    mean_square = float((weight * y.square()).sum())
    exact = is_exact(current.loss, mean_square, EXACTNESS.noise_free)
    rule = _TidyRule(exact, max(current.loss, loss_up_to(EPSILON, mean_square)), rows, len(current.constants))
    taken = {*columns, *variables(current.expression)}
    while not budget.over():
        step = None
        errors = standard_errors(current.expression, with_held(held), y, weight, integers=False)
        for place, number in _offers(current, errors, rule):
            name = next(name for i in range(len(taken) + 1) if (name := f"held{i}") not in taken)
            candidate = fit(_hold(current.expression, place, name), {**held, name: number})
            if candidate.loss <= rule.limit(len(held) + 1):
                step = name, number, candidate
                break
        if step is None:
            break
        name, number, current = step
        held[name] = number
        taken.add(name)
    written = with_roots(substitute(current.expression, {name: _written(number) for name, number in held.items()}))
    for result in (simplify(written), written):
        values = evaluate(result, columns)
        loss = float((values.to(torch.float64) - y).square() @ weight)
        if loss <= rule.limit(len(held)):
            return _judged(result, columns, y, weight, current.converged)
    return _judged(expression, columns, y, weight, False)


def with_roots(expression: Expression) -> Expression:
    """The expression with sqrt(a) for a**(1/2)."""

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if not isinstance(node, Apply):
            return node
        if node.operator.role is Role.POWER and not variables(operands[1]) and float(evaluate(operands[1], {})) == 0.5:
            return apply("sqrt", operands[0])
        return Apply(node.operator, operands)

    return fold(expression, visit)


def _written(number: Number) -> Expression:
    """The number as an expression: 2.5 rather than 5/2, which is two numbers and a division; but 1/2 and 1/3."""
    above, below = number.numerator, number.denominator
    plain = isinstance(above, Constant) and above.name is None and above.value != 1
    if below is not None and plain and round(number.value, _MAX_DECIMALS) == number.value:
        return Constant(number.value)
    return number.expression


def _offers(current: Refined, errors: Sequence[float], rule: _TidyRule) -> list[tuple[int, Number]]:
    """The places of the constants that have a nice number, and that number, the best determined first."""
    exponents = _exponents(current.expression)
    offers = []
    for place, (value, error) in enumerate(zip(current.constants, errors, strict=True)):
        number = recognise(value, error, exact=rule.exact, rational=exponents[place])
        if number is not None:
            offers.append((error / max(abs(value), _MIN_SIZE), number.cost, place, number))
    return [(place, number) for _, _, place, number in sorted(offers, key=lambda offer: offer[:3])]


def _hold(expression: Expression, place: int, name: str) -> Expression:
    """The expression with a variable of that name in the place of one free constant."""
    leaves: list[Expression] = [node for node, free in postfix(expression, integers=False) if free]
    leaves[place] = Variable(name)
    return with_leaves(expression, leaves, integers=False)


def _exponents(expression: Expression) -> list[bool]:
    """For each free constant, from left to right, whether it is an exponent."""
    found: list[bool] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, exponent = stack.pop()
        if isinstance(node, Apply):
            power = node.operator.role is Role.POWER
            stack.extend((operand, power and i == 1) for i, operand in reversed(list(enumerate(node.operands))))
        elif isinstance(node, Constant) and node.name is None and not isinstance(node.value, int):
            found.append(exponent)
    return found


def _judged(
    expression: Expression, columns: Mapping[str, Tensor], y: Tensor, weight: Tensor, converged: bool
) -> Refined:
    """The expression as it is, with its loss."""
    return replace(refine([expression], columns, y, weight, starts=0, steps=0)[0], converged=converged)
