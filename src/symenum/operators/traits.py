"""What an operator can state of itself: its role in algebra, and the traits of its function.

Whoever wants to know something of an operator asks for these, never for its name. A trait that is not stated is not
known; `probing` holds what is stated against the function. This module knows nothing of operators' records.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

__all__ = ["ADDITIVE", "ARITHMETIC", "MULTIPLICATIVE", "NOTHING_STATED", "REALS", "Interval", "Role", "Traits"]


class Role(enum.Enum):
    """Whose rules of calculation an operator follows. A role says what the operator computes, not how it enumerates.

    So sub and semisub are both DIFFERENCE. FUNCTION is any other operator: it has traits, but no rules.
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


# Tuples: `in` compares by identity there, in 100 to 220 ns by `timeit` on Python 3.11; hashing a member takes 300 ns.
ADDITIVE = (Role.SUM, Role.DIFFERENCE)
MULTIPLICATIVE = (Role.PRODUCT, Role.QUOTIENT)
ARITHMETIC = (*ADDITIVE, *MULTIPLICATIVE)


@dataclass(frozen=True)
class Interval:
    """The real numbers between two ends. An end is part of the interval only where it is said to be."""

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
        """Both ends are part of it, where they are finite."""
        return cls(low, high, math.isfinite(low), math.isfinite(high))

    def __contains__(self, value: float) -> bool:
        above = value > self.low or (self.low_closed and value == self.low)
        return above and (value < self.high or (self.high_closed and value == self.high))

    def __str__(self) -> str:
        return f"{'[' if self.low_closed else '('}{self.low:g}, {self.high:g}{']' if self.high_closed else ')'}"


REALS = Interval()


@dataclass(frozen=True)
class Traits:
    """What holds of an operator's function f, wherever f is finite.

    `period`: the smallest p with f(x + p) = f(x). `monotone`: +1 where f never falls, -1 where it never rises.
    `parity`: +1 for f(-x) = f(x), -1 for f(-x) = -f(x); of two operands both change sign. `degree`: the d with
    f(c·x) = c**d·f(x) for c > 0; both operands are scaled. `domain`: f is finite inside and nowhere outside, but for
    the `poles`. `range`: the smallest interval that holds all values. `strict`: f is NaN where an operand is.
    Only `parity`, `degree` and `strict` may be stated of an operator with two operands.
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
