"""The tests that a callable of the user's must pass to become an operator: it is tried on small tensors.

Knows nothing of operators but that they work element by element, and of their traits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from symenum.operators.traits import REALS, Interval, Traits

__all__ = ["probe", "probe_inverse", "probe_traits", "slopes"]


Slope = Callable[..., Tensor]
_STEP = 6e-6  # about the cube root of the precision: where central differences are best
# Traits are tried at these points. 400 of them between -5 and 5 lie 0.025 apart, so that a sine's top is met to 1e-4,
# and exp(exp(x)) is still finite. The last digits keep them off 0, 1, π/2 and other points where functions fail.
_POINTS, _REACH, _OFF = 400, 5.0, 0.00314159
_NEAR = 1e-8  # largest relative difference of two values that count as equal: half of the digits of a double
_FEWEST = 8  # points that must have a value, or a trait cannot be judged
_FAR = 1e9  # a function that tends to a limit is within 1% of it here
_REACHED = 0.01  # part of the range's width by which values may stay away from its ends
_POLE = 1e12  # a value beyond stands for a pole where rounding hides it
_SCALES = (0.5, 2.0, 3.0)


def probe(name: str, function: Callable[..., Tensor], arity: int, commutative: bool) -> None:
    """Refuse a callable that is not an element-by-element function of float64 tensors."""
    generator = torch.Generator().manual_seed(0)  # of no search: whether an operator is accepted must not be chance
    arguments = [torch.rand(3, 4, generator=generator, dtype=torch.float64) * 4 - 1 for _ in range(arity)]
    before = [argument.clone() for argument in arguments]
    what = f"function of operator {name!r}"
    try:
        result = function(*arguments)
    except Exception as error:
        raise ValueError(f"{what} failed on tensors of shape (3, 4): {type(error).__name__}: {error}") from error
    if not isinstance(result, Tensor):
        raise TypeError(f"{what} must return a torch tensor, not {type(result).__name__}")
    if result.shape != (3, 4):
        raise ValueError(
            f"{what} returned shape {tuple(result.shape)} for input of shape (3, 4): it must keep the shape"
        )
    if result.dtype != torch.float64:
        raise TypeError(f"{what} returned {result.dtype} for torch.float64 input: it must keep the type")
    if any(not torch.equal(a, b) for a, b in zip(arguments, before, strict=True)):
        raise ValueError(f"{what} changed its input in place: return a new tensor")
    alone = function(*(argument[1:2, 2:3].clone() for argument in arguments))
    if not torch.allclose(alone, result[1:2, 2:3], rtol=1e-12, atol=0, equal_nan=True):
        raise ValueError(f"{what} does not work element by element: a value depends on the other rows or columns")
    if not torch.allclose(function(*arguments), result, rtol=0, atol=0, equal_nan=True):
        raise ValueError(f"{what} gives different results for the same input")
    if not bool(torch.isfinite(result).any()):
        raise ValueError(f"{what} gave no finite value on inputs between -1 and 3")
    if commutative and not torch.allclose(function(*reversed(arguments)), result, rtol=1e-12, atol=0, equal_nan=True):
        raise ValueError(f"{what} is declared commutative, but f(a, b) and f(b, a) differ")


def slopes(function: Callable[..., Tensor], arity: int) -> tuple[Slope, ...] | None:
    """None where torch differentiates the function; else its derivatives by central differences, one for each operand.

    A function that leaves torch on its way (for NumPy, or detached) is as good an operator as any other.
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
    """Refuse traits that the function does not have, with the point where it shows."""
    what = f"traits of operator {name!r}"
    if arity == 2:
        stated = [trait for trait in ("period", "monotone", "domain", "range") if getattr(traits, trait)]
        if stated:
            raise ValueError(f"{what} state {' and '.join(stated)}, which only an operator with one operand can have")
        # Each point with one that lies elsewhere, so that all signs and sizes meet.
        points = [_points(), _points().roll(_POINTS // 3)]
    else:
        points = [_points()] if traits.domain is None else [_inside(traits.domain)]
    if traits.strict:
        _probe_strict(what, function, arity)
    values = function(*points)
    if traits.parity:
        mirrored = function(*(-point for point in points))
        _equal(what, f"parity {traits.parity:+d}", points, mirrored, traits.parity * values)
    if traits.degree is not None:
        for scale in _SCALES:
            scaled = function(*(scale * point for point in points))
            _equal(what, f"degree {traits.degree:g}", points, scaled, scale**traits.degree * values)
    if traits.period is not None:
        _probe_period(what, function, points[0], traits.period)
    if traits.monotone:
        _probe_monotone(what, points[0], values, traits.monotone)
    if traits.domain is not None:
        _probe_domain(what, function, traits.domain, traits.poles)
    if traits.range is not None:
        _probe_range(what, function, points[0], traits)


def probe_inverse(name: str, function: Callable[..., Tensor], inverse: Callable[..., Tensor]) -> None:
    """Refuse an inverse g that does not solve f(x) = y for the values y of f: f(g(y)) must be y."""
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
    return torch.linspace(-_REACH, _REACH, _POINTS, dtype=torch.float64) + _OFF


def _inside(domain: Interval) -> Tensor:
    """Points of the domain, ascending, within the reach of 0 or of its finite ends."""
    if math.isfinite(domain.low) and math.isfinite(domain.high):
        low, high = domain.low, domain.high
    elif math.isfinite(domain.low):
        low, high = domain.low, domain.low + 2 * _REACH
    elif math.isfinite(domain.high):
        low, high = domain.high - 2 * _REACH, domain.high
    else:
        return _points()
    parts = (torch.arange(_POINTS, dtype=torch.float64) + 0.5 + _OFF) / _POINTS
    return low + (high - low) * parts


def _close(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).abs() <= _NEAR * (1 + torch.maximum(one.abs(), other.abs()))


def _equal(what: str, trait: str, points: list[Tensor], found: Tensor, expected: Tensor) -> None:
    """Refuse values that differ, wherever both are finite."""
    both = torch.isfinite(found) & torch.isfinite(expected)
    if int(both.sum()) < _FEWEST:
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
    _equal(what, f"period {period:.6g}", [points], function(points + period), values)
    for parts in (2, 3, 5):
        shifted = function(points + period / parts)
        both = torch.isfinite(shifted) & torch.isfinite(values)
        if bool(_close(shifted, values)[both].all()):
            raise ValueError(f"{what} state period {period:.6g}, but the function repeats after {period / parts:.6g}")


def _probe_monotone(what: str, points: Tensor, values: Tensor, monotone: int) -> None:
    finite = torch.isfinite(values)
    if int(finite.sum()) < _FEWEST:
        raise ValueError(f"{what} state monotone, but the function has too few values between -5 and 5 to tell")
    points, values = points[finite], values[finite]
    back = monotone * values.diff() < -_NEAR * values[1:].abs()
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
    beyond = [end + sign * step for (end, _), sign in zip(ends, (-1, 1), strict=True) for step in (0.01, 1.0, 4.0)]
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
    if len(values) < _FEWEST:
        raise ValueError(f"{what} state a range, but the function has too few values between -5 and 5 to tell")
    low, high = float(values.min()), float(values.max())
    # Rounding closes an open end: tanh(20) is 1.
    for end, extreme, sign in ((interval.low, low, -1), (interval.high, high, 1)):
        if sign * (extreme - end) > _NEAR * (1 + abs(extreme)):
            raise ValueError(f"{what} state the range {interval}, but the function has the value {extreme:.6g}")
    width = interval.high - interval.low
    for end, nearest in ((interval.low, low), (interval.high, high)):
        if math.isfinite(end) and abs(nearest - end) > _REACHED * (width if math.isfinite(width) else 1 + abs(end)):
            raise ValueError(
                f"{what} state the range {interval}, but the nearest value to {end:g} that was found is {nearest:.6g}"
            )
