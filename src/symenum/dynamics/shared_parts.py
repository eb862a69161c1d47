"""Products that stand in several laws of one system, such as the x*y of +k*x*y here and -k*x*y there.

What one equation loses another one gains: prey and predator, reactions, compartments. A part is a term of a law without
its coefficient, whatever the order of its factors. Where the coefficients are the same number, the term is one thing
and not two: whoever describes the system writes it down once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symenum.expressions import Expression, Variable, simplify, variables, walk
from symenum.expressions.algebra import Product, as_product, as_sum
from symenum.fitting.free_constants import free_constants, with_leaves

__all__ = ["SharedPart", "Tie", "shared_parts", "symbols", "ties"]

_ROUNDING = 1e-9  # part of the largest coefficient: sums of printed digits are zero up to this


@dataclass(frozen=True)
class SharedPart:
    """A product `part`, and its coefficient in each law that holds it, by state."""

    part: Expression
    coefficients: Mapping[str, float]

    @property
    def balanced(self) -> bool:
        """Whether the coefficients sum to zero: what the one loses the others gain."""
        values = list(self.coefficients.values())
        return math.isclose(sum(values), 0.0, abs_tol=_ROUNDING * max(map(abs, values)))

    def __str__(self) -> str:
        inside = ", ".join(f"{value:+.4g} in the law of {state}" for state, value in self.coefficients.items())
        return f"{self.part}: {inside}"


def shared_parts(laws: Mapping[str, Expression]) -> tuple[SharedPart, ...]:
    """The parts of at least one operator that stand in more than one law, the most complex first.

    >>> from symenum.expressions import parse
    >>> for one in shared_parts({"x": parse("2*x - 0.3*x*y"), "y": parse("0.3*y*x - y")}):
    ...     print(one, one.balanced)
    x*y: -0.3 in the law of x, +0.3 in the law of y True
    """
    found: dict[Expression, dict[str, float]] = {}
    for state, law in laws.items():
        for added, term in as_sum(simplify(law)).terms:
            product = as_product(term)
            part = _bare(product.factors, product.divisors)
            if part is not None and part.complexity > 0:
                places = found.setdefault(part, {})
                places[state] = places.get(state, 0.0) + (product.number if added else -product.number)
    several = [SharedPart(part, places) for part, places in found.items() if len(places) > 1]
    return tuple(sorted(several, key=lambda one: (-one.part.complexity, str(one.part))))


@dataclass(frozen=True)
class Tie:
    """Two constants of a system that are coefficients of one part: they may be the same number up to its sign.

    Constants are counted through all laws, from left to right.
    """

    first: int
    second: int
    part: Expression


def ties(laws: Sequence[Expression]) -> list[Tie]:
    """The pairs of constants of different laws that are coefficients of one part."""
    found: list[Tie] = []
    places: dict[Expression, list[tuple[int, int]]] = {}  # of a part: law and constant
    begin = 0
    for number, law in enumerate(laws):
        count = len(free_constants(law, integers=False))
        called = {_name(begin + i): begin + i for i in range(count)}
        marked = with_leaves(law, [Variable(name) for name in called], integers=False)
        begin += count
        for _, term in as_sum(simplify(marked)).terms:
            product = as_product(term)
            own = [one for one in product.factors if isinstance(one, Variable) and one.name in called]
            rest = tuple(one for one in product.factors if one not in own)
            part = _bare(rest, product.divisors)
            if len(own) != 1 or part is None or part.complexity == 0 or set(variables(part)) & set(called):
                continue
            if abs(product.number) == 1:
                places.setdefault(part, []).append((number, called[own[0].name]))
    for part, listed in places.items():
        for (number, first), (other, second) in itertools.combinations(listed, 2):
            if number != other:
                found.append(Tie(first, second, part))
    return found


def _name(number: int) -> str:
    return f"constant{number}_"


def _bare(factors: Sequence[Expression], divisors: Sequence[Expression]) -> Expression | None:
    """The product of what holds variables, in one order; None where nothing does."""
    above = sorted((one for one in factors if variables(one)), key=str)
    below = sorted((one for one in divisors if variables(one)), key=str)
    if not above and not below:
        return None
    return simplify(Product(1, 1, tuple(above), tuple(below)).close())


def symbols(part: Expression) -> int:
    """How many symbols the part is written with."""
    return sum(1 for _ in walk(part))
