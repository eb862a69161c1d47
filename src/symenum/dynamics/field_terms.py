"""Terms of laws u_t = F(u, u_x, …): which ones are tried, and how their derivatives move to the windows.

A term such as u*u_x is the derivative of a polynomial, (u²/2)_x, which moves to the window as a whole: no derivative of
noisy samples is needed. u*u_xx is (u²/2)_xx - u_x²: there and wherever else something remains, the remaining factors
are derivatives of smoothed fields, of an order lower by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from symenum.dynamics.field_form import Orders, multi_indices
from symenum.dynamics.terms import library
from symenum.expressions import Constant, Expression, Variable, apply, variables
from symenum.expressions.algebra import Powers, as_product, as_sum, power_product, powers_of, simplify
from symenum.expressions.derivative import derivative
from symenum.heads.polynomial import monomials
from symenum.operators import Abilities, Operator

__all__ = ["FieldNames", "Moved", "field_library", "moved"]

ONE = Constant(1)

# Chosen by trial: see `symenum.dynamics.field_form`.
_MAX_DEGREES = (3, 2, 2, 1, 1)  # of the products in front of a derivative, for 1, 2, … fields; 0 for more
_MAX_REACTIONS = 150  # terms without derivatives, the simplest first
_MAX_TERMS = 500  # of the library, the simplest first: each takes an average over the whole grid
_MAX_PRODUCT_ORDER = 3  # total order of a product of two derivatives
_MAX_PRODUCT_FIELDS = 3  # with more fields there are no products of derivatives: too many
LAPLACIAN, BIHARMONIC = 2, 4  # orders


@dataclass(frozen=True)
class FieldNames:
    """What fields and their derivatives are called, up to a total order: u, u_x, u_xy, …"""

    fields: tuple[str, ...]
    axes: tuple[str, ...]
    max_order: int

    @cached_property
    def known(self) -> dict[str, tuple[int, Orders]]:
        """By name: the number of the field, and the order of the derivative along each axis; fields first."""
        indices = multi_indices(len(self.axes), self.max_order)
        return {self.of(i, orders): (i, orders) for orders in indices for i in range(len(self.fields))}

    def of(self, number: int, orders: Orders) -> str:
        """The name of a derivative of a field."""
        ending = "".join(axis * order for axis, order in zip(self.axes, orders, strict=True))
        return f"{self.fields[number]}_{ending}" if ending else self.fields[number]

    def is_derivative(self, factor: Expression) -> bool:
        """Whether it is a derivative of a field in space, and not a field."""
        return isinstance(factor, Variable) and sum(self.known[factor.name][1]) > 0


@dataclass(frozen=True)
class Moved:
    """`factor` times the derivative of a density; the density's own derivatives are those of smoothed fields."""

    factor: float
    density: Expression
    orders: Orders


def moved(law: Expression, names: FieldNames) -> list[Moved]:
    """The law as a sum of derivatives of densities.

    >>> from symenum.expressions import parse
    >>> for one in moved(parse("3*u*u_xx - u_xxx"), FieldNames(("u",), ("x",), 4)):
    ...     print(one.factor, one.density, one.orders)
    1.5 u**2 (2,)
    -3.0 u_x*u_x (0,)
    -1.0 u (3,)
    """
    terms = as_sum(simplify(law))
    found = [Moved(terms.number, ONE, (0,) * len(names.axes))] if terms.number else []
    for added, term in terms.terms:
        product = as_product(term)
        bare = replace(product, numerator=1, denominator=1).close()
        size = product.number if added else -product.number
        inner = as_sum(bare)
        parts = moved(bare, names) if len(inner.terms) > 1 else _of_term(bare, names)
        found += [replace(part, factor=part.factor * size) for part in parts]
    return found


def _of_term(term: Expression, names: FieldNames) -> list[Moved]:
    """One product as a sum of derivatives of densities."""
    powers = powers_of(term)
    slopes = [one for one in powers if names.is_derivative(one)]
    others = {one: power for one, power in powers.items() if one not in slopes}
    whole = [Moved(1.0, term, (0,) * len(names.axes))]
    if any(names.is_derivative(Variable(name)) for one in others for name in variables(one)):
        return whole
    if len(slopes) == 1 and powers[slopes[0]] == 1:
        return _by_parts(others, slopes[0], names) or whole
    if len(slopes) == 2 and not others and all(powers[one] == 1 for one in slopes):
        return _half_square(slopes[0], slopes[1], names) or whole
    return whole


