"""Reductions: what the data alone say about how variables enter, so that a law is looked for in fewer of them.

Four steps, each a section below. A smooth surface through the data knows the slopes of y, and how well y is predicted.
The slopes suggest symmetries: directions in which slots move together while y only scales or shifts. A symmetry makes a
reduced problem with fewer slots, and is taken if y is predicted as well from these. At last the heads search the
problems with the fewest slots. The surface is no law, and none of this needs operators.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows
from symenum.core.target import Target
from symenum.expressions import Constant, Expression, Units, Variable, apply, simplify
from symenum.expressions.algebra import Powers, Sum, as_sum, multiplied_powers, power_product, powers_of
from symenum.expressions.candidate import Candidate
from symenum.fitting.linear import Array
from symenum.heads.response import Data, make_data

__all__ = [
    "MIN_ROWS",
    "SURFACE_ROWS",
    "Chart",
    "Reduced",
    "Surface",
    "Symmetry",
    "best_surface",
    "degree_of",
    "fit_surface",
    "furthest_reductions",
    "may_be_reduced",
    "reduce_by",
    "reductions",
    "symmetries",
]


_INNER = "inner_of_y"  # the name that stands for y' in a law for y
_STEEPEST = 300.0  # of |log y| as predicted: e^300 = 1e130, whose square is finite
_MAX_LEVERAGE = 0.99  # share of a row in its own prediction; beyond it, the prediction without the row has no digits
_DAMPING = 1e3  # y² as a weight of log|y| is kept within this factor of its median
# Sizes s_i of a symmetry by the number of slots that take part: exponents of laws are 1, 2, 3 and their ratios.
_DIRECTION_SIZES = {1: (1,), 2: (1, 2, 3), 3: (1, 2)}
_MAX_MEMBERS = max(_DIRECTION_SIZES)  # slots that take part in a symmetry
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_TERMS = 240  # of the polynomial of a surface
_ROWS_PER_TERM = 5  # rows for each term of a surface
MIN_ROWS = _ROWS_PER_TERM * math.comb(2 + 2, 2)  # a surface of degree 2 in two slots has 6 terms
_MAX_DEGREE = 10  # of the polynomial of a surface
SURFACE_ROWS = 3000  # rows that surfaces are fitted to; with 1,000 more is left of random laws (benchmarks/settings.py)
_MAX_SYMMETRY_DEGREE = 6  # of |c|, the degree of a symmetry
_TRIALS = 8  # symmetries of each number of slots that are put to the test
_SUGGESTED = 0.5  # relative misfit of a symmetry in the slopes, up to which it is tested: noise blurs slopes
_CLEAR = 0.1  # relative misfit in the slopes, below which a symmetry is tested in all charts
_STANDARD_ERRORS = 2.0  # of the difference of two losses: within them a surface is as good as the best so far
_MIN_SLACK, _MAX_SLACK = 0.05, 0.4  # bounds of that allowance, in units of the best loss: other slots, other misfit
_NOTHING_MISSED = 1e-7  # of the variance of y: a surface that misses less is as good as any
_MAX_MISSED = 0.5  # of the variance of y: a surface that misses more says nothing
_REDUCTIONS_SEARCHED = 2  # the last reductions that are searched: the last may be a false one

# A smooth surface: a polynomial of the slots, or of their logarithms, for y or for log|y|. What it misses of y, each
# row predicted from the others, is noise and misfit together, so that two surfaces compare whatever the noise is.


@dataclass(frozen=True)
class Chart:
    """The coordinates of a surface: whether slots above zero are replaced by their logarithms, and y by log|y|."""

    log_slots: bool
    log_y: bool


@dataclass(frozen=True)
class Surface:
    """`missed` (rows,): y less its prediction from the other rows; `values` (rows,); `slopes` ∂y/∂x (slots, rows).

    `loss`: the weighted mean square of `missed`. All float64.
    """

    chart: Chart
    missed: Tensor
    values: Tensor
    slopes: Tensor
    loss: float


def degree_of(slots: int, rows: int) -> int:
    """The largest degree of a polynomial in the slots that has rows enough; 0 or 1 makes no useful surface."""
    max_terms = min(_MAX_TERMS, rows // _ROWS_PER_TERM)
    degree = 0
    while degree < _MAX_DEGREE and math.comb(slots + degree + 1, slots) <= max_terms:
        degree += 1
    return degree


def may_be_reduced(slots: int, rows: int) -> bool:
    """Whether so many rows make a surface in so many slots."""
    return slots > 1 and rows >= MIN_ROWS and degree_of(slots, min(rows, SURFACE_ROWS)) > 1


def best_surface(X: Tensor, y: Tensor, weight: Tensor, budget: Budget = NO_LIMIT) -> Surface | None:
    """The surface that predicts y (rows,) best, of all charts that the data allow; X (slots, rows), all float64."""
    found = [fit_surface(X, y, weight, chart, budget) for chart in _charts(X, y)]
    return min((surface for surface in found if surface is not None), key=lambda surface: surface.loss, default=None)


def _charts(X: Tensor, y: Tensor) -> Iterator[Chart]:
    one_sign = bool((y > 0).all() or (y < 0).all())
    for log_slots in (False, True) if bool((X > 0).all(dim=1).any()) else (False,):
        for log_y in (False, True) if one_sign else (False,):
            yield Chart(log_slots, log_y)


def fit_surface(X: Tensor, y: Tensor, weight: Tensor, chart: Chart, budget: Budget = NO_LIMIT) -> Surface | None:
    """The surface of this chart; None where the rows are too few for degree 2, or y has no logarithm."""
    budget.check()
    slots, rows = X.shape
    degree = degree_of(slots, rows)
    if degree < 2 or (chart.log_y and not bool((y > 0).all() or (y < 0).all())):
        return None
    logs = (X > 0).all(dim=1) & chart.log_slots
    coordinates = torch.where(logs[:, None], X.clamp_min(torch.finfo(X.dtype).tiny).log(), X)
    low, high = coordinates.amin(dim=1, keepdim=True), coordinates.amax(dim=1, keepdim=True)
    if not bool((high > low).all()):
        return None
    half = (high - low) / 2
    basis = _Basis.of((coordinates - low) / half - 1, degree)
    t, root = y, weight.sqrt()
    if chart.log_y:
        square = y.square()
        middle = square.median()
        t, root = y.abs().log(), (weight * square.clamp(middle / _DAMPING, middle * _DAMPING)).sqrt()
    A = basis.columns()
    Q, R = torch.linalg.qr(A * root[:, None])
    diagonal = R.diagonal().abs()
    independent = diagonal > EXACTNESS.flat * diagonal.max()  # of the columns before it
    if not bool(independent.all()):
        A = A[:, independent]
        Q, R = torch.linalg.qr(A * root[:, None])
    coefficients = torch.zeros(len(independent), dtype=X.dtype)
    coefficients[independent] = torch.linalg.solve_triangular(R, (Q.T @ (t * root))[:, None], upper=True)[:, 0]
    fitted = A @ coefficients[independent]
    leverage = Q.square().sum(dim=1).clamp_max(_MAX_LEVERAGE)
    predicted = t - (t - fitted) / (1 - leverage)
    slopes = basis.slopes(coefficients) / half
    if chart.log_y:
        sign = y.sign()
        predicted, fitted = (sign * values.clamp(-_STEEPEST, _STEEPEST).exp() for values in (predicted, fitted))
        slopes = slopes * fitted
    slopes = torch.where(logs[:, None], slopes / X, slopes)
    missed = y - predicted
    return Surface(chart, missed, fitted, slopes, float((missed.square() * weight).sum()))


@dataclass(frozen=True)
class _Basis:
    """Products of Chebyshev polynomials: `powers` (terms, slots), `value` and `slope` (degree + 1, slots, rows)."""

    powers: Tensor
    value: Tensor
    slope: Tensor

    @staticmethod
    def of(u: Tensor, degree: int) -> _Basis:
        """On coordinates u (slots, rows) in [-1, 1], by total degree."""
        value, slope = [torch.ones_like(u), u], [torch.zeros_like(u), torch.ones_like(u)]
        for _ in range(2, degree + 1):
            value.append(2 * u * value[-1] - value[-2])
            slope.append(2 * value[-2] + 2 * u * slope[-1] - slope[-2])
        return _Basis(torch.tensor(list(_powers(len(u), degree))), torch.stack(value), torch.stack(slope))

    def columns(self, slope_of: int | None = None) -> Tensor:
        """(rows, terms); with `slope_of`, their derivatives by that coordinate."""
        slots, rows = self.value.shape[1:]
        product = torch.ones(len(self.powers), rows, dtype=self.value.dtype)
        for slot in range(slots):
            table = self.slope if slot == slope_of else self.value
            product *= table[self.powers[:, slot], slot]
        return product.T

    def slopes(self, coefficients: Tensor) -> Tensor:
        """(slots, rows), by the coordinates in [-1, 1]."""
        return torch.stack([self.columns(slot) @ coefficients for slot in range(self.value.shape[1])])


def _powers(slots: int, degree: int) -> Iterator[tuple[int, ...]]:
    if slots == 0:
        yield ()
        return
    for first in range(degree + 1):
        for rest in _powers(slots - 1, degree - first):
            yield (first, *rest)


# Symmetries of y: directions in which a few slots can move together while y only scales, or shifts, with them.
#
# Scaling: x_i → λ^s_i·x_i makes y → λ^c·y, so that y = x_k^(c/s_k)·g(invariants). A slot alone is a power factor; two
# make a product or quotient; with more it is dimensional analysis without units. Translation: x_i → x_i + s_i·λ makes
# y → y + c·λ: differences and sums. Both show in the slopes of a surface: the misfit of a direction is the size of
# Σ s_i·x_i·∂y/∂x_i - c·y (or Σ s_i·∂y/∂x_i - c) relative to that of its parts.


@dataclass(frozen=True)
class Symmetry:
    """The slots that take part, their whole numbers s, the degree c, and the relative misfit in a surface's slopes."""

    scaling: bool
    members: tuple[int, ...]
    direction: tuple[int, ...]
    degree: Fraction
    misfit: float = 0.0

    def __str__(self) -> str:
        moves = ", ".join(f"{place}: {step}" for place, step in zip(self.members, self.direction, strict=True))
        return f"{'scaling' if self.scaling else 'translation'} {{{moves}}}, degree {self.degree}"


