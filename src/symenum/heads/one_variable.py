"""One variable: ratios of polynomials in one function of one slot, y = z^q · (a + b·f)/(1 + d·f + e·f²), f = u(c·z^p).

z > 0 is the only slot. u is any operator that is defined everywhere, is no power and is not homogeneous (c would be a
plain factor): exp, sin, cos, tanh, or a user's own with such traits. All outer constants are linear after multiplying
out; c is the one unknown that is not: a grid over it, and then a search between the neighbours of the best grid
points. Planck's law, tanh, logistic growth, squares of sines and damped factors are members. Sums of two different
functions are not for this head, but for `inner_constants`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Constant, Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import plain_number, recognise, scaled
from symenum.fitting.linear import least_squares_of_each
from symenum.heads.factor_families import functions_that_are_no_power
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.rational import fit_ratio
from symenum.heads.response import ONE, Response
from symenum.operators import Operator
from symenum.operators.traits import Role

__all__ = ["OneVariable"]

_GOLDEN_SECTION = (math.sqrt(5) - 1) / 2  # of an interval, for both inner points of the search
_STEPS = 75  # of golden section: 0.618^75 = 2e-16 of the first interval, the last digit of c
_STEEPEST = 200.0  # largest |c·v| inside a function without a period: e^200 and its square are finite
_DENOMINATOR_DEGREES = (0, 1, 2)  # in f; a law of a lower degree ends the search
# The exponents of z: p inside f, and q before the ratio.
_INNER_POWERS = tuple(sign * Fraction(size) for size in ("1", "2", "1/2") for sign in (1, -1))  # p
_OUTER_POWERS = (Fraction(0), *(sign * Fraction(size) for size in ("1", "2", "3", "1/2") for sign in (1, -1)))  # q
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_ROWS = 200  # for the grid and the search of c; the fits in the end are on all rows
_MIN_ROWS = 12  # five unknowns and as many rows again that judge them
_TURNS = tuple(float(turn) for turn in range(1, 41))  # upper ends of the intervals of c·(range of v), u with a period
_GROWTHS = tuple(0.1 * 1.5**i for i in range(14))  # the same for u without a period
_STARTS_PER_FAMILY = 3  # intervals of c: the right family may start far behind the finer grid of a wrong one
_ROUGH_ROWS, _ROUGH_STEPS = 50, 12  # rows and steps of golden section that show which starts lead somewhere
_POLISHED = 48  # starts that are followed to the last digit of c


@dataclass(frozen=True)
class _Family:
    """z^outer · (a + b·f)/(1 + …) with f = function(c·z^inner)."""

    function: Operator
    inner: Fraction
    outer: Fraction

    @property
    def cost(self) -> int:
        """About the complexity of c·f and of each power of z: a power and a product or quotient count 3."""
        return 1 + self.function.complexity + 3 * (self.inner != 1) + 3 * (self.outer != 0)


@dataclass(frozen=True)
class _Batch:
    """m families, each with an interval of c: v = z^inner and `before` = z^outer (m, rows), the ends (m,), float64.

    `function` (m,) int64: the place of each family's function in `functions`.
    """

    functions: tuple[Operator, ...]
    families: tuple[_Family, ...]
    function: Tensor
    v: Tensor
    before: Tensor
    low: Tensor
    high: Tensor

    def take(self, which: Tensor) -> _Batch:
        """The families of these indices (int64)."""
        families = tuple(self.families[i] for i in which.tolist())
        rest = (part[which] for part in (self.function, self.v, self.before, self.low, self.high))
        return _Batch(self.functions, families, *rest)

    def at(self, rows: Tensor) -> _Batch:
        """On the rows of these indices (int64)."""
        return replace(self, v=self.v[:, rows], before=self.before[:, rows])

    def values(self, c: Tensor) -> Tensor:
        """f (m, rows) for the constants c (m,)."""
        out = torch.empty_like(self.v)
        for place in torch.unique(self.function).tolist():
            mine = self.function == place
            argument = c[mine, None] * self.v[mine]
            if not self.functions[place].periodic:
                argument = argument.clamp(-_STEEPEST, _STEEPEST)
            out[mine] = self.functions[place].function(argument)
        return out


@dataclass(frozen=True)
class OneVariable:
    """The head of this family; `operators` says which functions u there are."""

    operators: tuple[Operator, ...]
    name: str = "one variable"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        if len(data.stand_ins) != 1 or data.target.rows < _MIN_ROWS:
            return []
        rows = data.scan_rows
        if len(rows) > _MAX_ROWS:
            rows = rows[torch.linspace(0, len(rows) - 1, _MAX_ROWS).long()]
        z = data.evaluate(data.stand_ins[0])[rows]
        if not bool((z > 0).all()):
            return []
        grid = _grid(z, _inner_functions(self.operators))
        sample = _Sample.of(response, rows)
        out: list[Candidate] = []
        for degree in _DENOMINATOR_DEGREES:
            if grid is None or budget.over() or any(data.is_law(candidate) for candidate in out):
                break
            out += _scan(response, sample, grid, degree, k, budget)
        return out


def _inner_functions(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The functions u for f = u(c·v), those without a period first."""
    functions = [u for u in functions_that_are_no_power(operators) if u.entire and u.traits.degree is None]
    return tuple(sorted(functions, key=lambda u: u.periodic))


