"""One variable left: y = z^q · (a + b·f)/(1 + d·f + e·f²) with f = exp(c·v), sin(c·v) or cos(c·v) and v a power of z.

All outer constants are linear after multiplying out, and c is the one unknown that is not: a grid over it, and then a
search between the neighbours of the best grid points. Planck's law, tanh, logistic growth, squares of sines and
damped factors are members of this family.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
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
from symenum.fitting.many_starts import KINDS, feature_values
from symenum.heads.features import Features
from symenum.heads.head import choose, fit_chosen, rounding_of
from symenum.heads.rational import fit_ratio
from symenum.heads.response import Response
from symenum.operators import Operator, get_operator
from symenum.operators.traits import Role

__all__ = ["OneVariable"]

ONE = Constant(1)
_ROWS = 200
_FEWEST_ROWS = 12
_KINDS = ("exp", "sin", "cos")
_BASES = tuple(Fraction(n, d) for n, d in ((1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2)))
_FACTORS = tuple(
    Fraction(n, d) for n, d in ((0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (3, 1), (-3, 1), (1, 2), (-1, 2))
)
_DEGREES = (0, 1, 2)  # of the denominator in f; a law of a lower one ends the search
_TURNS = tuple(1.0 * i for i in range(1, 41))  # of c·v over the range of v
_GROWTHS = tuple(0.1 * 1.5**i for i in range(14))
_PER_FAMILY = 3  # intervals of c: the right family may start far behind the finer grid of a wrong one
_ROUGH_ROWS, _ROUGH_STEPS = 50, 12  # show which starts lead somewhere
_POLISHED = 48
_STEPS = 75  # of golden section, to the last digit of c
_SECTION = 0.6180339887498949


@dataclass(frozen=True)
class _Family:
    """A kind of f, and the powers of z in it and before it."""

    kind: str
    base: Fraction
    factor: Fraction

    @property
    def cost(self) -> int:
        return 4 + 3 * (self.base != 1) + 3 * (self.factor != 0)


@dataclass(frozen=True)
class _Batch:
    """Families, row by row: the kind of f (m,) int64, v and the factor before it (m, rows), and constants between."""

    families: tuple[_Family, ...]
    kind: Tensor
    v: Tensor
    before: Tensor
    low: Tensor
    high: Tensor

    def take(self, which: Tensor) -> _Batch:
        """Some of them (int64)."""
        families = tuple(self.families[i] for i in which.tolist())
        rest = (part[which] for part in (self.kind, self.v, self.before, self.low, self.high))
        return _Batch(families, *rest)

    def at(self, rows: Tensor) -> _Batch:
        """On some of the rows (int64)."""
        return replace(self, v=self.v[:, rows], before=self.before[:, rows])


@dataclass(frozen=True)
class OneVariable:
    """See above; on problems with one slot only, above zero."""

    operators: tuple[Operator, ...]
    name: str = "one variable"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`; the features play no part."""
        data = response.data
        if len(data.stand_ins) != 1 or data.target.rows < _FEWEST_ROWS:
            return []
        rows = data.scan_rows
        if len(rows) > _ROWS:
            rows = rows[torch.linspace(0, len(rows) - 1, _ROWS).long()]
        z = data.evaluate(data.stand_ins[0])[rows]
        if not bool((z > 0).all()):
            return []
        grid = _grid(z, [kind for kind in _KINDS if get_operator(kind) in self.operators])
        sample = _Sample.of(response, rows)
        out: list[Candidate] = []
        for degree in _DEGREES:
            if grid is None or budget.over() or any(data.is_law(candidate) for candidate in out):
                break
            out += _scan(response, sample, grid, degree, k, budget)
        return out


def _scan(response: Response, sample: _Sample, grid: _Batch, degree: int, k: int, budget: Budget) -> list[Candidate]:
    """Grid, sharpening and fits for one degree of the denominator."""
    some = torch.linspace(0, len(sample.t) - 1, min(_ROUGH_ROWS, len(sample.t))).long()
    rough, thin = sample.at(some), grid.at(some)
    starts = _best_per_family(rough.residuals(thin, (grid.low * grid.high).sqrt(), degree), grid.families)
    _, left = rough.polish(thin.take(starts), degree, budget, _ROUGH_STEPS)
    best = torch.argsort(left, stable=True)[:_POLISHED]
    chosen = grid.take(starts[best[torch.isfinite(left[best])]])
    if not len(chosen.families):
        return []
    c, residual = sample.polish(chosen, degree, budget, _STEPS)
    cost = torch.tensor([family.cost for family in chosen.families])

    def fit(at: int) -> Iterator[Candidate | None]:
        yield from _fits(response, chosen.families[at], degree, float(c[at]), float(residual[at]))

    return fit_chosen(response, choose(residual, cost, k, rounding_of(response)), fit, budget)