def symmetries(surface: Surface, X: Tensor, weight: Tensor, members: int, budget: Budget = NO_LIMIT) -> list[Symmetry]:
    """Symmetries of so many `members` of the slots X (slots, rows), the best first; the best two of each set and kind.

    The misfit of larger whole numbers s counts more: near a symmetry there is always one of larger numbers.
    """
    found: list[Symmetry] = []
    for scaling in (True, False):
        along = surface.slopes * X if scaling else surface.slopes
        by = surface.values if scaling else torch.ones_like(surface.values)
        columns = torch.cat([along, by[None]]) * weight.sqrt()
        gram = columns @ columns.T
        if not bool(torch.isfinite(gram).all()):  # slopes by a variable of size 1e-160: they tell nothing
            continue
        usable = (X != 0).all(dim=1) if scaling else torch.ones(len(X), dtype=torch.bool)
        slots = torch.nonzero(usable).flatten().tolist()
        budget.check()
        chosen = np.array(list(itertools.combinations(slots, members)), dtype=np.int64).reshape(-1, members)
        found += _best_directions(gram.numpy(), scaling, chosen)
    return sorted(found, key=_rank)


def _rank(symmetry: Symmetry) -> float:
    return symmetry.misfit * (1 + sum(map(abs, symmetry.direction)) - len(symmetry.members))