def _scan(response: Response, sample: _Sample, grid: _Batch, degree: int, k: int, budget: Budget) -> list[Candidate]:
    """Grid, sharpening and fits for one degree of the denominator."""
    some = torch.linspace(0, len(sample.t) - 1, min(_ROUGH_ROWS, len(sample.t))).long()
    rough, thin = sample.at(some), grid.at(some)
    starts = _best_per_family(rough.residuals(thin, (grid.low * grid.high).sqrt(), degree), grid.families)
    _, rough_residual = rough.polish(thin.take(starts), degree, budget, _ROUGH_STEPS)
    best = torch.argsort(rough_residual, stable=True)[:_POLISHED]
    chosen = grid.take(starts[best[torch.isfinite(rough_residual[best])]])
    if not len(chosen.families):
        return []
    c, residual = sample.polish(chosen, degree, budget, _STEPS)
    cost = torch.tensor([family.cost for family in chosen.families])

    def fit(at: int) -> Iterator[Candidate | None]:
        yield from _fits(response, chosen.families[at], degree, float(c[at]), float(residual[at]))

    return fit_chosen(response, choose(residual, cost, k, rounding_of(response)), fit, budget)


def _best_per_family(residual: Tensor, families: tuple[_Family, ...]) -> Tensor:
    """Indices of the best finite residuals (m,), `_STARTS_PER_FAMILY` of each family."""
    taken: Counter[_Family] = Counter()
    found: list[int] = []
    for at in torch.argsort(residual, stable=True).tolist():
        if taken[families[at]] < _STARTS_PER_FAMILY and math.isfinite(residual[at]):
            taken[families[at]] += 1
            found.append(at)
    return torch.tensor(found, dtype=torch.int64)


def _grid(z: Tensor, functions: tuple[Operator, ...]) -> _Batch | None:
    """All families on z (rows,), each with all intervals of c between two neighbours of the grid; None: no family."""
    families: list[_Family] = []
    v, before, low, high = [], [], [], []
    for function, inner, outer in itertools.product(functions, _INNER_POWERS, _OUTER_POWERS):
        column, power = z ** float(inner), z ** float(outer)
        width = float(column.max() - column.min())
        if not width > 0:  # powers of very small or large numbers may all be 0, or infinite
            continue
        ends = _TURNS if function.periodic else _GROWTHS
        for first, last in zip((ends[0] / 2, *ends[:-1]), ends, strict=True):
            families.append(_Family(function, inner, outer))
            v.append(column)
            before.append(power)
            low.append(first / width)
            high.append(last / width)
    if not families:
        return None
    places = torch.tensor([functions.index(family.function) for family in families])
    bounds = (torch.tensor(ends, dtype=torch.float64) for ends in (low, high))
    batch = _Batch(functions, tuple(families), places, torch.stack(v), torch.stack(before), *bounds)
    fine = torch.isfinite(batch.v).all(dim=1) & torch.isfinite(batch.before).all(dim=1) & torch.isfinite(batch.high)
    return batch.take(torch.nonzero(fine).flatten())


