"""Inverse steps: one operator of a law undone on what the law equals, t = g(t', a) solved for t'.

Each step says what t' is, how t moves with it, and how a law for t follows from one for t'. A step applies to whole
tables of targets at once. Functions with several branches are undone on one: the root of a square is positive, or
negative on all rows; asin and acos have their principal values. What lies on other branches is not covered.

`transforms` takes one step from y; a bank of targets takes several (`targets`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from symenum.expressions import Apply, Constant, Expression, Variable, apply, walk
from symenum.operators import Abilities, Operator
from symenum.operators.traits import REALS, Role

__all__ = [
    "Step",
    "Wrap",
    "function_steps",
    "joining_steps",
    "monotone_step",
    "power_steps",
    "reciprocal_step",
    "subtraction",
]

Wrap = Callable[[Expression], Expression]

_MAX_EXPONENT = 40.0  # of |t| in exp(t): e^40 = 2e17, beyond it 1 and exp(t) share no digit
_FAR = 1e3  # of |t'|, where f(t') = t is solved by bisection: beyond it most functions overflow or are flat,
_BISECTIONS = 70  # and the number of halvings, which leave no digit of a double open
_STEP = 1e-4  # of t', for the slope of f
_INVERSION = 1e-9  # largest |f(t') - t| in units of max|t|: more means that there is no such t'


_NONE = torch.empty(0, dtype=torch.float64)  # values of no part


def operators_in(law: Expression) -> int:
    """How many operators a law has."""
    return sum(isinstance(node, Apply) for node in walk(law))


def _always(t: Tensor) -> Tensor:
    return torch.ones(t.shape[:-1], dtype=torch.bool)


@dataclass(frozen=True, eq=False)
class Step:
    """One operator of a law for t undone: t' and |dt/dt'| for tables (…, rows); `back` makes a law for t of one for t'.

    `name`: how t' is called, with {} for t. `undoing`: t' of t and a; `slope_of`: |dt/dt'| of t, t' and a, where a are
    the `values` (rows,) of the `part` that is joined with t', if there is one. `applies`: whether the step can be taken
    from each target, (…,). `subtracts`: whether t' is t less the part, so that both have the same weights.
    """

    name: str
    undoing: Callable[[Tensor, Tensor], Tensor]
    slope_of: Callable[[Tensor, Tensor, Tensor], Tensor]
    back: Wrap
    applies: Callable[[Tensor], Tensor] = _always
    part: Expression | None = None
    values: Tensor = _NONE
    subtracts: bool = False

    @cached_property
    def size(self) -> int:
        """The number of operators that the step adds to a law."""
        return operators_in(self.back(Variable("t")))

    def undo(self, t: Tensor) -> Tensor:
        """t' (…, rows)."""
        return self.undoing(t, self.values)

    def slope(self, t: Tensor, new: Tensor) -> Tensor:
        """|dt/dt'| (…, rows)."""
        return self.slope_of(t, new, self.values).expand_as(t)

    def on(self, evaluate: Callable[[Expression], Tensor]) -> Step:
        """The same step on other rows, where `evaluate` has the values of the part."""
        return self if self.part is None else replace(self, values=evaluate(self.part))


def _above_zero(t: Tensor) -> Tensor:
    return (t > 0).all(dim=-1)


def _below_zero(t: Tensor) -> Tensor:
    return (t < 0).all(dim=-1)


def _not_below_zero(t: Tensor) -> Tensor:
    return (t >= 0).all(dim=-1)


def _of_a_negative_root(t: Tensor) -> Tensor:
    return (t <= 0).all(dim=-1) & ~_not_below_zero(t)


def _within_one(t: Tensor) -> Tensor:
    return t.abs().amax(dim=-1) <= 1


def _slope_of_root(t: Tensor, _new: Tensor, _a: Tensor) -> Tensor:
    return 0.5 / t.abs()


def _slope_of_sine(t: Tensor, _new: Tensor, _a: Tensor) -> Tensor:
    """Of cosine, too."""
    return (1 - t.square()).clamp_min(0).sqrt()


def _negative_root(inner: Expression) -> Expression:
    return apply("neg", apply("sqrt", inner))


def _size(t: Tensor, _new: Tensor, _a: Tensor) -> Tensor:
    return t.abs()


