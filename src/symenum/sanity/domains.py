"""Poles, overflow and undefined points of a law where the data are: found by points, excluded by interval arithmetic.

Asked are three things of a law on the region of the data, in this order:

- operands stay where their operators are defined: that of a logarithm above zero, that of a square root not below. An
  end that belongs to the domain is no pole and may be touched: the law of cosines is a root of what can be zero;
- a divisor is not zero, if nothing between it and the law's value bounds its quotient: in tanh(1/x) something does.
  One that changes its sign makes no pole if it jumps, or if the dividend is zero with it, as in sinh(x)/x: the law is
  computed where the sign changes between points of the region, and decides;
- the value of the law stays below a limit, so that it has no pole of another kind, no overflow and no spike.

Each is first tried at rows and points, which can only break it. It holds if the bounds of the operand over the whole
region keep to it. Where they do not, the region is cut into smaller and smaller boxes, up to a fixed number of them; a
condition that is still open then counts as broken, unless its domain is closed. So no pole passes, and a law may be
refused though it has none; how often that happens to true laws is measured by benchmarks/sanity.py. A condition is
judged on the variables of its operand alone: a divisor x1 - x2 is a question of two variables, whatever the law is.

Of a user's operator without a stated domain nothing can be proved: a law with one is tried at points only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Apply, Constant, Expression, evaluate, simplify, variables, walk
from symenum.operators.traits import MULTIPLICATIVE, REALS, Interval, Role
from symenum.sanity.intervals import Array, Boxes, Mask, bounds_of_nodes, tight_bounds
from symenum.sanity.region import Region

__all__ = ["is_defined"]

_POINTS = 128  # points of the region at which a condition is tried before it is proved
# The effort of one proof, and so the least distance of a pole from the region that is seen; by benchmarks/sanity.py,
# which prints how many true laws are refused.
_MAX_BOXES = 1500  # boxes that are looked at, in all,
_MAX_ROUNDS = 36  # and how often all that are left are cut in two: rounds with few boxes cost most
_WIDEST_EVERY = 3  # rounds: in one of so many, boxes are cut across their widest variable
_CROSSINGS = 64  # pairs of points with a change of sign between them at which the law is computed
_BISECTIONS = 80  # more than a double has digits: the last points are neighbours
# By definition: far beyond what a law of measurements does, in units of the largest |y|.
_LARGEST_VALUE = 1e12  # of a law; an exponential in the corner of a box may reach the 1e9 that no row has,
_POLE_VALUE = 1e6  # and where a divisor changes its sign: at a pole, neighbouring doubles give 1e10 and more
_LARGEST_EXPONENT = 700.0  # exp of more is too near to the end of the doubles, exp(709)
_NOT_NEGATIVE, _POSITIVE = Interval.closed(0.0, math.inf), Interval(0.0, math.inf)
_NO_OVERFLOW = Interval(-math.inf, _LARGEST_EXPONENT)
# Operators whose value has no bounds where an operand has none: a pole of an operand is a pole of the value.
_HANDS_ON = (
    *(Role.SUM, Role.DIFFERENCE, Role.PRODUCT, Role.NEGATION),
    *(Role.ROOT, Role.EXPONENTIAL, Role.LOGARITHM, Role.MAGNITUDE),
)


@dataclass(frozen=True)
class _Condition:
    """The values of `operand` must lie in `domain` and miss the `poles`."""

    operand: Expression
    domain: Interval
    poles: tuple[float, ...] = ()

    def holds(self, low: Array, high: Array, slack: float) -> Mask:
        """Whether all values from `low` to `high` keep to it: bool (boxes,).

        `slack`: how far beyond a closed end a value may lie by rounding.
        """
        domain = self.domain
        fine = (low > domain.low) | (domain.low == -math.inf)
        fine |= domain.low_closed & (low >= domain.low - slack)
        fine &= (high < domain.high) | (domain.high == math.inf) | (domain.high_closed & (high <= domain.high + slack))
        for pole in self.poles:
            fine &= (low > pole) | (high < pole)
        return fine

    def is_broken(self, values: Array, slack: float) -> bool:
        """Whether values (points,) of the operand break it: they lie outside, or at a pole."""
        return bool(np.isnan(values).any()) or not self.holds(values, values, slack).all()


def is_defined(law: Expression, region: Region, size: float) -> bool:
    """Whether the law is known to have no pole, no undefined point and no overflow in the region.

    `size`: the largest absolute value of y.
    """
    law = simplify(law)  # 1/(1/x) is x
    bounded = _Condition(law, Interval(-_LARGEST_VALUE * size, _LARGEST_VALUE * size))
    moderate = _Condition(law, Interval(-_POLE_VALUE * size, _POLE_VALUE * size))
    if not all(_is_known(node) for node in walk(law)):
        return not bounded.is_broken(_values(law, region), 0.0)
    if not all(_is_met(condition, region) for condition in dict.fromkeys(_domains(law))):
        return False
    crossed = False
    for divisor in dict.fromkeys(_divisors(law)):
        if _holds_on_box(divisor, region):
            continue
        columns = _crossing(divisor, law, region)
        if columns is not None and moderate.is_broken(evaluate(law, columns), 0.0):
            return False
        if columns is None and not _is_met(divisor, region):
            return False
        crossed = crossed or columns is not None
    return not bounded.is_broken(_values(law, region), 0.0) if crossed else _is_met(bounded, region)


def _domains(law: Expression) -> Iterator[_Condition]:
    """What operators that are not defined everywhere ask of their operands, inner ones first."""
    for node in walk(law):
        if not isinstance(node, Apply):
            continue
        role, operands, traits = node.operator.role, node.operands, node.operator.traits
        if role is Role.EXPONENTIAL:
            yield _Condition(operands[0], _NO_OVERFLOW)
        elif role is Role.POWER:
            base, exponent = operands
            if not isinstance(exponent, Constant):
                yield _Condition(base, _POSITIVE)
            elif not float(exponent.value).is_integer():
                yield _Condition(base, _NOT_NEGATIVE if exponent.value > 0 else _POSITIVE)
        elif node.operator.arity == 1 and traits.domain is not None and traits.domain != REALS:
            yield _Condition(operands[0], traits.domain)


def _divisors(law: Expression) -> Iterator[_Condition]:
    """The divisors, and the other operands with poles, that nothing bounds on the way to the value of the law."""
    stack = [law]
    while stack:
        node = stack.pop()
        if not isinstance(node, Apply):
            continue
        role, operands = node.operator.role, node.operands
        if role is Role.QUOTIENT:
            yield from _not_zero(operands[1])
            stack.append(operands[0])
        elif role is Role.POWER and isinstance(operands[1], Constant):
            if operands[1].value < 0:
                yield from _not_zero(operands[0])
            else:
                stack.append(operands[0])
        elif node.operator.traits.poles:
            yield _Condition(operands[0], REALS, node.operator.traits.poles)
        elif role in _HANDS_ON:
            stack += operands


def _not_zero(divisor: Expression) -> Iterator[_Condition]:
    """The parts of a divisor that must not be zero: its factors, and the bases of its powers."""
    role = divisor.operator.role if isinstance(divisor, Apply) else None
    operands = divisor.operands if isinstance(divisor, Apply) else ()
    if role in (*MULTIPLICATIVE, Role.NEGATION, Role.MAGNITUDE, Role.ROOT):
        for operand in operands:
            yield from _not_zero(operand)
    elif role is Role.POWER and isinstance(operands[1], Constant):
        yield from _not_zero(operands[0])
    else:
        yield _Condition(divisor, REALS, (0.0,))


def _is_known(node: Expression) -> bool:
    """Whether an operator states where it is defined."""
    if not isinstance(node, Apply) or node.operator.role is not Role.FUNCTION:
        return True
    return node.operator.arity == 1 and node.operator.traits.domain is not None


def _is_met(condition: _Condition, region: Region) -> bool:
    """Whether the condition is known to hold."""
    if _holds_on_box(condition, region):
        return True
    operand = condition.operand
    names = variables(operand)
    values = _values(operand, region)
    size = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    slack = EXACTNESS.fitted * size
    if condition.is_broken(values, slack) or not names:
        return False
    return _proved(condition, region, slack)


def _holds_on_box(condition: _Condition, region: Region) -> bool:
    """Whether the bounds over the whole box show it, without any cut: true of most conditions of most laws."""
    operand = condition.operand
    whole = bounds_of_nodes(operand, region.box(variables(operand)), ())[operand]
    return bool(condition.holds(whole.low, whole.high, 0.0).all())


def _columns(names: Sequence[str], region: Region) -> dict[str, Array]:
    """The rows, and points of the region: (points,) by name."""
    points = region.points(names, _POINTS)
    return {name: np.concatenate([region.columns[name], points[name]]) for name in names}


def _values(operand: Expression, region: Region) -> Array:
    """The operand's values (points,) at the rows and at points of the region."""
    return np.atleast_1d(evaluate(operand, _columns(variables(operand), region)))


