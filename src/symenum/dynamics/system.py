"""A system of equations as data, built from measured pieces: rows, columns of the motion, and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.dynamics.derivatives import DERIVATIVES, Differentiator
from symenum.dynamics.equation import Equation
from symenum.dynamics.point_form import Form, make_point_form
from symenum.dynamics.trajectory import Piece
from symenum.dynamics.weak_form import WeakForm, half_width, make_grid

__all__ = ["WEAK", "System", "make_system", "velocity_names"]

Array = npt.NDArray[np.float64]

WEAK = "weak"


@dataclass(frozen=True)
class System:
    """One equation for each state. `points` (points, states): left sides at the points, for a search on points.

    `telling` are the variables that vary and do not repeat another: the others can be in no law.
    """

    equations: tuple[Equation, ...]
    points: Array
    telling: tuple[str, ...]
    size: Array  # (states,) the largest absolute value of each


def velocity_names(states: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """What q' is called in formulas, for each q.

    >>> velocity_names(["q", "phi"], [])
    ('q_dot', 'phi_dot')
    """
    names: list[str] = []
    for state in states:
        name = f"{state}_dot"
        while name in (*taken, *states, *names):
            name += "_"
        names.append(name)
    return tuple(names)


def make_system(
    pieces: Sequence[Piece],
    states: Sequence[str],
    velocities: Sequence[str],
    inputs: Sequence[str],
    derivative: str | Differentiator,
) -> System:
    """The system of first order, or of second order where there are names for velocities.

    `derivative`: "weak", a name in DERIVATIVES, or a differentiator.
    """
    order = 2 if velocities else 1
    form: Form
    if derivative == WEAK:
        grids = tuple(make_grid(piece) for piece in pieces)
        form = WeakForm(grids, half_width(grids), order)
        motion, first, second, given = (
            np.concatenate([getattr(grid, part) for grid in grids]) for part in ("smooth", "first", "second", "U")
        )
    else:
        differentiate = DERIVATIVES[derivative] if isinstance(derivative, str) else derivative
        form, motion, first, second = make_point_form(pieces, differentiate, order)
        given = np.concatenate([piece.U for piece in pieces])
    parts = [motion, first, given] if order == 2 else [motion, given]
    names = (*states, *velocities, *inputs)
    values = np.hstack(parts)
    columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)}
    telling = _telling(columns, pieces, states)
    used = {name: columns[name] for name in telling} or {names[0]: columns[names[0]]}
    equations = tuple(Equation(form, i, used, tuple(states)) for i in range(len(states)))
    size = np.max([np.abs(piece.X).max(axis=0) for piece in pieces], axis=0)
    return System(equations, first if order == 1 else second, telling, size)


def _telling(columns: dict[str, Array], pieces: Sequence[Piece], states: Sequence[str]) -> tuple[str, ...]:
    still = {
        name
        for i, name in enumerate(states)
        if all((piece.X[:, i] == pieces[0].X[0, i]).all() for piece in pieces)  # smoothing leaves rounding behind
    }
    kept: list[str] = []
    for name, column in columns.items():
        if name in still or name.removesuffix("_dot") in still or (column == column[0]).all():
            continue
        if not any(np.array_equal(column, columns[other]) for other in kept):
            kept.append(name)
    return tuple(kept)
