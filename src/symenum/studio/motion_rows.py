"""The rows that a law of motion is judged on, made from the trajectories of its run, and the motion that follows.

The same methods as those of `TableRows`: y is the left side of the equation of one state (its derivative, or averages
of it), and the columns are the smoothed motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.dynamics.derivatives import DERIVATIVES, local_fit
from symenum.dynamics.display import START_WINDOW
from symenum.dynamics.equation import Equation
from symenum.dynamics.simulate import right_side, simulate
from symenum.dynamics.system import WEAK, Names, make_system
from symenum.dynamics.trajectory import Piece
from symenum.expressions import Constant, Expression, Variable, parse
from symenum.fitting.form_fit import fit_form, judge_form
from symenum.fitting.free_constants import free_constants, with_leaves
from symenum.run_directory import DATA, Run
from symenum.run_directory.trajectories import read_trajectories
from symenum.studio.answers import RequestError
from symenum.studio.law_rows import FIT_SECONDS, check_unpacked_size

__all__ = ["MotionRows", "motion_rows"]

Array = npt.NDArray[np.float64]

_SIMULATION_SECONDS = 3.0  # of computing, after which a plot ends where it is
_SIMULATION_STEPS = 20_000  # of the solver


@dataclass(frozen=True)
class MotionRows:
    """The equation of one state, its left side at the points, and all pieces of the motion."""

    equation: Equation
    y_at_points: Array
    names: Names
    pieces: tuple[Piece, ...]
    size: Array

    @property
    def y(self) -> Array:
        return self.equation.left_side

    @property
    def columns(self) -> Mapping[str, Array]:
        return self.equation.columns

    @property
    def variance(self) -> float:
        return self.equation.variance

    def predicted(self, law: Expression, rows: npt.NDArray[np.int64] | None = None) -> Array:
        values: Array = self.equation.averages([law])[:, 0]
        return values if rows is None else values[rows]

    def loss(self, law: Expression) -> float:
        return self.mean_square(law)

    def mean_square(self, law: Expression) -> float:
        return float(np.mean(self.equation.residual(law) ** 2))

    def errors(self, law: Expression) -> Sequence[float]:
        """From the slopes of the averages; windows overlap, so that only independent rows count."""
        values = free_constants(law, integers=False)
        named = {f"constant{i}_": value for i, value in enumerate(values)}
        form = with_leaves(law, [Variable(name) for name in named], integers=False)
        target = self.equation.target
        found = judge_form(form, named, self._tensors, target.y, target.weight, average=self.equation.form.average)
        spare, independent = len(self.y) - len(values), self.equation.form.independent - len(values)
        if independent <= 0:
            return [float("inf")] * len(values)
        return [error * math.sqrt(max(spare / independent, 1.0)) for error in found.errors.values()]

    def fit(self, form: Expression, starts: Mapping[str, float]) -> dict[str, float]:
        target = self.equation.target
        found = fit_form(
            form,
            dict(starts),
            self._tensors,
            target.y,
            target.weight,
            budget=Budget(FIT_SECONDS),
            average=self.equation.form.average,
        )
        return dict(found.constants)

    @property
    def _tensors(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(column) for name, column in self.columns.items()}

    def motion_plots(self, run: Run, law: Expression, points: int) -> dict[str, Any]:
        """Time and phase plots of the longest piece: as measured, and as the laws move on from its start."""
        piece = max(self.pieces, key=len)
        laws = [law if i == self.equation.state else _marked(run, i) for i in range(len(self.names.states))]
        begin = local_fit(piece.t, piece.X, START_WINDOW)  # from the first sample it would follow its noise
        order = self.names.order
        start = begin.values[0] if order == 1 else np.concatenate([begin.values[0], begin.first[0]])
        right = right_side(laws, self.names.variables, self._inputs(piece), order, self.names.accelerations)
        size = np.concatenate([self.size, np.zeros(len(start) - len(self.size))])
        moved = simulate(right, start, piece.t, size, max_steps=_SIMULATION_STEPS, max_time=_SIMULATION_SECONDS).states
        seen = np.unique(np.linspace(0, len(piece) - 1, min(points, len(piece))).round().astype(np.int64))
        measured = np.hstack([piece.X, begin.first]) if order == 2 else piece.X
        names = (*self.names.states, *self.names.velocities)
        shown = {name: (measured[seen, i].tolist(), moved[seen, i].tolist()) for i, name in enumerate(names)}
        times = piece.t[seen].tolist()
        return {
            "time": [
                {"state": name, "t": times, "measured": shown[name][0], "simulated": shown[name][1]}
                for name in self.names.states
            ],
            "phase": _phase(shown, names[:2]) if len(names) > 1 else None,
        }

    def _inputs(self, piece: Piece) -> Callable[[float], Array] | None:
        count = len(self.names.inputs)
        if not count:
            return None
        return lambda time: np.array([np.interp(time, piece.t, piece.U[:, i]) for i in range(count)])


def _phase(shown: Mapping[str, tuple[list[float], list[float]]], names: Sequence[str]) -> dict[str, Any]:
    across, up = names
    return {
        "x_state": across,
        "y_state": up,
        "measured_x": shown[across][0],
        "measured_y": shown[up][0],
        "simulated_x": shown[across][1],
        "simulated_y": shown[up][1],
    }


def _marked(run: Run, state: int) -> Expression:
    """The marked law of a state; where there is none yet, the state rests."""
    front = run.fronts[state]
    if not front.laws:
        return Constant(0)
    record = front.laws[front.selected if front.selected is not None else -1]
    try:
        return parse(record.equation)
    except (ValueError, RecursionError) as error:
        raise RequestError(409, f"The law of {front.target[:60]!r} cannot be read here ({error}).") from error


def motion_rows(run: Run, state: str | None) -> MotionRows:
    """The rows of the equation of a state; RequestError says what is missing in the folder."""
    check_unpacked_size(run.folder / DATA)
    derivative = run.settings.get("derivative", WEAK)
    if derivative not in (WEAK, *DERIVATIVES):
        raise RequestError(409, "This search took derivatives in a way of its own: look at its laws in Python.")
    told = run.details.get("motion")
    known = told if isinstance(told, Mapping) else {}
    states = run.targets
    names = Names(states, *(_names(known.get(part)) for part in ("inputs", "velocities", "accelerations")))
    try:
        pieces = tuple(Piece(one.t, one.X, one.U) for one in read_trajectories(run.folder))
        if any(piece.X.shape[1] != len(states) or piece.U.shape[1] < len(names.inputs) for piece in pieces):
            raise ValueError(f"'{DATA}' and 'run.json' do not belong together: copy both again")
        system = make_system(pieces, names, derivative)
        place = states.index(state) if state is not None else 0
    except (ValueError, TypeError, IndexError) as error:
        raise RequestError(409, f"The trajectories of this search cannot be used: {error}.") from error
    return MotionRows(system.equations[place], system.points[:, place], names, pieces, system.size)


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
