"""The weak form of u_t = F(u, u_x, …): averages over windows of space and time that slide along a grid.

With a window φ that vanishes at its edges, ∫φ u_t = -∫φ_t u, and a derivative in space of anything that is known
without derivatives moves to the window in the same way. Windows are products of those of `symenum.dynamics.forms` along
each axis, so that averages are sums along one axis after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from symenum.dynamics.derivatives import SavitzkyGolay, noise_level
from symenum.dynamics.field_data import FieldData
from symenum.dynamics.forms import WINDOW_POWER, Slopes, window_weights

__all__ = ["FieldForm", "Orders", "best_smoothing", "least_points", "make_field_form", "multi_indices"]

Array = npt.NDArray[np.float64]
Orders = tuple[int, ...]
"""Of a derivative: its order along each axis of space."""

_LINES = 60  # lines along an axis that smoothing and noise are looked at on: their median differs by a few per cent
_MIN_INDEPENDENT = 3  # rows that count as independent at least, as in every form

# Chosen by trial on the equations of `symenum.bench.problems.fields`, FIELD_PROBLEMS and random ones: what other values
# do stands in benchmarks/RESULTS.md.
_TIME_FACTOR = (
    0.6  # half a window of time, in windows of the local polynomials that fit the samples best: as for states
)
_SPACE_FACTOR = 1.0  # the same in space, where derivatives of higher order are taken
_MIN_HALF_TIME, _MIN_HALF_SPACE = 8, 12  # half a window, in points
_MAX_HALF = 0.25  # half a window, as a part of the axis
_MIN_HALF_SHORT = 4  # half a window, in points, where the axis is short
_WINDOWS_PER_HALF_WIDTH = 3  # windows that begin within half a width, along each axis
_MOST_ROWS = 6000  # windows in all: beyond, they lie further apart
_INDEPENDENT_DISTANCE = 0.5  # half widths between windows that count as independent, along each axis


def least_points(max_order: int) -> tuple[int, int]:
    """The least numbers of times, and of points along an axis: short windows, and a few points to slide."""
    half = max(_MIN_HALF_SHORT, max_order + 2)
    return 2 * (_MIN_HALF_SHORT + 1) + 1, 2 * (half + 1) + 1


def multi_indices(axes: int, total: int) -> list[Orders]:
    """All derivatives up to a total order, by order: along one axis (0,), (1,), …

    >>> multi_indices(2, 1)
    [(0, 0), (1, 0), (0, 1)]
    """
    if axes == 1:
        return [(k,) for k in range(total + 1)]
    return [(k - j, j) for k in range(total + 1) for j in range(k + 1)]


@dataclass(frozen=True)
class FieldForm:
    """Windows of `halves` points to each side along time and each axis. It is a `Form`: see `symenum.dynamics.forms`.

    `noise` (fields,): standard deviations of the samples' errors. `orders`: the derivatives that slopes are counted by.
    """

    data: FieldData
    halves: tuple[int, ...]
    powers: tuple[int, ...]
    noise: Array
    orders: tuple[Orders, ...]
    _matrices: dict[tuple[int, int, int | None], sparse.csr_array] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Points between windows that follow each other, along time and each axis."""
        strides = [max(1, half // _WINDOWS_PER_HALF_WIDTH) for half in self.halves]
        while math.prod(self._counts(strides)) > _MOST_ROWS and any(
            stride < n for stride, n in zip(strides, self.data.shape, strict=True)
        ):
            # The axis whose windows overlap most gives way.
            most = max(range(len(strides)), key=lambda i: self.halves[i] / strides[i])
            strides[most] += 1
        return tuple(strides)

    def _counts(self, strides: Sequence[int]) -> list[int]:
        return [
            len(range(0, n - 2 * half, stride))
            for n, half, stride in zip(self.data.shape, self.halves, strides, strict=True)
        ]

    @cached_property
    def rows(self) -> int:
        return math.prod(self._counts(self.strides))

    @cached_property
    def independent(self) -> int:
        """About how many rows are independent: windows overlap."""
        along = [
            max(1.0, count * min(1.0, stride / (_INDEPENDENT_DISTANCE * half)))
            for count, stride, half in zip(self._counts(self.strides), self.strides, self.halves, strict=True)
        ]
        return max(_MIN_INDEPENDENT, int(math.prod(along)))

    def average(self, values: Array) -> Array:
        """The averages (rows, k) of values (points, k)."""
        still = (0,) * len(self.data.axes)
        return np.stack([self.average_derivative(one.reshape(self.data.shape), still) for one in values.T], axis=1)

    def average_derivative(self, density: Array, orders: Orders) -> Array:
        """The averages (rows,) of the derivative of a density (times, points along each axis)."""
        return self._slide(density, [(0, None), *((order, None) for order in orders)])

    def left_side(self, state: int) -> Array:
        """The averages (rows,) of the derivative of a field by time, from its samples alone."""
        values = self.data.values[state]
        # The mean is taken off: the rounding of a large offset would stay.
        return self._slide(values - values.mean(), [(1, None), *((0, None) for _ in self.data.axes)])

    def noise_variance(self, state: int, slopes: Slopes) -> Array:
        """The variance (rows,) that the noise of the samples gives to left side minus average of a law.

        `slopes`: of the law by the derivatives of `orders` of each field, (points of the grid). Noise enters through
        the left side and, to first order, through them: the weight of each sample's error is a sum of derivatives of
        the window, whose square is a sum of products.
        """
        variance = np.zeros(self.rows)
        for other in range(len(self.data.values)):
            weights = [((0, *self.orders[k]), slope) for (number, k), slope in slopes.items() if number == other]
            left = (1, *(0,) * len(self.data.axes))
            if other == state:
                weights.append((left, np.full(self.data.shape, -1.0)))
            for i, (first, by_first) in enumerate(weights):
                for second, by_second in weights[: i + 1]:
                    if self._vanishes(first, second):
                        continue
                    twice = 1.0 if first == second else 2.0
                    product = np.broadcast_to(by_first * by_second, self.data.shape)
                    size = twice * float(self.noise[other]) ** 2
                    variance += size * self._slide(product, list(zip(first, second, strict=True)))
        positive: Array = np.maximum(variance, 0.0)
        return positive

    @staticmethod
    def _vanishes(first: Sequence[int], second: Sequence[int]) -> bool:
        """Whether the product of two derivatives of the window is odd in time: its sum is that of small changes."""
        return (first[0] + second[0]) % 2 == 1

    def _slide(self, values: Array, orders: Sequence[tuple[int, int | None]]) -> Array:
        """Weighted sums (rows,) of values (times, points along each axis) over all windows.

        `orders`: along time and each axis that of the window's derivative; with a second one, the product of two.
        """
        for axis, (order, second) in enumerate(orders):
            front = np.moveaxis(values, axis, 0)
            flat = self._matrix(axis, order, second) @ front.reshape(len(front), -1)
            values = np.moveaxis(flat.reshape(-1, *front.shape[1:]), 0, axis)
        return np.ascontiguousarray(values).ravel()

    def _matrix(self, axis: int, order: int, second: int | None) -> sparse.csr_array:
        """The weights (windows along an axis, points along it)."""
        key = (axis, order, second)
        if key not in self._matrices:
            half, n, stride = self.halves[axis], self.data.shape[axis], self.strides[axis]
            step, power = self.data.steps[axis], self.powers[axis]
            weights = window_weights(half, order, step, power)
            if second is not None:
                weights = weights * window_weights(half, second, step, power)
            begins = np.arange(0, n - 2 * half, stride)
            columns = begins[:, None] + np.arange(2 * half + 1)
            ends = np.arange(len(begins) + 1) * (2 * half + 1)
            entries = (np.tile(weights, len(begins)), columns.ravel(), ends)
            self._matrices[key] = sparse.csr_array(entries, shape=(len(begins), n))
        return self._matrices[key]


def _lines(data: FieldData, number: int, axis: int) -> Array:
    """Some lines (points, lines) of a field along an axis."""
    lines = np.moveaxis(data.values[number], axis, 0).reshape(data.shape[axis], -1)
    stride = max(1, lines.shape[1] // _LINES)
    return np.ascontiguousarray(lines[:, stride // 2 :: stride])


def best_smoothing(data: FieldData) -> npt.NDArray[np.int64]:
    """The window (fields, time and axes), in points, of the local polynomials that predict left-out samples best."""
    places = (data.t, *data.axes)
    return np.array(
        [
            [int(np.median(SavitzkyGolay().windows(place, _lines(data, i, axis)))) for axis, place in enumerate(places)]
            for i in range(len(data.values))
        ]
    )


def _noise(data: FieldData, number: int) -> float:
    """The standard deviation of a field's errors: what is not smooth along the axis on which the field is smoothest."""
    places = (data.t, *data.axes)
    return min(float(np.median(noise_level(p, _lines(data, number, axis)))) for axis, p in enumerate(places))


def make_field_form(data: FieldData, smoothing: npt.NDArray[np.int64], max_order: int) -> FieldForm:
    """The form whose windows follow the noise and the scale of the fields. `smoothing`: what `best_smoothing` gives."""
    usual = np.median(smoothing, axis=0)
    wanted = [max(_MIN_HALF_TIME, round(_TIME_FACTOR * float(usual[0])))]
    wanted += [max(_MIN_HALF_SPACE, round(_SPACE_FACTOR * float(window))) for window in usual[1:]]
    least = [_MIN_HALF_SHORT, *(max(_MIN_HALF_SHORT, max_order + 2) for _ in data.axes)]
    halves = [
        max(short, min(half, int(_MAX_HALF * n))) for half, n, short in zip(wanted, data.shape, least, strict=True)
    ]
    powers = (WINDOW_POWER, *(WINDOW_POWER + max_order for _ in data.axes))
    noise = np.array([_noise(data, i) for i in range(len(data.values))])
    return FieldForm(data, tuple(halves), powers, noise, tuple(multi_indices(len(data.axes), max_order)))
