"""Laws of motion fitted to the trajectories themselves: multiple shooting, with fitted starts and constants.

The motion is cut into segments, each with a start of its own, and every sample is a node. From each node the laws are
followed to the next one, all intervals at once (Runge and Kutta's method of order 4), together with how the end depends
on the node and on the constants (forward sensitivities). A step of Gauss and Newton then moves starts and constants so
that the gaps between the intervals close and the samples are met best; the nodes between follow from the closing, so
that only starts and constants are unknown. It begins at the smoothed samples, and so does not run away as a simulation
from the first sample would.

States that are not followed (all others, while one equation is judged for itself) and inputs are functions of time:
cubic between smoothed samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symenum.core.budget import NO_LIMIT, Budget
from symenum.expressions import Apply, Constant, Expression, Variable
from symenum.fitting.batch_evaluation import Call, backward, forward, passes_slope_unchanged
from symenum.fitting.free_constants import free_constants, freed, postfix, with_constants

__all__ = ["Followed", "Nodes", "Segment", "Shot", "blow_ups", "follow"]

Array = npt.NDArray[np.float64]

_STAGES = ((0.0, 0.0), (0.5, 0.5), (0.5, 0.5), (1.0, 1.0))  # Runge and Kutta: time, and share of the last slope
_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
_STEP = 0.25  # largest step in units of the fastest rate: the error of a step is then 0.25⁵/120, below 1e-5
_MAX_SUBSTEPS = 8  # between two samples; a law that needs more is stiffer than the samples can show
_ITERATIONS = 15  # of Gauss and Newton; a fit that converges takes 4 to 8
_FREE_ITERATIONS = 2  # steps that are taken whatever they bring: the first ones close the gaps
_PATIENCE = 3  # steps after which a fit that is far too bad is given up
_CONVERGED = 1e-4  # relative gain of a step below which the fit has ended: far less than what noise moves chi-square by
_FIRST_DAMPING, _DAMPING_FACTOR, _MAX_DAMPING = 1e-6, 10.0, 1e3  # in units of the normal equations' diagonal
_CLOSED = 0.05  # largest root mean square of the gaps, in errors of the samples, of a motion that counts as followed
_FAR = 1e3  # times the size of a state: further out a motion counts as blown up
_LARGEST = 1e100  # of a sensitivity: its square, in units of a small error, must not overflow
_TINY = 1e-300  # near the smallest normal double: keeps a constant that does nothing out of a division


@dataclass(frozen=True)
class Segment:
    """Nodes from `first` to before `end`, followed from a start of their own."""

    first: int
    end: int


@dataclass(frozen=True)
class Nodes:
    """Samples as nodes of all segments, one after another.

    `t` (n,). `samples` and `errors` (n, measured), the standard deviations of the samples' errors; `measured`: their
    names. `motion`: for each variable its smoothed values and slopes (n,) in time.
    """

    t: Array
    samples: Array
    errors: Array
    measured: tuple[str, ...]
    motion: Mapping[str, tuple[Array, Array]]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Followed:
    """The laws of some variables: their derivatives in time, in the order of `names`."""

    names: tuple[str, ...]
    laws: tuple[Expression, ...]


@dataclass(frozen=True)
class Shot:
    """Laws with the constants that fit the trajectories best.

    `chi_square` (measured followed names,): the sum over the nodes of squared residuals in units of the samples'
    errors. `states` (names, n): the fitted motion at the nodes. `normal` (constants, constants): half of how the sum of
    squares bends with the constants, the starts following.
    """

    laws: tuple[Expression, ...]
    constants: tuple[float, ...]
    chi_square: Array
    states: Array
    normal: Array

    def standard_errors(self) -> Array:
        """Of the constants, for samples with just the errors that are assumed; infinite where they say nothing."""
        errors: Array = np.sqrt(np.maximum(np.diag(self.covariance(range(len(self.normal)))), 0.0))
        return np.where(np.diag(self.normal) > 0, errors, np.inf)

    def covariance(self, free: Sequence[int]) -> Array:
        """Of these constants, the others fixed, for samples with just the errors that are assumed."""
        normal = self.normal[np.ix_(free, free)]
        return _solve(normal, np.eye(len(normal)))


class _DivergedError(ArithmeticError):
    """The laws' motion depends on its start or on a constant by more than numbers can hold."""