def function_steps(able: Abilities) -> Iterator[Step]:
    """The functions with rules of their own, which the operators can write: exp, log, roots, squares, sine, cosine."""
    if Role.EXPONENTIAL in able.roles:
        yield Step("log({})", lambda t, a: t.log(), _size, lambda f: apply("exp", f), _above_zero)
        yield Step("log(-{})", lambda t, a: (-t).log(), _size, lambda f: apply("neg", apply("exp", f)), _below_zero)
    if Role.LOGARITHM in able.roles:
        yield Step(
            "exp({})",
            lambda t, a: t.exp(),
            lambda t, new, a: (-t).exp(),
            lambda f: apply("log", f),
            lambda t: t.abs().amax(dim=-1) < _MAX_EXPONENT,
        )
    yield Step("{}**2", lambda t, a: t.square(), _slope_of_root, lambda f: apply("sqrt", f), _not_below_zero)
    yield Step(
        "sqrt({})",
        lambda t, a: t.sqrt(),
        lambda t, new, a: 2 * new,
        lambda f: apply("pow", f, Constant(2)),
        _not_below_zero,
    )
    yield Step("{}**2", lambda t, a: t.square(), _slope_of_root, _negative_root, _of_a_negative_root)
    if Role.SINE in able.roles:
        yield Step("asin({})", lambda t, a: t.asin(), _slope_of_sine, lambda f: apply("sin", f), _within_one)
    if Role.COSINE in able.roles:
        yield Step("acos({})", lambda t, a: t.acos(), _slope_of_sine, lambda f: apply("cos", f), _within_one)


def reciprocal_step() -> Step:
    """t = 1/t'."""
    return Step("1/{}", lambda t, a: 1 / t, lambda t, new, a: t.square(), lambda f: apply("inv", f))


def monotone_step(operator: Operator) -> Step | None:
    """t = f(t') for a function f that only rises or only falls and is no role of its own: tanh, sinh, …"""
    traits = operator.traits
    if operator.role is not Role.FUNCTION or operator.arity != 1 or not traits.monotone or traits.range is None:
        return None
    values = traits.range

    def applies(t: Tensor) -> Tensor:
        ends = zip(t.amin(dim=-1).flatten().tolist(), t.amax(dim=-1).flatten().tolist(), strict=True)
        inside = torch.tensor([low in values and high in values for low, high in ends], dtype=torch.bool)
        return inside.reshape(t.shape[:-1])

    def slope(_t: Tensor, new: Tensor, _a: Tensor) -> Tensor:
        return (operator.function(new + _STEP) - operator.function(new - _STEP)).abs() / (2 * _STEP)

    return Step(
        f"inverse {operator.name} of {{}}",
        lambda t, a: _inverted(t, operator),
        slope,
        lambda f: apply(operator, f),
        applies,
    )


def _inverted(t: Tensor, operator: Operator) -> Tensor:
    """t' (…, rows) with f(t') = t, by bisection; NaN where some t' is outside the domain or beyond `_FAR`."""
    domain = operator.traits.domain or REALS
    rising = operator.traits.monotone > 0
    low = torch.full_like(t, max(-_FAR, domain.low))
    high = torch.full_like(t, min(_FAR, domain.high))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = (operator.function(middle) < t) == rising
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    found = (low + high) / 2
    missed = (operator.function(found) - t).abs()
    size = t.abs().amax(dim=-1, keepdim=True)
    return torch.where(missed <= _INVERSION * torch.maximum(t.abs(), size), found, torch.nan)


def joining_steps(able: Abilities, part: Expression, a: Tensor) -> Iterator[Step]:
    """t = a·t', a/t' and t'/a, for a part of the law with values a (rows,)."""
    if able.products:
        yield Step(
            f"{{}}/{part}",
            lambda t, a: t / a,
            lambda t, new, a: a.abs(),
            lambda f: apply("mul", part, f),
            part=part,
            values=a,
        )
    if able.quotients_both_ways:
        yield Step(
            f"{part}/{{}}",
            lambda t, a: a / t,
            lambda t, new, a: (t.square() / a).abs(),
            lambda f: apply("div", part, f),
            part=part,
            values=a,
        )
        yield Step(
            f"{{}}*{part}",
            lambda t, a: t * a,
            lambda t, new, a: 1 / a.abs(),
            lambda f: apply("div", f, part),
            part=part,
            values=a,
        )


def subtraction(part: Expression, a: Tensor) -> Step:
    """t = t' + a."""
    return Step(
        f"{{}}-{part}",
        lambda t, a: t - a,
        lambda t, new, a: torch.ones_like(t),
        lambda f: apply("add", part, f),
        part=part,
        values=a,
        subtracts=True,
    )


def power_steps(able: Abilities, part: Expression, a: Tensor) -> Iterator[Step]:
    """t = t'**a and t = a**t', for a part of the law with values a (rows,)."""
    if Role.POWER not in able.roles:
        return
    yield Step(
        f"{{}}**(1/{part})",
        lambda t, a: t.pow(1 / a),
        lambda t, new, a: (a * t / new).abs(),
        lambda f: apply("pow", f, part),
        _above_zero,
        part,
        a,
    )
    if bool((a > 0).all()):
        yield Step(
            f"log({{}}, {part})",
            lambda t, a: t.log() / a.log(),
            lambda t, new, a: (t * a.log()).abs(),
            lambda f: apply("pow", part, f),
            _above_zero,
            part,
            a,
        )
