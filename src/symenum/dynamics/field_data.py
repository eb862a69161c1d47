"""Measured fields on a regular grid of times and one or two axes, checked; errors say which axis is wrong and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from symenum.core.target import LARGEST, rates_in_range, refuse_dates_and_masks
from symenum.expressions import formula_names

__all__ = ["AXES", "FieldData", "check_rates", "fields_by_name", "like_given", "make_field_data"]

Array = npt.NDArray[np.float64]

AXES = ("x", "y")
"""The names of the axes of space, which derivatives are called by."""
_FIRST_NAMES = ("u", "v", "w")  # of fields without names; more of them are u1, u2, …
_UNEVEN = 1e-2  # part of a step by which a place may lie beside a regular grid: places are printed in a few digits


@dataclass(frozen=True)
class FieldData:
    """Samples `values` (fields, times, points along each axis), finite, at `t` (times,) and at `axes` in even steps."""

    names: tuple[str, ...]
    values: Array
    t: Array
    axes: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of times, and of points along each axis."""
        return self.values.shape[1:]

    @cached_property
    def steps(self) -> tuple[float, ...]:
        """The step of time, and along each axis."""
        return tuple(float(one[-1] - one[0]) / (len(one) - 1) for one in (self.t, *self.axes))


def make_field_data(u: object, t: object, axes: Sequence[object], least: Sequence[int]) -> FieldData:
    """The checked fields. `axes`: places along x, or x and y; `least`: numbers of times and of places along each axis.

    `u`: one field as an array (times, x) or (times, x, y); or several: a mapping from names to such arrays, a list of
    them, or one array whose last axis counts the fields. `t` and `axes`: arrays in even steps, or a step.
    """
    names, arrays = _fields(u, 1 + len(axes))
    shape = arrays[0].shape
    called = ("t", *AXES[: len(axes)])
    places = [_places(name, given, n) for name, given, n in zip(called, (t, *axes), shape, strict=True)]
    for name, n, needed in zip(called, shape, least, strict=True):
        if n < needed:
            raise ValueError(
                f"u has {n} points along {name}, and at least {needed} are needed for the derivatives that are asked "
                "for: give a finer or longer grid, or a smaller max_order"
            )
    for name, array in zip(names, arrays, strict=True):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            where = ", ".join(f"{axis} = {place[i]:g}" for axis, place, i in zip(called, places, bad[0], strict=True))
            raise ValueError(
                f"u has {len(bad)} missing or infinite values, the first of {name} at {where}: windows need whole "
                "grids; fill them in by interpolation, or cut the grid so that they lie outside"
            )
        largest = float(np.abs(array).max())
        if largest > LARGEST or 0 < largest < 1 / LARGEST:
            raise ValueError(
                f"u has a largest absolute value of {largest:.3g} in {name}, whose square is out of range: give {name} "
                "in another unit"
            )
    return FieldData(names, np.stack(arrays), places[0], tuple(places[1:]))


def check_rates(data: FieldData, order: int) -> None:
    """Refuse axes in whose units the squares of derivatives are no doubles: by time, and of this order in space."""
    for name, places, step, highest in zip(
        ("t", *AXES), (data.t, *data.axes), data.steps, (1, *(order for _ in data.axes)), strict=False
    ):
        span = float(places[-1] - places[0])
        for field, change in zip(data.names, np.ptp(data.values.reshape(len(data.names), -1), axis=1), strict=True):
            if not rates_in_range(float(change), span, step, highest):
                raise ValueError(
                    f"{name}: {field} changes by {change:.3g} along {span:.3g} in steps of {step:.3g}, and squares of "
                    f"derivatives of order {highest} are out of range: give {name} in another unit"
                )


def fields_by_name(u: object, names: Sequence[str]) -> object:
    """Fields that are given by name in the order of these names; what has no names, or the fit had none, as it is."""
    if not isinstance(u, Mapping):
        return u
    place = {formula: name for name, formula in zip(u, formula_names([str(name) for name in u]).values(), strict=True)}
    place |= {str(name): name for name in u}
    missing = [name for name in names if name not in place]
    if len(missing) == len(names) and tuple(names) == _default_names(len(names)):
        return u
    if missing or len(u) != len(names):
        raise ValueError(f"u must hold the fields {', '.join(names)}, not {', '.join(map(str, u))}")
    return {place[name]: u[place[name]] for name in names}


