"""Products of powers: y = c · ∏ x_i^p_i · ∏ f_j^q_j with zero, one or two features f_j.

A regression of log|y| on the logarithms of the slots and features: power laws, and factors such as sqrt(1 - v²/c²),
sin θ, log(a/b) or (m₁ + m₂). Exponents are snapped to small rationals; whole ones are written as whole powers, so that
negative bases keep their sign; the sign of c comes from y. `fit_products` does the same for factors that other heads
have found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.dimensions import DIMENSIONLESS, SAME_NUMBER, solve_exponents
from symenum.core.exactness import EPSILON, EXACTNESS, is_exact
from symenum.expressions import Expression, apply
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, nice_number, plain_number, recognise, scaled
from symenum.fitting.linear import Array, least_squares
from symenum.heads.exponents import fraction, raised
from symenum.heads.features import Features
from symenum.heads.head import LAST_FITS, choose
from symenum.heads.response import Response
from symenum.operators import OPERATORS
from symenum.scans.pairs import best_pairs, best_single
from symenum.scans.projection import orthonormal

__all__ = ["ProductOfPowers", "damped", "fit_products"]

_STEEPEST = 300.0  # of |f| in exp(f): e^300 = 1e130, whose square is finite
_NEGLIGIBLE_WEIGHT = 1e-9  # rows below this part of the largest weight do not decide whether y/product is constant
_DAMPING = 1e3  # y² as a weight is kept within this factor of its median
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_SHORT = 32  # the first feature of a pair comes from `cap`/32 of them: those of a law are seldom both deep
_WIDTH_OF_PAIRS = 4096  # pairs that a scan hands to the choice


@dataclass(frozen=True)
class _Power:
    """One factor: base**exponent."""

    base: Expression
    values: Tensor
    exponent: Number


@dataclass(frozen=True)
class ProductOfPowers:
    """c · ∏ x_i^p_i · ∏ f_j^q_j with `features` (0, 1 or 2) factors f_j.

    With `exponentials` one factor may also be exp(q·f): on logarithms it is the feature itself. `cap` and `width`: the
    features that are scanned, and the single ones that a scan hands to the choice. `device`: see `AllHeads`.
    """

    features: int = 0
    exponentials: bool = False
    cap: int = 20_000
    width: int = 400
    device: str = "cpu"

    @property
    def name(self) -> str:
        return f"product of powers, {self.features} features"

    def scan(self, features: Features, response: Response, k: int, budget: Budget) -> list[Candidate]:
        """See `Head`. Empty if y has a zero: it has no logarithm there."""
        if bool((response.t == 0).any()):
            return []
        usable = _usable(response)
        if len(response.t) < len(usable) + self.features + 2:
            return []
        sets = [()] if self.features == 0 else self._best(features, response, usable, k, budget)
        return fit_products(response, sets, k, budget)

    def _best(
        self, features: Features, response: Response, usable: Sequence[Expression], k: int, budget: Budget
    ) -> list[tuple[Expression, ...]]:
        data = response.data
        t, root = response.scanned()
        if bool((response.weight <= 0).any()):
            return []
        weight = root.square() * damped(t)
        root = (weight / weight.sum()).sqrt()
        logs = [torch.ones_like(t), *(data.evaluate(slot)[data.scan_rows].abs().log() for slot in usable)]
        background = orthonormal(torch.stack(logs) * root)
        L = features.values.abs().log()
        finite = torch.nonzero(torch.isfinite(L).all(dim=1)).flatten()
        chosen = Features(L[finite], features.complexity[finite], features.number[finite], features.table)
        log_t = t.abs().log() * root
        if self.features == 1:
            return self._singles(features, chosen, log_t, root, background, k)
        chosen = chosen.up_to_affine(budget)  # logarithms that differ by a·l + b: powers and multiples of one base
        chosen = chosen.take(torch.arange(min(self.cap, len(chosen))))
        V = chosen.values * root
        short = V[: max(1, self.cap // _SHORT)]
        pairs = best_pairs(short, log_t, background, V, width=_WIDTH_OF_PAIRS, budget=budget, device=self.device)
        choice = choose(pairs.residual, chosen.complexity[pairs.i] + chosen.complexity[pairs.j], k)
        return [tuple(chosen.expression(int(side[at])) for side in (pairs.i, pairs.j)) for at in choice.indices]

    def _singles(
        self, features: Features, logs: Features, log_t: Tensor, root: Tensor, background: Tensor, k: int
    ) -> list[tuple[Expression, ...]]:
        """The best factors f, and exp(f) with `exponentials`; the values of `logs` are logarithms of the features."""
        rows, complexity = logs.values, logs.complexity
        moderate = torch.empty(0, dtype=torch.int64)
        if self.exponentials:
            fine = features.values.abs().amax(dim=1) < _STEEPEST
            if features.dimension is not None:  # exp takes a plain number
                fine &= features.dimension.abs() < SAME_NUMBER
            moderate = torch.nonzero(fine).flatten()
            rows = torch.cat([rows, features.values[moderate]])
            complexity = torch.cat([complexity, features.complexity[moderate] + OPERATORS["exp"].complexity])
        which, residual = best_single(rows * root, log_t, background, self.width)
        sets: list[tuple[Expression, ...]] = []
        for at in choose(residual, complexity[which], k).indices:
            index = int(which[at]) - len(logs)
            if index < 0:
                sets.append((logs.expression(index + len(logs)),))
            else:
                sets.append((apply("exp", features.expression(int(moderate[index]))),))
        return sets


def fit_products(response: Response, sets: Sequence[tuple[Expression, ...]], k: int, budget: Budget) -> list[Candidate]:
    """Products of powers of the slots and of each set of further factors, until k of them are laws; t has no zero.

    The best sets come first; when the time is over, the first `LAST_FITS` of them are still fitted.
    """
    usable = _usable(response)
    drafts: list[_Draft] = []
    for place, chosen in enumerate(sets):
        if place >= LAST_FITS and budget.over():
            break
        both = (_draft(response, usable, chosen), _draft_by_units(response, usable, chosen))
        drafts += [draft for draft in both if draft is not None]
    # The simplest first; fractional exponents restrict the domain, so their number counts before all else.
    drafts.sort(key=lambda draft: (draft.fractional, len(draft.factors), draft.product.complexity))
    out: list[Candidate] = []
    laws = 0
    for draft in drafts:
        found = draft.candidates(response)
        out += found
        laws += any(response.data.is_law(candidate) for candidate in found)
        if laws >= k:
            break
    return out


def _usable(response: Response) -> list[Expression]:
    """The slots that have a logarithm."""
    return [slot for slot in response.data.stand_ins if bool((response.data.evaluate(slot) != 0).all())]


@dataclass(frozen=True)
class _Draft:
    """A product of powers, its values (rows,), and the number of its exponents that are not whole."""

    factors: tuple[_Power, ...]
    product: Expression
    values: Tensor
    fractional: int

    def candidates(self, response: Response) -> list[Candidate]:
        """The product times its constant: fitted, recognised, or the root of one that is recognised (sqrt(1.23·x))."""
        considered = response.weight > _NEGLIGIBLE_WEIGHT * response.weight.max()
        ratio = (response.t / self.values)[considered].numpy()
        constants = [*_constants(ratio), *_fitted_constant(response, self.values)]
        found = [response.candidate(scaled(number, self.product)) for number in constants]
        return [candidate for candidate in found if candidate is not None]


def _draft(response: Response, usable: Sequence[Expression], chosen: tuple[Expression, ...]) -> _Draft | None:
    """The product with exponents by least squares on the logarithms, snapped where they are near small rationals."""
    data = response.data
    bases = [*usable, *chosen]
    values = [data.evaluate(base) for base in bases]
    A = torch.stack([torch.ones_like(response.t), *(value.abs().log() for value in values)], dim=1)
    root = (response.weight * damped(response.t)).sqrt()
    log_t = response.t.abs().log()
    if not all(bool(torch.isfinite(one).all()) for one in (A, root, log_t)) or not bool(root.any()):
        return None
    fit = least_squares((A * root[:, None]).numpy(), (log_t * root).numpy())
    residual = (log_t - A @ torch.from_numpy(fit.coefficients)).numpy()
    size = float(log_t.abs().max())
    sigma = max(float(np.sqrt(np.average(residual**2, weights=root.square().numpy()))), 2 * EPSILON * size + EPSILON)
    exact = sigma <= EXACTNESS.logarithm
    scale = root / root.square().mean().sqrt()  # of mean square 1: sensitivities are then errors per unit of sigma
    plain = least_squares((A * scale[:, None]).numpy(), (log_t * scale).numpy())
    factors: list[_Power] = []
    for base, value, exponent, error in zip(bases, values, fit.coefficients[1:], plain.sensitivity[1:], strict=True):
        number = recognise(float(exponent), sigma * float(error), exact=exact, rational=True, expected=True)
        if number is None and exact:
            number = recognise(float(exponent), sigma * float(error), exact=True)  # 0.426, or a multiple of π
        number = number or plain_number(float(exponent))
        if number.value != 0:
            factors.append(_Power(base, value, number))
    return _assemble(factors) if factors else None


def _draft_by_units(response: Response, usable: Sequence[Expression], chosen: tuple[Expression, ...]) -> _Draft | None:
    """The product with the exponents that units ask for, of the chosen factors before any slot; None where units are
    not known.

    Under noise the logarithms of small values of y are far off, and with them exponents that are fitted.
    """
    units = response.data.units
    if units is None or units.free or not chosen or response.dimension is None:
        return None
    bases = [*chosen, *usable]
    if not all(map(units.consistent, bases)):
        return None
    dimensions = [units.of(base) or DIMENSIONLESS for base in bases]
    exponents = solve_exponents(dimensions, response.dimension)
    if exponents is None or not any(exponents[: len(chosen)]):
        return None
    factors = [
        _Power(base, response.data.evaluate(base), nice)
        for base, exponent in zip(bases, exponents, strict=True)
        if exponent and (nice := recognise(float(exponent), 0.0, exact=True, rational=True, expected=True)) is not None
    ]
    return _assemble(factors) if factors else None


def _assemble(factors: Sequence[_Power]) -> _Draft | None:
    """The product as numerator over denominator; a fractional power of a base with negative values is one of |base|.

    None where the values are not finite, or zero on a row.
    """
    values = torch.ones_like(factors[0].values)
    above: list[Expression] = []
    below: list[Expression] = []
    fractional = 0
    for factor in factors:
        base, column, exponent = factor.base, factor.values, factor.exponent
        whole = exponent.value == int(exponent.value)
        fractional += not whole
        if not whole and bool((column < 0).any()):
            base, column = apply("abs", base), column.abs()
        values = values * column**exponent.value
        (above if exponent.value > 0 else below).append(raised(base, exponent))
    if not bool(torch.isfinite(values).all()) or bool((values == 0).any()):
        return None
    return _Draft(tuple(factors), fraction(above, below), values, fractional)


def _constants(ratio: Array) -> list[Number]:
    """The constant, if the ratio of y and the product (rows,) is one: a nice number, the root of one, or as it is."""
    middle = float(np.median(ratio))
    error = max(float(np.abs(ratio - middle).max()), 2 * EPSILON * abs(middle))
    # `error` is the largest of all rows: for some hundred rows ten times their root mean square bounds it.
    if not error <= 10 * EXACTNESS.logarithm * abs(middle):
        return []
    number = nice_number(middle, error, zero=False)
    if number is not None:
        return [number]
    square = nice_number(middle * middle, 2 * abs(middle) * error, zero=False)
    if square is not None:
        return [Number(middle, apply("sqrt", square.magnitude), None, square.cost + 2)]
    return [plain_number(middle)]


def _fitted_constant(response: Response, values: Tensor) -> list[Number]:
    """The constant of least loss on t itself; none where that fit is exact, and `_constants` has the constant."""
    square = float((response.weight * values.square()).sum())
    product = float((response.weight * values * response.t).sum())
    if not (0 < square < float("inf")) or product == 0 or not abs(product) < float("inf"):
        return []
    best = product / square
    missed = response.t - best * values
    mean_square = float((response.weight * response.t.square()).sum())
    if is_exact(float((response.weight * missed.square()).sum()), mean_square, EXACTNESS.scanned):
        return []
    return [plain_number(best)]


def damped(t: Tensor) -> Tensor:
    """Row weights t² (rows,) over their median, kept within 1/1000 and 1000 so that rows near zero still count.

    d(log y) = dy/y: with weights times y², a residual on log|y| is to first order one on y.
    """
    exponent = math.frexp(float(t.abs().median()))[1]
    square = (t / 2.0 ** (exponent - 1)).square()  # in a unit of its own: y near 1e300 has no square
    middle = float(square.median())
    return square.clamp(middle * (1 / _DAMPING), middle * _DAMPING) / middle if middle > 0 else torch.ones_like(t)
