"""Interval arithmetic on expressions: bounds of the values and slopes of an expression over many boxes at once.

Bounds hold for every point of a box, rounding included: each operation widens its result by a few units of the last
place. They are wider than the true range where a variable occurs more than once; `tight_bounds` narrows them by the
signs of the slopes, and the caller by smaller boxes. A function of which the operator's record states too little is
sampled instead, and its bounds are estimates; of the operators of the table that is cosh alone.

The operator that cannot be computed on a part of its operand (1/x across zero, log below zero) gets bounds without end
there. Whether that matters is decided in `domains`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.exactness import EPSILON
from symenum.expressions import Constant, Expression, Variable, fold, variables
from symenum.operators import Operator
from symenum.operators.traits import ARITHMETIC, Role

__all__ = ["Array", "Bounds", "Boxes", "Mask", "bounds_of_nodes", "has_bounds", "tight_bounds"]

Array: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_ROUNDING = 4 * EPSILON  # part of a value by which one operation may be wrong: library functions are not the best
_SAMPLES = 33  # points of an operand's range at which a function is sampled of which too little is known


@dataclass(frozen=True)
class Boxes:
    """`low` and `high` (boxes,) of each variable by its name."""

    low: Mapping[str, Array]
    high: Mapping[str, Array]

    @property
    def count(self) -> int:
        return len(next(iter(self.low.values()))) if self.low else 1

    def at(self, which: Mask) -> Boxes:
        """The boxes that the mask (boxes,) holds."""
        return Boxes(
            {name: column[which] for name, column in self.low.items()},
            {name: column[which] for name, column in self.high.items()},
        )

    def halves(self, names: Sequence[str], along: npt.NDArray[np.int64]) -> Boxes:
        """Both halves of each box, cut across variable number `along` (boxes,) of `names`."""
        low, high = {}, {}
        for number, name in enumerate(names):
            a, b = self.low[name], self.high[name]
            middle = np.where(along == number, a + (b - a) / 2, np.nan)
            cut = ~np.isnan(middle)
            low[name] = np.concatenate([a, np.where(cut, middle, a)])
            high[name] = np.concatenate([np.where(cut, middle, b), b])
        return Boxes(low, high)

    def middle(self) -> dict[str, Array]:
        """The middle (boxes,) of each variable."""
        return {name: a + (self.high[name] - a) / 2 for name, a in self.low.items()}


@dataclass(frozen=True)
class Bounds:
    """Bounds (boxes,) of the values, and of the slopes (variables, boxes) by each variable."""

    low: Array
    high: Array
    slope_low: Array
    slope_high: Array


def has_bounds(node: Expression) -> bool:
    """Whether the bounds of this node are certain, if those of its operands are: no function in it is sampled."""
    if isinstance(node, (Variable, Constant)):
        return True
    role, traits = node.operator.role, node.operator.traits
    if node.operator.arity == 2:
        return role in (*ARITHMETIC, Role.POWER)
    if role in (Role.SINE, Role.COSINE, Role.MAGNITUDE, Role.STEP):
        return True
    return bool(traits.monotone) and traits.domain is not None and not traits.poles


def bounds_of_nodes(expression: Expression, boxes: Boxes, names: Sequence[str]) -> dict[Expression, Bounds]:
    """The bounds of each node of the expression. `names`: the variables whose slopes are wanted, in that order."""
    found: dict[Expression, Bounds] = {}

    def visit(node: Expression, operands: tuple[Bounds, ...]) -> Bounds:
        found[node] = _bounds_of_node(node, operands, boxes, names)
        return found[node]

    with np.errstate(all="ignore"):  # bounds without end are no error here
        fold(expression, visit)
    return found


def tight_bounds(expression: Expression, boxes: Boxes) -> tuple[Array, Array, Array]:
    """`low`, `high` (boxes,) of the values, and how much each variable moves them (variables, boxes).

    Where the slope by a variable has one sign, the lowest value lies at one end of that variable, and the highest at
    the other: the variable is fixed there, and bounds are taken of the others. Nor is a value further from that in the
    middle of the box than the slopes allow (the mean value theorem). Variables in the order of `variables`.
    """
    names = variables(expression)
    first = bounds_of_nodes(expression, boxes, names)[expression]
    low, high = first.low, first.high
    rising, falling = first.slope_low >= 0, first.slope_high <= 0
    if len(names) and bool((rising | falling).any()):
        low = np.maximum(low, _at_ends(expression, boxes, names, rising, falling).low)
        high = np.minimum(high, _at_ends(expression, boxes, names, falling, rising).high)
    steepest = np.maximum(np.abs(first.slope_low), np.abs(first.slope_high))
    widths = np.stack([boxes.high[name] - boxes.low[name] for name in names]) if names else steepest
    with np.errstate(all="ignore"):
        moved = np.where(widths > 0, steepest * widths, 0.0)
    reach = moved.sum(axis=0) / 2
    if np.isfinite(reach).any():
        middle = boxes.middle()
        centre = bounds_of_nodes(expression, Boxes(middle, middle), ())[expression]
        near_low, near_high = _outward(centre.low - reach, centre.high + reach)
        low, high = np.maximum(low, near_low), np.minimum(high, near_high)
    return low, high, moved


def _at_ends(
    expression: Expression,
    boxes: Boxes,
    names: Sequence[str],
    to_low: Mask,
    to_high: Mask,
) -> Bounds:
    """The bounds with variables fixed at their low or high ends where the masks (variables, boxes) say so."""
    low, high = {}, {}
    for number, name in enumerate(names):
        a, b = boxes.low[name], boxes.high[name]
        fixed_low = to_low[number]
        fixed_high = to_high[number] & ~fixed_low
        low[name], high[name] = np.where(fixed_high, b, a), np.where(fixed_low, a, b)
    return bounds_of_nodes(expression, Boxes(low, high), ())[expression]


Pair: TypeAlias = tuple[Array, Array]


def _bounds_of_node(node: Expression, operands: tuple[Bounds, ...], boxes: Boxes, names: Sequence[str]) -> Bounds:
    count = boxes.count
    if isinstance(node, Variable):
        own = np.zeros((len(names), count))
        if node.name in names:
            own[list(names).index(node.name)] = 1.0
        return Bounds(boxes.low[node.name], boxes.high[node.name], own, own)
    if isinstance(node, Constant):
        number, flat = np.full(count, float(node.value)), np.zeros((len(names), count))
        return Bounds(number, number, flat, flat)
    values = [(operand.low, operand.high) for operand in operands]
    slopes = [(operand.slope_low, operand.slope_high) for operand in operands]
    role = node.operator.role
    if node.operator.arity == 2:
        value, slope = _binary(role, values, slopes, node.operands)
    else:
        value = _unary(node.operator, *values[0])
        slope = _times(_slope_of_unary(node.operator, values[0], value), slopes[0])
    low, high = _outward(*value)
    return Bounds(low, high, *_outward(*slope))


def _outward(low: Array, high: Array) -> Pair:
    """Bounds that hold in spite of rounding; what is not a number has no bounds."""
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return low - _ROUNDING * np.where(np.isinf(low), 0.0, np.abs(low)), high + _ROUNDING * np.where(
        np.isinf(high), 0.0, np.abs(high)
    )


def _product(a: Array, b: Array) -> Array:
    """a·b, where a bound of 0 times a bound without end is 0: the end is never reached."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def _times(a: Pair, b: Pair) -> Pair:
    corners = [_product(one, other) for one in a for other in b]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _plus(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[1], a[1] - b[0]


def _over(a: Pair, b: Pair) -> Pair:
    return _times(a, _reciprocal(b))


def _reciprocal(b: Pair) -> Pair:
    low, high = b
    crosses = (low < 0) & (high > 0)
    return (
        np.where(crosses | (high == 0), -np.inf, 1 / high),
        np.where(crosses | (low == 0), np.inf, 1 / low),
    )


def _square(a: Pair) -> Pair:
    ends = np.square(a[0]), np.square(a[1])
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)