@dataclass(frozen=True)
class _Sample:
    """t and the roots of the row weights (rows,) on some rows; `size`: the root mean square of t off its mean."""

    t: Tensor
    root: Tensor
    size: float

    @staticmethod
    def of(response: Response, rows: Tensor) -> _Sample:
        weight = response.weight[rows] / response.weight[rows].sum()
        t = response.t[rows]
        size = float(((t - (t * weight).sum()).square() * weight).sum().sqrt())
        return _Sample(t, weight.sqrt(), max(size, torch.finfo(t.dtype).tiny))

    def at(self, rows: Tensor) -> _Sample:
        """On the rows of these indices (int64)."""
        return _Sample(self.t[rows], self.root[rows], self.size)

    def polish(self, batch: _Batch, degree: int, budget: Budget, steps: int) -> tuple[Tensor, Tensor]:
        """c (m,) by golden section, from one interval below to one above, and the residuals (m,) there.

        No method with derivatives: at the c of an exact law the residual has a corner, no flat bottom.
        """
        gap = batch.high - batch.low
        low, high = batch.low - gap, batch.high + gap
        low = torch.where(low > 0, low, batch.low / 8)
        for _ in range(steps):
            if budget.over():
                break
            part = _GOLDEN_SECTION * (high - low)
            first, second = (self.residuals(batch, c, degree) for c in (high - part, low + part))
            lower = first <= second  # whether the minimum lies below the upper inner point
            low, high = torch.where(lower, low, high - part), torch.where(lower, low + part, high)
        middle = (low + high) / 2
        return middle, self.residuals(batch, middle, degree)

    def residuals(self, batch: _Batch, c: Tensor, degree: int) -> Tensor:
        """Relative to `size` (m,), for the constants c (m,); infinite where the denominator changes its sign."""
        f = batch.values(c)
        below = [f**power for power in range(1, degree + 1)]
        columns = torch.stack([batch.before, batch.before * f, *(-self.t * power for power in below)], dim=1)
        fits = least_squares_of_each(columns * self.root, self.t * self.root)
        coefficients, fine = fits.coefficients, fits.rank > EXACTNESS.rank
        denominator = torch.ones_like(f)
        for place, power in enumerate(below):
            denominator = denominator + coefficients[:, place + 2, None] * power
        fitted = batch.before * (coefficients[:, 0, None] + coefficients[:, 1, None] * f) / denominator
        missed = ((self.t - fitted) * self.root).norm(dim=1) / self.size
        fine &= ((denominator > 0).all(dim=1) | (denominator < 0).all(dim=1)) & torch.isfinite(missed)
        return torch.where(fine, missed, torch.full_like(missed, float("inf")))


def _fits(response: Response, family: _Family, degree: int, c: float, residual: float) -> Iterator[Candidate | None]:
    """The law with c recognised, where it is near a nice number, and with c as it is."""
    slot = response.data.stand_ins[0]
    nice = recognise(c, residual * c, exact=residual < EXACTNESS.scanned, zero=False, polished=False)
    v, before = (_power(slot, exponent) for exponent in (family.inner, family.outer))
    for number in (nice, plain_number(c)):
        if number is None:
            continue
        f = apply(family.function, scaled(number, v))
        if family.function.role is Role.EXPONENTIAL and degree:
            # exp(c·v)/exp(c·v) overflows far away: growth stands in the denominator alone, or it is written as decay.
            decay = apply(family.function, apply("neg", scaled(number, v)))
            candidates = [
                _fit(response, f, before, degree, f_above=False),
                _fit(response, decay, before, degree),
            ]
        else:
            candidates = [_fit(response, f, before, degree)]
        yield from candidates
        if any(candidate is not None and response.data.is_law(candidate) for candidate in candidates):
            return


def _fit(
    response: Response, f: Expression, before: Expression, degree: int, *, f_above: bool = True
) -> Candidate | None:
    """The fit of before·(a + b·f) over a polynomial in f; without `f_above` b is 0."""
    above = [before, f if before == ONE else apply("mul", before, f)] if f_above else [before]
    below = [f, apply("pow", f, Constant(2))][:degree]
    return fit_ratio(response, above, below) if below else response.fit(above)


def _power(slot: Expression, exponent: Fraction) -> Expression:
    if exponent == 0:
        return ONE
    size = abs(exponent)
    if size == 1:
        whole = slot
    else:
        whole = apply("sqrt", slot) if size == Fraction(1, 2) else apply("pow", slot, Constant(int(size)))
    return whole if exponent > 0 else apply("inv", whole)
