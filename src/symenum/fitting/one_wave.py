"""Two waves of one frequency as one: 3*sin(2*t) + 4*cos(2*t) is 5*sin(2*t + 0.927).

Searches find the two terms, since a law is linear in them; people write the one with its phase, and it is simpler.
The waves may differ in the last digits of their frequencies, as fitted ones do: then the one wave has the first's, and
the caller fits it. Nothing is fitted or judged here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from symenum.expressions import Apply, Expression, simplify
from symenum.expressions.algebra import Product, Sum, as_product, as_sum, number_constant, with_factor
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["with_one_wave"]

_WAVES = (Role.SINE, Role.COSINE)
_SAME_FREQUENCY = 0.02  # part that two frequencies may differ by: what it costs to make them one is judged by the data

Shape = tuple[tuple[Expression, ...], tuple[Expression, ...]]  # factors and divisors of a product without its number


@dataclass(frozen=True)
class _Wave:
    """height·others·sin(argument + phase), a term of a sum; `argument`: its numbers, by the shapes of its terms.

    `wave`: the sine or cosine as it stands in the law. `others`: the product without it, its number 1.
    """

    height: float
    phase: float
    argument: Mapping[Shape, float]
    wave: Apply
    others: Product

    def goes_with(self, other: _Wave) -> bool:
        """Whether the two are waves of one frequency, times the same."""
        one, two = self.argument, other.argument
        same_factors = _shape(self.others) == _shape(other.others)
        return same_factors and one.keys() == two.keys() and all(
            abs(number - two[shape]) <= _SAME_FREQUENCY * abs(number) for shape, number in one.items()
        )  # fmt: skip

    def joined(self, other: _Wave) -> Expression | None:
        """The one wave that both are together; None where they cancel."""
        sine = self.height * math.cos(self.phase) + other.height * math.cos(other.phase)
        cosine = self.height * math.sin(self.phase) + other.height * math.sin(other.phase)
        height, phase = math.hypot(sine, cosine), math.atan2(cosine, sine)
        if not 0 < height < math.inf:
            return None
        if self.wave.operator.role is Role.COSINE:
            phase -= math.pi / 2
        turns = round(phase / math.pi)  # half turns, each of which changes the sign
        height, phase = height * (-1) ** turns, phase - math.pi * turns
        terms = as_sum(simplify(self.wave.operands[0])).terms
        wave = Apply(self.wave.operator, (Sum(terms, phase).close(),))
        return with_factor(number_constant(height), replace(self.others, factors=(*self.others.factors, wave)).close())


def with_one_wave(law: Expression) -> list[Expression]:
    """The law with two of its waves as one, for each two that can be; none where there are no such two.

    >>> from symenum.expressions import parse
    >>> print(*with_one_wave(parse("3*sin(2*t) + 4*cos(2*t) + 1")))
    5*sin(2*t + 0.9272952180016122) + 1
    """
    law = simplify(law)
    return [] if _waves_in(law) < 2 else list(dict.fromkeys(map(simplify, _variants(law))))


def _waves_in(law: Expression) -> int:
    """How many sines and cosines a law has: most have none, and need no further look."""
    count, stack = 0, [law]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply):
            count += node.operator.role in _WAVES
            stack += node.operands
    return count


def _variants(node: Expression) -> Iterator[Expression]:
    """The node with two waves as one, in its own sum or in one of its operands. Recurses: laws are not deep."""
    if not isinstance(node, Apply):
        return
    if node.operator.role not in ADDITIVE:
        for at, operand in enumerate(node.operands):
            for variant in _variants(operand):
                yield Apply(node.operator, (*node.operands[:at], variant, *node.operands[at + 1 :]))
        return
    total = as_sum(node)
    terms = total.terms
    waves = [(at, wave) for at, term in enumerate(terms) if (wave := _wave(*term)) is not None]
    for (at, one), (other_at, other) in itertools.combinations(waves, 2):
        joined = one.joined(other) if one.goes_with(other) else None
        if joined is not None:
            rest = tuple(term for place, term in enumerate(terms) if place not in (at, other_at))
            yield replace(total, terms=((True, joined), *rest)).close()
    for at, (added, term) in enumerate(terms):
        for variant in _variants(term):
            yield replace(total, terms=(*terms[:at], (added, variant), *terms[at + 1 :])).close()


def _wave(added: bool, term: Expression) -> _Wave | None:
    """A term as a wave; None where no factor of it, or more than one, is a sine or a cosine of something."""
    product = as_product(term)
    waves = [one for one in product.factors if isinstance(one, Apply) and one.operator.role in _WAVES]
    if len(waves) != 1:
        return None
    (wave,) = waves
    height = product.number if added else -product.number
    total = as_sum(simplify(wave.operands[0]))
    argument: dict[Shape, float] = {}
    for plus, part in total.terms:
        inner = as_product(part)
        number = inner.number if plus else -inner.number
        argument[_shape(inner)] = argument.get(_shape(inner), 0.0) + number
    if not argument:
        return None
    phase = total.number + (math.pi / 2 if wave.operator.role is Role.COSINE else 0.0)
    factors = list(product.factors)
    factors.remove(wave)
    others = Product(1, 1, tuple(factors), product.divisors)
    return _Wave(height, phase, argument, wave, others)


def _shape(product: Product) -> Shape:
    return product.factors, product.divisors