def _crossing(divisor: _Condition, law: Expression, region: Region) -> dict[str, Array] | None:
    """Points on both sides of the places where the divisor crosses a pole, as near as doubles allow; None: it does not.

    Columns (points,) of all variables of the law.
    """
    columns = _columns(variables(law), region)
    values = evaluate(divisor.operand, columns)
    for pole in divisor.poles:
        above, below = np.flatnonzero(values > pole)[:_CROSSINGS], np.flatnonzero(values < pole)[:_CROSSINGS]
        if len(above) and len(below):
            count = max(len(above), len(below))
            start, end = np.resize(above, count), np.resize(below, count)
            return _bisected(divisor.operand, pole, columns, start, end)
    return None


def _bisected(
    operand: Expression,
    pole: float,
    columns: Mapping[str, Array],
    above: npt.NDArray[np.int64],
    below: npt.NDArray[np.int64],
) -> dict[str, Array]:
    """The last points on both sides of the pole, between pairs of points by their numbers (pairs,)."""
    high = {name: column[above] for name, column in columns.items()}
    low = {name: column[below] for name, column in columns.items()}
    for _ in range(_BISECTIONS):
        middle = {name: low[name] + (high[name] - low[name]) / 2 for name in columns}
        is_above = evaluate(operand, middle) > pole
        high = {name: np.where(is_above, middle[name], high[name]) for name in columns}
        low = {name: np.where(is_above, low[name], middle[name]) for name in columns}
    ends = {name: np.concatenate([low[name], high[name]]) for name in columns}
    beside = evaluate(operand, ends) != pole  # a removable pole has no value at itself
    return {name: column[beside] for name, column in ends.items()}


