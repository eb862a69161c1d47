"""How much work a slice of a stage is, told from the sizes of a problem before anything is built.

The unit is a second on two cores of the reference machine. Estimates decide in which order slices run, so they come
from sizes only and never from a clock: a search with a seed does the same on any machine. Most heads do two things:
they scan, which costs `seconds` for each of some `units`, and they fit a number of candidates, which on small data is
nearly all of their work. `benchmarks/moves.py` prints estimates beside measured times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from symenum.engine.layer import SymbolLayer
from symenum.heads.features import OUTPUTS_PER_COLUMN
from symenum.heads.sum_of_terms import MAX_TERMS
from symenum.operators import Kind, Operator
from symenum.operators.traits import Role

__all__ = ["Model", "Sizes", "Work"]

# Measured by benchmarks/moves.py, as are the factors in the table of stages.
_FIT, _FIT_PER_ROW = 2.5e-3, 5e-7  # seconds of a fit of a few terms, and for each row
_TERMS_OF_A_LONG_FIT = 16  # terms that double the seconds of a fit, which grow with their square
_DISTINCT_FIRST, _DISTINCT_SECOND = 0.8, 0.7  # shares of the outputs of a layer that are distinct and usable
_DISTINCT_UNARY = 0.8  # the same share of u(v) of all features
_FITS_OF_A_RATIO = 5  # least-squares fits of one ratio
_LEAST_FIT = 100_000  # multiplications that take as long as the overhead of a least-squares fit,
_TERM_OF_A_POLYNOMIAL = 90_000  # and those that take as long as the values of one term of a polynomial (65 µs)
# The limits of the heads themselves, whose work is estimated; a test compares them.
_MAX_COMPANIONS, _ROWS_PER_UNKNOWN = 64, 3  # of `heads.exponents`
_MAX_FUNCTION_SLOTS = 6  # of `scans.products`
_MAX_BASES, _FAMILY_PAIRS = 40, 3000  # of `heads.inner_constants`
_INNER = (Role.SINE, Role.COSINE, Role.EXPONENTIAL, Role.LOGARITHM)
_SCORES_AT_ONCE = 160_000_000  # products of four times rows, in one part of a beam: half a second, at most two
_VALUES_AT_ONCE = 30_000_000  # values of features (features times rows) that one slice scans for all responses


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem: slots, all rows, scanned rows, responses beside y, candidates that a head gives back.

    `max_columns`: of features of two layers; `max_outputs`: of a layer before duplicates are removed.
    """

    slots: int
    rows: int
    scanned: int
    responses: int
    k: int
    operators: tuple[Operator, ...]
    max_columns: int
    max_outputs: int

    @cached_property
    def outputs(self) -> int:
        """About how many outputs of the second layer there are before duplicates are removed."""
        at_most = min(self.max_outputs, OUTPUTS_PER_COLUMN * self.max_columns)
        return min(at_most, self._outputs(self._first_layer))

    @cached_property
    def features(self) -> int:
        """About how many features of two layers there are."""
        # The fewer the slots, the more functions of them are equal.
        distinct = _DISTINCT_SECOND * self.slots / (self.slots + 1)
        return min(self.max_columns, self._first_layer + int(distinct * self.outputs))

    @cached_property
    def extended(self) -> int:
        """About how many there are with u(v) of each."""
        more = min(self.max_outputs, self.unary * self.features)
        return min(5 * self.max_columns, self.features + int(_DISTINCT_UNARY * more))

    @property
    def parts_of_extended(self) -> int:
        """In how many parts these are scanned, so that none takes much more than a second."""
        return -(-self.extended * self.scanned // _VALUES_AT_ONCE)

    @cached_property
    def unary(self) -> int:
        """The number of unary operators."""
        return sum(operator.kind is Kind.UNARY for operator in self._different)

    def fits(self, count: float, terms: int = 2) -> float:
        """The seconds of `count` fits of sums of so many terms."""
        return count * (_FIT + _FIT_PER_ROW * self.rows) * (1 + (terms / _TERMS_OF_A_LONG_FIT) ** 2)

    def monomials(self, degree: int) -> int:
        """The number of terms of a full polynomial in the slots."""
        return math.comb(self.slots + degree, degree)

    def short_polynomials(self, max_degree: int, max_terms: int) -> int:
        """The number of full polynomials of degree 1, 2, … with so few terms."""
        return sum(self.monomials(degree) <= min(max_terms, self.rows) for degree in range(1, max_degree + 1))

    def polynomials(self, max_degree: int, max_terms: int) -> float:
        """Multiplications of the least-squares fits of full polynomials of degree 1, 2, …, and of the terms' values."""
        terms = [self.monomials(degree) for degree in range(1, max_degree + 1)]
        fitted = [count for count in terms if count <= min(max_terms, self.rows)]
        return sum(_TERM_OF_A_POLYNOMIAL * count + self.rows * count**2 for count in fitted)

    def ratios(self, max_degree: int, max_total: int) -> float:
        """The same of ratios of full polynomials."""
        degrees = itertools.product(range(max_degree + 1), range(1, max_degree + 1))
        unknowns = [self.monomials(p) + self.monomials(q) for p, q in degrees if p + q <= max_total]
        return sum(_FITS_OF_A_RATIO * _LEAST_FIT + self.rows * count**2 for count in unknowns if count <= self.rows)

    @cached_property
    def companions(self) -> int:
        """About how many functions stand beside fitted exponents, see `factor_families`."""
        roles = [operator.role for operator in self._different]
        periodic = sum(operator.periodic for operator in self._different)
        functions = sum(operator.kind is Kind.UNARY and operator.exponent is None for operator in self._different)
        of_one = functions + periodic + roles.count(Role.EXPONENTIAL)
        return min(_MAX_COMPANIONS, self.slots * of_one + 2 * periodic * math.comb(self.slots, 2))

    def starts(self, model: Model, starts: int) -> float:
        """Numbers in the fits of so many random starts, parameters times rows: the mean of both sizes of the model."""
        return starts * sum(model.numbers(self, size) for size in (1, 2)) / 2

    def share_fitted(self, model: Model) -> float:
        """The part of both sizes of the model that has rows enough: 0, 1/2 or 1."""
        return sum(model.suffices(self, size) for size in (1, 2)) / 2

    @cached_property
    def products(self) -> tuple[int, int, int]:
        """About how many products of two, three and four factors sums of terms have."""
        roles = {operator.role for operator in self._different}
        factors = 1 + (not roles.isdisjoint((Role.QUOTIENT, Role.RECIPROCAL)))
        if self.slots <= _MAX_FUNCTION_SLOTS:
            factors += self.unary
        one = self.slots * factors
        two = one * (one + 1) // 2
        return two, one * two // 3, two**2 // 6

    @property
    def parts_of_sums(self) -> int:
        """In how many parts a beam of sums of terms is searched, so that none takes much more than a second."""
        return max(1, min(MAX_TERMS, -(-self.products[-1] * (self.scanned + 100) // _SCORES_AT_ONCE)))

    def pairs_of_products(self, short: int, most: float) -> float:
        """Multiplications of the scans of all pairs of a short product and one of three or four factors, one by one.

        With more than `most` there is no scan.
        """
        first = min(short, self.products[0])
        scans = [first * count for count in self.products[1:] if first * count * self.scanned <= most]
        return sum(scans) * (self.scanned + 64)

    @cached_property
    def inner_starts(self) -> int:
        """About how many pairs of families of functions with an inner constant are polished."""
        bases = min(_MAX_BASES, 2 * self.slots + 5 * math.comb(self.slots, 2))
        families = bases * (3 + sum(operator.role in _INNER for operator in self._different))
        return min(_FAMILY_PAIRS, 2 * families**2)

    @property
    def _first_layer(self) -> int:
        return self.slots + 1 + int(_DISTINCT_FIRST * self._outputs(self.slots + 1))

    @cached_property
    def _different(self) -> tuple[Operator, ...]:
        """The operators whose outputs are no others' outputs."""
        return tuple(
            operator for operator in self.operators if operator.form is None and operator.role is not Role.IDENTITY
        )

    def _outputs(self, width: int) -> int:
        return SymbolLayer(self._different, width).size


@dataclass(frozen=True)
class Model:
    """A head with fitted exponents, in sizes 1 and 2: parameters of a start, unknowns in all, and rows that it sees."""

    parameters: Callable[[int, int], int]  # of the number of slots and the size
    unknowns: Callable[[int, int], int]  # the same
    least_rows: int
    rows_per_unknown: int

    def suffices(self, sizes: Sizes, size: int) -> bool:
        """Whether there are rows enough."""
        return sizes.scanned >= _ROWS_PER_UNKNOWN * self.unknowns(sizes.slots, size)

    def numbers(self, sizes: Sizes, size: int) -> float:
        """Parameters times rows of one start; 0 where there are too few rows."""
        if not self.suffices(sizes, size):
            return 0.0
        seen = max(self.least_rows, self.rows_per_unknown * self.unknowns(sizes.slots, size))
        return self.parameters(sizes.slots, size) * min(sizes.scanned, seen)


@dataclass(frozen=True)
class Work:
    """The work of a slice: `seconds` for each of the `units`, and the seconds of `fits`; both are formulas of sizes."""

    seconds: float
    units: Callable[[Sizes], float]
    fits: Callable[[Sizes], float] = lambda sizes: 0.0

    def of(self, sizes: Sizes) -> float:
        return self.seconds * self.units(sizes) + self.fits(sizes)