def _directions(members: int) -> Iterator[tuple[int, ...]]:
    """The directions s: whole numbers without a common divisor; of s and -s the one whose first number is positive."""
    sizes = _DIRECTION_SIZES[members]
    signed = [size * sign for size in sizes for sign in (1, -1)]
    for first in sizes:
        for rest in itertools.product(signed, repeat=members - 1):
            if math.gcd(first, *rest) == 1:
                yield (first, *rest)


def _best_directions(gram: Array, scaling: bool, chosen: NDArray[np.int64]) -> list[Symmetry]:
    """The best two directions, each with its degree, of each of the sets of slots `chosen` (c, members) int64.

    `gram` (slots + 1, slots + 1): inner products of the slopes along each slot and, last, of what the degree scales. A
    degree is a multiple of 1/2 for scaling, a whole number for translation of one slot.
    """
    directions = np.array(list(_directions(chosen.shape[1])))  # (d, members)
    along = gram[-1, chosen] @ directions.T  # (c, d)
    norm = float(gram[-1, -1])
    degree = np.zeros_like(along)
    if norm > 0 and (scaling or chosen.shape[1] == 1):
        parts = 2 if scaling else 1
        degree = np.round(parts * (along / norm).clip(-_MAX_SYMMETRY_DEGREE, _MAX_SYMMETRY_DEGREE)) / parts
    inside = gram[chosen[:, :, None], chosen[:, None, :]]  # (c, members, members)
    square = np.einsum("di,cij,dj->cd", directions, inside, directions) - 2 * degree * along + degree**2 * norm
    size = gram.diagonal()[chosen] @ directions.T**2 + degree**2 * norm
    misfit = np.sqrt(square.clip(0) / np.where(size > 0, size, np.inf))
    rank = misfit * (1 + np.abs(directions).sum(axis=1) - directions.shape[1])
    return [
        Symmetry(
            scaling,
            tuple(chosen[at].tolist()),
            tuple(directions[best].tolist()),
            Fraction(degree[at, best]),
            float(misfit[at, best]),
        )
        for at, order in enumerate(np.argsort(rank, axis=1, kind="stable")[:, :2])
        for best in order
    ]


