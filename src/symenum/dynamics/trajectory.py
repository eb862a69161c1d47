"""Measured trajectories, checked and cut into pieces without gaps; errors say what is wrong with states and times."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas

from symenum.core.target import LARGEST, rates_in_range, refuse_dates
from symenum.dynamics.derivatives import NOISE_WINDOW
from symenum.expressions import formula_names

__all__ = [
    "MIN_POINTS",
    "Piece",
    "by_name",
    "check_rates",
    "column_names",
    "make_map_pieces",
    "make_pieces",
    "names_for",
    "real_numbers",
    "with_measured",
]

Array = npt.NDArray[np.float64]

MIN_POINTS = NOISE_WINDOW
"""Least number of points of a piece: its noise is measured in a window of so many."""
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_EVEN = 1e-6  # part of a step by which the steps of a map may differ: rounding of printed times
_MIN_STEPS = 8  # of a map: fewer rows than that tell no law from another
_GAP_FACTOR = 5.0  # a step longer than so many times the usual one is a gap
_USUAL_STEP = 0.9  # quantile of all steps that is the usual step


@dataclass(frozen=True)
class Piece:
    """A stretch without gaps: `t` (n,) ascending, `X` (n, states) and `U` (n, inputs), all finite, float64."""

    t: Array
    X: Array
    U: Array

    def __len__(self) -> int:
        return len(self.t)


def make_pieces(X: object, t: object, u: object = None) -> list[Piece]:
    """The pieces of one trajectory, X (n, states) with t (n,) or a time step, or of a list of trajectories.

    Rows with a missing or infinite value are a gap, and so is a step far longer than nearly all others. Pieces of
    fewer than MIN_POINTS points are left out with a warning.
    """
    pieces: list[Piece] = []
    short = 0
    for whole in _trajectories(X, t, u):
        for piece in _cut(whole):
            if len(piece) >= MIN_POINTS:
                pieces.append(piece)
            else:
                short += len(piece)
    if not pieces:
        raise ValueError(
            f"X has no stretch of at least {MIN_POINTS} finite points without a gap: "
            "give more points, or interpolate the missing ones"
        )
    _check_widths(pieces)
    if short:
        warnings.warn(
            f"{short} points in stretches of fewer than {MIN_POINTS} between gaps are left out",
            UserWarning,
            stacklevel=4,
        )
    return pieces


def make_map_pieces(X: object, t: object = None, u: object = None) -> list[Piece]:
    """The stretches of a map without a missing step, of one trajectory or a list of them.

    `t`: None, or times in even steps, whose gaps are whole numbers of steps.
    """
    pieces = []
    for whole in _trajectories(X, 1.0 if t is None else t, u):
        finite = np.flatnonzero(np.isfinite(whole.X).all(axis=1) & np.isfinite(whole.U).all(axis=1))
        steps = np.diff(whole.t)
        step = float(np.median(steps)) if len(steps) else 1.0
        taken = np.round((whole.t - whole.t[0]) / step)
        late = np.abs(whole.t - whole.t[0] - taken * step) > _EVEN * np.maximum(taken, 1) * step
        if late.any():
            raise ValueError(
                f't must go in even steps for step="map", and the time {whole.t[_first(late)]:g} is no whole number of '
                f"steps of {step:g} after the first: give the number of each step, or leave t out"
            )
        apart = np.diff(taken[finite]) > 1
        parts = [_part(whole, rows) for rows in np.split(finite, np.flatnonzero(apart) + 1)]
        pieces += [piece for piece in parts if len(piece) > 1]
    steps_in_all = sum(len(piece) - 1 for piece in pieces)
    if steps_in_all < _MIN_STEPS:
        raise ValueError(
            f"X has {steps_in_all} pairs of a state and the next one, and at least {_MIN_STEPS} are needed"
        )
    _check_widths(pieces)
    return pieces


def _trajectories(X: object, t: object, u: object) -> Iterator[Piece]:
    """The checked trajectories, one or several; missing values are still in them."""
    many = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 2
    if isinstance(X, (list, tuple)) and not many and len({np.shape(one) for one in X}) > 1:
        raise ValueError(
            "X as a list of trajectories must hold arrays (points, states), not shapes "
            f"{', '.join(map(str, dict.fromkeys(np.shape(one) for one in X)))}: write x[:, None] for a single state"
        )
    if not many:
        yield _checked(X, t, u, "")
        return
    assert isinstance(X, (list, tuple))
    times = _one_each("t", t, len(X))
    inputs = [None] * len(X) if u is None else _one_each("u", u, len(X))
    for i, (values, time, input_values) in enumerate(zip(X, times, inputs, strict=True)):
        yield _checked(values, time, input_values, f" of trajectory {i}" if len(X) > 1 else "")


def check_rates(pieces: Sequence[Piece], order: int) -> None:
    """Refuse times in whose unit the squares of the derivatives of this order are no doubles."""
    span = sum(float(piece.t[-1] - piece.t[0]) for piece in pieces)
    step = min(float(np.diff(piece.t).min()) for piece in pieces)
    values = np.concatenate([piece.X for piece in pieces])
    for i, change in enumerate(np.ptp(values, axis=0).tolist()):
        if not rates_in_range(change, span, step, order):
            raise ValueError(
                f"t: column {i} of X (the first is 0) changes by {change:.3g} in a time of {span:.3g} with steps of "
                f"{step:.3g}, and squares of such rates are out of range: give t in another unit"
            )


def _check_widths(pieces: Sequence[Piece]) -> None:
    widths = {piece.X.shape[1] for piece in pieces}
    if len(widths) > 1:
        raise ValueError(f"X: all trajectories must have the same states, not {sorted(widths)} columns")
    if len({piece.U.shape[1] for piece in pieces}) > 1:
        raise ValueError("u must have the same columns for all trajectories")


def with_measured(u: object, x_dot: object, X: object) -> object:
    """Inputs with measured derivatives as further columns, for one trajectory or a list of them."""
    if isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 2:
        count = len(X)
        inputs = [None] * count if u is None else _one_each("u", u, count)
        rates = _one_each("x_dot", x_dot, count)
        return [with_measured(*each) for each in zip(inputs, rates, X, strict=True)]
    states, rates_here = _matrix("X", X, ""), _matrix("x_dot", x_dot, "")
    if rates_here.shape != states.shape:
        raise ValueError(f"x_dot must have the shape of X, {states.shape}, not {rates_here.shape}")
    return rates_here if u is None else np.hstack([_matrix("u", u, ""), rates_here])


def column_names(data: object) -> list[str] | None:
    """The names of the columns of a DataFrame (or of the first of a list of them); None for arrays."""
    if isinstance(data, (list, tuple)) and data:
        data = data[0]
    return [str(name) for name in data.columns] if isinstance(data, pandas.DataFrame) else None


def by_name(name: str, data: object, columns: Sequence[str] | None, *, named: bool = True) -> object:
    """A DataFrame with its columns in this order, or a list of them; a Series with its entries in it, if these have
    names. What has no names stays as it is.

    `columns`: names as the user or as formulas write them; None: there are none. `named`: whether the user has given
    them; else a table that holds none of them is taken as it is.
    """
    if columns is None:
        return data
    if isinstance(data, (list, tuple)) and any(isinstance(one, pandas.DataFrame) for one in data):
        return [by_name(f"{name} of trajectory {i}", one, columns, named=named) for i, one in enumerate(data)]
    if isinstance(data, pandas.DataFrame):
        given = [str(label) for label in data.columns]
    elif isinstance(data, pandas.Series) and all(isinstance(label, str) for label in data.index):
        given = list(data.index)
    else:
        return data
    place = {formula: i for i, formula in enumerate(formula_names(given).values())}
    place |= {label: i for i, label in enumerate(given)}
    missing = [column for column in columns if column not in place]
    if not named and len(missing) == len(columns):
        return data
    if missing or len(given) != len(columns):
        raise ValueError(f"{name} must have the columns {', '.join(columns)}, not {', '.join(given)}")
    order = [place[column] for column in columns]
    return data.iloc[:, order] if isinstance(data, pandas.DataFrame) else data.iloc[order]


def _one_each(name: str, values: object, count: int) -> list[object]:
    """One array for each of `count` trajectories; a single time step stands for all of them."""
    if isinstance(values, (list, tuple)) and len(values) == count and np.ndim(values[0]) > 0:
        return list(values)
    if np.ndim(values) == 0 and name == "t":  # type: ignore[arg-type]
        return [values] * count
    raise ValueError(f"with a list of {count} trajectories, {name} must be a list of {count} arrays")


def _checked(X: object, t: object, u: object, where: str) -> Piece:
    values = _matrix("X", X, where)
    inputs = np.empty((len(values), 0)) if u is None else _matrix("u", u, where)
    if len(inputs) != len(values):
        raise ValueError(f"u{where} has {len(inputs)} rows, X has {len(values)}: one row for each time is needed")
    time = _times(t, len(values), where)
    return Piece(time, values, inputs)


def _matrix(name: str, data: object, where: str) -> Array:
    if isinstance(data, pandas.DataFrame):
        refuse_dates(f"{name}{where}", data)
        for place, label in enumerate(data.columns):  # so that a message names the column
            real_numbers(f"{name}{where} in column {str(label)!r}", data.iloc[:, place], "real numbers")
    values = real_numbers(f"{name}{where}", data)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"{name}{where} must have shape (points, columns), not {values.shape}")
    if len(values) == 0:
        raise ValueError(f"{name}{where} holds no points")
    empty = np.flatnonzero(~np.isfinite(values).any(axis=0))
    if len(empty):
        raise ValueError(f"{name}{where} has no finite number in column {_called(data, int(empty[0]))}: leave it out")
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    largest = sizes.max(axis=0, initial=0.0)
    bad = np.flatnonzero((largest > LARGEST) | ((largest > 0) & (largest < 1 / LARGEST)))
    if len(bad):
        column = int(bad[0])
        row = f", or leave out row {sizes[:, column].argmax()} if it is an outlier" if largest[column] > LARGEST else ""
        raise ValueError(
            f"{name}{where} has a largest absolute value of {largest[column]:.3g} in column {_called(data, column)}, "
            f"whose square is out of range: give that column in another unit{row}"
        )
    return values


def _called(data: object, column: int) -> str:
    """What a column is called in messages: by its name where it has one, else by its number."""
    return repr(str(data.columns[column])) if isinstance(data, pandas.DataFrame) else f"{column} (the first is 0)"


def real_numbers(name: str, data: object, wanted: str = "an array of real numbers") -> Array:
    """The data as a float64 array of its own, NaN for masked entries: they are missing. An error where it is `wanted`
    that they are not: dates, complex numbers and text.
    """
    refuse_dates(name, data)
    try:
        given = np.ma.asanyarray(data) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
        if given.dtype.kind == "c":
            raise ValueError("it holds complex ones, of which real and imaginary parts can be used, each on its own")
        if isinstance(given, np.ma.MaskedArray):
            given = np.ma.filled(given.astype(np.float64), np.nan)
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be {wanted}: {error}") from error


def _times(t: object, rows: int, where: str) -> Array:
    times = real_numbers(f"t{where}", t, "an array of numbers or a time step")
    if times.ndim == 0:
        if not (np.isfinite(times) and times > 0):
            raise ValueError(f"t{where} as a time step must be a number above zero, not {t!r}")
        even: Array = np.arange(rows, dtype=np.float64) * float(times)
        return even
    if times.ndim == 2 and times.shape[1] == 1:
        times = times[:, 0]
    if times.shape != (rows,):
        raise ValueError(f"t{where} must have shape ({rows},), one time for each row of X, not {times.shape}")
    if not np.isfinite(times).all():
        raise ValueError(f"t{where} has a missing or infinite time at position {_first(~np.isfinite(times))}")
    steps = np.diff(times)
    if (steps == 0).any():
        at = _first(steps == 0)
        raise ValueError(
            f"t{where} repeats the time {times[at]:g} at positions {at} and {at + 1}: "
            "leave one of them out, or average them"
        )
    if (steps < 0).any():
        at = _first(steps < 0)
        raise ValueError(
            f"t{where} must increase, but goes from {times[at]:g} to {times[at + 1]:g} at position {at + 1}: "
            "sort the rows by time, or give several trajectories as a list"
        )
    return times


def _first(flags: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(flags)[0])


def _cut(whole: Piece) -> list[Piece]:
    """The stretches between rows that are not finite and steps that are gaps."""
    finite = np.flatnonzero(np.isfinite(whole.X).all(axis=1) & np.isfinite(whole.U).all(axis=1))
    if len(finite) < 2:
        return [_part(whole, finite)]
    steps = np.diff(whole.t)
    gap = (np.diff(finite) > 1) | (np.diff(whole.t[finite]) > _GAP_FACTOR * np.quantile(steps, _USUAL_STEP))
    return [_part(whole, rows) for rows in np.split(finite, np.flatnonzero(gap) + 1)]


def _part(whole: Piece, rows: npt.NDArray[np.int64]) -> Piece:
    return Piece(whole.t[rows], whole.X[rows], whole.U[rows])


def names_for(names: Sequence[str] | None, count: int, letter: str) -> tuple[str, ...]:
    """The names, or where there are none letter1, letter2, …"""
    return tuple(f"{letter}{i + 1}" for i in range(count)) if names is None else tuple(names)
