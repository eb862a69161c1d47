"""Reductions: what the data alone say about how variables enter, so that a law is looked for in fewer of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import some_rows
from symenum.core.target import Target
from symenum.expressions import Constant, Expression, apply, simplify
from symenum.expressions.algebra import Powers, merged, power_product, powers_of
from symenum.expressions.candidate import Candidate
from symenum.heads.response import Data, make_data

__all__ = [
    "FEWEST_ROWS",
    "Chart",
    "Reduced",
    "Solve",
    "Surface",
    "Symmetry",
    "best_surface",
    "degree_of",
    "fit_surface",
    "reduce_by",
    "reductions",
    "search_reduced",
    "symmetries",
]


# --------------------------------------------------------------------------------------------------------------------
# A smooth surface through the data: a polynomial of the slots, or of their logarithms, for y or for log|y|.
#
# It is no law, but it knows two things that tell how variables enter one: how well y can be predicted from these
# slots (each row without itself), and the slopes of y. What it misses is noise and misfit together, so a comparison
# of two surfaces is fair whatever the noise is.


_MOST_TERMS = 240
_ROWS_PER_TERM = 5
_MOST_DEGREE = 10
_OWN_SHARE = 0.99  # of a row in its own prediction; beyond it, leaving it out says nothing
_CUT = 1e3  # of y² as a weight, above and below its median
_STEEPEST = 300.0


@dataclass(frozen=True)
class Chart:
    """Whether slots above zero are taken by their logarithms, and whether y is."""

    log_slots: bool
    log_y: bool


@dataclass(frozen=True)
class Surface:
    """`missed` (rows,): y less its prediction from the other rows; `values` (rows,); `slopes` (slots, rows), by x."""

    chart: Chart
    missed: Tensor
    values: Tensor
    slopes: Tensor
    loss: float


def degree_of(slots: int, rows: int) -> int:
    """The largest degree that has rows enough; below 2 there is none worth a look."""
    most = min(_MOST_TERMS, rows // _ROWS_PER_TERM)
    degree = 0
    while degree < _MOST_DEGREE and math.comb(slots + degree + 1, slots) <= most:
        degree += 1
    return degree


def best_surface(X: Tensor, y: Tensor, weight: Tensor, budget: Budget = NO_LIMIT) -> Surface | None:
    """The one that predicts y best of those that the data allow; X (slots, rows), all float64."""
    found = [fit_surface(X, y, weight, chart, budget) for chart in _charts(X, y)]
    return min((surface for surface in found if surface is not None), key=lambda surface: surface.loss, default=None)


def _charts(X: Tensor, y: Tensor) -> Iterator[Chart]:
    one_sign = bool((y > 0).all() or (y < 0).all())
    for log_slots in (False, True) if bool((X > 0).all(dim=1).any()) else (False,):
        for log_y in (False, True) if one_sign else (False,):
            yield Chart(log_slots, log_y)


def fit_surface(X: Tensor, y: Tensor, weight: Tensor, chart: Chart, budget: Budget = NO_LIMIT) -> Surface | None:
    """The polynomial of this chart; None where the rows are too few for degree 2, or y has no logarithm."""
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
        t, root = y.abs().log(), (weight * square.clamp(middle / _CUT, middle * _CUT)).sqrt()
    A = basis.columns()
    Q, R = torch.linalg.qr(A * root[:, None])
    diagonal = R.diagonal().abs()
    kept = diagonal > EXACTNESS.flat * diagonal.max()  # off those before it, another column does not vary
    if not bool(kept.all()):
        A = A[:, kept]
        Q, R = torch.linalg.qr(A * root[:, None])
    coefficients = torch.zeros(len(kept), dtype=X.dtype)
    coefficients[kept] = torch.linalg.solve_triangular(R, (Q.T @ (t * root))[:, None], upper=True)[:, 0]
    fitted = A @ coefficients[kept]
    own = Q.square().sum(dim=1).clamp_max(_OWN_SHARE)
    predicted = t - (t - fitted) / (1 - own)
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


# --------------------------------------------------------------------------------------------------------------------
# Symmetries of y: directions in which a few slots can move together while y only scales, or shifts, with them.
#
# Scaling: x_i → λ^s_i·x_i makes y → λ^c·y, so that y = x_k^(c/s_k)·g(invariants). A slot alone is a power factor; two
# make a product or quotient; with more it is dimensional analysis without units. Translation: x_i → x_i + s_i·λ makes
# y → y + c·λ: differences and sums. Both show in the slopes of a surface; the better a direction, the less is left of
# Σ s_i·x_i·∂y/∂x_i - c·y (or Σ s_i·∂y/∂x_i - c).


_ENTRIES = {1: (1,), 2: (1, 2, 3), 3: (1, 2)}  # sizes of s_i by the number of slots that take part
_MOST_SYMMETRY_DEGREE = 6


@dataclass(frozen=True)
class Symmetry:
    """The slots that take part, their whole numbers s, the degree c, and what is left of it, relative, on a surface."""

    scaling: bool
    members: tuple[int, ...]
    direction: tuple[int, ...]
    degree: Fraction
    left: float = 0.0

    def __str__(self) -> str:
        moves = ", ".join(f"{place}: {step}" for place, step in zip(self.members, self.direction, strict=True))
        return f"{'scaling' if self.scaling else 'translation'} {{{moves}}}, degree {self.degree}"


def symmetries(surface: Surface, X: Tensor, weight: Tensor, members: int, budget: Budget = NO_LIMIT) -> list[Symmetry]:
    """All of so many slots, X (slots, rows), the best first; of each set of slots and kind the best two.

    Whole numbers above 1 must be the better for it: near a symmetry there is always one of larger numbers.
    """
    found: list[Symmetry] = []
    for scaling in (True, False):
        along = surface.slopes * X if scaling else surface.slopes
        by = surface.values if scaling else torch.ones_like(surface.values)
        columns = torch.cat([along, by[None]]) * weight.sqrt()
        gram = columns @ columns.T
        usable = (X != 0).all(dim=1) if scaling else torch.ones(len(X), dtype=torch.bool)
        slots = torch.nonzero(usable).flatten().tolist()
        for chosen in itertools.combinations(slots, members):
            budget.check()
            ways = [_at(gram, scaling, chosen, direction) for direction in _directions(members)]
            found += sorted(ways, key=_rank)[:2]
    return sorted(found, key=_rank)


def _rank(symmetry: Symmetry) -> float:
    return symmetry.left * (1 + sum(map(abs, symmetry.direction)) - len(symmetry.members))


def _directions(members: int) -> Iterator[tuple[int, ...]]:
    """Whole vectors without a common divisor; of s and -s one."""
    sizes = _ENTRIES[members]
    signed = [size * sign for size in sizes for sign in (1, -1)]
    for first in sizes:
        for rest in itertools.product(signed, repeat=members - 1):
            if math.gcd(first, *rest) == 1:
                yield (first, *rest)


def _at(gram: Tensor, scaling: bool, members: tuple[int, ...], direction: tuple[int, ...]) -> Symmetry:
    """The direction with its degree: a multiple of 1/2 for scaling, a whole number for translation of one slot."""
    whole = torch.zeros(len(gram), dtype=gram.dtype)
    whole[list(members)] = torch.tensor(direction, dtype=gram.dtype)
    norm = float(gram[-1, -1])
    ratio = float(whole @ gram[-1]) / norm if norm > 0 else 0.0
    degree = Fraction(0)
    if scaling:
        degree = Fraction(round(2 * max(-_MOST_SYMMETRY_DEGREE, min(_MOST_SYMMETRY_DEGREE, ratio))), 2)
    elif len(members) == 1:
        degree = Fraction(round(max(-_MOST_SYMMETRY_DEGREE, min(_MOST_SYMMETRY_DEGREE, ratio))))
    whole[-1] = -float(degree)
    size = float(whole.square() @ gram.diagonal())
    left = float(whole @ gram @ whole)
    return Symmetry(scaling, members, direction, degree, math.sqrt(max(left, 0.0) / size) if size > 0 else 0.0)


# --------------------------------------------------------------------------------------------------------------------
# A reduced problem: fewer slots, made of the old ones, a y with its factors and shifts taken out, and the way back.
#
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

    @staticmethod
    def of(data: Data) -> Reduced:
        """Nothing reduced yet."""
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
        return make_data(self.slots, self.values, Target(self.y, self.weight), len(self.root.scan_rows), self.root.seed)

    def back(self, inner: Expression) -> Expression:
        """From an expression for y' to one for y."""
        whole = apply("mul", power_product(self.factor), inner) if self.factor else inner
        return simplify(self.outer(whole))

    def candidate(self, found: Candidate) -> Candidate | None:
        """What was found for y', judged on y."""
        return self.root.candidate(self.back(found.expression))