# A reduced problem: fewer slots, made of the old ones, a y with its factors and shifts taken out, and the way back.
# Weights are those of y times (dy/dy')², so that a loss of the reduced problem is one of y.


@dataclass(frozen=True)
class Reduced:
    """`slots` in the stand-ins of `root`, with `values` (slots, rows), and y' (rows,).

    y = outer(factor · y'), and `scale` (rows,) is dy/dy'.
    """

    root: Data
    slots: tuple[Expression, ...]
    values: Tensor
    y: Tensor
    scale: Tensor
    factor: Powers
    outer: Callable[[Expression], Expression]
    spreads: bool = False  # whether a sum that is found for y' is also tried with the factor in each of its terms

    @staticmethod
    def of(data: Data) -> Reduced:
        """The problem with all slots, nothing reduced yet."""
        values = torch.stack([data.evaluate(slot) for slot in data.stand_ins])
        y = data.target.y
        return Reduced(data, data.stand_ins, values, y, torch.ones_like(y), {}, lambda inner: inner)

    @property
    def weight(self) -> Tensor:
        """(rows,), summing to 1."""
        weight = self.root.target.weight * (self.scale / self.scale.abs().max()).square()
        return weight / weight.sum()

    def data(self) -> Data:
        """As the heads take it; candidates on it are expressions in the stand-ins of the root."""
        target = Target(self.y, self.weight)
        return make_data(
            self.slots, self.values, target, len(self.root.scan_rows), self.root.seed, units=self._inner_units()
        )

    def _inner_units(self) -> Units | None:
        """The units of y' in place of y; None where units are not known."""
        units = self.root.units
        if units is None:
            return None
        inner = units.wanted(self.back(Variable(_INNER)), _INNER)
        assert inner is not None  # `has_units` is asked first
        return replace(units, target=inner)

    @property
    def has_units(self) -> bool:
        """Whether slots and y' have dimensions, as far as units tell: a length plus a time has none."""
        units = self.root.units
        if units is None:
            return True
        if not all(units.consistent(slot) for slot in self.slots):
            return False
        return units.wanted(self.back(Variable(_INNER)), _INNER) is not None

    def back(self, inner: Expression) -> Expression:
        """From an expression for y' to one for y."""
        whole = apply("mul", power_product(self.factor), inner) if self.factor else inner
        return simplify(self.outer(whole))

    def candidate(self, found: Candidate) -> Candidate | None:
        """What was found for y', judged on y."""
        return self.root.candidate(self.back(found.expression))

    def candidates(self, found: Candidate) -> list[Candidate]:
        """What was found for y', judged on y; where that is a sum, also with the factor in each of its terms."""
        forms = [self.back(found.expression)]
        total = as_sum(simplify(found.expression))
        if self.spreads and self.factor and len(total.terms) + bool(total.number) > 1:
            forms.append(self._spread(total))
        judged = [self.root.candidate(form) for form in dict.fromkeys(forms)]
        return [candidate for candidate in judged if candidate is not None]

    def _spread(self, total: Sum) -> Expression:
        """factor·(a + b) as factor·a + factor·b, each term simplified: m*v**2*(1 + u**2/v**2) is m*v**2 + m*u**2."""
        factor = power_product(self.factor)
        parts = [(added, apply("mul", factor, term)) for added, term in total.terms]
        if total.number:
            parts.append((total.number > 0, apply("mul", Constant(abs(total.number)), factor)))
        whole = replace(total, terms=tuple((added, simplify(part)) for added, part in parts), number=0).close()
        return simplify(self.outer(whole))


