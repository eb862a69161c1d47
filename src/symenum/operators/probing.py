"""The trial of a user's callable before it becomes an operator: its shape, dtype, traits and inverse, on small tensors.

All tensors here are float64 on the CPU. This module does not know the record `Operator`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from symenum.operators.traits import REALS, Interval, Traits

__all__ = ["probe", "probe_inverse", "probe_traits", "slopes"]


Slope = Callable[..., Tensor]  # (value, *operands) -> the derivative by one operand, all of one shape
_STEP = 6e-6  # of central differences, relative to 1 + |x|: the cube root of the machine epsilon, where they err least
_TRIAL_SHAPE = (3, 4)  # of the tensors that a callable is tried on: two axes of different lengths
_SHAPE_TOLERANCE = 1e-12  # largest relative change of a value with its place in a tensor, or with the operands' order
# Traits are tried at _POINTS points x with |x| ≤ _REACH. They lie 0.025 apart, so that the top of a sine is met to
# 1e-4, and exp(exp(_REACH)) is still finite. _SHIFT keeps them off 0, 1, π/2 and other points where functions fail.
_POINTS, _REACH, _SHIFT = 400, 5.0, 0.00314159
_EQUAL = 1e-8  # largest difference, relative to 1 + size, of two values that count as equal: half of a double's digits
_MIN_VALUES = 8  # points that must have a finite value; with fewer a trait cannot be judged
_FAR = 1e9  # an argument at which a function that tends to a limit is taken to have reached it
_RANGE_GAP = 0.01  # largest distance of the values from an end of the stated range, as a part of its width
_POLE = 1e12  # |f| from which a point counts as a pole: rounding of the argument keeps f from being infinite
_SCALES = (0.5, 2.0, 3.0)  # factors c with which f(c·x) = c**degree·f(x) is tried: below 1, above 1, no power of 2
_PERIOD_PARTS = (2, 3, 5)  # p/2, p/3 and p/5 must not be periods: then p is the smallest one, but for rare multiples
_BEYOND = (0.01, 1.0, 4.0)  # distances outside the ends of a domain at which the function must have no value


def probe(name: str, function: Callable[..., Tensor], arity: int, commutative: bool) -> None:
    """Raise TypeError or ValueError for a callable that is not an element-by-element function of float64 tensors."""
    generator = torch.Generator().manual_seed(0)  # fixed: whether an operator is accepted must not depend on chance
    arguments = [torch.rand(_TRIAL_SHAPE, generator=generator, dtype=torch.float64) * 4 - 1 for _ in range(arity)]
    before = [argument.clone() for argument in arguments]
    what = f"function of operator {name!r}"
    try:
        result = function(*arguments)
    except Exception as error:
        raise ValueError(
            f"{what} failed on tensors of shape {_TRIAL_SHAPE}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(result, Tensor):
        raise TypeError(f"{what} must return a torch tensor, not {type(result).__name__}")
    if result.shape != _TRIAL_SHAPE:
        raise ValueError(
            f"{what} returned shape {tuple(result.shape)} for input of shape {_TRIAL_SHAPE}: it must keep the shape"
        )
    if result.dtype != torch.float64:
        raise TypeError(f"{what} returned {result.dtype} for torch.float64 input: it must keep the type")
    if any(not torch.equal(a, b) for a, b in zip(arguments, before, strict=True)):
        raise ValueError(f"{what} changed its input in place: return a new tensor")
    alone = function(*(argument[1:2, 2:3].clone() for argument in arguments))
    if not torch.allclose(alone, result[1:2, 2:3], rtol=_SHAPE_TOLERANCE, atol=0, equal_nan=True):
        raise ValueError(f"{what} does not work element by element: a value depends on the other rows or columns")
    if not torch.allclose(function(*arguments), result, rtol=0, atol=0, equal_nan=True):
        raise ValueError(f"{what} gives different results for the same input")
    if not bool(torch.isfinite(result).any()):
        raise ValueError(f"{what} gave no finite value on inputs between -1 and 3")
    if not commutative:
        return
    exchanged = function(*reversed(arguments))
    if not torch.allclose(exchanged, result, rtol=_SHAPE_TOLERANCE, atol=0, equal_nan=True):
        raise ValueError(f"{what} is declared commutative, but f(a, b) and f(b, a) differ")


def slopes(function: Callable[..., Tensor], arity: int) -> tuple[Slope, ...] | None:
    """The derivatives by central differences, one for each operand; None if torch differentiates the function itself.

    torch cannot differentiate a function that computes with NumPy, or on detached tensors.
    """
    arguments = [torch.full((2,), 0.7, dtype=torch.float64, requires_grad=True) for _ in range(arity)]
    try:
        function(*arguments)
    except RuntimeError:
        return tuple(_central(function, by) for by in range(arity))
    return None


def _central(function: Callable[..., Tensor], by: int) -> Slope:
    def slope(value: Tensor, *operands: Tensor) -> Tensor:
        step = _STEP * (1 + operands[by].abs())
        above, below = (
            function(*operands[:by], operands[by] + sign * step, *operands[by + 1 :]) for sign in (1.0, -1.0)
        )
        return (above - below) / (2 * step)

    return slope


def probe_traits(name: str, function: Callable[..., Tensor], arity: int, traits: Traits) -> None:
    """Raise ValueError for a trait that the function does not have; the message names a point where it fails."""
    what = f"traits of operator {name!r}"
    if arity == 2:
        stated = [trait for trait in ("period", "monotone", "domain", "range") if getattr(traits, trait)]
        if stated:
            raise ValueError(f"{what} state {' and '.join(stated)}, which only an operator with one operand can have")
        # Each point is paired with one a third of the range away, so that all combinations of signs occur.
        points = [_points(), _points().roll(_POINTS // 3)]
    else:
        points = [_points()] if traits.domain is None else [_inside(traits.domain)]
    if traits.strict:
        _probe_strict(what, function, arity)
    values = function(*points)
    if traits.parity:
        mirrored = function(*(-point for point in points))
        _check_equal(what, f"parity {traits.parity:+d}", points, mirrored, traits.parity * values)
    if traits.degree is not None:
        for scale in _SCALES:
            scaled = function(*(scale * point for point in points))
            _check_equal(what, f"degree {traits.degree:g}", points, scaled, scale**traits.degree * values)
    if traits.period is not None:
        _probe_period(what, function, points[0], traits.period)
    if traits.monotone:
        _probe_monotone(what, points[0], values, traits.monotone)
    if traits.domain is not None:
        _probe_domain(what, function, traits.domain, traits.poles)
    if traits.range is not None:
        _probe_range(what, function, points[0], traits)


def probe_inverse(name: str, function: Callable[..., Tensor], inverse: Callable[..., Tensor]) -> None:
    """Raise ValueError unless f(g(y)) = y for the function f, its inverse g and values y of f."""
    what = f"inverse of operator {name!r}"
    values = function(_points())
    values = values[torch.isfinite(values)]
    back = inverse(values)
    if not bool(torch.isfinite(back).all()):
        raise ValueError(f"{what} has no value at {float(values[~torch.isfinite(back)][0]):g}, a value of {name}")
    again = function(back)
    wrong = torch.nonzero(~_close(again, values)).flatten()
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            f"{what} does not undo it: from the value {float(values[at]):g} it leads to {float(back[at]):g}, "
            f"whose value is {float(again[at]):g}"
        )


def _points() -> Tensor:
    """Points (400,) between -5 and 5, ascending."""
    return torch.linspace(-_REACH, _REACH, _POINTS, dtype=torch.float64) + _SHIFT


def _inside(domain: Interval) -> Tensor:
    """Points (400,) inside the domain, ascending, at most 10 from a finite end, or between -5 and 5 without one."""
    if math.isfinite(domain.low) and math.isfinite(domain.high):
        low, high = domain.low, domain.high
    elif math.isfinite(domain.low):
        low, high = domain.low, domain.low + 2 * _REACH
    elif math.isfinite(domain.high):
        low, high = domain.high - 2 * _REACH, domain.high
    else:
        return _points()
    parts = (torch.arange(_POINTS, dtype=torch.float64) + 0.5 + _SHIFT) / _POINTS
    return low + (high - low) * parts


def _close(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).abs() <= _EQUAL * (1 + torch.maximum(one.abs(), other.abs()))


def _check_equal(what: str, trait: str, points: list[Tensor], found: Tensor, expected: Tensor) -> None:
    """Raise ValueError if found and expected values differ at a point where both are finite."""
    both = torch.isfinite(found) & torch.isfinite(expected)
    if int(both.sum()) < _MIN_VALUES:
        raise ValueError(f"{what} state {trait}, but the function has too few values between -5 and 5 to tell")
    wrong = torch.nonzero(both & ~_close(found, expected)).flatten()
    if len(wrong):
        at = int(wrong[0])
        where = ", ".join(f"{float(point[at]):.6g}" for point in points)
        raise ValueError(
            f"{what} state {trait}, but at {where} the function gives {float(found[at]):.6g} "
            f"where {float(expected[at]):.6g} follows from it"
        )


def _probe_strict(what: str, function: Callable[..., Tensor], arity: int) -> None:
    for by in range(arity):
        # 1**NaN and NaN**0 are 1 in floating point.
        others = torch.tensor([0.0, 1.0, -1.0, 2.0], dtype=torch.float64)
        operands = [torch.full_like(others, math.nan) if i == by else others for i in range(arity)]
        if not bool(function(*operands).isnan().all()):
            raise ValueError(f"{what} state strict, but the function has a value where an operand is NaN")


def _probe_period(what: str, function: Callable[..., Tensor], points: Tensor, period: float) -> None:
    values = function(points)
    _check_equal(what, f"period {period:.6g}", [points], function(points + period), values)
    for parts in _PERIOD_PARTS:
        shifted = function(points + period / parts)
        both = torch.isfinite(shifted) & torch.isfinite(values)
        if bool(_close(shifted, values)[both].all()):
            raise ValueError(f"{what} state period {period:.6g}, but the function repeats after {period / parts:.6g}")


def _probe_monotone(what: str, points: Tensor, values: Tensor, monotone: int) -> None:
    finite = torch.isfinite(values)
    if int(finite.sum()) < _MIN_VALUES:
        raise ValueError(f"{what} state monotone, but the function has too few values between -5 and 5 to tell")
    points, values = points[finite], values[finite]
    back = monotone * values.diff() < -_EQUAL * values[1:].abs()
    if bool(back.any()):
        at = int(torch.nonzero(back).flatten()[0])
        raise ValueError(
            f"{what} state monotone {monotone:+d}, but from {float(points[at]):.6g} to {float(points[at + 1]):.6g} "
            f"the function goes from {float(values[at]):.6g} to {float(values[at + 1]):.6g}"
        )


def _probe_domain(what: str, function: Callable[..., Tensor], domain: Interval, poles: tuple[float, ...]) -> None:
    inside = _inside(domain)
    missing = inside[~torch.isfinite(function(inside))]
    if len(missing):
        raise ValueError(f"{what} state the domain {domain}, but at {float(missing[0]):.6g} the function has no value")
    ends = [(end, closed) for end, closed in ((domain.low, domain.low_closed), (domain.high, domain.high_closed))]
    for end, closed in ends:
        if math.isfinite(end) and _has_value(function, end) != closed:
            state = "has a value" if not closed else "has no value"
            raise ValueError(f"{what} state the domain {domain}, but at its end {end:g} the function {state}")
    beyond = [end + sign * step for (end, _), sign in zip(ends, (-1, 1), strict=True) for step in _BEYOND]
    for point in beyond:
        if math.isfinite(point) and _has_value(function, point):
            raise ValueError(f"{what} state the domain {domain}, but at {point:g} the function has a value too")
    for pole in poles:
        if _has_value(function, pole):
            raise ValueError(f"{what} state a pole at {pole:g}, but the function has a value there")


def _has_value(function: Callable[..., Tensor], point: float) -> bool:
    value = float(function(torch.tensor([point], dtype=torch.float64))[0])
    return math.isfinite(value) and abs(value) < _POLE


def _probe_range(what: str, function: Callable[..., Tensor], points: Tensor, traits: Traits) -> None:
    interval, domain = traits.range or REALS, traits.domain or REALS
    ends = [end for end in (domain.low, domain.high) if end in domain]
    values = function(torch.cat([points, torch.tensor([*ends, 0.0, -_FAR, _FAR], dtype=torch.float64)]))
    values = values[torch.isfinite(values)]
    if len(values) < _MIN_VALUES:
        raise ValueError(f"{what} state a range, but the function has too few values between -5 and 5 to tell")
    low, high = float(values.min()), float(values.max())
    # Rounding closes an open end: tanh(20) is 1.
    for end, extreme, sign in ((interval.low, low, -1), (interval.high, high, 1)):
        if sign * (extreme - end) > _EQUAL * (1 + abs(extreme)):
            raise ValueError(f"{what} state the range {interval}, but the function has the value {extreme:.6g}")
    width = interval.high - interval.low
    for end, nearest in ((interval.low, low), (interval.high, high)):
        if math.isfinite(end) and abs(nearest - end) > _RANGE_GAP * (width if math.isfinite(width) else 1 + abs(end)):
            raise ValueError(
                f"{what} state the range {interval}, but the nearest value to {end:g} that was found is {nearest:.6g}"
            )
