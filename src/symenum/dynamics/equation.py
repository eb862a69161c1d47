"""One equation of motion: its rows, how a law is fitted to them and judged, and what noise alone would leave.

The search for laws is in `symenum.dynamics.discover`, the choice of one in `symenum.dynamics.selection`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.dynamics.forms import Form
from symenum.expressions import Constant, Expression, evaluate, simplify, variables
from symenum.expressions.algebra import as_product, as_sum
from symenum.expressions.candidate import Candidate
from symenum.fitting import Number, linear_combination, nice_number, plain_number, snap
from symenum.fitting.linear import least_squares
from symenum.front import Front
from symenum.selection import description_length

__all__ = ["EXACT", "Equation", "outer_terms"]

Array = npt.NDArray[np.float64]
ONE = Constant(1)

EXACT = (10 * EXACTNESS.noise_free) ** 2
"""1e-20: `numerics` of an equation whose rows are samples as they are: rounding of the tenth digit."""
_SIGMAS = 3.0  # standard errors of chi-square: a law within them of 1 leaves no more than noise
_FEW_DIGITS = (1, 2, 3)  # significant digits that people write coefficients in
_SAME_NUMBER = 1e-9  # relative: a number of few digits is recognised (1/4, π) if it is this near

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_EXPLAINED = 1e-10  # part of the variance that a law may leave as rounding and error of quadrature
NUMERICS = 1e-8  # part of the variance that smoothing, and sums in place of integrals, may leave without any noise
_NOISE_FREE_DIGITS = 4  # significant digits of coefficients of data without noise


@dataclass(frozen=True)
class Equation:
    """Rows of the left side of a `state` (its number) and the motion that its law is a function of.

    `columns` (points,) by name, float64: the motion. `moving`: which of them is which derivative of which state.
    """

    form: Form
    state: int
    columns: Mapping[str, Array]
    moving: Mapping[str, tuple[int, int]]  # (state, order of the derivative)
    numerics: float = NUMERICS  # part of the variance that the true law leaves without any noise
    _normalised: dict[Expression, Array] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def left_side(self) -> Array:
        """The left side (rows,): the derivative, or its averages."""
        return self.form.left_side(self.state)

    @cached_property
    def target(self) -> Target:
        y = torch.from_numpy(np.ascontiguousarray(self.left_side))
        return Target(y, torch.full((len(y),), 1 / len(y), dtype=torch.float64))

    @property
    def variance(self) -> float:
        return float(np.var(self.left_side))

    def residual(self, expression: Expression) -> Array:
        """Left side minus the average of the law (rows,); not finite where the law is not."""
        with np.errstate(all="ignore"):
            return self.left_side - self.averages([expression])[:, 0]

    def averages(self, terms: Sequence[Expression]) -> Array:
        """The averages (rows, terms)."""
        with np.errstate(all="ignore"):
            values = np.stack([np.asarray(evaluate(term, self.columns)) for term in terms], axis=1)
            return self.form.average(values)

    def judge(self, expression: Expression) -> Candidate | None:
        """The law with its loss, the mean square of the residual; None where it is not finite."""
        loss = float(np.mean(self.residual(expression) ** 2))
        return Candidate(expression, loss) if loss < np.inf else None

    def fit(self, terms: Sequence[Expression], averages: Array | None = None) -> list[Candidate]:
        """The sum of the terms with its best coefficients: as nice numbers, as they are, and in one to three digits.

        Noise in the states moves coefficients by more than their standard errors. Those in few digits are what people
        would write, fit a little worse, and are simpler where a factor becomes 1. `averages` (rows, terms): those of
        the terms, where they are known. Nothing comes back where one of them is not finite.
        """
        A = self.averages(terms) if averages is None else averages
        if not np.isfinite(A).all():
            return []
        fit = least_squares(A, self.left_side)
        plain = [plain_number(float(value)) for value in fit.coefficients]
        if fit.rms**2 <= self.numerics * self.variance:
            rounded = self._sum(self._without_noise(A, fit.coefficients), terms, A)
            if rounded.loss <= self.numerics * self.variance:
                return [rounded]
        in_digits = [[_in_digits(value, digits) for value in fit.coefficients] for digits in _FEW_DIGITS]
        return [self._sum(numbers, terms, A) for numbers in (snap(A, self.left_side).numbers, plain, *in_digits)]

    def fit_plainly(self, terms: Sequence[Expression], averages: Array) -> list[Candidate]:
        """The sum of the terms with its best coefficients as they are; nothing where an average is not finite."""
        if not np.isfinite(averages).all():
            return []
        numbers = [plain_number(float(value)) for value in least_squares(averages, self.left_side).coefficients]
        return [self._sum(numbers, terms, averages)]

    def _sum(self, numbers: Sequence[Number], terms: Sequence[Expression], averages: Array) -> Candidate:
        """A sum of terms, judged by their averages: the average of a sum is the sum of averages."""
        residual = self.left_side - averages @ np.array([number.value for number in numbers])
        return Candidate(linear_combination(numbers, terms), float(np.mean(residual**2)))

    def _without_noise(self, A: Array, coefficients: Array) -> list[Number]:
        """Coefficients in four digits, negligible ones as 0, for data without noise: their errors are numerical."""
        size = np.sqrt(self.variance)
        numbers = []
        for value, column in zip(coefficients, A.T, strict=True):
            share = abs(value) * float(np.sqrt(np.mean(column**2)))
            numbers.append(_in_digits(value if share > np.sqrt(self.numerics) * size else 0.0, _NOISE_FREE_DIGITS))
        return numbers

    def refit(self, expression: Expression) -> list[Candidate]:
        """A law from elsewhere, its outer coefficients fitted to these rows; its inner ones stay."""
        terms = outer_terms(expression)
        found = [candidate] if (candidate := self.judge(expression)) is not None else []
        if not terms or len(terms) >= len(self.left_side) // 2:
            return found
        return [*found, *self.fit(terms), *self.fit([*terms, ONE])]

    def normalised(self, expression: Expression) -> Array:
        """Squared residuals (rows,) in units of what noise alone would leave if the expression were the law.

        Noise of the states enters a law through its slopes, so a law with steep slopes may leave more. To first order
        in the noise this is the square of a total least squares residual.
        """
        if expression not in self._normalised:
            variance = self.form.noise_variance(self.state, self._slopes(expression))
            self._normalised[expression] = self.residual(expression) ** 2 / (variance + self.numerics * self.variance)
        return self._normalised[expression]

    def chi_square(self, expression: Expression) -> float:
        """The mean of `normalised`: about 1 for a law that noise keeps from fitting better."""
        return float(np.mean(self.normalised(expression)))

    def bits(self, front: Front) -> tuple[float, ...]:
        """The description length, in bits, of each law of a front and of its residuals.

        Residuals count as no smaller than what noise alone would leave: a law that leaves less is fitted to the errors
        of these samples, and gains nothing by it.
        """
        rows = self.form.independent
        return tuple(
            0.5 * rows * math.log2(max(1.0, self.chi_square(entry.expression)))
            + description_length(entry.expression, rows)
            for entry in front
        )

    def is_explained(self, candidate: Candidate) -> bool:
        """Whether noise, or rounding, accounts for all that the law leaves."""
        if candidate.loss <= min(_EXPLAINED, self.numerics) * self.variance:
            return True
        return self.chi_square(candidate.expression) <= 1 + _SIGMAS * math.sqrt(2 / self.form.independent)

    def _slopes(self, expression: Expression) -> dict[tuple[int, int], Array]:
        """The derivatives (points,) of the expression by what is measured; 0 where they do not exist."""
        inside = [name for name in variables(expression) if name in self.moving]
        columns = {name: torch.from_numpy(column).requires_grad_() for name, column in self.columns.items()}
        value = evaluate(expression, columns).sum()
        if not inside or not value.requires_grad:
            return {}
        slopes = torch.autograd.grad(value, [columns[name] for name in inside], allow_unused=True)
        return {
            self.moving[name]: np.nan_to_num(slope.numpy(), nan=0.0, posinf=0.0, neginf=0.0)
            for name, slope in zip(inside, slopes, strict=True)
            if slope is not None
        }


def _in_digits(value: float, digits: int) -> Number:
    """The value rounded to so many significant digits, as a nice number where it is one."""
    rounded = float(f"{value:.{digits}g}")
    return nice_number(rounded, _SAME_NUMBER * abs(rounded)) or plain_number(rounded)


def outer_terms(expression: Expression) -> list[Expression]:
    """The terms of a sum without their coefficients, each once; numbers are left out.

    >>> from symenum.expressions import parse
    >>> print(*outer_terms(parse("3*x - sin(2*x)*y/7 + 5")), sep=", ")
    x, sin(2*x)*y
    """
    found: dict[Expression, None] = {}
    for _, term in as_sum(simplify(expression)).terms:
        parts = as_product(term)
        if not variables(term):
            continue
        bare = type(parts)(1, 1, tuple(f for f in parts.factors if variables(f)), parts.divisors)
        found[bare.close()] = None
    return list(found)