def _proved(condition: _Condition, region: Region, slack: float) -> bool:
    """Whether the bounds over ever smaller boxes show that the condition holds.

    After too many boxes it counts as broken, but for a closed domain whose end is perhaps only touched.
    """
    closed = not condition.poles and (condition.domain.low_closed or condition.domain.high_closed)
    names = variables(condition.operand)
    boxes = region.box(names)
    root = {name: float(boxes.high[name][0] - boxes.low[name][0]) for name in names}
    looked_at = 0
    for number in range(_MAX_ROUNDS):
        looked_at += boxes.count
        if looked_at > _MAX_BOXES:
            return closed
        low, high, moved = tight_bounds(condition.operand, boxes)
        open_ = ~condition.holds(low, high, slack)
        if not open_.any():
            return True
        boxes, moved = boxes.at(open_), moved[:, open_]
        if condition.is_broken(_middle_values(condition.operand, boxes, region), slack):
            return False
        widths = np.stack([(boxes.high[name] - boxes.low[name]) / (root[name] or 1.0) for name in names])
        # Cut across the variable that moves the operand most; where a slope has no bounds, and now and then in any
        # case, across the widest one: it may stand in two terms that nearly cancel.
        by_slope = np.isfinite(moved).all(axis=0) & (number % _WIDEST_EVERY != 0)
        weight = np.where(by_slope, moved, widths)
        weight = np.where((weight > 0).any(axis=0), weight, widths)
        boxes = boxes.halves(names, np.argmax(weight, axis=0))
        boxes = boxes.at(region.reaches(boxes))
        if not boxes.count:
            return True
    return closed


def _middle_values(operand: Expression, boxes: Boxes, region: Region) -> Array:
    """The operand's values at the middles of those boxes whose middle lies in the region."""
    middle = boxes.middle()
    inside = region.reaches(Boxes(middle, middle))
    values: Array = evaluate(operand, {name: column[inside] for name, column in middle.items()})
    return values