def _by_parts(front: Powers, slope: Expression, names: FieldNames) -> list[Moved]:
    """front·slope by integration by parts, as long as it goes; nothing where it does not."""
    assert isinstance(slope, Variable)
    number, orders = names.known[slope.name]
    field = Variable(names.fields[number])
    if not front:
        return [Moved(1.0, field, orders)]
    if sum(orders) == 1:
        power = front.get(field)
        if len(front) > 1 or power is None or power == -1:
            return []
        return [Moved(1 / float(power + 1), power_product({field: power + 1}), orders)]
    axis = max(i for i, order in enumerate(orders) if order)
    lower = Variable(names.of(number, _changed(orders, axis, -1)))
    # front·slope = (front·lower)' - front'·lower along that axis.
    product = power_product(front)
    inside = _by_parts(front, lower, names) or [
        Moved(1.0, apply("mul", product, lower), (0,) * len(names.axes)),
    ]
    found = [replace(one, orders=_changed(one.orders, axis, 1)) for one in inside]
    for name in variables(product):
        by_field = derivative(product, name)
        if by_field is None:
            return []
        along = Variable(names.of(names.known[name][0], _changed((0,) * len(orders), axis, 1)))
        rest = apply("mul", apply("mul", by_field, along), lower)
        found += [replace(one, factor=-one.factor) for one in moved(rest, names)]
    return found


def _half_square(first: Expression, second: Expression, names: FieldNames) -> list[Moved]:
    """f·f_x = (f²/2)_x for a derivative f of a field; nothing where the two are not such a pair."""
    assert isinstance(first, Variable)
    assert isinstance(second, Variable)
    one, other = sorted((names.known[first.name], names.known[second.name]), key=lambda known: sum(known[1]))
    apart = [b - a for a, b in zip(one[1], other[1], strict=True)]
    if one[0] != other[0] or sorted(apart) != [0] * (len(apart) - 1) + [1]:
        return []
    lower = Variable(names.of(*one))
    return [Moved(0.5, apply("pow", lower, Constant(2)), tuple(apart))]


def _changed(orders: Orders, axis: int, by: int) -> Orders:
    return tuple(order + by if i == axis else order for i, order in enumerate(orders))


# The library


def field_library(names: FieldNames, operators: Sequence[Operator]) -> list[Expression]:
    """The terms that the operators allow, by complexity; the constant 1 is not among them.

    Functions of the fields alone, derivatives with products of fields in front, products of two derivatives, and in two
    dimensions the sums that do not depend on how the axes lie: the Laplacian, its square, and the square of a gradient.
    """
    able = Abilities(tuple(operators))
    found = dict.fromkeys(library(names.fields, operators)[:_MAX_REACTIONS])
    fields: list[Expression] = [Variable(name) for name in names.fields]
    degrees = dict(enumerate(_MAX_DEGREES, start=1))
    fronts = monomials(fields, degrees.get(len(fields), 0) if able.products else 0)
    slopes = [*_slopes(names), *(_isotropic(names) if able.sums else ())]
    products = list(_products(names, sums=able.sums)) if able.products and len(fields) <= _MAX_PRODUCT_FIELDS else []
    for slope in (*slopes, *products):
        for front in fronts if slope not in products else fronts[: 1 + len(fields)]:
            found[slope if front == ONE else apply("mul", front, slope)] = None
    return sorted(found, key=lambda term: term.complexity)[:_MAX_TERMS]


def _slopes(names: FieldNames) -> Iterator[Expression]:
    yield from (Variable(name) for name, (_, orders) in names.known.items() if sum(orders) > 0)


def _isotropic(names: FieldNames) -> Iterator[Expression]:
    """The Laplacian of each field and its square, in two dimensions."""
    if len(names.axes) != 2:
        return
    for i in range(len(names.fields)):
        if names.max_order >= LAPLACIAN:
            yield apply("add", Variable(names.of(i, (2, 0))), Variable(names.of(i, (0, 2))))
        if names.max_order >= BIHARMONIC:
            mixed = apply("mul", Constant(2), Variable(names.of(i, (2, 2))))
            yield reduce(_sum, (Variable(names.of(i, (4, 0))), mixed, Variable(names.of(i, (0, 4)))))


def _products(names: FieldNames, *, sums: bool) -> Iterator[Expression]:
    """Products of two derivatives, and the squares of gradients."""
    slopes = [one for one in _slopes(names) if isinstance(one, Variable)]
    for first, second in itertools.combinations_with_replacement(slopes, 2):
        total = sum(names.known[first.name][1]) + sum(names.known[second.name][1])
        if total <= _MAX_PRODUCT_ORDER:
            yield apply("pow", first, Constant(2)) if first == second else apply("mul", first, second)
    if sums and len(names.axes) == 2:
        for i in range(len(names.fields)):
            along = [apply("pow", Variable(names.of(i, orders)), Constant(2)) for orders in ((1, 0), (0, 1))]
            yield reduce(_sum, along)


def _sum(first: Expression, second: Expression) -> Expression:
    return apply("add", first, second)
