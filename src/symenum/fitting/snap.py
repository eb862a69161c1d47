"""Fitted constants written as the numbers that people write, where the data do not object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EPSILON, EXACTNESS, is_exact, is_exact_fit, loss_up_to, row_rounding
from symenum.expressions import Apply, Constant, Expression, Variable, evaluate, simplify, substitute, variables
from symenum.fitting.constants import postfix, with_leaves
from symenum.fitting.linear import Array, Fit, least_squares
from symenum.fitting.recognise import RECOGNITION, Number, nice_number, plain_number, recognise
from symenum.fitting.refine import Refined, refine
from symenum.fitting.uncertainty import standard_errors
from symenum.operators.traits import Role

__all__ = ["Snapped", "snap", "tidy"]


# --------------------------------------------------------------------------------------------------------------------
# Coefficients of a linear fit, one after another fixed at nice numbers, the rest fitted anew each time.
#
# Zero is a nice number, so this is also how terms that are not needed leave.
#
# The rule, how far a coefficient may move and how much the residual may grow, is `recognise.Recognition`.


_BIAS = 2.0  # rounding errors of many rows may all have one sign: they do not average out
_ZERO_WINDOW = 0.05  # a term known worse than this part of y is not known to be nothing


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
class _Rule:
    floor: float  # the rounding error of one row
    base: float  # the root mean square residual of the fit with all coefficients free
    size: float  # the root mean square of y
    rows: int
    columns: int
    exact: bool

    def limit(self, fixed: int) -> float:
        """The largest root mean square residual allowed with so many coefficients fixed."""
        return self.base * RECOGNITION.residual_growth(fixed, self.rows - self.columns, exact=self.exact)

    def means_zero(self, value: float, error: float, column: float) -> bool:
        """Whether a coefficient of a column of that size cannot be told from zero, and could be if it mattered."""
        return abs(value) <= error and (not self.exact or error * column <= _ZERO_WINDOW * self.size)

    def sigma(self, fit: Fit, free: int) -> float:
        total = math.sqrt(float((fit.residual**2).sum()) / max(self.rows - free, 1))
        return max(total, self.floor)


def snap(A: Array, y: Array, weight: Array | None = None, *, keep: bool = False) -> Snapped:
    """Fit y (n,) by the columns of A (n, k), float64, with row weights (n,), and fix what can be fixed.

    `keep`: no column may leave (0 is not offered). With fewer rows than columns nothing is fixed but what fits.
    """
    columns = A.shape[1]
    if weight is not None:
        root = np.sqrt(weight / weight.mean())
        A, y = A * root[:, None], y * root
    rows = len(y)
    rule = _rule(A, y)
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
    """As few rows as columns, and one, with the same normal equations and the same residual norms."""
    _, R = torch.linalg.qr(torch.from_numpy(np.column_stack([A, y])), mode="r")
    reduced: Array = R.numpy()
    return reduced[:, :-1], reduced[:, -1]


def _rule(A: Array, y: Array) -> _Rule:
    rows, columns = A.shape
    size = _norm(y) / math.sqrt(rows)
    fit = least_squares(A, y)
    floor = row_rounding(float(np.max(np.abs(A) @ np.abs(fit.coefficients) + np.abs(y), initial=0.0)))
    exact = is_exact_fit(fit.rms, size, floor)
    return _Rule(
        floor,
        max(fit.rms, floor),
        size,
        rows,
        columns,
        exact,
    )


def _fix_one(
    A: Array, target: Array, free: list[int], fit: Fit, rule: _Rule, keep: bool
) -> tuple[int, Number, Fit] | None:
    """The best determined free coefficient that has a nice number, if the others can make up for it."""
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
            relative = error / max(abs(value), 1e-3) if number.value else error
            offers.append((relative, number.cost, j, number))
    fixed = rule.columns - len(free) + 1
    for _, _, j, number in sorted(offers, key=lambda offer: offer[:3]):
        left = target - A[:, j] * number.value
        others = [other for other in free if other != j]
        rest = least_squares(A[:, others], left)
        if _norm(rest.residual) <= rule.limit(fixed) * math.sqrt(rule.rows):
            return j, number, rest
    return None


def _norm(values: Array) -> float:
    largest = float(np.max(np.abs(values), initial=0.0))  # squares of numbers near 1e200 would overflow
    return largest * float(np.sqrt(np.sum((values / largest) ** 2))) if largest > 0 else 0.0


# --------------------------------------------------------------------------------------------------------------------
# Fitted constants written as the numbers that people write, inner ones too, where the data do not object.
#
# The rule, how far a constant may move and how much the loss may grow, is `recognise.Recognition`.


_DIGITS = 2  # after the point, in the decimals that are written instead of fractions


@dataclass(frozen=True)
class _TidyRule:
    exact: bool
    base: float  # the loss with all constants free, at least rounding
    rows: int
    free: int  # constants at the beginning

    def limit(self, fixed: int) -> float:
        """The largest loss allowed with so many constants fixed."""
        return self.base * RECOGNITION.residual_growth(fixed, self.rows - self.free, exact=self.exact) ** 2


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

    # A number that is held is a variable with one value: so whatever kind of number it is, nothing moves it.
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
    written = substitute(current.expression, {name: _written(number) for name, number in held.items()})
    for result in (simplify(written), written):
        values = evaluate(result, columns)
        loss = float((values.to(torch.float64) - y).square() @ weight)
        if loss <= rule.limit(len(held)):
            return _judged(result, columns, y, weight, current.converged)
    return _judged(expression, columns, y, weight, False)


def _written(number: Number) -> Expression:
    """2.5 rather than 5/2, which is two numbers and a division; but 1/2 and 1/3."""
    above, below = number.numerator, number.denominator
    plain = isinstance(above, Constant) and above.name is None and above.value != 1
    if below is not None and plain and round(number.value, _DIGITS) == number.value:
        return Constant(number.value)
    return number.expression


def _offers(current: Refined, errors: Sequence[float], rule: _TidyRule) -> list[tuple[int, Number]]:
    """Constants that have a nice number, by their place, the best determined first."""
    exponents = _exponents(current.expression)
    offers = []
    for place, (value, error) in enumerate(zip(current.constants, errors, strict=True)):
        number = recognise(value, error, exact=rule.exact, rational=exponents[place])
        if number is not None:
            offers.append((error / max(abs(value), 1e-3), number.cost, place, number))
    return [(place, number) for _, _, place, number in sorted(offers, key=lambda offer: offer[:3])]


def _hold(expression: Expression, place: int, name: str) -> Expression:
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
    return replace(refine([expression], columns, y, weight, starts=0, steps=0)[0], converged=converged)
