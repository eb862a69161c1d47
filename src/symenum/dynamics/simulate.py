"""Simulation that always ends: bounded steps, bounded time, and a stop where the motion leaves all bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import DOP853

from symenum.expressions import Constant, Expression, Variable, fold
from symenum.operators import Operator

__all__ = ["MAX_SECONDS", "MAX_STEPS", "Simulation", "iterate", "right_side", "simulate"]

Array = npt.NDArray[np.float64]
Right = Callable[[float, Array], Array]

MAX_STEPS = 100_000
"""Steps after which a simulation is given up."""
MAX_SECONDS = 10.0
"""Seconds after which a simulation is given up."""
_FAR = 1e6  # times the size of the start, or of what was measured: further out the motion counts as blown up
_RELATIVE_TOLERANCE = 1e-8  # of a step: far below the noise of any measured motion
_ABSOLUTE_TOLERANCE = 1e-10  # of a step, in units of the size of each state
_MIN_SIZE = 1e-300  # near the smallest normal double: a state of no size counts as of size 1


@dataclass(frozen=True)
class Simulation:
    """`states` (times, states), NaN from where the motion could not be followed; `stopped`: why, or None."""

    states: Array
    stopped: str | None


def right_side(
    laws: Sequence[Expression],
    names: Sequence[str],
    inputs: Callable[[float], Array] | None,
    order: int,
    coupling: Sequence[str] = (),
) -> Right:
    """f(t, state) for the laws in the variables `names`: states (first q, then q' for order 2), then inputs.

    `coupling`: what the second derivatives are called, where laws hold those of other states; they must do so linearly.
    """
    place = {name: i for i, name in enumerate((*names, *coupling))}
    functions = [_compile(law, place) for law in laws]
    count = len(laws)
    units = np.eye(count, len(coupling))

    def solved(values: list[float]) -> list[float]:
        """q'' of the linear system q'' = c + M q'', whose c and M are read off the laws."""
        constant = np.array([function([*values, *np.zeros(count)]) for function in functions])
        columns = [[function([*values, *unit]) for function in functions] for unit in units]
        matrix = np.array(columns).T - constant[:, None]
        if not np.isfinite(matrix).all() or not np.isfinite(constant).all():
            return [float("nan")] * count
        return [float(value) for value in np.linalg.lstsq(np.eye(count) - matrix, constant, rcond=None)[0]]

    def right(t: float, state: Array) -> Array:
        values = [*state.tolist(), *(inputs(t).tolist() if inputs is not None else ())]
        with np.errstate(all="ignore"):
            slopes = solved(values) if coupling else [float(function(values)) for function in functions]
        return np.array(slopes if order == 1 else [*values[count : 2 * count], *slopes])

    return right


def simulate(
    right: Right,
    start: Array,
    t: Array,
    size: Array | None = None,
    *,
    max_steps: int = MAX_STEPS,
    max_time: float | None = MAX_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Simulation:
    """The motion from `start` (states,) at t[0], at the ascending times t (times,).

    `size` (states,): the largest absolute values that were measured. `max_time` in seconds.
    """
    states = np.full((len(t), len(start)), np.nan)
    states[0] = start
    if len(t) == 1:
        return Simulation(states, None)
    scale = np.maximum(np.abs(start), _MIN_SIZE if size is None else size)
    scale = np.where(scale > _MIN_SIZE, scale, 1.0)
    if not np.isfinite(right(float(t[0]), start)).all():
        return Simulation(states, f"the laws are not defined at the start, t = {t[0]:g}")
    begin = clock()
    with np.errstate(all="ignore"):
        solver = DOP853(
            right, float(t[0]), start, float(t[-1]), rtol=_RELATIVE_TOLERANCE, atol=_ABSOLUTE_TOLERANCE * scale
        )
        done = 1
        for _ in range(max_steps):
            solver.step()
            if solver.status == "failed" or not np.isfinite(solver.y).all():
                return Simulation(states, f"the laws could not be followed beyond t = {solver.t:g}")
            if (np.abs(solver.y) > _FAR * scale).any():
                return Simulation(states, f"the motion blew up near t = {solver.t:g}")
            reached = int(np.searchsorted(t, solver.t, side="right"))
            if reached > done:
                states[done:reached] = solver.dense_output()(t[done:reached]).T
                done = reached
            if solver.status == "finished":
                return Simulation(states, None)
            if max_time is not None and clock() - begin > max_time:
                return Simulation(states, f"the simulation took more than {max_time:g} s and reached t = {solver.t:g}")
    return Simulation(states, f"the simulation took more than {max_steps} steps and reached t = {solver.t:g}")


def iterate(right: Right, start: Array, t: Array) -> Array:
    """The states (times, states) of a map x(t+1) = right(t, x(t)) from `start` on."""
    states = np.empty((len(t), len(start)))
    states[0] = start
    for i, time_now in enumerate(t[:-1].tolist()):
        states[i + 1] = right(time_now, states[i])
    return states


def _compile(law: Expression, place: Mapping[str, int]) -> Callable[[Sequence[float]], float]:
    """A function of the list of variables' values: plain floats are many times faster than tensors of one number."""

    def visit(node: Expression, operands: tuple[Callable[[Sequence[float]], float], ...]) -> Callable[..., float]:
        if isinstance(node, Variable):
            at = place[node.name]
            return lambda values: values[at]
        if isinstance(node, Constant):
            number = np.float64(node.value)
            return lambda values: number
        function = _scalar(node.operator)
        if len(operands) == 1:
            (inside,) = operands
            return lambda values: function(inside(values))
        left, right = operands
        return lambda values: function(left(values), right(values))

    return fold(law, visit)


def _scalar(operator: Operator) -> Callable[..., float]:
    """NumPy's function of that operator; for a user's own, the operator's torch function on one number."""
    if operator.numpy is not None:
        return operator.numpy
    function = operator.function
    return lambda *values: float(function(*(torch.tensor(float(value), dtype=torch.float64) for value in values)))