class _Law:
    """One law on a block of points: its value, and its slopes by variables and by its constants."""

    def __init__(self, law: Expression, block: Mapping[str, Array], points: int) -> None:
        self.constants: list[Array] = []
        self.by_constant: list[Array] = []
        self.by_variable: dict[str, list[Array]] = {}
        self._forward: list[Call] = []
        self._backward: list[Call] = []
        stack: list[tuple[Expression, Array, bool]] = []
        applied: list[tuple[Apply, Array, list[tuple[Expression, Array, bool]]]] = []
        for node, free in postfix(law, integers=False):
            if isinstance(node, Variable):
                stack.append((node, block[node.name], True))
            elif isinstance(node, Constant):
                values = np.full(points, float(node.value))
                if free:
                    self.constants.append(values)
                stack.append((node, values, free))
            elif isinstance(node, Apply):
                operands = stack[len(stack) - len(node.operands) :]
                del stack[len(stack) - len(node.operands) :]
                value = np.empty(points)
                self._forward.append(forward(node.operator, [one[1] for one in operands], value))
                applied.append((node, value, operands))
                stack.append((node, value, any(one[2] for one in operands)))
        ((root, self.value, moves),) = stack
        slopes: dict[int, Array] = {id(self.value): np.ones(points)}
        by_values: dict[int, Array] = {}
        if not applied and moves:
            self._leaf(root, self.value, slopes[id(self.value)], by_values)
        for node, value, operands in reversed(applied):
            slope = slopes.get(id(value))
            if slope is None:
                continue
            values_of = [one[1] for one in operands]
            for by, (operand, values, depends) in enumerate(operands):
                if not depends:
                    continue
                out = slope
                if not passes_slope_unchanged(node.operator, by):
                    out = np.empty(points)
                    self._backward += backward(node.operator, by, slope, value, values_of, out)
                if isinstance(operand, Apply):
                    slopes[id(values)] = out
                else:
                    self._leaf(operand, values, out, by_values)
        self.by_constant = [by_values[id(values)] for values in self.constants]

    def _leaf(self, leaf: Expression, values: Array, slope: Array, by_values: dict[int, Array]) -> None:
        if isinstance(leaf, Variable):
            self.by_variable.setdefault(leaf.name, []).append(slope)
        else:
            by_values[id(values)] = slope

    def set(self, constants: Sequence[float]) -> None:
        for values, constant in zip(self.constants, constants, strict=True):
            values.fill(constant)

    def evaluate(self) -> None:
        """The value alone."""
        for function, arguments in self._forward:
            function(*arguments)

    def run(self) -> None:
        """The value and all slopes."""
        self.evaluate()
        for function, arguments in self._backward:
            function(*arguments)