def _best_per_family(residual: Tensor, families: tuple[_Family, ...]) -> Tensor:
    """Indices of the best few finite residuals (m,) of each family."""
    taken: Counter[_Family] = Counter()
    found: list[int] = []
    for at in torch.argsort(residual, stable=True).tolist():
        if taken[families[at]] < _PER_FAMILY and math.isfinite(residual[at]):
            taken[families[at]] += 1
            found.append(at)
    return torch.tensor(found, dtype=torch.int64)


def _grid(z: Tensor, kinds: list[str]) -> _Batch | None:
    """All families on z (rows,) with all intervals of c between points of a grid, in units of the range of v."""
    families: list[_Family] = []
    v, before, low, high = [], [], [], []
    for kind, base, factor in itertools.product(kinds, _BASES, _FACTORS):
        column, power = z ** float(base), z ** float(factor)
        width = float(column.max() - column.min())
        if not width > 0:  # powers of very small or large numbers may all be 0, or infinite
            continue
        ends = _TURNS if get_operator(kind).periodic else _GROWTHS
        for first, last in zip((ends[0] / 2, *ends[:-1]), ends, strict=True):
            families.append(_Family(kind, base, factor))
            v.append(column)
            before.append(power)
            low.append(first / width)
            high.append(last / width)
    if not families:
        return None
    kind_numbers = torch.tensor([KINDS.index(family.kind) for family in families])
    bounds = (torch.tensor(ends, dtype=torch.float64) for ends in (low, high))
    batch = _Batch(tuple(families), kind_numbers, torch.stack(v), torch.stack(before), *bounds)
    fine = torch.isfinite(batch.v).all(dim=1) & torch.isfinite(batch.before).all(dim=1) & torch.isfinite(batch.high)
    return batch.take(torch.nonzero(fine).flatten())


@dataclass(frozen=True)
class _Sample:
    """t and the roots of the row weights (rows,) of a part of the rows; `size`: of t without its mean."""

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
        """On some of the rows (int64)."""
        return _Sample(self.t[rows], self.root[rows], self.size)

    def polish(self, batch: _Batch, degree: int, budget: Budget, steps: int) -> tuple[Tensor, Tensor]:
        """c (m,) by golden section, and what is left there: the residual has a corner at an exact c, no flat bottom."""
        gap = batch.high - batch.low
        low, high = batch.low - gap, batch.high + gap
        low = torch.where(low > 0, low, batch.low / 8)
        for _ in range(steps):
            if budget.over():
                break
            part = _SECTION * (high - low)
            first, second = (self.residuals(batch, c, degree) for c in (high - part, low + part))
            left = first <= second
            low, high = torch.where(left, low, high - part), torch.where(left, low + part, high)
        middle = (low + high) / 2
        return middle, self.residuals(batch, middle, degree)

    def residuals(self, batch: _Batch, c: Tensor, degree: int) -> Tensor:
        """Relative (m,), for constants c (m,); infinite where the denominator changes its sign."""
        f, _ = feature_values(batch.kind, batch.v, c)
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
    """With c recognised, where it is near a nice number, and as it is."""
    slot = response.data.stand_ins[0]
    nice = recognise(c, residual * c, exact=residual < EXACTNESS.scanned, zero=False, polished=False)
    v, before = (_power(slot, exponent) for exponent in (family.base, family.factor))
    for number in (nice, plain_number(c)):
        if number is None:
            continue
        candidates = _written(response, apply(family.kind, scaled(number, v)), before, degree)
        if get_operator(family.kind).role is Role.EXPONENTIAL and degree:
            # exp(c·v)/exp(c·v) breaks down far away: growth stands in a denominator alone, or it is decay.
            decay = apply("exp", apply("neg", scaled(number, v)))
            candidates = [*_written(response, apply("exp", scaled(number, v)), before, degree, plain=True)]
            candidates += _written(response, decay, before, degree)
        yield from candidates
        if any(candidate is not None and response.data.is_law(candidate) for candidate in candidates):
            return


def _written(
    response: Response, f: Expression, before: Expression, degree: int, *, plain: bool = False
) -> list[Candidate | None]:
    """The fit with this f; `plain`: with none of it in the numerator."""
    above = [before] if plain else [before, f if before == ONE else apply("mul", before, f)]
    below = [f, apply("pow", f, Constant(2))][:degree]
    return [fit_ratio(response, above, below) if below else response.fit(above)]


def _power(slot: Expression, exponent: Fraction) -> Expression:
    if exponent == 0:
        return ONE
    size = abs(exponent)
    if size == 1:
        whole = slot
    else:
        whole = apply("sqrt", slot) if size == Fraction(1, 2) else apply("pow", slot, Constant(int(size)))
    return whole if exponent > 0 else apply("inv", whole)