def reduce_by(problem: Reduced, symmetry: Symmetry, pivot: int | None = None) -> Reduced | None:
    """The problem in the invariants of the symmetry; None where a number is not finite, or no slot would stay.

    The slot of the number `pivot` goes, and the other members of the symmetry are joined with it.
    """
    pivot = _simplest_pivot(symmetry) if pivot is None else pivot
    step = symmetry.direction[symmetry.members.index(pivot)]
    degree = symmetry.degree / step
    slots, values = list(problem.slots), list(problem.values)
    for place, other in zip(symmetry.members, symmetry.direction, strict=True):
        if place != pivot:
            powers = _invariant(step, other)
            slots[place], values[place] = _joined(problem, symmetry.scaling, (place, pivot), powers)
    del slots[pivot], values[pivot]
    if not slots or len(set(slots)) < len(slots):
        return None
    base, column = problem.slots[pivot], problem.values[pivot]
    y, scale, factor, outer = problem.y, problem.scale, problem.factor, problem.outer
    if degree and symmetry.scaling:
        power = column ** float(degree)
        y, scale = y / power, scale * power
        factor = multiplied_powers((factor, Fraction(1)), (powers_of(base), degree))
    elif degree:
        y, factor, outer = y - float(degree) * column, {}, _shifted(problem, float(degree), base)
    reduced = Reduced(problem.root, tuple(slots), torch.stack(values), y, scale, factor, outer)
    all_finite = all(bool(torch.isfinite(part).all()) for part in (reduced.values, y, scale, reduced.weight))
    return reduced if all_finite and bool((y != y[0]).any()) else None


def _simplest_pivot(symmetry: Symmetry) -> int:
    """The one whose exponents come out smallest and whole."""

    def cost(at: int) -> tuple[int, int, int]:
        step = symmetry.direction[at]
        return (symmetry.degree / step).denominator, abs(step), at

    return symmetry.members[min(range(len(symmetry.members)), key=cost)]


def _invariant(step: int, other: int) -> tuple[int, int]:
    """Exponents of a slot and of the pivot that the symmetry leaves alone, the slot's above zero."""
    ratio = Fraction(-other, step)
    return ratio.denominator, ratio.numerator


def _joined(
    problem: Reduced, scaling: bool, places: tuple[int, int], powers: tuple[int, int]
) -> tuple[Expression, Tensor]:
    """The product of two slots to these powers, or their sum with these factors."""
    slots = [problem.slots[place] for place in places]
    columns = [problem.values[place] for place in places]
    if scaling:
        parts = [(powers_of(slot), Fraction(power)) for slot, power in zip(slots, powers, strict=True)]
        return power_product(multiplied_powers(*parts)), columns[0] ** powers[0] * columns[1] ** powers[1]
    first, second = (
        slot if abs(power) == 1 else apply("mul", Constant(abs(power)), slot)
        for slot, power in zip(slots, powers, strict=True)
    )
    return apply("add" if powers[1] > 0 else "sub", first, second), powers[0] * columns[0] + powers[1] * columns[1]


def _shifted(problem: Reduced, degree: float, base: Expression) -> Callable[[Expression], Expression]:
    size = base if abs(degree) == 1 else apply("mul", Constant(abs(degree)), base)
    return lambda inner: problem.back(apply("add" if degree > 0 else "sub", inner, size))


