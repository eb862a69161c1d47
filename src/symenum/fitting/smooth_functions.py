"""Unknown functions inside a known form, fitted as smooth curves and surfaces: sums of Legendre polynomials.

Of y = S(x, u1(a1), u2(a2), …) the form S is known, and so are the arguments of the unknown u. Each u is a sum of
products of Legendre polynomials of its arguments, whose coefficients cost the more the higher the degree; how much is
chosen by generalized cross-validation. All coefficients, and the constants of the form, are fitted together by the one
Levenberg–Marquardt. What comes out is a table of each u, of which a law can be sought as of any table.

Not a model to be shown: it says what the unknown functions do where the data are, and nothing elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.polynomial import legendre
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import stream
from symenum.expressions import Expression, evaluate
from symenum.expressions.template import Call
from symenum.fitting.batch_program import Array, Flags, Integers
from symenum.fitting.form_fit import derivatives, linear_in
from symenum.fitting.levenberg_marquardt import Elimination, fit, longest_step_by_size, zero_bad_derivatives

__all__ = ["Basis", "SmoothFit", "fit_beside", "fit_smooth", "make_bases", "needed_values"]

# Largest degrees by the number of arguments: 12, 36, 56 and 70 functions. A function of one argument as wild as
# exp(sin(2.5 x)) on (0.5, 3) is off by 1e-5 of its size with degree 11.
_DEGREES = {1: 11, 2: 7, 3: 5, 4: 4}
_LEAST_DEGREE = 2  # of more arguments: squares and products
_FEATURES_PER_ROW = 0.5  # of all functions together: with more a fit follows the noise, whatever the price
_WIDE = 20.0  # largest over smallest of a positive argument from which polynomials are of its logarithm
# Prices of coefficients, in units of the mean square of y; the highest first, whose fit is where the next begins.
# Steps of a hundred: the cross-validated error is flat over a factor of ten.
_PRICES = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
_PRICES_BESIDE = (1e-4, 1e-7, 1e-10, 1e-13)  # the same of a curve beside a part, which takes up what the part misses
_PRICE_OF_LEVEL = 1e-4  # of degree 0, in units of that of degree 1: keeps the level of a product's factors apart
_STARTS = 12  # random starts of forms that are not linear in the functions,
_KEPT_STARTS = 3  # and those that are still there at the lower prices
_FIRST_STEPS = 25  # of Levenberg-Marquardt at the highest price,
_STEPS = 15  # and at each other one
_TOLERANCE = 1e-4  # of the loss: prices differ by factors of a hundred, so fits need no more digits
_LAST_TOLERANCE = 1e-10  # the same of the last fit,
_NEAR_TOLERANCE = 1e-6  # and of a fit that begins near its end: forms differ by more than a millionth of the loss
_NEWTON = 4  # steps from the smooth value of a function to the value that y needs, in each row


@dataclass(frozen=True)
class Basis:
    """Products of Legendre polynomials of the arguments of one function, scaled to -1 … 1.

    `centre`, `half`, `logarithmic`: by argument. `degrees` (features, arguments).
    """

    centre: tuple[float, ...]
    half: tuple[float, ...]
    logarithmic: tuple[bool, ...]
    degrees: Integers

    def values(self, arguments: Sequence[Tensor]) -> Array:
        """The features (features, rows) at arguments (rows,)."""
        single = []
        for at, argument in enumerate(arguments):
            z = argument.numpy()
            z = np.log(z) if self.logarithmic[at] else z
            z = (z - self.centre[at]) / self.half[at]
            single.append(legendre.legvander(z, int(self.degrees[:, at].max())).T)
        product = np.ones((len(self.degrees), len(arguments[0])))
        for at, powers in enumerate(single):
            product *= powers[self.degrees[:, at]]
        return product

    @property
    def prices(self) -> Array:
        """What the coefficients (features,) cost, relative to one of degree 1."""
        degree = self.degrees.sum(axis=1)
        return np.where(degree > 0, degree.astype(np.float64) ** 2, _PRICE_OF_LEVEL)


def make_bases(calls: Sequence[Call], columns: Mapping[str, Tensor], rows: int) -> dict[str, Basis]:
    """A basis for each function, over all arguments that it is called with."""
    functions = list(dict.fromkeys(call.function for call in calls))
    arity = {call.function: len(call.arguments) for call in calls}
    degree = {one: _DEGREES.get(arity[one], _LEAST_DEGREE) for one in functions}
    while sum(_count(arity[one], degree[one]) for one in functions) > _FEATURES_PER_ROW * rows:
        largest = max(functions, key=lambda one: (_count(arity[one], degree[one]), degree[one]))
        if degree[largest] == 1:
            break
        degree[largest] -= 1
    bases = {}
    for one in functions:
        centre, half, logarithmic = [], [], []
        for at in range(arity[one]):
            together = torch.cat([argument_values(call, columns)[at] for call in calls if call.function == one])
            low, high = float(together.min()), float(together.max())
            wide = low > 0 and high > _WIDE * low
            low, high = (math.log(low), math.log(high)) if wide else (low, high)
            centre.append((low + high) / 2)
            half.append(max((high - low) / 2, 1e-300))  # an argument that does not vary: any scale will do
            logarithmic.append(wide)
        powers = itertools.product(range(degree[one] + 1), repeat=arity[one])
        degrees = np.array([power for power in powers if sum(power) <= degree[one]], dtype=np.int64)
        bases[one] = Basis(tuple(centre), tuple(half), tuple(logarithmic), degrees)
    return bases


def argument_values(call: Call, columns: Mapping[str, Tensor]) -> list[Tensor]:
    """The values (rows,) of the arguments of a call."""
    return [torch.from_numpy(np.ascontiguousarray(evaluate(one, columns))) for one in call.arguments]


def _count(arity: int, degree: int) -> int:
    return math.comb(arity + degree, arity)


@dataclass(frozen=True)
class SmoothFit:
    """The fit: of each call the values (rows,) of its function and the slopes (rows,) of the form by them.

    `residual` (rows,): y minus the form. `numbers`: how many numbers the fit has used up, those of the curves by their
    trace. `cost`: rows·log(loss) and log(rows) for each number, in nats times two. `curves`: coefficients by function.
    """

    values: Mapping[str, Array]
    slopes: Mapping[str, Array]
    residual: Array
    loss: float
    numbers: float
    cost: float
    constants: Mapping[str, float]
    curves: Mapping[str, Array]
    price: float


@dataclass(frozen=True)
class _Curves:
    """A form with curves in it, as problems of `levenberg_marquardt`; members differ in their starts only."""

    form: Expression
    names: tuple[str, ...]
    calls: tuple[Call, ...]
    columns: Mapping[str, Tensor]
    y: Tensor
    weight: Tensor
    features: Mapping[str, Array]  # (features, rows) by place
    prices: Mapping[str, Array]  # (features,) by function
    price: float
    members: int = 1

    @cached_property
    def size(self) -> int:
        return len(self.names) + sum(map(len, self.prices.values()))

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the coefficients of each function stand."""
        found, at = {}, len(self.names)
        for function, prices in self.prices.items():
            found[function] = slice(at, at + len(prices))
            at += len(prices)
        return found

    @cached_property
    def mean_square(self) -> float:
        return max(float((self.y.square() * self.weight).sum()), 1e-300)

    @cached_property
    def root_prices(self) -> Array:
        """(k,) the roots of what each coefficient costs; constants of the form cost nothing."""
        prices = np.concatenate([np.zeros(len(self.names)), *self.prices.values()])
        return np.asarray(np.sqrt(self.price * self.mean_square * prices))

    @cached_property
    def linear(self) -> Flags:
        """(k,) which numbers the form is linear in."""
        places = [call.place for call in self.calls]
        inside = linear_in(self.form, [*self.names, *places])
        flags = np.zeros(self.size, dtype=bool)
        flags[: len(self.names)] = [name in inside for name in self.names]
        for function, part in self.parts.items():
            flags[part] = all(call.place in inside for call in self.calls if call.function == function)
        return flags

    @cached_property
    def elimination(self) -> Elimination:
        """See `Problems`."""
        return Elimination(np.repeat(self.linear[:, None], self.members, axis=1))

    @property
    def floor(self) -> Array:
        """See `Problems`."""
        return np.full(self.members, EXACTNESS.stalled**2 * self.mean_square)

    @property
    def groups(self) -> Integers:
        """See `Problems`."""
        return np.arange(self.members)

    def longest_step(self, constants: Array) -> Array:
        """See `Problems`."""
        longest = np.full(constants.shape, np.inf)
        longest[: len(self.names)] = longest_step_by_size(constants[: len(self.names)])
        return longest

    def without_idle(self, working: Flags) -> tuple[_Curves, Integers]:
        """See `Problems`."""
        still = np.flatnonzero(working)
        return replace(self, members=len(still)), still

    def products(self, constants: Array) -> tuple[Array, Array]:
        """See `Problems`."""
        residual, slopes = self.residual_and_slopes(constants)
        lines = np.concatenate([slopes, residual[None]]).transpose(1, 0, 2)
        with np.errstate(over="ignore", invalid="ignore"):
            products = (lines @ lines.transpose(0, 2, 1)).transpose(1, 2, 0).copy()
            held = self.root_prices
            k = self.size
            products[np.arange(k), np.arange(k)] += (held**2)[:, None]
            products[:k, k] -= (held**2)[:, None] * constants
            products[k, :k] = products[:k, k]
            products[k, k] += ((held[:, None] * constants) ** 2).sum(axis=0)
        return zero_bad_derivatives(products), constants

    def at(self, constants: Array) -> tuple[Tensor, Tensor]:
        """The form (B, rows), and its slopes by names and places (names + places, B, rows), at constants (k, B)."""
        shape = constants.shape[1], len(self.y)
        columns = {name: column.expand(shape) for name, column in self.columns.items()}
        for name, row in zip(self.names, constants, strict=False):
            columns[name] = torch.from_numpy(row.copy())[:, None].expand(shape)
        for call in self.calls:
            columns[call.place] = torch.from_numpy(constants[self.parts[call.function]].T @ self.features[call.place])
        return derivatives(self.form, [*self.names, *(call.place for call in self.calls)], columns)

    def residual_and_slopes(self, constants: Array) -> tuple[Array, Array]:
        """The weighted residual (B, rows) and the weighted slopes (k, B, rows) by all numbers."""
        value, slopes = self.at(constants)
        root = self.weight.sqrt()
        found = np.zeros((self.size, constants.shape[1], len(self.y)))
        found[: len(self.names)] = (slopes[: len(self.names)] * root).numpy()
        for call, slope in zip(self.calls, slopes[len(self.names) :], strict=True):
            part = self.parts[call.function]
            found[part] += (slope * root).numpy()[None] * self.features[call.place][:, None, :]
        return ((self.y - value) * root).numpy(), found


