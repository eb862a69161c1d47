"""Shapes: what the user knows of how a law behaves over a box, and whether an expression is proved to behave so.

A verdict has three values. *Proved*: bounds of the law or of its derivatives, by interval arithmetic on ever smaller
boxes, leave no point where it could be otherwise, up to rounding. *Broken*: a point was found where it is otherwise.
*Open*: neither, within the work that is allowed; such a law looks right wherever it was looked at. Bounds only hold
where the law has a value, so a law that may have a pole or an undefined point in the box is never proved.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from symenum.core.exactness import EXACTNESS
from symenum.expressions import (
    Constant,
    Expression,
    Variable,
    apply,
    derivative,
    evaluate,
    same_function,
    simplify,
    substitute,
    variables,
    walk,
)
from symenum.sanity.domains import is_defined
from symenum.sanity.intervals import Array, Boxes, bounds_of_nodes, has_bounds, tight_bounds
from symenum.sanity.region import Region

__all__ = [
    "Bounded", "Box", "Limit", "Mirrored", "Point", "Requirement", "Shape", "Sloped", "Swapped", "Verdict",
]  # fmt: skip

Box: TypeAlias = Mapping[str, tuple[float, float]]

# By trial on random laws of complexity 20: with four times as many boxes, one verdict in a hundred changes.
_MAX_BOXES = 4096  # boxes that are looked at for one requirement
_POINTS = 256  # points of the box at which a law is looked at before anything is proved
_LINES, _STEPS = 64, 17  # lines along a variable on which a law is looked at, and points of each
_ALLOWED = 1e-9  # of the largest value: a breach up to it is rounding
_FAR = (1e2, 1e4, 1e6, 1e8)  # times the width of the box: where a limit is looked at
_NEAR_LIMIT = 1e-3  # of the size of the law: how near it must come to its limit at the farthest of these points


class Verdict(enum.Enum):
    """What is known of a law and a requirement."""

    PROVED = "proved"
    OPEN = "not proved"
    BROKEN = "broken"


@dataclass(frozen=True)
class Requirement(ABC):
    """One thing that the user knows; `text` is how it is said."""

    text: str

    @abstractmethod
    def verdict(self, law: Expression, box: Box) -> Verdict:
        """What is known of a law with all the work that is allowed."""

    def is_broken(self, law: Expression, box: Box) -> bool:
        """Whether a look at some points shows that a law breaks it: quick, and asked of many laws of a search."""
        return self.verdict(law, box) is Verdict.BROKEN


@dataclass(frozen=True)
class Sloped(Requirement):
    """sign · ∂ⁿf/∂xⁿ ≥ 0: rising or falling for order 1, convex or concave for order 2."""

    name: str
    sign: int
    order: int = 1

    def verdict(self, law: Expression, box: Box) -> Verdict:
        """See `Requirement`; where the derivative cannot be written, differences along the variable decide."""
        if self.name not in variables(law):
            return Verdict.PROVED
        if self.is_broken(law, box):
            return Verdict.BROKEN
        slope: Expression | None = law
        for _ in range(self.order):
            slope = None if slope is None else derivative(slope, self.name)
        if slope is None:
            return Verdict.OPEN
        return _at_least(law, slope if self.sign > 0 else apply("neg", slope), 0.0, box)

    def is_broken(self, law: Expression, box: Box) -> bool:
        """See `Requirement`."""
        return self.name in variables(law) and _differs(law, self.name, self.sign, self.order, box)


@dataclass(frozen=True)
class Bounded(Requirement):
    """low ≤ f ≤ high; an end may be infinite. `open_low`: above low, not at it."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False

    def verdict(self, law: Expression, box: Box) -> Verdict:
        """See `Requirement`."""
        found = [Verdict.PROVED]
        if self.low > -math.inf:
            found.append(_at_least(law, law, self.low, box, strictly=self.open_low))
        if self.high < math.inf:
            found.append(_at_least(law, apply("neg", law), -self.high, box))
        return _worst(found)

    def is_broken(self, law: Expression, box: Box) -> bool:
        """See `Requirement`."""
        values = _values(law, _points({name: box[name] for name in variables(law)}))
        seen = values[np.isfinite(values)]
        slack = _ALLOWED * float(np.abs(seen).max(initial=0.0))
        too_low = (seen <= self.low) if self.open_low else (seen < self.low - slack)
        return bool((too_low | (seen > self.high + slack)).any())


@dataclass(frozen=True)
class Point(Requirement):
    """f = value wherever these variables have these values, whatever the others have."""

    at: tuple[tuple[str, float], ...]
    value: float

    def verdict(self, law: Expression, box: Box) -> Verdict:
        """See `Requirement`."""
        there = _with_numbers(law, dict(self.at))
        rest = {name: ends for name, ends in box.items() if name in variables(there)}
        values = _values(there, _points(rest))
        size = max(abs(self.value), _size(law, box))
        if not bool((np.abs(values - self.value) <= EXACTNESS.scanned * size).all()):  # false for NaN
            return Verdict.BROKEN
        return Verdict.PROVED if not variables(there) else Verdict.OPEN


