"""A system of equations as data, built from measured pieces: rows, columns of the motion, and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from symenum.dynamics.derivatives import DERIVATIVES, Differentiator
from symenum.dynamics.equation import EXACT, Equation
from symenum.dynamics.forms import (
    Form,
    PointForm,
    WeakForm,
    half_width,
    make_grid,
    make_measured_form,
    make_point_form,
)
from symenum.dynamics.trajectory import Piece

__all__ = ["WEAK", "Names", "System", "derivative_names", "make_map", "make_system"]

Array = npt.NDArray[np.float64]

WEAK = "weak"
"""The `derivative` that needs none: see `symenum.dynamics.forms`."""


@dataclass(frozen=True)
class System:
    """One equation for each state. `points` (points, states): left sides at the points, for a search on points.

    `columns` (points,) by name: all of the motion, also what laws need not hold since it does not vary.
    """

    equations: tuple[Equation, ...]
    points: Array
    size: Array  # (states,) the largest absolute value of each
    columns: Mapping[str, Array]


@dataclass(frozen=True)
class Names:
    """Names of the columns in laws; `velocities` for order 2, `accelerations` where laws are coupled by them."""

    states: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    velocities: tuple[str, ...] = ()
    accelerations: tuple[str, ...] = ()

    @property
    def order(self) -> int:
        return 2 if self.velocities else 1

    def of_states(self, chosen: Sequence[int]) -> Names:
        """The names where only these states are followed."""
        velocities = tuple(self.velocities[i] for i in chosen) if self.velocities else ()
        return Names(tuple(self.states[i] for i in chosen), self.inputs, velocities)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the right-hand sides that are known before coupled laws are solved."""
        return (*self.states, *self.velocities, *self.inputs)


def derivative_names(states: Sequence[str], taken: Sequence[str], ending: str = "_dot") -> tuple[str, ...]:
    """The name of q' in formulas, for each state q; none of them is in `taken`.

    >>> derivative_names(["q", "phi"], [])
    ('q_dot', 'phi_dot')
    """
    names: list[str] = []
    for state in states:
        name = f"{state}{ending}"
        while name in (*taken, *states, *names):
            name += "_"
        names.append(name)
    return tuple(names)


def make_system(pieces: Sequence[Piece], names: Names, derivative: str | Differentiator, seed: int = 0) -> System:
    """The system of measured pieces. `derivative`: "weak", a name in DERIVATIVES, or a differentiator.

    `seed`: of the noise with which a differentiator is tried out. Where pieces have more inputs than there are names,
    the further columns are measured derivatives.
    """
    form: Form
    inputs = len(names.inputs)
    if pieces[0].U.shape[1] > inputs:
        measured = [piece.U[:, inputs:] for piece in pieces]
        form = make_measured_form(pieces, measured, names.order)
        motion = np.concatenate([piece.X for piece in pieces])
        driving = np.concatenate([piece.U[:, :inputs] for piece in pieces])
        first = second = np.concatenate(measured)
    elif derivative == WEAK:
        grids = tuple(make_grid(piece) for piece in pieces)
        form = WeakForm(grids, half_width(grids), names.order)
        motion, first, second, driving = (
            np.concatenate([getattr(grid, part) for grid in grids]) for part in ("smooth", "first", "second", "U")
        )
    else:
        differentiate = DERIVATIVES[derivative] if isinstance(derivative, str) else derivative
        form, motion, first, second = make_point_form(pieces, differentiate, names.order, seed)
        driving = np.concatenate([piece.U for piece in pieces])
    columns: dict[str, Array] = {}
    moving: dict[str, tuple[int, int]] = {}
    for order, (called, values) in enumerate(
        ((names.states, motion), (names.velocities, first), (names.accelerations, second))
    ):
        for i, name in enumerate(called):
            columns[name] = np.ascontiguousarray(values[:, i])
            moving[name] = (i, order)
    columns |= {name: np.ascontiguousarray(driving[:, i]) for i, name in enumerate(names.inputs)}
    still = {i for i in range(len(names.states)) if _is_still(pieces, i)}
    return _made(form, columns, moving, still, names, first if names.order == 1 else second, pieces)


def make_map(pieces: Sequence[Piece], names: Names) -> System:
    """The system of x(t+1) = f(x(t), u(t)): one row for each sample that has a next one.

    What is noise in samples that need not be smooth cannot be told from them: all that a law leaves counts as its own.
    """
    following = np.concatenate([piece.X[1:] for piece in pieces])
    before = np.concatenate([piece.X[:-1] for piece in pieces])
    driving = np.concatenate([piece.U[:-1] for piece in pieces])
    columns = {name: np.ascontiguousarray(before[:, i]) for i, name in enumerate(names.states)}
    columns |= {name: np.ascontiguousarray(driving[:, i]) for i, name in enumerate(names.inputs)}
    moving = {name: (i, 0) for i, name in enumerate(names.states)}
    still = {i for i in range(len(names.states)) if _is_still(pieces, i)}
    form = PointForm(following, 1, np.zeros((3, len(names.states))))
    made = _made(form, columns, moving, still, names, following, pieces)
    return replace(made, equations=tuple(replace(one, numerics=EXACT) for one in made.equations))


def _made(
    form: Form,
    columns: Mapping[str, Array],
    moving: Mapping[str, tuple[int, int]],
    still: set[int],
    names: Names,
    points: Array,
    pieces: Sequence[Piece],
) -> System:
    """The system of these columns; laws hold those that vary. `still`: the states whose samples are all equal."""
    informative = _informative(columns, {name for name, (i, _) in moving.items() if i in still})
    equations = []
    for i in range(len(names.states)):
        # A law for an acceleration must not hold that acceleration.
        own = names.accelerations[i : i + 1]
        used = {name: columns[name] for name in informative if name not in own}
        equations.append(Equation(form, i, used or {names.states[0]: columns[names.states[0]]}, moving))
    size = np.max([np.abs(piece.X).max(axis=0) for piece in pieces], axis=0)
    return System(tuple(equations), points, size, columns)


def _is_still(pieces: Sequence[Piece], state: int) -> bool:
    """Whether all samples of a state are equal; smoothed ones would differ by rounding."""
    return all((piece.X[:, state] == pieces[0].X[0, state]).all() for piece in pieces)


def _informative(columns: Mapping[str, Array], still: set[str]) -> tuple[str, ...]:
    """The variables that vary and do not equal an earlier one; laws hold no others. `still`: those that never vary."""
    informative: list[str] = []
    for name, column in columns.items():
        constant = name in still or (column == column[0]).all()
        if not constant and not any(np.array_equal(column, columns[other]) for other in informative):
            informative.append(name)
    return tuple(informative)