def _fields(u: object, dimensions: int) -> tuple[tuple[str, ...], list[Array]]:
    """Names and arrays of the fields, all of one shape with so many dimensions."""
    axes = ", ".join(("times", *AXES[: dimensions - 1]))
    if isinstance(u, Mapping):
        if not u:
            raise ValueError("u holds no field: give at least one")
        names = tuple(formula_names([str(name) for name in u]).values())
        arrays = [_array(f"u[{name!r}]", one) for name, one in u.items()]
    elif isinstance(u, (list, tuple)) and len(u) > 0 and all(np.ndim(one) == dimensions for one in u):
        arrays = [_array(f"u[{i}]", one) for i, one in enumerate(u)]
        names = _default_names(len(arrays))
    else:
        whole = _array("u", u)
        if whole.ndim == dimensions + 1:
            arrays = [np.ascontiguousarray(whole[..., i]) for i in range(whole.shape[-1])]
        else:
            arrays = [whole]
        names = _default_names(len(arrays))
    if not arrays:
        raise ValueError("u holds no field: its last axis is empty")
    for array in arrays:
        if array.ndim != dimensions or array.shape != arrays[0].shape:
            shapes = ", ".join(str(one.shape) for one in {one.shape: one for one in arrays}.values())
            raise ValueError(
                f"u must have shape ({axes}), or ({axes}, fields), or be a list or mapping of arrays ({axes}), "
                f"not {shapes}; for two axes of space call fit(u, t, x, y)"
            )
    return names, arrays


def _default_names(count: int) -> tuple[str, ...]:
    return _FIRST_NAMES[:count] if count <= len(_FIRST_NAMES) else tuple(f"u{i + 1}" for i in range(count))


def _array(name: str, data: object) -> Array:
    refuse_dates_and_masks(name, data)
    try:
        given: npt.NDArray[Any] = np.asarray(data)
        if given.dtype.kind == "c":
            raise ValueError("it holds complex ones, of which real and imaginary parts can be used, each on its own")
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}") from error


def _places(name: str, given: object, count: int) -> Array:
    """The places (count,) along an axis, in even steps."""
    if given is None:
        raise ValueError(f"{name} is missing: give the places along it, or the step between them")
    places = _array(name, given)
    if places.ndim == 0:
        if not (np.isfinite(places) and places > 0):
            raise ValueError(f"{name} as a step must be a number above zero, not {given!r}")
        even: Array = np.arange(count, dtype=np.float64) * float(places)
        return even
    if places.shape != (count,):
        raise ValueError(
            f"{name} must have shape ({count},), one entry for each of the {count} points of u along it, not "
            f"{places.shape}"
        )
    if not np.isfinite(places).all():
        at = int(np.flatnonzero(~np.isfinite(places))[0])
        raise ValueError(f"{name} has a missing or infinite entry at position {at}")
    steps = np.diff(places)
    if (steps == 0).any():
        at = int(np.flatnonzero(steps == 0)[0])
        raise ValueError(f"{name} repeats {places[at]:g} at positions {at} and {at + 1}: leave one of them out")
    if (steps < 0).any():
        at = int(np.flatnonzero(steps < 0)[0])
        raise ValueError(
            f"{name} must increase, but goes from {places[at]:g} to {places[at + 1]:g} at position {at + 1}: "
            f"sort {name}, and u with it"
        )
    if count > 1:
        step = float(places[-1] - places[0]) / (count - 1)
        beside = np.abs(places - places[0] - step * np.arange(count)) > _UNEVEN * step
        if beside.any():
            # The first step that is not the usual one says where the grid breaks.
            usual = float(np.median(steps))
            at = int(np.argmax(np.abs(steps - usual) > _UNEVEN * usual))
            raise ValueError(
                f"{name} must go in even steps, but the step from {places[at]:g} to {places[at + 1]:g} (position {at}) "
                f"is {steps[at]:g} where most are {usual:g}: interpolate u to a regular grid"
            )
    return places


def like_given(u: object, arrays: list[Array]) -> object:
    """One array for each field, in the form in which the fields `u` were given: mapping, list, last axis, or alone."""
    if isinstance(u, Mapping):
        return dict(zip(u, arrays, strict=True))
    shape = arrays[0].shape
    if isinstance(u, (list, tuple)) and np.ndim(u[0]) == len(shape):
        return arrays
    return arrays[0] if np.ndim(u) == len(shape) else np.stack(arrays, axis=-1)  # type: ignore[arg-type]