@dataclass(frozen=True)
class Limit(Requirement):
    """f → value as a variable goes to infinity; the value may be infinite."""

    name: str
    towards: float
    value: float

    def verdict(self, law: Expression, box: Box) -> Verdict:
        """See `Requirement`; a limit is looked at far outside the box, and proved only where the law does not vary."""
        points = _points({name: ends for name, ends in box.items() if name in variables(law)})
        if self.name not in variables(law):
            values = _values(law, points)
            same = bool((np.abs(values - self.value) <= EXACTNESS.scanned * max(1.0, abs(self.value))).all())
            return Verdict.PROVED if same else Verdict.BROKEN
        low, high = box[self.name]
        width = max(high - low, abs(high), abs(low))
        steps = [low - far * width if self.towards < 0 else high + far * width for far in _FAR]
        columns = [_values(law, {**points, self.name: np.full_like(points[self.name], step)}) for step in steps]
        if not all(bool(np.isfinite(column).all()) for column in columns[:1]):
            return Verdict.BROKEN
        last, first = columns[-1], columns[0]
        if math.isinf(self.value):
            grows = np.where(np.isnan(last), -np.inf, math.copysign(1.0, self.value) * last)
            return Verdict.OPEN if bool((grows > np.abs(first)).all()) else Verdict.BROKEN
        near = np.abs(last - self.value) <= _NEAR_LIMIT * max(abs(self.value), _size(law, box))
        return Verdict.OPEN if bool(near.all()) else Verdict.BROKEN


@dataclass(frozen=True)
class Swapped(Requirement):
    """f(…) with variables in other places equals f: each variable -> the one that takes its place."""

    places: tuple[tuple[str, str], ...]

    def verdict(self, law: Expression, box: Box) -> Verdict:
        """See `Requirement`."""
        other = substitute(law, {name: Variable(new) for name, new in self.places})
        return Verdict.PROVED if same_function(law, other) else Verdict.BROKEN


@dataclass(frozen=True)
class Mirrored(Requirement):
    """f with -x for these variables is sign·f: even or odd."""

    names: tuple[str, ...]
    sign: int

    def verdict(self, law: Expression, box: Box) -> Verdict:
        """See `Requirement`."""
        other = substitute(law, {name: apply("neg", Variable(name)) for name in self.names})
        wanted = law if self.sign > 0 else apply("neg", law)
        return Verdict.PROVED if same_function(other, wanted) else Verdict.BROKEN


@dataclass(frozen=True)
class Shape:
    """All that the user knows, and the box over which it must hold."""

    requirements: tuple[Requirement, ...]
    box: Box
    _known: dict[Expression, tuple[Verdict, ...]] = field(default_factory=dict, repr=False, compare=False)
    _seen: dict[Expression, list[str]] = field(default_factory=dict, repr=False, compare=False)

    def verdicts(self, law: Expression) -> tuple[Verdict, ...]:
        """One for each requirement."""
        if law not in self._known:
            with np.errstate(all="ignore"):
                self._known[law] = tuple(one.verdict(law, self.box) for one in self.requirements)
        return self._known[law]

    def verdict(self, law: Expression) -> Verdict:
        """The worst of them."""
        return _worst(self.verdicts(law))

    def broken(self, law: Expression) -> list[str]:
        """The requirements that it breaks, as they are said."""
        return [one.text for one, found in self._paired(law) if found is Verdict.BROKEN]

    def seen_broken(self, law: Expression) -> list[str]:
        """The same, as far as a quick look at some points shows it."""
        if law not in self._seen:
            with np.errstate(all="ignore"):
                self._seen[law] = [one.text for one in self.requirements if one.is_broken(law, self.box)]
        return self._seen[law]

    def mark(self, law: Expression) -> str:
        """The verdict in words: "proved", or what is not proved, or what is broken."""
        worst = self.verdict(law)
        if worst is Verdict.PROVED:
            return str(worst.value)
        return f"{worst.value}: {', '.join(one.text for one, found in self._paired(law) if found is worst)}"

    def _paired(self, law: Expression) -> list[tuple[Requirement, Verdict]]:
        return list(zip(self.requirements, self.verdicts(law), strict=True))


def _worst(found: Sequence[Verdict]) -> Verdict:
    order = [Verdict.PROVED, Verdict.OPEN, Verdict.BROKEN]
    return max(found, key=order.index, default=Verdict.PROVED)


