"""Which tokens a law is made of, also after fits and rewriting have changed how they are written.

A token goes into a pass as x1*x2 and comes back as 2.1*x1*(x2 + 0.7), or as a part of x1**2*x2. So expressions are
compared by their *forms*: sums are sets of terms without signs, products are powers of bases, and the constants that a
fit may put in or change are left out. A token occurs in a law if its form is that of a part of the law, if its terms
are some of the terms of a sum there, or if its factors are some of the factors of a product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from symenum.expressions import Apply, Constant, Expression, Variable, fold
from symenum.operators.traits import ADDITIVE, MULTIPLICATIVE, Role

__all__ = ["Form", "PartsOfLaws", "form"]

_REMEMBERED = 8192  # forms that are kept: those of a proposal's tokens are asked for many times
_ONE = "1"  # key of a constant, and of what only constants are left of


@dataclass(frozen=True)
class Form:
    """`key` is equal for expressions that a fit of constants may turn into each other.

    `terms`: keys of the terms of a sum. `powers`: exponents of a product's bases, by their keys; the sign of all of
    them together does not count. Both are empty for what is neither.
    """

    key: str
    terms: frozenset[str] = frozenset()
    powers: Mapping[str, int] = field(default_factory=dict)
    simple: bool = False  # a variable or a constant is all that is left


@lru_cache(maxsize=_REMEMBERED)
def form(expression: Expression) -> Form:
    """The form of an expression.

    >>> from symenum.expressions import parse
    >>> form(parse("2.1*x*(y + 0.7)")) == form(parse("y*x"))
    True
    """
    return fold(expression, _form_of_node)


def _form_of_node(node: Expression, operands: tuple[Form, ...]) -> Form:
    if isinstance(node, Variable):
        return Form(node.name, simple=True)
    if isinstance(node, Constant):
        return Form(_ONE, simple=True)
    role = node.operator.role
    if role is Role.NEGATION:
        return operands[0]
    if role in ADDITIVE:
        return _sum_of(operands)
    if role in MULTIPLICATIVE:
        return _product_of(operands, (1, 1 if role is Role.PRODUCT else -1))
    if role is Role.POWER and isinstance(node.operands[1], Constant):
        exponent = node.operands[1].value
        if isinstance(exponent, int):
            return _product_of(operands[:1], (exponent,))
        return _function("pow", operands[:1])  # the exponent is a constant that a fit may change
    return _function(node.operator.name, operands)


def _function(name: str, operands: tuple[Form, ...]) -> Form:
    if all(operand.key == _ONE for operand in operands):
        return Form(_ONE, simple=True)
    return Form(f"{name}({','.join(operand.key for operand in operands)})")


def _sum_of(operands: Iterable[Form]) -> Form:
    parts: dict[str, Form] = {}
    terms: set[str] = set()
    for operand in operands:
        parts[operand.key] = operand
        terms |= operand.terms or {operand.key}
    terms.discard(_ONE)
    if not terms:
        return Form(_ONE, simple=True)
    if len(terms) == 1:
        return parts[next(iter(terms))]
    return Form(f"({'+'.join(sorted(terms))})", terms=frozenset(terms))


def _product_of(operands: Iterable[Form], exponents: Iterable[int]) -> Form:
    parts: dict[str, Form] = {}
    powers: dict[str, int] = {}
    for operand, exponent in zip(operands, exponents, strict=True):
        parts[operand.key] = operand
        for base, power in (operand.powers or {operand.key: 1}).items():
            powers[base] = powers.get(base, 0) + power * exponent
    powers = {base: power for base, power in sorted(powers.items()) if power and base != _ONE}
    if not powers:
        return Form(_ONE, simple=True)
    only = next(iter(powers))
    if len(powers) == 1 and powers[only] == 1 and only in parts:
        return parts[only]
    return Form(f"({'*'.join(f'{base}^{power}' for base, power in powers.items())})", powers=powers)


class PartsOfLaws:
    """The forms of all parts of some laws, made to be asked which tokens occur in them."""

    def __init__(self, laws: Iterable[Expression]) -> None:
        self._keys: set[str] = set()
        self._sums: set[frozenset[str]] = set()
        self._products: dict[str, Mapping[str, int]] = {}
        for law in laws:
            fold(law, self._visit)

    def _visit(self, node: Expression, operands: tuple[Form, ...]) -> Form:
        here = _form_of_node(node, operands)
        if isinstance(node, Apply):
            self._keys.add(here.key)
            if here.terms:
                self._sums.add(here.terms)
            if here.powers:
                self._products[here.key] = here.powers
        return here

    def hold(self, token: Expression) -> bool:
        """Whether the token is a part of one of the laws; never for a scaled or shifted variable."""
        wanted = form(token)
        if wanted.simple:
            return False
        if wanted.key in self._keys:
            return True
        if wanted.terms:
            return any(wanted.terms <= terms for terms in self._sums)
        return bool(wanted.powers) and any(_divides(wanted.powers, powers) for powers in self._products.values())


def _divides(few: Mapping[str, int], many: Mapping[str, int]) -> bool:
    """Whether the factors `few`, or all their inverses, are some of the factors `many`."""
    return any(
        all(base in many and 0 < sign * power / many[base] <= 1 for base, power in few.items()) for sign in (1, -1)
    )
