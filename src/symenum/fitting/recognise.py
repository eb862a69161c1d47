"""When a fitted number is taken for one that people write: whole, a fraction, few digits, a multiple of π, e or √2.

A number is recognised only where a nice number lies within the window that its error allows, *and* nice numbers of
that kind are so rare that one of them would hardly lie there by chance. The width of the window and the rarity are
decided here (`Recognition`); callers hand in the value, its standard error, and whether the fit is exact up to
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from symenum.core.exactness import EPSILON, EXACTNESS
from symenum.core.memory import LAWS_REMEMBERED
from symenum.expressions import NAMED_CONSTANTS, Constant, Expression, apply, walk
from symenum.expressions.algebra import LARGEST_DENOMINATOR

__all__ = [
    "RECOGNITION",
    "Number",
    "Recognition",
    "constant_bits",
    "count_fitted_constants",
    "count_unsnapped",
    "nice_number",
    "plain_number",
    "recognise",
]

# Which numbers are nice, by definition: those that people write in laws.
_LARGEST_VALUE = 10**6  # larger numbers stay floats
_MAX_DECIMALS = 4  # digits after the point
_MAX_MULTIPLE = LARGEST_DENOMINATOR  # p of p·π/q and p/(q·π)
_MULTIPLE_DENOMINATORS = (1, 2, 3, 4, 6, 8)  # q of them: parts of a turn
_MAX_WRITTEN_DIGITS = 9  # significant digits; a constant with more was fitted, not recognised
_CHOSEN_DIGITS = 2  # significant digits of a constant that people choose by hand
_SMALLEST_CHOSEN = 0.01  # absolute value of such a constant
_SIGN_AND_SIZE = 2  # bits of a fitted constant beside its digits: one for the sign, one for the order of magnitude
_MIN_FITTED_BITS = math.log2(1 + 7) + 1  # of a fitted constant, however few the rows: those of the whole number 7
# Costs in bits, about. Whole p and q cost their binary digits on top.
_RATIONAL_BITS = 1  # of the kind: whole or a fraction
_DECIMAL_BITS = 2  # of the kind: a decimal
_IRRATIONAL_BITS = 5  # of the kind: a multiple or a part of one of five irrational numbers
_MANTISSA_BITS = 53.0  # of a double: a number that is not nice
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_ZERO_WINDOW = 0.05  # a value known worse than this is not recognised as zero


@dataclass(frozen=True)
class _Irrational:
    """An irrational number whose multiples are nice. `rank`: 1 for those that people write most; `inverse_rank`: the
    same for its inverse. A rank of 4 asks for four times the evidence and costs two bits more."""

    value: float
    symbol: Expression
    rank: int
    inverse_rank: int


def _irrationals() -> tuple[_Irrational, ...]:
    pi, e = (Constant(NAMED_CONSTANTS[name], name) for name in ("pi", "E"))
    root2, root3, root_pi = (apply("sqrt", inside) for inside in (Constant(2), Constant(3), pi))
    return (
        _Irrational(math.pi, pi, 1, 2),
        _Irrational(math.e, e, 3, 6),
        _Irrational(math.sqrt(2), root2, 1, 2),
        _Irrational(math.sqrt(3), root3, 2, 4),
        _Irrational(math.sqrt(math.pi), root_pi, 3, 4),
    )


_IRRATIONALS = _irrationals()


@dataclass(frozen=True)
class Recognition:
    """How far a constant may be from a nice number, and how rare that number must be.

    In a fit that is exact up to rounding, a constant may move by 8 standard errors: rounding errors are not normally
    distributed and add up. The residual may grow to 4 times its size, which is still rounding. In a fit with noise a
    constant may move by one standard error and no more, and only to a number of a kind that is rare within that error;
    the loss may then grow by the variance of one constant for each that was fixed. So 1.03 ± 0.05 becomes 1, and 1.08 ±
    0.05, or 1.3 ± 0.5, stay as they are.
    """

    # The seven numbers that follow were chosen by trial.
    exact_errors: float = 8.0  # standard errors that a constant of an exact fit may move
    noise_errors: float = 1.0  # the same of a fit with noise
    expected_errors: float = 2.0  # the same where a nice number is expected: exponents, constants with a name
    exact_rarity: float = 0.02  # largest window, as a part of the spacing of nice numbers of one kind, in an exact fit
    noise_rarity: float = 0.06  # the same in a fit with noise
    expected_rarity: float = 0.25  # the same where a nice number is expected: nearly all exponents are small fractions
    exact_growth: float = 4.0  # factor by which the residual of an exact fit may grow
    last_digits: float = EXACTNESS.fitted  # part of a constant by which rounding may have moved it
    # Part of a constant that comes from a scan, which is exact up to a residual of `scanned`. A constant may be off by
    # a thousand times as much where y moves by a thousandth of the constant's relative change.
    unpolished: float = 1e3 * EXACTNESS.scanned
    least_size: float = 1e-2  # smaller inner constants, which may be zero, have the window of this size

    def window(self, value: float, error: float, *, exact: bool, expected: bool = False, scale: float = 0.0) -> float:
        """How far a nice number may be from a value with that standard error.

        `scale`: the size of a constant that counts as large, where zero is one of the nice numbers.
        """
        if exact:
            return max(self.exact_errors * error, self.last_digits * max(abs(value), scale))
        return (self.expected_errors if expected else self.noise_errors) * error

    def rarity(self, *, exact: bool, expected: bool = False) -> float:
        """The largest window, as a part of the spacing of nice numbers of one kind."""
        if exact:
            return self.exact_rarity
        return self.expected_rarity if expected else self.noise_rarity

    def residual_growth(self, fixed: int, spare_rows: int, *, exact: bool) -> float:
        """The factor by which the residual may grow when so many constants were fixed; the loss grows by its square.

        `spare_rows`: rows less the constants that were free at the beginning.
        """
        return self.exact_growth if exact else math.sqrt(1 + fixed / max(1, spare_rows))


RECOGNITION = Recognition()
"""The rule that the whole program uses."""


@dataclass(frozen=True)
class Number:
    """A constant of a result: sign · numerator / denominator."""

    value: float
    numerator: Expression  # of the absolute value
    denominator: Expression | None = None
    cost: float = 0.0  # bits, about
    snapped: bool = True  # False: a fitted float with all its digits

    @property
    def magnitude(self) -> Expression:
        """The expression of the absolute value."""
        return self.numerator if self.denominator is None else apply("div", self.numerator, self.denominator)

    @property
    def expression(self) -> Expression:
        """The expression of the number itself."""
        if self.value >= 0:
            return self.magnitude
        if isinstance(self.numerator, Constant) and self.numerator.name is None:
            numerator = Constant(-self.numerator.value)
            return numerator if self.denominator is None else apply("div", numerator, self.denominator)
        return apply("neg", self.magnitude)


def plain_number(value: float) -> Number:
    """The number as a float with all its digits."""
    cost = _DECIMAL_BITS + _MANTISSA_BITS
    return Number(value, Constant(abs(value)), None, cost, snapped=False)


def recognise(
    value: float,
    error: float,
    *,
    exact: bool,
    rational: bool = False,
    zero: bool = True,
    expected: bool = False,
    polished: bool = True,
) -> Number | None:
    """The nice number that a fitted constant stands for, or None.

    `error`: the standard error of the constant. `exact`: the fit leaves nothing but rounding. `rational`, `zero`: see
    `nice_number`. `expected`: a nice number is likely here, as in an exponent. Not `polished`: the constant comes from
    a scan or a solver, and is known to about 1e-6 where the fit is exact.

    >>> print(recognise(1.03, 0.05, exact=False).expression, recognise(1.08, 0.05, exact=False))
    1 None
    """
    if exact and not polished:
        window = RECOGNITION.unpolished * max(abs(value), 1.0 if rational else RECOGNITION.least_size)
    else:
        scale = 1.0 if zero else 0.0
        window = RECOGNITION.window(value, error, exact=exact, expected=expected, scale=scale)
    rarity = RECOGNITION.rarity(exact=exact, expected=expected)
    return nice_number(value, window, rational=rational, zero=zero, rarity=rarity)


def nice_number(
    value: float,
    uncertainty: float,
    *,
    rational: bool = False,
    zero: bool = True,
    rarity: float = RECOGNITION.exact_rarity,
) -> Number | None:
    """The simplest nice number within `uncertainty`, a bound of the error, of `value`; or None.

    The uncertainty must be below `rarity` times the spacing of the nice numbers of that kind, or finding one means
    nothing. `rational`: only whole numbers and fractions, as for exponents. `zero`: whether 0 will do.

    >>> print(nice_number(0.33333333333, 1e-9).expression, nice_number(6.2831853071, 1e-9).expression)
    1/3 2*pi
    """
    window = max(uncertainty, 2 * EPSILON * abs(value))
    if zero and abs(value) <= window and window < _MAX_ZERO_WINDOW:
        return Number(0.0, Constant(0))
    if abs(value) >= _LARGEST_VALUE:
        return None
    found = _Found(value, window, rarity)
    _offer_rationals(value, found)
    if not rational:
        _offer_decimals(value, found)
        _offer_irrationals(value, found)
    return found.best


class _Found:
    """The cheapest number so far that is near enough to the value. Trees are made only for numbers that it wants."""

    def __init__(self, value: float, window: float, rarity: float) -> None:
        self._value, self._window, self._rarity = value, window, rarity
        self.best: Number | None = None

    def wants(self, number: float, cost: float, spacing: float) -> bool:
        """Whether the number, of a kind whose numbers lie `spacing` apart, would be the best so far."""
        near = abs(number - self._value) <= self._window < self._rarity * spacing
        return near and (self.best is None or cost < self.best.cost)


def _offer_rationals(value: float, found: _Found) -> None:
    whole = round(value)
    cost = _RATIONAL_BITS + math.log2(1 + abs(whole))
    if whole and found.wants(whole, cost, 1.0):
        found.best = Number(float(whole), Constant(abs(whole)), None, cost)
    for q in range(2, LARGEST_DENOMINATOR + 1):
        p = round(value * q)
        cost = _RATIONAL_BITS + math.log2(1 + abs(p)) + math.log2(q)
        # All fractions with denominators up to 12 together are about 1/12 as far apart as those with one.
        if p and math.gcd(p, q) == 1 and found.wants(p / q, cost, 1 / (q * LARGEST_DENOMINATOR)):
            found.best = Number(p / q, Constant(abs(p)), Constant(q), cost)


def _offer_decimals(value: float, found: _Found) -> None:
    for digits in range(1, _MAX_DECIMALS + 1):
        p = round(value * 10**digits)
        cost = _DECIMAL_BITS + math.log2(1 + abs(p)) + digits
        if p and found.wants(p / 10**digits, cost, 10.0**-digits):
            found.best = Number(p / 10**digits, Constant(abs(p / 10**digits)), None, cost)


def _offer_irrationals(value: float, found: _Found) -> None:
    for base in _IRRATIONALS:
        for q in _MULTIPLE_DENOMINATORS:
            for unit, rank, inverse in ((base.value, base.rank, False), (1 / base.value, base.inverse_rank, True)):
                p = round(value * q / unit)
                if not p or abs(p) > _MAX_MULTIPLE or math.gcd(p, q) != 1:
                    continue
                cost = _IRRATIONAL_BITS + math.log2(rank) + math.log2(1 + abs(p)) + math.log2(q)
                # Each of the ten units (five numbers and their inverses) has about p·q multiples per octave that are
                # as simple as this one, so the multiples of all units lie about that near to each other.
                spacing = abs(value) / (2 * len(_IRRATIONALS) * rank * abs(p) * q)
                if found.wants(p * unit / q, cost, spacing):
                    found.best = _multiple(p * unit / q, abs(p), q, base.symbol, inverse, cost)


def _multiple(value: float, p: int, q: int, symbol: Expression, inverse: bool, cost: float) -> Number:
    """p·symbol/q, or p/(q·symbol)."""
    above: Expression = Constant(p)
    below: Expression | None = Constant(q) if q > 1 else None
    if inverse:
        below = symbol if below is None else apply("mul", below, symbol)
    else:
        above = symbol if p == 1 else apply("mul", above, symbol)
    return Number(value, above, below, cost)


def constant_bits(value: float, rows: int) -> float:
    """Bits to write a constant: those of the nice number that it is, or of the digits that so many rows support.

    Nice are whole numbers, small fractions, short decimals and multiples of π, e and roots: the shorter, the cheaper.

    >>> round(constant_bits(2.0, 400), 1), round(constant_bits(0.5, 400), 1), round(constant_bits(0.4973, 400), 1)
    (2.6, 3.0, 6.3)
    """
    fitted = max(_MIN_FITTED_BITS, 0.5 * math.log2(max(2, rows)) + _SIGN_AND_SIZE)
    return min(fitted, _bits_of_nice(float(value)))


@lru_cache(maxsize=100_000)  # the same constants are judged in every step of a search
def _bits_of_nice(value: float) -> float:
    """The cost of the nice number that the value is up to rounding; infinite where it is none."""
    if value == 0:
        return float(_RATIONAL_BITS)
    number = nice_number(value, 0.0, zero=False)
    return math.inf if number is None else number.cost


@lru_cache(LAWS_REMEMBERED)  # the same laws are compared in every step of a search
def count_unsnapped(expression: Expression) -> int:
    """How many constants have more than 9 significant digits: nobody writes such numbers."""
    return sum(_rounded(value, _MAX_WRITTEN_DIGITS) != value for value in _floats(expression))


@lru_cache(LAWS_REMEMBERED)  # as above
def count_fitted_constants(expression: Expression) -> int:
    """How many of the constants look fitted: not whole, and with more than two digits or smaller than 0.01.

    >>> from symenum.expressions import parse
    >>> count_fitted_constants(parse("1.5*x**2 + 0.123*y - 2.718281828*sin(pi*x)"))
    2
    """
    floats = list(_floats(expression))
    return sum(_rounded(value, _CHOSEN_DIGITS) != value or abs(value) < _SMALLEST_CHOSEN for value in floats)


def _rounded(value: float, digits: int) -> float:
    """The value to that many significant digits."""
    return float(f"{value:.{digits}g}")


def _floats(expression: Expression) -> Iterator[float]:
    """The constants that are neither whole numbers nor named."""
    for node in walk(expression):
        if isinstance(node, Constant) and node.name is None and isinstance(node.value, float):
            yield node.value
