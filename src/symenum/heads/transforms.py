"""Target transforms: y = u(f) is searched as u⁻¹(y) = f, y = x·f as y/x = f, and so on, where the data allow.

A transform that is not defined on some row, or constant, is left out. Row weights are those of y times (dy/dt)², so
that to first order a head's residual on t ranks like the loss on y; the loss itself is always taken on y.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.exactness import is_flat
from symenum.expressions import apply
from symenum.heads.inverse_steps import (
    Step,
    Wrap,
    function_steps,
    joining_steps,
    monotone_step,
    reciprocal_step,
    subtraction,
)
from symenum.heads.response import Data, Response
from symenum.operators import Abilities, Operator
from symenum.operators.traits import Role

__all__ = [
    "LARGEST_RESPONSE",
    "Transform",
    "allowed_responses",
    "power_responses",
    "responses_of",
    "transforms",
    "weights_after",
]

LARGEST_RESPONSE = 1e15
"""Of max|t|, and of its inverse: beyond it 1 and t share no digit in double precision."""
# Largest ratio of slope² and its median, both ways: near a zero of dt/dy the first order says nothing.
_MAX_WEIGHT_RATIO = 1e4
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
    taken = (transform for step in function_steps(able) for transform in _taken(step, y))
    powers = [transform for transform in taken if transform.name == "y**2"]
    if able.quotients:
        powers += _taken(reciprocal_step(), y)
        if bool((y > 0).all()):
            slope = 0.5 * y.abs().pow(3)
            powers.append(Transform("1/y**2", y.pow(-2), slope, lambda f: apply("inv", apply("sqrt", f))))
    return allowed_responses(data, powers)


def allowed_responses(data: Data, possible: Iterable[Transform]) -> list[Response]:
    """A response for each of these transforms that the data allow."""
    found = [
        Response(data, transform.name, transform.t, weights_after(data.target.weight, transform.slope), transform.wrap)
        for transform in possible
        if _allowed(transform)
    ]
    return [response for response in found if response.has_a_dimension]


def transforms(data: Data, able: Abilities, *, with_slots: bool = True) -> Iterator[Transform]:
    """All transforms that the operators can undo; some have values that are not finite."""
    y = data.target.y
    monotone = (step for operator in able.operators if (step := monotone_step(operator)) is not None)
    for step in (*function_steps(able), *monotone):
        yield from _taken(step, y)
    if able.quotients_both_ways:
        yield from _taken(reciprocal_step(), y)
    slots = data.stand_ins if with_slots and len(data.stand_ins) <= _MAX_SLOTS else ()
    for slot in slots:
        x = data.evaluate(slot)
        sums = [subtraction(slot, x)] if Role.SUM in able.roles else []
        for step in (*joining_steps(able, slot, x), *sums):
            yield from _taken(step, y)


def _taken(step: Step, y: Tensor) -> Iterator[Transform]:
    """The transform of y (rows,) by one step, where it applies."""
    if bool(step.applies(y)):
        t = step.undo(y)
        yield Transform(step.name.format("y"), t, step.slope(y, t), step.back)


def _allowed(transform: Transform) -> bool:
    t = transform.t
    if not bool(torch.isfinite(t).all()):
        return False
    largest = float(t.abs().max())
    return 1 / LARGEST_RESPONSE < largest < LARGEST_RESPONSE and not bool(is_flat(t))


def weights_after(weight: Tensor, slope: Tensor) -> Tensor:
    """weight·slope² (…, rows), summing to 1, of weight (rows,) and |dy/dt| (…, rows).

    slope² is kept within a factor of 10,000 of its median, and where that is no number the weights stay.
    """
    square = torch.where(torch.isfinite(slope), slope.square(), torch.inf)
    counted = torch.where(torch.isfinite(square) & (square > 0), square, torch.nan)
    middle = counted.nanmedian(dim=-1, keepdim=True).values
    told = torch.isfinite(middle)
    middle = torch.where(told, middle, 1.0)
    kept = torch.minimum(torch.maximum(square, middle / _MAX_WEIGHT_RATIO), middle * _MAX_WEIGHT_RATIO) / middle
    adjusted = weight * torch.where(told, kept, 1.0)
    return adjusted / adjusted.sum(dim=-1, keepdim=True)
