"""Target transforms: y = u(f) is searched as u⁻¹(y) = f, y = x·f as y/x = f, and so on, where the data allow.

A transform that is not defined on some row, or constant, is left out. Row weights are those of y times (dy/dt)², so
that to first order a head's residual on t ranks like the loss on y; the loss itself is always taken on y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.exactness import is_flat
from symenum.expressions import Constant, Expression, apply
from symenum.heads.response import Data, Response
from symenum.operators import Abilities, Operator
from symenum.operators.traits import REALS, Role

__all__ = ["Transform", "allowed_responses", "power_responses", "responses_of", "transforms"]

Wrap = Callable[[Expression], Expression]

_LARGEST = 1e15  # of max|t|, and of its inverse: beyond it 1 and t share no digit in double precision
_MAX_EXPONENT = 40.0  # of |y| in exp(y): e^40 = 2e17, beyond it 1 and exp(y) share no digit
# Largest ratio of slope² and its median, both ways: near a zero of dt/dy the first order says nothing.
_MAX_WEIGHT_RATIO = 1e4
_FAR = 1e3  # of |t|, where f(t) = y is solved by bisection: beyond it most functions overflow or are flat,
_BISECTIONS = 70  # and the number of halvings, which leave no digit of a double open
_STEP = 1e-4  # of t, for the slope of f
_INVERSION = 1e-9  # largest |f(t) - y| in units of max|y|: more means that there is no such t
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_SLOTS = 10  # with more, y is not joined with each slot


@dataclass(frozen=True)
class Transform:
    """t = g(y) and `slope` = |dy/dt| (rows,) float64; `wrap` makes a law for y of one for t."""

    name: str
    t: Tensor
    slope: Tensor
    wrap: Wrap


def responses_of(data: Data, operators: Sequence[Operator], *, with_slots: bool = True) -> list[Response]:
    """One response for each transform that the data allow; y itself is not among them.

    Without `with_slots` those that join y with a slot are left out.
    """
    return allowed_responses(data, transforms(data, Abilities(tuple(operators)), with_slots=with_slots))


def power_responses(data: Data, operators: Sequence[Operator]) -> list[Response]:
    """y², 1/y and 1/y² as responses: y is often the root or the reciprocal of a sum of powers."""
    y = data.target.y
    able = Abilities(tuple(operators))
    powers = [transform for transform in _functions(y, able) if transform.name == "y**2"]
    if able.quotients:
        powers.append(_reciprocal(y))
        if bool((y > 0).all()):
            slope = 0.5 * y.abs().pow(3)
            powers.append(Transform("1/y**2", y.pow(-2), slope, lambda f: apply("inv", apply("sqrt", f))))
    return allowed_responses(data, powers)


def allowed_responses(data: Data, possible: Iterable[Transform]) -> list[Response]:
    """A response for each of these transforms that the data allow."""
    found = [
        Response(data, transform.name, transform.t, _weights(data.target.weight, transform.slope), transform.wrap)
        for transform in possible
        if _allowed(transform)
    ]
    return [response for response in found if response.has_a_dimension]


def transforms(data: Data, able: Abilities, *, with_slots: bool = True) -> Iterator[Transform]:
    """All transforms that the operators can undo; some have values that are not finite."""
    y = data.target.y
    yield from _functions(y, able)
    for operator in able.operators:
        yield from _monotone(y, operator)
    if able.quotients_both_ways:
        yield _reciprocal(y)
    slots = data.stand_ins if with_slots and len(data.stand_ins) <= _MAX_SLOTS else ()
    for slot in slots:
        yield from _with_slot(y, slot, data.evaluate(slot), able)


def _reciprocal(y: Tensor) -> Transform:
    return Transform("1/y", 1 / y, y.square(), lambda f: apply("inv", f))


def _functions(y: Tensor, able: Abilities) -> Iterator[Transform]:
    positive, negative = bool((y > 0).all()), bool((y < 0).all())
    if Role.EXPONENTIAL in able.roles and positive:
        yield Transform("log(y)", y.log(), y.abs(), lambda f: apply("exp", f))
    if Role.EXPONENTIAL in able.roles and negative:
        yield Transform("log(-y)", (-y).log(), y.abs(), lambda f: apply("neg", apply("exp", f)))
    if Role.LOGARITHM in able.roles and float(y.abs().max()) < _MAX_EXPONENT:
        yield Transform("exp(y)", y.exp(), (-y).exp(), lambda f: apply("log", f))
    if bool((y >= 0).all()):
        yield Transform("y**2", y.square(), 0.5 / y.abs(), lambda f: apply("sqrt", f))
        yield Transform("sqrt(y)", y.sqrt(), 2 * y.sqrt(), lambda f: apply("pow", f, Constant(2)))
    elif bool((y <= 0).all()):
        yield Transform("y**2", y.square(), 0.5 / y.abs(), lambda f: apply("neg", apply("sqrt", f)))
    if float(y.abs().max()) <= 1:
        slope = (1 - y.square()).clamp_min(0).sqrt()
        if Role.SINE in able.roles:
            yield Transform("asin(y)", y.asin(), slope, lambda f: apply("sin", f))
        if Role.COSINE in able.roles:
            yield Transform("acos(y)", y.acos(), slope, lambda f: apply("cos", f))


def _monotone(y: Tensor, operator: Operator) -> Iterator[Transform]:
    """t with f(t) = y, for a function f that only rises or only falls and is no role of its own: tanh, sinh, …"""
    traits = operator.traits
    if operator.role is not Role.FUNCTION or operator.arity != 1 or not traits.monotone or traits.range is None:
        return
    low, high = float(y.min()), float(y.max())
    if low not in traits.range or high not in traits.range:
        return
    t = _inverted(y, operator)
    if t is None:
        return
    slope = (operator.function(t + _STEP) - operator.function(t - _STEP)).abs() / (2 * _STEP)
    yield Transform(f"inverse {operator.name} of y", t, slope, lambda f: apply(operator, f))


def _inverted(y: Tensor, operator: Operator) -> Tensor | None:
    """t (rows,) with f(t) = y (rows,), by bisection; None where some t is outside the domain or beyond `_FAR`."""
    domain = operator.traits.domain or REALS
    rising = operator.traits.monotone > 0
    low = torch.full_like(y, max(-_FAR, domain.low))
    high = torch.full_like(y, min(_FAR, domain.high))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = (operator.function(middle) < y) == rising
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    t = (low + high) / 2
    missed = (operator.function(t) - y).abs()
    return t if bool((missed <= _INVERSION * y.abs().clamp_min(float(y.abs().max()))).all()) else None


def _with_slot(y: Tensor, slot: Expression, x: Tensor, able: Abilities) -> Iterator[Transform]:
    if able.products:
        yield Transform(f"y/{slot}", y / x, x.abs(), lambda f: apply("mul", slot, f))
    if able.quotients_both_ways:
        yield Transform(f"{slot}/y", x / y, (y.square() / x).abs(), lambda f: apply("div", slot, f))
        yield Transform(f"y*{slot}", y * x, 1 / x.abs(), lambda f: apply("div", f, slot))
    if Role.SUM in able.roles:
        yield Transform(f"y-{slot}", y - x, torch.ones_like(y), lambda f: apply("add", slot, f))


def _allowed(transform: Transform) -> bool:
    t = transform.t
    if not bool(torch.isfinite(t).all()):
        return False
    largest = float(t.abs().max())
    return 1 / _LARGEST < largest < _LARGEST and not bool(is_flat(t))


def _weights(weight: Tensor, slope: Tensor) -> Tensor:
    """weight·slope² (rows,), summing to 1; slope² is kept within a factor of 10,000 of its median."""
    square = torch.where(torch.isfinite(slope), slope.square(), torch.full_like(slope, float("inf")))
    finite = square[torch.isfinite(square) & (square > 0)]
    if not len(finite):
        return weight
    middle = float(finite.median())
    adjusted = weight * (square.clamp(middle / _MAX_WEIGHT_RATIO, middle * _MAX_WEIGHT_RATIO) / middle)
    return adjusted / adjusted.sum()