# Reductions one after another: a symmetry that the slopes suggest is taken if y is predicted as well without it. What a
# surface misses of y decides, never the slopes alone: a symmetry is taken unless the data, with their noise, refute it.


def reductions(data: Data, budget: Budget) -> Iterator[Reduced]:
    """The data reduced by one symmetry, by two, and so on, as long as there are any."""
    if data.target.rows < MIN_ROWS:
        return
    reducer = _Reducer(Reduced.of(data))
    while not budget.over():
        further = reducer.step(budget)
        if further is None:
            return
        yield further


class _Reducer:
    """The problem as reduced so far, and what the best surface on the way missed of y on each row."""

    def __init__(self, problem: Reduced) -> None:
        root = problem.root
        self._rows = sample_rows(root.target.rows, SURFACE_ROWS, root.seed, "rows that surfaces are fitted to")
        self._problem = problem
        self._missed: Tensor | None = None

    def step(self, budget: Budget) -> Reduced | None:
        """The problem with one more reduction, if the data allow one."""
        X, y, weight = self._part(self._problem)
        surface = best_surface(X, y, weight, budget)
        if surface is None or surface.loss > _MAX_MISSED * _variance(y, weight):
            return None
        self._note(self._problem, surface)
        for members in range(1, min(_MAX_MEMBERS, len(X)) + 1):
            suggested = [one for one in symmetries(surface, X, weight, members, budget) if one.misfit < _SUGGESTED]
            for symmetry in suggested[:_TRIALS]:
                if budget.over():
                    return None
                reduced = self._tested(symmetry, surface, budget)
                if reduced is not None:
                    self._problem = reduced
                    return reduced
        return None

    def _part(self, problem: Reduced) -> tuple[Tensor, Tensor, Tensor]:
        weight = problem.weight[self._rows]
        return problem.values[:, self._rows], problem.y[self._rows], weight / weight.sum()

    def _tested(self, symmetry: Symmetry, surface: Surface, budget: Budget) -> Reduced | None:
        reduced = reduce_by(self._problem, symmetry)
        if reduced is None or not reduced.has_units:
            return None
        part = self._part(reduced)
        found = fit_surface(*part, surface.chart, budget)
        if found is not None and self._as_good(self._in_units_of_y(reduced, found)):
            return reduced
        found = best_surface(*part, budget) if symmetry.misfit < _CLEAR else None
        if found is None:
            return None
        missed = self._in_units_of_y(reduced, found)
        y = reduced.root.target.y[self._rows]
        nothing = self._loss(missed) < _NOTHING_MISSED * _variance(y, self._row_weight)
        return reduced if nothing or self._as_good(missed) else None

    def _in_units_of_y(self, problem: Reduced, surface: Surface) -> Tensor:
        return surface.missed * problem.scale[self._rows]

    def _note(self, problem: Reduced, surface: Surface) -> None:
        missed = self._in_units_of_y(problem, surface)
        if self._missed is None or self._loss(missed) < self._loss(self._missed):
            self._missed = missed

    def _loss(self, missed: Tensor) -> float:
        return float((missed.square() * self._row_weight).sum())

    @property
    def _row_weight(self) -> Tensor:
        weight = self._problem.root.target.weight[self._rows]
        return weight / weight.sum()

    def _as_good(self, missed: Tensor) -> bool:
        """Whether `missed` (rows,) has no larger loss than the best so far, up to the error of the difference."""
        assert self._missed is not None  # noted before any test
        best = self._loss(self._missed)
        difference = (missed.square() - self._missed.square()) * self._row_weight * len(missed)
        error = float(difference.std()) / math.sqrt(len(missed))
        allowed = min(max(_STANDARD_ERRORS * error, _MIN_SLACK * best), _MAX_SLACK * best)
        return float(difference.mean()) <= allowed


def _variance(y: Tensor, weight: Tensor) -> float:
    return float(((y - (y * weight).sum()).square() * weight).sum())


def furthest_reductions(data: Data, budget: Budget) -> tuple[Reduced, ...]:
    """The problems that are worth a search: those with the fewest slots, the fewest first.

    CutShortError where the budget is over before all reductions are found.
    """
    found = list(reductions(data, budget))
    budget.check()
    return tuple(found[: -_REDUCTIONS_SEARCHED - 1 : -1])