def fit_smooth(
    form: Expression,
    calls: Sequence[Call],
    starts: Mapping[str, float | None],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    bases: Mapping[str, Basis],
    *,
    seed: int = 0,
    budget: Budget = NO_LIMIT,
    begin: SmoothFit | None = None,
) -> SmoothFit | None:
    """The form with smooth functions in the places of the `calls`; None where no start has finite values.

    `starts`: the names in the form that are constants, and where they begin (None: anywhere). `columns`, y and weight
    (rows,) float64. `begin`: a fit of a like form, whose curves are where this one begins, at the same price; so its
    functions keep their signs and scales, where the form leaves these open.
    """
    functions = list(dict.fromkeys(call.function for call in calls))
    features = {call.place: bases[call.function].values(argument_values(call, columns)) for call in calls}
    prices = {one: bases[one].prices for one in functions}
    first_price = _PRICES[0] if begin is None else begin.price
    problem = _Curves(form, tuple(starts), tuple(calls), columns, y, weight, features, prices, first_price)
    if begin is not None:
        point = _start_at(problem, starts, begin)
        ended = fit(problem, point, steps=_STEPS + _FIRST_STEPS, tolerance=_NEAR_TOLERANCE, budget=budget)
        return _judged(problem, ended.constants) if math.isfinite(ended.loss[0]) else None
    single = bool(problem.linear.all())
    points = _starts(problem, starts, 1 if single else _STARTS, seed)
    problem = replace(problem, members=points.shape[1])
    ended = fit(problem, points, steps=_FIRST_STEPS, tolerance=_TOLERANCE, budget=budget)
    order = np.argsort(ended.loss, kind="stable")[:_KEPT_STARTS]
    points = ended.constants[:, order[np.isfinite(ended.loss[order])]]
    if not points.shape[1]:
        return None
    best: tuple[SmoothFit, Array] | None = None
    for lower in _PRICES:
        problem = replace(problem, price=lower, members=points.shape[1])
        ended = fit(problem, points, steps=_STEPS, tolerance=_TOLERANCE, budget=budget)
        points = ended.constants
        at = int(np.argmin(ended.loss))
        found = _judged(replace(problem, members=1), points[:, at : at + 1])
        if best is None or _cross_validated(found) < _cross_validated(best[0]):
            best = found, points[:, at : at + 1]
        if budget.over():
            break
    assert best is not None  # there is one price at least
    problem = replace(problem, price=best[0].price, members=1)
    last = fit(problem, best[1], steps=_FIRST_STEPS, tolerance=_LAST_TOLERANCE, budget=budget)
    return _judged(problem, last.constants)


