"""What an operator states of itself: its role in algebra, and the traits of its function.

Code that needs a property of an operator asks for its role or its traits, never for its name. A trait that is not
stated is unknown; `probing` compares stated traits with the function. This module does not know the record `Operator`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

__all__ = [
    "ADDITIVE",
    "ARITHMETIC",
    "MULTIPLICATIVE",
    "NOTHING_STATED",
    "REALS",
    "DimensionRule",
    "Interval",
    "Role",
    "Traits",
]


class Role(enum.Enum):
    """What an operator computes, and so which rules of algebra hold for it; not how a layer enumerates it.

    sub and semisub are both DIFFERENCE. FUNCTION is every operator without rules of its own: it has traits only.
    """

    SUM = "a + b"
    DIFFERENCE = "a - b"
    PRODUCT = "a*b"
    QUOTIENT = "a/b"
    POWER = "a**b"
    IDENTITY = "a"
    NEGATION = "-a"
    RECIPROCAL = "1/a"
    SQUARE = "a**2"
    CUBE = "a**3"
    ROOT = "sqrt(a)"
    EXPONENTIAL = "exp(a)"
    LOGARITHM = "log(a)"
    SINE = "sin(a)"
    COSINE = "cos(a)"
    MAGNITUDE = "|a|"
    STEP = "sign(a)"
    FUNCTION = "f(a) or f(a, b)"


class DimensionRule(enum.Enum):
    """What an operator makes of the physical dimensions of its operands; it follows from role and degree."""

    PRODUCT = "the product of both"
    QUOTIENT = "the quotient of both"
    POWER = "the first to the power of the second, which is a number"
    HOMOGENEOUS = "operands of one dimension; that dimension to the power of the degree"
    NUMBER = "plain numbers in, a plain number out"


# Tuples, not sets: `in` compares members of a tuple by identity, which is faster than the hash of an Enum member.
ADDITIVE = (Role.SUM, Role.DIFFERENCE)
MULTIPLICATIVE = (Role.PRODUCT, Role.QUOTIENT)
ARITHMETIC = (*ADDITIVE, *MULTIPLICATIVE)


@dataclass(frozen=True)
class Interval:
    """The real numbers between `low` and `high`; an end belongs to the interval only if it is said to be closed."""

    low: float = -math.inf
    high: float = math.inf
    low_closed: bool = False
    high_closed: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"an interval needs low < high, not {self.low!r} and {self.high!r}")
        if (self.low_closed and math.isinf(self.low)) or (self.high_closed and math.isinf(self.high)):
            raise ValueError("an infinite end of an interval cannot be closed")

    @classmethod
    def closed(cls, low: float, high: float) -> Interval:
        """The interval with both ends, as far as they are finite."""
        return cls(low, high, math.isfinite(low), math.isfinite(high))

    def __contains__(self, value: float) -> bool:
        above = value > self.low or (self.low_closed and value == self.low)
        return above and (value < self.high or (self.high_closed and value == self.high))

    def __str__(self) -> str:
        return f"{'[' if self.low_closed else '('}{self.low:g}, {self.high:g}{']' if self.high_closed else ')'}"


REALS = Interval()
"""All real numbers."""


@dataclass(frozen=True)
class Traits:
    """What holds of an operator's function f, wherever f is finite.

    `period`: the smallest p > 0 with f(x + p) = f(x). `monotone`: +1 if f never falls, -1 if f never rises, 0: neither
    or unknown. `parity`: +1 if f(-x) = f(x), -1 if f(-x) = -f(x), 0: neither or unknown; both operands change sign.
    `degree`: the d with f(c·x) = c**d·f(x) for all c > 0; both operands are scaled. `domain`: f is finite inside it,
    but for its `poles`, and nowhere outside. `range`: the smallest interval that holds all values. `strict`: f is NaN
    wherever an operand is NaN. Only `parity`, `degree` and `strict` may be stated of an operator with two operands.
    """

    period: float | None = None
    monotone: int = 0
    parity: int = 0
    degree: float | None = None
    domain: Interval | None = None
    poles: tuple[float, ...] = ()
    range: Interval | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.period is not None and not (math.isfinite(self.period) and self.period > 0):
            raise ValueError(f"period must be a positive number, not {self.period!r}")
        if self.degree is not None and not math.isfinite(self.degree):
            raise ValueError(f"degree must be a finite number, not {self.degree!r}")
        for trait, sign in (("monotone", self.monotone), ("parity", self.parity)):
            if sign not in (-1, 0, 1):
                raise ValueError(f"{trait} must be 1, -1 or 0, not {sign!r}")
        for trait, interval in (("domain", self.domain), ("range", self.range)):
            if interval is not None and not isinstance(interval, Interval):
                raise TypeError(f"{trait} must be an Interval such as Interval(0, 1), not {interval!r}")
        if self.poles and self.domain is None:
            raise ValueError("poles are points of the domain: state the domain too")
        if any(pole not in (self.domain or REALS) for pole in self.poles):
            raise ValueError(f"poles must lie in the domain {self.domain}, not at {self.poles}")


NOTHING_STATED = Traits()
"""The traits of an operator of which nothing is known."""
