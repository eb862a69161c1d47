"""The terms that laws of motion are made of: products of states, functions of states and of their sums, quotients.

A fixed family, from simple to dear, that knows nothing of any system: what no sum of them can write is left to the
search of the estimator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from symenum.expressions import Constant, Expression, Variable, apply, evaluate
from symenum.heads.polynomial import monomials
from symenum.operators import Abilities, Kind, Operator, Role

__all__ = ["library", "term_values"]

Array = npt.NDArray[np.float64]

_DEGREE = 4
_MOST_MONOMIALS = 220
_MOST_TERMS = 1500
_FUNCTIONS_UP_TO = 8  # variables: with more, there are too many functions of them
_LARGEST = 1e100  # a square must not overflow


def library(names: Sequence[str], operators: Sequence[Operator]) -> list[Expression]:
    """Terms in the variables `names` that the operators allow, by complexity, the constant 1 left out."""
    slots: list[Expression] = [Variable(name) for name in names]
    able = Abilities(tuple(operators))
    found: dict[Expression, None] = dict.fromkeys(slots)
    if not able.roles.isdisjoint((Role.PRODUCT, Role.SQUARE, Role.POWER)):
        found |= dict.fromkeys(_monomials(slots))
    if able.quotients:
        found |= dict.fromkeys(_quotients(slots))
    if len(slots) <= _FUNCTIONS_UP_TO:
        found |= dict.fromkeys(_with_functions(slots, able))
    return sorted(found, key=lambda term: term.complexity)[:_MOST_TERMS]


def term_values(terms: Sequence[Expression], columns: Mapping[str, Array]) -> tuple[list[Expression], Array]:
    """The terms that are finite on all points, and their values (points, terms)."""
    kept: list[Expression] = []
    values: list[Array] = []
    with np.errstate(all="ignore"):
        for term in terms:
            column = np.asarray(evaluate(term, columns), dtype=np.float64)
            size = float(np.abs(column).max())  # NaN compares false
            if size < _LARGEST and size > 1 / _LARGEST:
                kept.append(term)
                values.append(column)
    points = len(next(iter(columns.values())))
    return kept, np.stack(values, axis=1) if values else np.empty((points, 0))


def _monomials(slots: Sequence[Expression]) -> list[Expression]:
    degree = _DEGREE
    while degree > 2 and math.comb(len(slots) + degree, degree) > _MOST_MONOMIALS:
        degree -= 1
    return monomials(slots, degree)[1:]


def _quotients(slots: Sequence[Expression]) -> Iterator[Expression]:
    for below in slots:
        yield apply("inv", below)
        yield from (apply("div", above, below) for above in slots if above != below)


def _with_functions(slots: Sequence[Expression], able: Abilities) -> Iterator[Expression]:
    unary = [operator for operator in able.operators if operator.kind is Kind.UNARY and not _is_whole_power(operator)]
    alone = [apply(operator, slot) for operator in unary for slot in slots]
    if Role.EXPONENTIAL in able.roles:
        alone += [apply("exp", apply("neg", slot)) for slot in slots]
    yield from alone
    signs = [name for name, written in (("add", Role.SUM in able.roles), ("sub", able.differences)) if written]
    sums = [apply(sign, a, b) for sign in signs for a, b in itertools.combinations(slots, 2)]
    of_sums = [apply(operator, inside) for operator in unary for inside in sums]
    yield from of_sums
    if not able.products:
        return
    squares = [apply("pow", slot, Constant(2)) for slot in slots]
    for function, factor in itertools.product([*alone, *of_sums], [*slots, *squares]):
        yield apply("mul", factor, function)
    for first, second in itertools.combinations(alone, 2):
        yield apply("mul", first, second)


def _is_whole_power(operator: Operator) -> bool:
    """Those are products and quotients already."""
    return operator.exponent is not None and float(operator.exponent).is_integer()


def product(factors: Sequence[Expression]) -> Expression:
    """The factors multiplied, from left to right."""
    return reduce(lambda a, b: apply("mul", a, b), factors)