def _binary(
    role: Role, values: Sequence[Pair], slopes: Sequence[Pair], nodes: tuple[Expression, ...]
) -> tuple[Pair, Pair]:
    (a, b), (da, db) = values, slopes
    if role is Role.SUM:
        return _plus(a, b), _plus(da, db)
    if role is Role.DIFFERENCE:
        return _minus(a, b), _minus(da, db)
    if role is Role.PRODUCT:
        if nodes[0] == nodes[1]:
            return _square(a), _times((2 * a[0], 2 * a[1]), da)
        return _times(a, b), _plus(_times(da, b), _times(a, db))
    if role is Role.QUOTIENT:
        value = _over(a, b)
        return value, _over(_minus(da, _times(value, db)), b)
    if role is Role.POWER:
        return _power(a, b, da, db, nodes[1])
    unknown = np.full_like(da[0], np.inf)
    return (np.full_like(a[0], -np.inf), np.full_like(a[0], np.inf)), (-unknown, unknown)


def _power(a: Pair, b: Pair, da: Pair, db: Pair, exponent: Expression) -> tuple[Pair, Pair]:
    if not isinstance(exponent, Constant):
        base = np.maximum(a[0], 0.0), np.maximum(a[1], 0.0)
        logarithm = np.log(base[0]), np.log(base[1])
        product = _times(b, logarithm)
        value = np.exp(product[0]), np.exp(product[1])
        inner = _plus(_times(db, logarithm), _over(_times(b, da), base))
        return value, _times(value, inner)
    p = float(exponent.value)
    value = _to_the(a, p)
    lower = _to_the(a, p - 1)
    return value, _times(_times((np.full_like(a[0], p),) * 2, lower), da)