class _Flow:
    """The followed laws on all intervals at once: where each ends, and how that depends on its node and constants."""

    def __init__(self, followed: Followed, nodes: Nodes) -> None:
        self.followed = followed
        self.inside = np.concatenate([np.arange(one.first, one.end - 1) for one in nodes.segments])
        self.step = nodes.t[self.inside + 1] - nodes.t[self.inside]
        points = len(self.inside)
        self.block = {name: np.empty(points) for name in nodes.motion}
        self.machines = [_Law(law, self.block, points) for law in followed.laws]
        ends = np.cumsum([0, *(len(machine.constants) for machine in self.machines)])
        self.places = [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]
        self.count = int(ends[-1])
        self.nodes = nodes
        self._others = [name for name in nodes.motion if name not in followed.names]
        self._needed = [name for name in self._others if any(name in one.by_variable for one in self.machines)]
        self.substeps = 1

    def set(self, constants: Array) -> None:
        for machine, place in zip(self.machines, self.places, strict=True):
            machine.set(constants[place].tolist())

    def choose_substeps(self, states: Array) -> None:
        """Steps between two samples, by the fastest rate of the laws at the nodes (names, n)."""
        self._load(states[:, self.inside], 0.0)
        _, by_state, _ = self._slopes()
        rates = np.abs(by_state).sum(axis=1).max(axis=0) * self.step
        rate = float(np.max(rates[np.isfinite(rates)], initial=0.0))
        self.substeps = int(min(_MAX_SUBSTEPS, max(1, math.ceil(rate / _STEP))))

    def ends(self, states: Array) -> tuple[Array, Array]:
        """Ends (names, intervals) of the motion from nodes (names, n).

        Second, their slopes (names, names + constants, intervals) by the node and by the constants.
        """
        size = len(self.machines)
        state = states[:, self.inside]
        slopes = np.zeros((size, size + self.count, len(self.inside)))
        slopes[np.arange(size), np.arange(size)] = 1.0
        step = self.step / self.substeps
        for sub in range(self.substeps):
            total, total_slopes = np.zeros_like(state), np.zeros_like(slopes)
            rate, rate_slopes = total, total_slopes
            for (time, share), weight in zip(_STAGES, _WEIGHTS, strict=True):
                moved_slopes = slopes + share * step * rate_slopes
                self._load(state + share * step * rate, (sub + time) / self.substeps)
                rate, by_state, by_constant = self._slopes()
                rate_slopes = np.einsum("ijn,jkn->ikn", by_state, moved_slopes)
                rate_slopes[:, size:] += by_constant
                total += weight * rate
                total_slopes += weight * rate_slopes
            state = state + step * total
            slopes = slopes + step * total_slopes
        return state, slopes

    def _load(self, states: Array, part: float) -> None:
        """Put the followed states and the others, at that part of each interval, where the laws read them."""
        for name, values in zip(self.followed.names, states, strict=True):
            self.block[name][:] = values
        for name in self._needed:
            self.block[name][:] = self._between(name, part)

    def _between(self, name: str, part: float) -> Array:
        """The cubic through smoothed values and slopes at both ends of each interval."""
        values, slopes = self.nodes.motion[name]
        left, right = values[self.inside], values[self.inside + 1]
        by_left, by_right = slopes[self.inside] * self.step, slopes[self.inside + 1] * self.step
        rest = 1 - part
        cubic: Array = (
            (1 + 2 * part) * rest**2 * left
            + part * rest**2 * by_left
            + part**2 * (3 - 2 * part) * right
            - part**2 * rest * by_right
        )
        return cubic

    def _slopes(self) -> tuple[Array, Array, Array]:
        """Rates (names, intervals), and their slopes by the followed states and by the constants."""
        points = len(self.inside)
        size = len(self.machines)
        rates = np.empty((size, points))
        by_state = np.zeros((size, size, points))
        by_constant = np.zeros((size, self.count, points))
        for i, machine in enumerate(self.machines):
            machine.run()
            rates[i] = machine.value
            for j, name in enumerate(self.followed.names):
                for slope in machine.by_variable.get(name, ()):
                    by_state[i, j] += slope
            for k, slope in enumerate(machine.by_constant):
                by_constant[i, self.places[i].start + k] = slope
        return rates, by_state, by_constant