def reduce_by(problem: Reduced, symmetry: Symmetry, pivot: int | None = None) -> Reduced | None:
    """The problem in the invariants of the symmetry; None where a number is not finite, or no slot would stay.

    The slot of the number `pivot` goes, the others of the symmetry are joined with it.
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
        factor = merged((factor, Fraction(1)), (powers_of(base), degree))
    elif degree:
        y, factor, outer = y - float(degree) * column, {}, _shifted(problem, float(degree), base)
    reduced = Reduced(problem.root, tuple(slots), torch.stack(values), y, scale, factor, outer)
    fine = all(bool(torch.isfinite(part).all()) for part in (reduced.values, y, scale, reduced.weight))
    return reduced if fine and bool((y != y[0]).any()) else None


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
        return power_product(merged(*parts)), columns[0] ** powers[0] * columns[1] ** powers[1]
    first, second = (
        slot if abs(power) == 1 else apply("mul", Constant(abs(power)), slot)
        for slot, power in zip(slots, powers, strict=True)
    )
    return apply("add" if powers[1] > 0 else "sub", first, second), powers[0] * columns[0] + powers[1] * columns[1]


def _shifted(problem: Reduced, degree: float, base: Expression) -> Callable[[Expression], Expression]:
    size = base if abs(degree) == 1 else apply("mul", Constant(abs(degree)), base)
    return lambda inner: problem.back(apply("add" if degree > 0 else "sub", inner, size))


# --------------------------------------------------------------------------------------------------------------------
# Reductions one after another: a symmetry that the slopes suggest is taken if y is predicted as well without it.
#
# The judge is always what a surface misses of y, each row predicted from the others, never the slopes alone. So noise
# is accounted for: what the data cannot tell from a symmetry may be taken for one, what they can, not.


FEWEST_ROWS = 30
_ROWS = 1000  # a surface looks at no more
_TRIALS = 8  # symmetries of each size that are put to the test
_SUGGESTED = 0.5  # of a symmetry may be left in the slopes, which noise and misfit blur
_STANDARD_ERRORS = 2.0
_SLACK, _MOST_SLACK = 0.05, 0.4  # a surface of other slots misses another part of a smooth function
_CLEAR = 0.1  # with less left of it in the slopes, a symmetry is tested in all charts
_ALL = 1e-7  # of the variance: a surface that misses less has found all, and another need not equal it
_EXPLAINED = 0.5  # a surface that misses more of the variance of y says nothing
_MOST_MEMBERS = 3


def reductions(data: Data, budget: Budget) -> Iterator[Reduced]:
    """Ever further reductions of the data, as long as there are any."""
    if data.target.rows < FEWEST_ROWS:
        return
    looker = _Looker(Reduced.of(data))
    while not budget.over():
        further = looker.step(budget)
        if further is None:
            return
        yield further


class _Looker:
    """The problem as reduced so far, and the least that any surface has missed of y on the way."""

    def __init__(self, problem: Reduced) -> None:
        root = problem.root
        self._rows = some_rows(root.target.rows, _ROWS, root.seed, "rows that surfaces are fitted to")
        self._problem = problem
        self._missed: Tensor | None = None

    def step(self, budget: Budget) -> Reduced | None:
        """The problem with one more reduction, if the data allow one."""
        X, y, weight = self._part(self._problem)
        surface = best_surface(X, y, weight, budget)
        if surface is None or surface.loss > _EXPLAINED * _variance(y, weight):
            return None
        self._note(self._problem, surface)
        for members in range(1, min(_MOST_MEMBERS, len(X)) + 1):
            suggested = [one for one in symmetries(surface, X, weight, members, budget) if one.left < _SUGGESTED]
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
        if reduced is None:
            return None
        part = self._part(reduced)
        found = fit_surface(*part, surface.chart, budget)
        if found is not None and self._as_good(self._in_units_of_y(reduced, found)):
            return reduced
        found = best_surface(*part, budget) if symmetry.left < _CLEAR else None
        if found is None:
            return None
        missed = self._in_units_of_y(reduced, found)
        y = reduced.root.target.y[self._rows]
        return reduced if self._as_good(missed) or self._loss(missed) < _ALL * _variance(y, self._row_weight) else None

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
        """Whether it misses no more than the best so far, up to the error of that difference."""
        assert self._missed is not None  # noted before any test
        best = self._loss(self._missed)
        difference = (missed.square() - self._missed.square()) * self._row_weight * len(missed)
        error = float(difference.std()) / math.sqrt(len(missed))
        allowed = min(max(_STANDARD_ERRORS * error, _SLACK * best), _MOST_SLACK * best)
        return float(difference.mean()) <= allowed


def _variance(y: Tensor, weight: Tensor) -> float:
    return float(((y - (y * weight).sum()).square() * weight).sum())


# --------------------------------------------------------------------------------------------------------------------
# The search on reduced problems: the furthest reduction first, what is found there judged on y itself.


Solve = Callable[[Data, Budget], list[Candidate]]
_LEVELS = 2  # the last reduction may be a false one: then the problem before it is worth a look


def search_reduced(data: Data, solve: Solve, budget: Budget) -> list[Candidate]:
    """Candidates for y from laws that `solve` finds on the problems with the fewest slots."""
    found: list[Candidate] = []
    for problem in list(reductions(data, budget))[: -_LEVELS - 1 : -1]:
        for candidate in solve(problem.data(), budget):
            whole = problem.candidate(candidate)
            found += [] if whole is None else [whole]
        if budget.over() or any(data.is_law(candidate) for candidate in found):
            break
    return found