def _to_the(a: Pair, p: float) -> Pair:
    """a**p for a number p."""
    if p < 0:
        return _reciprocal(_to_the(a, -p))
    if p == 0:
        return np.ones_like(a[0]), np.ones_like(a[0])
    if not p.is_integer():
        return np.power(np.maximum(a[0], 0.0), p), np.power(np.maximum(a[1], 0.0), p)
    ends = np.power(a[0], p), np.power(a[1], p)
    if p % 2:
        return ends
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)


def _unary(operator: Operator, low: Array, high: Array) -> Pair:
    role, traits = operator.role, operator.traits
    if role in (Role.SINE, Role.COSINE):
        return _cosine(low, high) if role is Role.COSINE else _cosine(low - math.pi / 2, high - math.pi / 2)
    if role is Role.MAGNITUDE:
        ends = np.abs(low), np.abs(high)
        return np.where((low <= 0) & (high >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)
    if role is Role.STEP:
        return np.sign(low), np.sign(high)
    domain, values = traits.domain, traits.range
    if domain is not None:
        low, high = np.clip(low, domain.low, domain.high), np.clip(high, domain.low, domain.high)
    if traits.monotone and domain is not None and not traits.poles:
        ends = _computed(operator, low), _computed(operator, high)
        found = ends if traits.monotone > 0 else ends[::-1]
    else:
        found = _sampled(operator, low, high)
    if values is None:
        return found
    return np.maximum(found[0], values.low), np.minimum(found[1], values.high)


def _computed(operator: Operator, values: Array) -> Array:
    result: Array = operator.function(torch.from_numpy(np.ascontiguousarray(values))).numpy()
    return result


def _sampled(operator: Operator, low: Array, high: Array) -> Pair:
    """Bounds from samples, widened by the largest step between two of them; none where a sample is not finite."""
    parts = np.linspace(0.0, 1.0, _SAMPLES)[:, None]
    ended = np.isfinite(low) & np.isfinite(high)
    points = np.where(ended, low, 0.0) + parts * np.where(ended, high - low, 0.0)
    values = _computed(operator, points.ravel()).reshape(points.shape)
    step = np.abs(np.diff(values, axis=0)).max(axis=0)
    known = ended & np.isfinite(values).all(axis=0)
    return (
        np.where(known, values.min(axis=0) - step, -np.inf),
        np.where(known, values.max(axis=0) + step, np.inf),
    )


def _cosine(low: Array, high: Array) -> Pair:
    """cos: 1 where a multiple of 2π lies in the operand's range, -1 where an odd multiple of π does."""
    turn = 2 * math.pi
    slack = _ROUNDING * np.maximum(np.abs(low), np.abs(high))  # π is not a double
    a, b = low - slack, high + slack
    holds_top = np.floor(b / turn) >= np.ceil(a / turn)
    holds_bottom = np.floor((b - math.pi) / turn) >= np.ceil((a - math.pi) / turn)
    ends = np.cos(low), np.cos(high)
    endless = ~(np.isfinite(low) & np.isfinite(high))
    error = slack + _ROUNDING
    return (
        np.where(holds_bottom | endless, -1.0, np.maximum(np.minimum(*ends) - error, -1.0)),
        np.where(holds_top | endless, 1.0, np.minimum(np.maximum(*ends) + error, 1.0)),
    )


_Slope = Callable[[Pair, Pair], Pair]
_SLOPES: Mapping[Role, _Slope] = {
    Role.NEGATION: lambda a, v: (-np.ones_like(a[0]), -np.ones_like(a[0])),
    Role.ROOT: lambda a, v: _over((np.full_like(a[0], 0.5),) * 2, v),
    Role.EXPONENTIAL: lambda a, v: v,
    Role.LOGARITHM: lambda a, v: _reciprocal((np.maximum(a[0], 0.0), np.maximum(a[1], 0.0))),
    Role.SINE: lambda a, v: _cosine(*a),
    Role.COSINE: lambda a, v: _cosine(a[0] + math.pi / 2, a[1] + math.pi / 2),  # -sin(a) = cos(a + π/2)
    Role.MAGNITUDE: lambda a, v: (np.where(a[0] >= 0, 1.0, -1.0), np.where(a[1] <= 0, -1.0, 1.0)),
}


def _slope_of_unary(operator: Operator, a: Pair, value: Pair) -> Pair:
    """Bounds of the derivative; of a monotone function without a rule of its own at least the sign."""
    rule = _SLOPES.get(operator.role)
    if rule is not None:
        return rule(a, value)
    endless, zero = np.full_like(a[0], np.inf), np.zeros_like(a[0])
    if operator.traits.monotone:
        return (zero, endless) if operator.traits.monotone > 0 else (-endless, zero)
    return -endless, endless