class _Chain:
    """Affine maps from node to node joined into maps from the start of each segment to all of its nodes.

    The maps of a segment are joined in blocks, all blocks side by side, and then the blocks: so 256 maps take some
    thirty operations on arrays in place of 256.
    """

    def __init__(self, intervals: Sequence[int]) -> None:
        """`intervals`: how many each segment has; those of all segments are numbered one after another."""
        self.length = max(1, math.isqrt(max(intervals)))  # of a block
        blocks = [math.ceil(count / self.length) for count in intervals]
        total = sum(intervals)
        self.table = np.full((self.length, sum(blocks)), total)  # the number past the last one is the identity
        self.order = np.full((max(blocks, default=0), len(blocks)), sum(blocks))
        places: list[tuple[int, int]] = []  # for each node its place in a block, and the block
        block = interval = 0
        for s, (count, several) in enumerate(zip(intervals, blocks, strict=True)):
            places.append((0, block))
            numbers = np.arange(count)
            self.table[numbers % self.length, block + numbers // self.length] = interval + numbers
            places += zip((numbers % self.length + 1).tolist(), (block + numbers // self.length).tolist(), strict=True)
            self.order[:several, s] = np.arange(block, block + several)
            block, interval = block + several, interval + count
        self.place, self.block = np.array(places).T

    def joined(self, step: Array, added: Array) -> Array:
        """Maps (nodes, names, names + k) of the starts: x ↦ step·x + added, (intervals, names, names) and (…, k)."""
        size, width = step.shape[1], added.shape[2]
        step = np.concatenate([step, np.eye(size)[None]])
        added = np.concatenate([added, np.zeros((1, size, width))])
        blocks = self.table.shape[1]
        start = np.concatenate([np.eye(size), np.zeros((size, width))], axis=1)
        inside = np.empty((self.length + 1, blocks + 1, size, size + width))
        inside[:, -1] = start
        inside[0] = start
        for k, numbers in enumerate(self.table):
            inside[k + 1, :-1] = step[numbers] @ inside[k, :-1]
            inside[k + 1, :-1, :, size:] += added[numbers]
        begin = np.empty((blocks + 1, size, size + width))
        now = np.repeat(start[None], self.order.shape[1], axis=0)
        for numbers in self.order:
            begin[numbers] = now
            last = inside[-1, numbers]
            now = last[:, :, :size] @ now
            now[:, :, size:] += last[:, :, size:]
        to_nodes = inside[self.place, self.block]
        moves: Array = to_nodes[:, :, :size] @ begin[self.block]
        moves[:, :, size:] += to_nodes[:, :, size:]
        return moves


@dataclass(frozen=True)
class _Linear:
    """The motion to first order: nodes move by `by_start`·(start) + `by_constant`·(constants) + `closing`."""

    by_start: Array  # (n, names, names)
    by_constant: Array  # (n, names, constants)
    closing: Array  # (n, names)
    gap: float  # root mean square of the gaps, in errors of the samples


class _Fit:
    def __init__(self, followed: Followed, nodes: Nodes) -> None:
        self.flow = _Flow(followed, nodes)
        self.nodes = nodes
        places = {name: i for i, name in enumerate(nodes.measured)}
        self.seen = [i for i, name in enumerate(followed.names) if name in places]
        columns = [places[followed.names[i]] for i in self.seen]
        self.samples, self.errors = nodes.samples[:, columns], nodes.errors[:, columns]
        self.segments = [np.arange(one.first, one.end) for one in nodes.segments]
        self.chain = _Chain([len(one) - 1 for one in self.segments])

    def linearise(self, states: Array, constants: Array) -> _Linear | None:
        """None where the laws are not finite."""
        flow = self.flow
        flow.set(constants)
        ends, slopes = flow.ends(states)
        if not np.isfinite(ends).all() or not np.isfinite(slopes).all():
            return None
        size, count = len(flow.machines), flow.count
        gaps = (ends - states[:, flow.inside + 1]).T
        step = slopes[:, :size].transpose(2, 0, 1)
        added = np.concatenate([slopes[:, size:].transpose(2, 0, 1), gaps[:, :, None]], axis=2)
        moves = self.chain.joined(step, added)
        if not np.abs(moves).max() < _LARGEST:  # NaN compares false
            return None
        relative = gaps[:, self.seen] / self.errors[flow.inside + 1]
        return _Linear(
            moves[:, :, :size],
            moves[:, :, size : size + count],
            moves[:, :, -1],
            float(np.sqrt(np.mean(relative**2))) if relative.size else 0.0,
        )

    def residual(self, states: Array, linear: _Linear) -> Array:
        """(n, seen): samples less the motion with its gaps closed, in errors of the samples."""
        closed = states.T + linear.closing
        residual: Array = (self.samples - closed[:, self.seen]) / self.errors
        return residual

    def step(self, residual: Array, linear: _Linear, damping: float) -> tuple[Array, Array, Array]:
        """The best moves of starts (segments, names) and constants, and the constants' normal matrix."""
        by_start = linear.by_start[:, self.seen] / self.errors[:, :, None]
        by_constant = linear.by_constant[:, self.seen] / self.errors[:, :, None]
        count = by_constant.shape[2]
        normal, right = np.zeros((count, count)), np.zeros(count)
        parts = []
        for rows in self.segments:
            S = by_start[rows].reshape(len(rows) * len(self.seen), -1)
            C = by_constant[rows].reshape(len(rows) * len(self.seen), count)
            r = residual[rows].ravel()
            inner = _damped(S.T @ S, damping)
            across, along = S.T @ C, S.T @ r
            solved = _solve(inner, np.column_stack([across, along]))
            parts.append((solved[:, :count], solved[:, count]))
            normal += C.T @ C - across.T @ solved[:, :count]
            right += C.T @ r - across.T @ solved[:, count]
        constants = _solve(_damped(normal, damping), right[:, None])[:, 0] if count else np.zeros(0)
        starts = np.stack([alone - through @ constants for through, alone in parts])
        return starts, constants, normal

    def moved(self, states: Array, linear: _Linear, starts: Array, constants: Array) -> Array:
        result = states.T + linear.closing + linear.by_constant @ constants
        for rows, start in zip(self.segments, starts, strict=True):
            result[rows] += linear.by_start[rows] @ start
        return np.ascontiguousarray(result.T)


def _damped(matrix: Array, damping: float) -> Array:
    diagonal = np.diag(matrix)
    result: Array = matrix + np.diag(damping * diagonal)
    return result


def _solve(matrix: Array, right: Array) -> Array:
    """matrix⁻¹·right for a symmetric matrix, each line in its own units; of least norm where it has no inverse."""
    diagonal = np.diag(matrix)
    scale = np.sqrt(np.where(diagonal > _TINY, diagonal, 1.0))
    unit = matrix / scale[:, None] / scale
    if not np.isfinite(unit).all() or not np.isfinite(right).all():
        raise _DivergedError
    solved: Array = np.linalg.lstsq(unit, right / scale[:, None], rcond=None)[0] / scale[:, None]
    return solved


def follow(followed: Followed, nodes: Nodes, hopeless: float = math.inf, budget: Budget = NO_LIMIT) -> Shot | None:
    """The laws with starts and constants fitted to the nodes; None where they cannot be followed along the samples.

    A fit whose sum of squares is above `hopeless` after a few steps is given up, and so is one when the budget is over:
    None.
    """
    laws = tuple(freed(law) for law in followed.laws)
    with np.errstate(all="ignore"):
        try:
            return _follow(Followed(followed.names, laws), nodes, hopeless, budget)
        except _DivergedError:
            return None


def _follow(followed: Followed, nodes: Nodes, hopeless: float, budget: Budget) -> Shot | None:
    fit = _Fit(followed, nodes)
    states = np.stack([nodes.motion[name][0] for name in followed.names])
    constants = np.array([value for law in followed.laws for value in free_constants(law, integers=False)])
    fit.flow.set(constants)
    fit.flow.choose_substeps(states)
    linear = fit.linearise(states, constants)
    if linear is None:
        return None
    residual = fit.residual(states, linear)
    misfit = float(np.sum(residual**2))
    damping = _FIRST_DAMPING
    for iteration in range(_ITERATIONS):
        if budget.over():
            return None
        starts, change, _ = fit.step(residual, linear, damping)
        new_states, new_constants = fit.moved(states, linear, starts, change), constants + change
        new_linear = fit.linearise(new_states, new_constants)
        new_residual = None if new_linear is None else fit.residual(new_states, new_linear)
        new_misfit = math.inf if new_residual is None else float(np.sum(new_residual**2))
        if new_linear is None or new_residual is None or (iteration >= _FREE_ITERATIONS and new_misfit > misfit):
            damping = max(damping, _FIRST_DAMPING) * _DAMPING_FACTOR**2
            if damping > _MAX_DAMPING:
                break
            continue
        gain = misfit - new_misfit
        states, constants, linear, residual, misfit = new_states, new_constants, new_linear, new_residual, new_misfit
        damping /= _DAMPING_FACTOR
        if iteration >= _PATIENCE and misfit > hopeless:
            return None
        if 0 <= gain < _CONVERGED * misfit + _CONVERGED and linear.gap < _CLOSED:
            break
    if not linear.gap < _CLOSED:
        return None
    _, _, normal = fit.step(residual, linear, 0.0)
    laws = tuple(
        with_constants(law, constants[place].tolist(), integers=False)
        for law, place in zip(followed.laws, fit.flow.places, strict=True)
    )
    return Shot(
        laws,
        tuple(constants.tolist()),
        np.sum(residual**2, axis=0),
        states,
        normal,
    )


def blow_ups(followed: Followed, starts: Mapping[str, Array], step: float, steps: int, size: Array) -> int:
    """From how many of the starts the laws cannot be followed, or lead a thousand sizes away.

    `starts`: for each variable its values (starts,); those that are not followed keep theirs. `size` (names,): of each
    followed state.
    """
    count = len(next(iter(starts.values())))
    block = {name: np.array(values, dtype=np.float64) for name, values in starts.items()}
    machines = [_Law(law, block, count) for law in followed.laws]
    state = np.stack([starts[name] for name in followed.names])
    far = _FAR * size[:, None]
    lost = np.zeros(count, dtype=bool)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            total = np.zeros_like(state)
            rate = total
            for (_, share), weight in zip(_STAGES, _WEIGHTS, strict=True):
                for name, values in zip(followed.names, state + share * step * rate, strict=True):
                    block[name][:] = values
                for machine in machines:
                    machine.evaluate()
                rate = np.stack([machine.value for machine in machines])
                total = total + weight * rate
            state = state + step * total
            lost |= ~(np.abs(state) <= far).all(axis=0)  # NaN compares false
            if lost.all():
                break
            state[:, lost] = 0.0  # what is lost must not slow the rest down by warnings and denormal numbers
    return int(lost.sum())
