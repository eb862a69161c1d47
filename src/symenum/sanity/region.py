"""Where the data are: the box of the columns, less the parts of it that two columns together leave empty.

Columns that move together leave most of their common box empty: where the outlet of a pipe is always colder than its
inlet, no row lies above the diagonal, and a law such as (a - b)/log(a/b) has its pole there. For each pair of columns
the half planes x ± y ≤ c that hold all rows are looked at, in units of both columns and in the units of each one's
range. Such an edge counts only if it takes a quarter of the box or more away, and if independent columns would hardly
leave so much empty. So the corners of a box that a few hundred rows happen not to reach belong to the region.

The region holds the convex hull of the rows, and for columns that are independent it is the whole box.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from symenum.sanity.intervals import Array, Boxes, Mask

__all__ = ["Region"]

# By definition: what counts as an empty part of a box, not as rows that are few.
_MIN_EMPTY = 0.25  # part of the box of two columns that an edge must take away
_MAX_CHANCE = 1e-6  # probability that independent columns leave such a part empty
_GRID = 48  # points along each side of the box of two columns, by which the empty part is measured
_LIKE_UNITS = 10.0  # largest ratio of the ranges of two columns that may be differences in one unit


@dataclass(frozen=True)
class _Edge:
    """All rows fulfil a·x + b·y ≤ limit for the columns x and y."""

    x: str
    y: str
    a: float
    b: float
    limit: float

    def lowest(self, low: Mapping[str, Array], high: Mapping[str, Array]) -> Array:
        """The least value of a·x + b·y in each box."""
        x = low[self.x] if self.a > 0 else high[self.x]
        y = low[self.y] if self.b > 0 else high[self.y]
        return self.a * x + self.b * y


@dataclass(frozen=True)
class Region:
    """`columns` (rows,) float64 by name, finite."""

    columns: Mapping[str, Array]
    _edges: dict[tuple[str, str], tuple[_Edge, ...]] = field(default_factory=dict, repr=False)  # by pair, once asked

    def box(self, names: Sequence[str]) -> Boxes:
        """The one box of these columns."""
        low = {name: np.array([self.columns[name].min()]) for name in names}
        return Boxes(low, {name: np.array([self.columns[name].max()]) for name in names})

    def reaches(self, boxes: Boxes) -> Mask:
        """Whether each box may hold points of the region: bool (boxes,)."""
        inside = np.ones(boxes.count, dtype=bool)
        for edge in self._edges_of(tuple(boxes.low)):
            inside &= edge.lowest(boxes.low, boxes.high) <= edge.limit
        return inside

    def points(self, names: Sequence[str], count: int) -> dict[str, Array]:
        """Up to so many points of the region, spread evenly over the box, its middle and corners among them."""
        box = self.box(names)
        low = np.array([box.low[name][0] for name in names])
        high = np.array([box.high[name][0] for name in names])
        corners = np.array(list(itertools.islice(itertools.product((0.0, 1.0), repeat=len(names)), count)))
        spread = np.arange(1, count + 1)[:, None] * _steps(len(names)) % 1.0
        unit = np.concatenate([np.full((1, len(names)), 0.5), corners, spread]) if len(names) else np.zeros((1, 0))
        values = low + unit * (high - low)
        points = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)}
        inside = self.reaches(Boxes(points, points)) if names else np.ones(1, dtype=bool)
        return {name: column[inside] for name, column in points.items()}

    def _edges_of(self, names: Sequence[str]) -> Iterator[_Edge]:
        for pair in itertools.combinations(names, 2):
            if pair not in self._edges:
                self._edges[pair] = tuple(self._found_edges(*pair))
            yield from self._edges[pair]

    def _found_edges(self, x: str, y: str) -> Iterator[_Edge]:
        first, second = self.columns[x], self.columns[y]
        widths = float(np.ptp(first)), float(np.ptp(second))
        if not all(width > 0 for width in widths):
            return
        scales = [(1 / widths[0], 1 / widths[1])]
        if max(widths) <= _LIKE_UNITS * min(widths):
            scales.append((1.0, 1.0))
        least = max(_MIN_EMPTY, 1 - _MAX_CHANCE ** (1 / len(first)))
        grid = [np.linspace(column.min(), column.max(), _GRID) for column in (first, second)]
        for (a, b), (left, right) in itertools.product(scales, itertools.product((1, -1), repeat=2)):
            edge = _Edge(x, y, left * a, right * b, 0.0)
            limit = float((edge.a * first + edge.b * second).max())
            beyond = edge.a * grid[0][:, None] + edge.b * grid[1] > limit
            if beyond.mean() >= least:
                yield _Edge(x, y, edge.a, edge.b, limit)


def _steps(dimensions: int) -> Array:
    """Steps (dimensions,) whose multiples fill the unit cube evenly: powers of the root of t**(d + 1) = t + 1."""
    root = 2.0
    for _ in range(60):  # a contraction: 60 steps are more than a double needs
        root = (1 + root) ** (1 / (dimensions + 1))
    return np.array([math.fmod(root ** -(i + 1), 1.0) for i in range(dimensions)])
