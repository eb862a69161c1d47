"""Physical dimensions: products of powers of the SI base units, as exact values, and as one number for each column.

A dimension has a rational exponent for each base unit. Its `number` is the sum of these exponents times the logarithms
of primes: the number of a product is the sum of the numbers, and two dimensions have one number only if they are equal,
since logarithms of primes are independent over the rationals. So whole tables of features are compared by one float
each. How people write units is the business of `symenum.estimator.unit_text`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["BASE_UNITS", "DIMENSIONLESS", "SAME_NUMBER", "Dimension", "eliminated", "solve_exponents"]

BASE_UNITS = ("m", "kg", "s", "A", "K", "mol", "cd")
"""The base units of the SI, in the order of the exponents."""
_PRIMES = (2, 3, 5, 7, 11, 13, 17)  # one for each base unit
SAME_NUMBER = 1e-9
"""Distance up to which two numbers of dimensions are one: rounding of some operations is 1e-14."""
_PRINT_ORDER = (1, 0, 2, 3, 4, 5, 6)  # kg*m/s**2, as physicists write it


@dataclass(frozen=True)
class Dimension:
    """The exponents of the base units.

    >>> print(Dimension.of(kg=1, m=1, s=-2))
    kg*m/s**2
    """

    exponents: tuple[Fraction, ...] = (Fraction(0),) * len(BASE_UNITS)

    @staticmethod
    def of(**powers: int | Fraction) -> Dimension:
        """The dimension with these powers of base units."""
        unknown = set(powers) - set(BASE_UNITS)
        if unknown:
            raise ValueError(f"{min(unknown)!r} is no base unit; those of the SI are {', '.join(BASE_UNITS)}")
        return Dimension(tuple(Fraction(powers.get(name, 0)) for name in BASE_UNITS))

    def __mul__(self, other: Dimension) -> Dimension:
        return Dimension(tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __truediv__(self, other: Dimension) -> Dimension:
        return Dimension(tuple(a - b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __pow__(self, power: Fraction | int) -> Dimension:
        return Dimension(tuple(a * power for a in self.exponents))

    @property
    def dimensionless(self) -> bool:
        """Whether it is that of a plain number."""
        return not any(self.exponents)

    @property
    def number(self) -> float:
        """The number by which tables compare dimensions; 0 for a plain number."""
        return sum(float(power) * math.log(prime) for power, prime in zip(self.exponents, _PRIMES, strict=True))

    def __str__(self) -> str:
        powers = [(BASE_UNITS[at], self.exponents[at]) for at in _PRINT_ORDER]
        above = "*".join(_power(name, power) for name, power in powers if power > 0)
        below = [_power(name, -power) for name, power in powers if power < 0]
        if not below:
            return above or "1"
        return f"{above or '1'}/{below[0] if len(below) == 1 else '(' + '*'.join(below) + ')'}"


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}**{power}" if power.denominator == 1 else f"{name}**({power})"


DIMENSIONLESS = Dimension()
"""The dimension of a plain number."""


def solve_exponents(bases: Sequence[Dimension], wanted: Dimension) -> tuple[Fraction, ...] | None:
    """Exponents with which the product of the bases has the wanted dimension; None where there are none.

    Where there are several solutions, as few bases as come first in the order take part.

    >>> solve_exponents([Dimension.of(m=1), Dimension.of(s=1)], Dimension.of(m=1, s=-2))
    (Fraction(1, 1), Fraction(-2, 1))
    """
    rows = [[base.exponents[at] for base in bases] + [wanted.exponents[at]] for at in range(len(BASE_UNITS))]
    pivots = eliminated(rows, len(bases))
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    solution = [Fraction(0)] * len(bases)
    for place, column in enumerate(pivots):
        solution[column] = rows[place][-1]
    return tuple(solution)


def eliminated(rows: list[list[Fraction]], columns: int) -> list[int]:
    """Bring rows into reduced echelon form in their first `columns` columns, in place; the columns of the pivots."""
    pivots: list[int] = []
    for column in range(columns):
        place = len(pivots)
        found = next((at for at in range(place, len(rows)) if rows[at][column]), None)
        if found is None:
            continue
        rows[place], rows[found] = rows[found], rows[place]
        head = rows[place][column]
        rows[place] = [value / head for value in rows[place]]
        for at, row in enumerate(rows):
            if at != place and row[column]:
                factor = row[column]
                rows[at] = [value - factor * own for value, own in zip(row, rows[place], strict=True)]
        pivots.append(column)
    return pivots