def fit_beside(
    form: Expression,
    call: Call,
    starts: Mapping[str, float],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    *,
    budget: Budget = NO_LIMIT,
) -> SmoothFit | None:
    """The form with one smooth function that is small: it begins at zero, where the form fits nearly; else as above.

    None where the form has no finite values there.
    """
    bases = make_bases([call], columns, len(y))
    begin = SmoothFit(
        {}, {}, np.zeros(0), 0.0, 0.0, 0.0, {}, {call.function: np.zeros(len(bases[call.function].prices))}, 0.0
    )
    best: SmoothFit | None = None
    for price in _PRICES_BESIDE:
        begin = replace(begin, price=price)
        found = fit_smooth(form, [call], starts, columns, y, weight, bases, budget=budget, begin=begin)
        if found is None:
            break
        if best is None or _cross_validated(found) < _cross_validated(best):
            best = found
        begin, starts = found, found.constants
        if budget.over():
            break
    return best


def _starts(problem: _Curves, starts: Mapping[str, float | None], count: int, seed: int) -> Array:
    """Points (k, count): levels of any sign and size near 1, and small slopes."""
    rng = stream(seed, "starts of smooth functions")
    points = np.zeros((problem.size, count))
    for at, start in enumerate(starts.values()):
        points[at] = np.exp(rng.normal(0, 1, count)) if start is None else start
    for function, part in problem.parts.items():
        prices = problem.prices[function]
        points[part] = 0.1 * rng.normal(0, 1, (len(prices), count)) / np.maximum(prices, 1.0)[:, None]
        points[part.start] = np.exp(rng.normal(0, 1, count))  # degree 0 comes first
        points[part.start, count // 2 :] *= rng.choice([-1.0, 1.0], count - count // 2)
    return points


def _start_at(problem: _Curves, starts: Mapping[str, float | None], begin: SmoothFit) -> Array:
    """The point (k, 1) of the curves of another fit, and of the constants as they begin."""
    point = np.ones((problem.size, 1))
    for at, start in enumerate(starts.values()):
        point[at] = 1.0 if start is None else start
    for function, part in problem.parts.items():
        point[part, 0] = begin.curves[function]
    return point


def _judged(problem: _Curves, point: Array) -> SmoothFit:
    """The fit at a point (k, 1)."""
    residual, weighted = problem.residual_and_slopes(point)
    slopes = np.nan_to_num(weighted[:, 0], nan=0.0, posinf=0.0, neginf=0.0)  # such a number stays where it is
    value, by_place = problem.at(point)
    numbers = _numbers_used(slopes @ slopes.T, problem.root_prices**2)
    loss = float((residual**2).sum())
    rows = len(problem.y)
    floor = EXACTNESS.scanned**2 * problem.mean_square  # smooth curves tell no more digits than these
    names = len(problem.names)
    return SmoothFit(
        {call.place: point[problem.parts[call.function], 0] @ problem.features[call.place] for call in problem.calls},
        {call.place: by_place[names + at, 0].numpy() for at, call in enumerate(problem.calls)},
        (problem.y - value[0]).numpy(),
        loss if math.isfinite(loss) else math.inf,
        numbers,
        rows * math.log(max(loss, floor)) + numbers * math.log(rows) if math.isfinite(loss) else math.inf,
        dict(zip(problem.names, point[:names, 0].tolist(), strict=True)),
        {function: point[part, 0] for function, part in problem.parts.items()},
        problem.price,
    )


def _numbers_used(normal: Array, prices: Array) -> float:
    """The trace of (JᵀJ + prices)⁻¹ JᵀJ: a number whose price is far below what it explains counts as one."""
    held = normal + np.diag(prices)
    scale = np.sqrt(np.diag(held))
    if not np.isfinite(held).all():
        return float(len(held))
    scale[scale == 0] = 1.0  # of a number that does nothing
    scaled = held / scale[:, None] / scale
    return float(np.trace(np.linalg.pinv(scaled, hermitian=True) @ (normal / scale[:, None] / scale)))


def _cross_validated(found: SmoothFit) -> float:
    """The generalized cross-validated error: what a row that was left out would be missed by."""
    rows = len(found.residual)
    return found.loss / max(1 - found.numbers / rows, 1e-3) ** 2


def needed_values(
    found: SmoothFit, form: Expression, place: str, columns: Mapping[str, Tensor], y: Tensor
) -> tuple[Array, Array]:
    """What the function would have to be at one place for y to be exact (rows,), and the slope of the form there.

    Newton's method from the smooth value, in each row: one step where the form is linear in the place. A row in which
    a step makes it worse keeps what it had, to first order.
    """
    known = {**columns, **{name: torch.full_like(y, value) for name, value in found.constants.items()}}
    known |= {other: torch.from_numpy(values.copy()) for other, values in found.values.items()}
    value, slope, left = found.values[place].copy(), found.slopes[place].copy(), found.residual.copy()
    for _ in range(_NEWTON):
        with np.errstate(all="ignore"):
            new = value + left / slope
        known[place] = torch.from_numpy(new)
        at_new, slopes = derivatives(form, [place], known)
        new_left = (y - at_new).numpy()
        better = np.isfinite(new) & np.isfinite(new_left) & (np.abs(new_left) < np.abs(left))
        if not better.any():
            break
        value, left = np.where(better, new, value), np.where(better, new_left, left)
        slope = np.where(better, slopes[0].numpy(), slope)
    with np.errstate(all="ignore"):
        last = value + left / slope
    return np.where(np.isfinite(last), last, value), np.where(np.isfinite(slope), slope, 0.0)