def _at_least(law: Expression, quantity: Expression, least: float, box: Box, *, strictly: bool = False) -> Verdict:
    """Whether `quantity` ≥ least over the box, on which the law itself must have values."""
    names = variables(quantity)
    own = {name: box[name] for name in variables(law)}
    points = _points(own)
    values = _values(quantity, points)
    seen = values[np.isfinite(values)]
    size = max(float(np.abs(seen).max(initial=0.0)), abs(least))
    slack = 0.0 if strictly else _ALLOWED * size
    if bool((seen < least - slack).any()) or (strictly and bool((seen <= least).any())):
        return Verdict.BROKEN
    if not all(map(has_bounds, (*walk(law), *walk(quantity)))) or not _has_values(law, own):
        return Verdict.OPEN
    if not names:
        return Verdict.PROVED
    return _bisected(law, quantity, least, slack, own, strictly=strictly)


def _bisected(
    law: Expression, quantity: Expression, least: float, slack: float, box: Box, *, strictly: bool
) -> Verdict:
    """The same by bounds over boxes, the widest of which are halved until all are proved or there are too many."""
    boxes = Boxes(
        {name: np.array([low]) for name, (low, _) in box.items()},
        {name: np.array([high]) for name, (_, high) in box.items()},
    )
    names = list(box)
    looked_at = 0
    while boxes.count and looked_at < _MAX_BOXES:
        looked_at += boxes.count
        own = Boxes(
            {name: boxes.low[name] for name in variables(quantity)},
            {name: boxes.high[name] for name in variables(quantity)},
        )
        low, _, moved = tight_bounds(quantity, own)
        of_law = bounds_of_nodes(law, boxes, ())[law]
        finite = np.isfinite(of_law.low) & np.isfinite(of_law.high)
        proved = finite & ((low > least) if strictly else (low >= least - slack))
        middle = evaluate(quantity, boxes.middle()) if variables(quantity) else None
        if middle is not None and bool((middle < least - slack).any()):
            return Verdict.BROKEN
        if bool(proved.all()):
            return Verdict.PROVED
        boxes = boxes.at(~proved)
        boxes = boxes.halves(names, _widest(quantity, names, moved[:, ~proved], boxes, box))
    return Verdict.OPEN


def _widest(quantity: Expression, names: Sequence[str], moved: Array, boxes: Boxes, box: Box) -> npt.NDArray[np.int64]:
    """The variable of each box that moves the quantity most; where that is not known, the one that is widest."""
    own = {name: at for at, name in enumerate(variables(quantity))}
    widths = np.stack(
        [(boxes.high[name] - boxes.low[name]) / max(box[name][1] - box[name][0], 1e-300) for name in names]
    )
    effect = np.stack([moved[own[name]] if name in own else np.zeros(boxes.count) for name in names])
    known = np.isfinite(effect).all(axis=0) & (effect > 0).any(axis=0)
    widest: npt.NDArray[np.int64] = np.where(known, effect.argmax(axis=0), widths.argmax(axis=0))
    return widest


def _has_values(law: Expression, box: Box) -> bool:
    """Whether it has a finite value at every point of the box, as far as interval arithmetic tells."""
    if not box:
        return True
    region = Region({name: np.array(ends) for name, ends in box.items()})
    return is_defined(law, region, max(_size(law, box), 1e-300))


def _size(law: Expression, box: Box) -> float:
    values = _values(law, _points({name: box[name] for name in variables(law)}))
    seen = values[np.isfinite(values)]
    return float(np.abs(seen).max(initial=0.0))


def _points(box: Box, count: int = _POINTS) -> dict[str, Array]:
    """About so many points of the box, corners among them, the same every time."""
    return dict(_points_of(tuple(box.items()), count)) if box else {}


@lru_cache(maxsize=1000)  # the boxes of a search are few, and asked for again and again
def _points_of(box: tuple[tuple[str, tuple[float, float]], ...], count: int) -> dict[str, Array]:
    region = Region({name: np.array(ends, dtype=np.float64) for name, ends in box})
    return region.points([name for name, _ in box], count)


def _values(expression: Expression, points: Mapping[str, Array]) -> Array:
    found: Array = np.asarray(evaluate(expression, dict(points)), dtype=np.float64)
    return np.atleast_1d(found)


def _with_numbers(law: Expression, numbers: Mapping[str, float]) -> Expression:
    constants = {name: Constant(int(value) if float(value).is_integer() else value) for name, value in numbers.items()}
    return simplify(substitute(law, constants))


def _differs(law: Expression, name: str, sign: int, order: int, box: Box) -> bool:
    """Whether differences of the law along a variable have the wrong sign somewhere, by more than rounding."""
    points = _points({one: box[one] for one in variables(law)}, _LINES)
    lines = len(points[name])
    along = np.repeat(np.linspace(*box[name], _STEPS), lines)
    columns = {one: np.tile(column, _STEPS) for one, column in points.items()}
    rows = _values(law, {**columns, name: along}).reshape(_STEPS, lines)
    seen = rows[np.isfinite(rows)]
    slack = _ALLOWED * float(np.abs(seen).max(initial=0.0))
    changes = sign * np.diff(rows, n=order, axis=0)
    return bool((changes[np.isfinite(changes)] < -slack).any())
