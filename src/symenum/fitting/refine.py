"""The constants of many expressions of different structure fitted at once, by least squares in double precision."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import some_rows, stream
from symenum.expressions import Constant, Expression, evaluate
from symenum.fitting.constants import postfix, rebuilt
from symenum.fitting.levenberg_marquardt import Elimination, Fitted, fit, longest_step_by_size, zero_bad_derivatives
from symenum.fitting.levenberg_marquardt import evaluate as evaluate_batch
from symenum.fitting.machine import HOST, Blocks, DeviceBlocks, Machine, Slopes
from symenum.fitting.program import Array, Flags, Program, Whole, compile_program

__all__ = ["Batch", "Problem", "Refined", "refine"]


# --------------------------------------------------------------------------------------------------------------------
# Compiled expressions as problems of `levenberg_marquardt`: what the derivatives of a batch of programs are.
#
# Only JᵀJ leaves the machine, so that rows go through it in parts that fit into the caches, or on a GPU.


_WORTH_A_DEVICE = 20_000_000  # numbers from which a device is worth it
_PLACES = 5  # numbers for each node and row, about
_LEAST_ROWS = 16
_VALUES_ONLY = 3  # parts are so many times smaller without slopes: few calls, and the inner cache is the faster one


@dataclass(frozen=True)
class Problem:
    """The program on some rows; for each expression its target times the roots of the weights (expressions, rows),
    those roots (expressions, rows), and the loss that is rounding (expressions,)."""

    program: Program
    data: Array  # (columns, rows)
    target: Array
    root: Array
    floor: Array
    device: torch.device | None = None  # for large batches; None: the CPU for all


class Batch:
    """The members at work, and what stays the same for them: so many starts of each of some expressions.

    `groups` (B,): the expression of each. `slopes`: by which constants derivatives are taken. Those by the linear ones
    are enough to project these out.
    """

    def __init__(self, problem: Problem, expressions: Whole, copies: int = 1, slopes: Slopes = Slopes.ALL) -> None:
        self._expressions, self._copies, self._slopes = expressions, copies, slopes
        self.groups = np.repeat(expressions, copies)
        self.floor = problem.floor[self.groups]
        self.problem = problem
        rows, first = problem.data.shape[1], problem.program.first
        # All rows at once, or in parts of one size: the last one begins earlier, and what it repeats weighs nothing.
        places = copies * _PLACES * (len(expressions) + int((first[expressions + 1] - first[expressions]).sum()))
        on_device = problem.device is not None and places * rows >= _WORTH_A_DEVICE
        self._blocks: Blocks = DeviceBlocks(problem.device) if problem.device and on_device else HOST
        room = self._blocks.room // (_VALUES_ONLY if slopes is Slopes.NONE else 1)
        part = min(rows, max(_LEAST_ROWS, room // places))
        self._parts = [(min(at, rows - part), at) for at in range(0, rows, part)]
        self._size = part
        self.machine = Machine(problem.program, expressions, part, copies, slopes, self._blocks)
        self.width = self.machine.width
        self.elimination = Elimination(problem.program.linear[self.groups, : self.width].T)
        self._load(*self._parts[0])

    def without_idle(self, working: Flags) -> tuple[Batch, Whole]:
        """A batch of fewer members, among them all that work (B,), and where these stood in this one."""
        flags = working.reshape(-1, self._copies)
        kept = np.flatnonzero(flags.any(axis=1))
        most = int(flags.sum(axis=1).max())
        places = kept[:, None] * self._copies + np.argsort(~flags[kept], axis=1, kind="stable")[:, :most]
        return Batch(self.problem, self._expressions[kept], most), places.ravel()

    def _load(self, at: int, fresh: int) -> None:
        rows = slice(at, at + self._size)
        self.machine.load(self.problem.data[:, rows])
        root, target = (part[self._expressions, rows] for part in (self.problem.root, self.problem.target))
        root[:, : fresh - at] = 0.0
        target[:, : fresh - at] = 0.0
        self._root, self._target = self._blocks.take_over(root)[:, None], self._blocks.take_over(target)[:, None]
        if self._slopes is not Slopes.NONE:
            self.machine.seeds[:] = self._root

    def _values(self, constants: Array) -> Any:
        return self.machine.values(constants.reshape(self.width, -1, self._copies).transpose(1, 0, 2))

    def losses(self, constants: Array) -> Array:
        """The losses (B,) at constants (k, B) as they are."""
        loss = np.zeros(constants.shape[1])
        with np.errstate(all="ignore"):
            for part in self._parts:
                if len(self._parts) > 1:
                    self._load(*part)
                residual = self._target - self._values(constants) * self._root
                loss += self._blocks.square_sums(residual).ravel()
        loss[np.isnan(loss)] = np.inf
        return loss

    def longest_step(self, constants: Array) -> Array:
        """See `Problems`."""
        return longest_step_by_size(constants)

    def products(self, constants: Array) -> tuple[Array, Array]:
        """See `Problems`."""
        total: Array | float = 0.0
        block = self.machine.block
        with np.errstate(all="ignore"):
            for part in self._parts:
                if len(self._parts) > 1:
                    self._load(*part)
                values = self._values(constants)
                self.machine.derivatives()
                values *= self._root
                block[:, -1] = self._target
                block[:, -1] -= values
                total = total + self._blocks.gram(block)
        products = np.asarray(total).reshape(-1, self.width + 1, self.width + 1).transpose(1, 2, 0)
        return zero_bad_derivatives(products.copy()), constants


# --------------------------------------------------------------------------------------------------------------------
# The constants of many expressions of different structure fitted at once, by least squares in double precision.


_EXACT = EXACTNESS.stalled**2  # of the mean square of y: no step can gain from here on
_AS_EXACT = (EXACTNESS.fitted / EXACTNESS.stalled) ** 2  # times that: on all rows, what is exact on some
_LOOSE, _TIGHT = 1e-3, 1e-10  # when a fit ends: while starts compete, and for the best of them
_DRAWS = 10  # points that are looked at for each start that is taken
_SPREAD = 4.0  # further starts are off by a factor of up to this, or down to its inverse
_FLIP = 0.05  # the chance that a constant changes its sign
_SAME = EXACTNESS.twins  # two minima whose losses differ by less than this part are one
_ENOUGH = 3  # so many starts that end at the best minimum say that there is no better one
_MANY_ROWS, _FEW_ROWS = 40, 24  # above the one, starts compete on the other (or on more, for many constants)
_ROWS_PER_CONSTANT = 4
_SPARSE_ROWS, _TOGETHER = 12, 512  # drawn points are looked at on so few rows (at least), and so many at once
_LARGE = 3.0  # times the median of |y|: while starts compete, what is far above counts by its ratio only
_BLOCK = 512  # expressions at once at most
_FOR_GPU = 2_000_000  # values, nodes times rows, below which nobody asks for a GPU
_ASKED = 400  # how often each of them is computed, about


@dataclass(frozen=True)
class _Stage:
    """Starts for the expressions that are not solved yet, and steps, as parts of the numbers that the caller gave."""

    starts: float
    early: float  # steps of all starts, on the sparse rows
    kept: float  # starts that go on
    steps: float  # their steps


_FIRST = 0.2  # steps from the constants as they stand
_STAGES = (_Stage(1 / 12, 0.0, 1.0, 0.2), _Stage(2 / 3, 0.15, 1 / 6, 0.25))
_LAST = 0.25  # steps on all rows
_LAST_ROUNDS, _FAST = 4, 0.1  # so often, while the loss falls below this part of what it was


@dataclass(frozen=True)
class Refined:
    """An expression with fitted constants.

    `loss` is the weighted mean square error of exactly this expression (inf where it is not finite on some row).
    `constants` are `free_constants(expression)`, from left to right (`standard_errors` gives their errors).
    `converged`: the loss is at rounding, or at a minimum.
    """

    expression: Expression
    loss: float
    constants: tuple[float, ...]
    converged: bool


def refine(
    expressions: Sequence[Expression],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    starts: int = 16,
    steps: int = 40,
    seed: int = 0,
    budget: Budget | None = None,
    integers: bool = True,
    device: str = "cpu",
) -> list[Refined]:
    """Each expression with the constants of least loss that were found from its own and from further starts.

    `columns` holds (rows,) float64 for each variable, y and weight are (rows,) float64; weights sum to 1 (None: all
    the same). A y or weight of (expressions, rows) is one for each. The constants as they stand are the first start;
    only what does not reach rounding from there gets `starts` further ones. `steps` bounds the Levenberg–Marquardt
    steps from each start (0: the constants stay, and are only judged). `integers`: whether whole numbers are free too
    (never those in exponents). The budget is asked between steps; what is found by then is returned. None of the
    results is worse than what came in; one list in, one list of the same order out. Same seed, same result.

    `device`: a GPU's name, or "auto"; steps of many expressions on many rows are then made there.
    """
    budget = Budget() if budget is None else budget
    y = y.reshape(-1, y.shape[-1])
    rows = y.shape[1]
    weight = torch.full((rows,), 1 / rows, dtype=torch.float64) if weight is None else weight
    weight = weight.reshape(-1, rows)
    nodes = [postfix(expression, integers=integers) for expression in expressions]
    program = compile_program(nodes, columns)
    free = np.flatnonzero(program.count)
    found: dict[int, Refined] = {}
    there = _place(device, len(program.key) * rows)
    for which in (free[at : at + _BLOCK] for at in range(0, len(free), _BLOCK)):
        loss, task = _run(_Task(program, y.numpy(), weight.numpy(), which, steps, budget, seed, there), starts)
        for j, i in enumerate(which.tolist()):
            size = int(program.count[i])
            constants = tuple(task.best[:size, i].tolist())
            changed = rebuilt(nodes[i], [Constant(value) for value in constants])
            found[i] = Refined(changed, float(loss[j]), constants, bool(task.converged[i]))
    for i, expression in enumerate(expressions):
        if i not in found:
            target, share = (each[i if len(each) > 1 else 0] for each in (y, weight))
            mse = float((evaluate(expression, columns).to(torch.float64) - target).square() @ share)
            found[i] = Refined(expression, mse if mse < np.inf else np.inf, (), True)
    return [found[i] for i in range(len(expressions))]


def _place(device: str, values: int) -> torch.device | None:
    """The GPU for programs of so many values, nodes times rows, if there is one and they are not too few for it."""
    if device == "cpu" or values < _FOR_GPU:
        return None
    return next(iter(choose_devices(device, values * _ASKED)), None)


def _run(task: _Task, starts: int) -> tuple[Array, _Task]:
    """The losses of the task's best constants, and the task, which knows them; on the CPU if the GPU has no room."""
    try:
        if task.steps > 0:
            task.run(starts, stream(task.seed, "starts of constants"))
        return task.judge(), task
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        warnings.warn("the GPU has no memory left to fit constants: the CPU does it", stacklevel=2)
        return _run(task.on_cpu(), starts)


class _Task:
    """Some expressions of a program that have constants, and the best constants so far.

    Starts compete on few rows, on which values that are far larger than most count by their ratio only: a law that
    spans many powers of ten is not one point. The best of each expression is then fitted on all rows as they are.
    """

    def __init__(
        self,
        program: Program,
        y: Array,
        weight: Array,
        which: Whole,
        steps: int,
        budget: Budget,
        seed: int,
        device: torch.device | None = None,
    ) -> None:
        self.program, self.which, self.steps, self.budget = program, which, steps, budget
        self._data = y, weight
        self.seed = seed
        most = int(program.count[which].max())
        rows = np.arange(y.shape[1])
        if len(rows) > _MANY_ROWS:
            few = max(_FEW_ROWS, _ROWS_PER_CONSTANT * most)
            rows = some_rows(len(rows), few, seed, "rows on which starts compete").numpy()
        few = min(len(rows), max(_SPARSE_ROWS, 2 * most))
        sparse = rows[np.arange(few) * len(rows) // few]
        self.full = replace(_problem(program, program.data, y, weight), device=device)
        self.small, self.sparse = (
            _problem(program, program.data[:, some], y[:, some], _tempered(y[:, some], weight[:, some]))
            for some in (rows, sparse)
        )
        size = len(program.count)
        self.starts = program.starts.T
        self.best = self.starts.copy()
        self.loss = np.full(size, np.inf)  # of the best, among the few rows
        self.before = np.zeros(size)  # at most the loss of the constants that came in, on all rows
        self.agreed = np.zeros(size, dtype=np.int64)  # how many starts ended at the best minimum
        self.converged = np.zeros(size, dtype=bool)

    def on_cpu(self) -> _Task:
        """The same from the beginning, without a GPU."""
        return _Task(self.program, *self._data, self.which, self.steps, self.budget, self.seed)

    def run(self, starts: int, random: np.random.Generator) -> None:
        """Find the best constants."""
        self.before[self.which] = self._compete(self.which, self.starts[:, self.which, None], self._steps(_FIRST))
        inner = self.program.count > self.program.linear.sum(axis=1)
        for stage in _STAGES if starts else ():
            here = self.which
            left = here[(self.loss > self.small.floor)[here] & inner[here] & (self.agreed[here] < _ENOUGH)]
            if len(left):
                self._further(left, starts, stage, random)

    def _steps(self, part: float) -> int:
        return max(1, round(self.steps * part))

    def _further(self, members: Whole, starts: int, stage: _Stage, random: np.random.Generator) -> None:
        """Draw points, and start from the most promising."""
        drawn = self._drawn(members, max(1, round(starts * stage.starts)), random)
        # What was found so far goes on too: it may not be at its minimum yet.
        points = np.concatenate([drawn, self.best[:, members, None]], axis=2)
        if stage.early:
            early = self._fit(self.sparse, members, points, self._steps(stage.early))
            points = _leaders(early.constants, early.loss, points.shape, max(1, round(starts * stage.kept)))
        self._compete(members, points, self._steps(stage.steps))

    def _drawn(self, members: Whole, taken: int, random: np.random.Generator) -> Array:
        """The best so many (k, members, taken) of many points, their linear constants at least squares."""
        draws = taken * _DRAWS
        copies = min(max(_TOGETHER // len(members), 1), draws)
        batch = Batch(self.sparse, members, copies, Slopes.LINEAR)
        points, losses = [], []
        for _ in range(-(-draws // copies)):
            drawn = _draw(self.starts[:, batch.groups], random)
            state = evaluate_batch(batch, drawn[: batch.width])
            drawn[: batch.width] = state.constants
            points.append(drawn.reshape(len(drawn), len(members), copies))
            losses.append(state.loss.reshape(len(members), copies))
            if self.budget.over():
                break
        together, loss = np.concatenate(points, axis=2), np.concatenate(losses, axis=1)
        return _leaders(together, loss, together.shape, taken)

    def _fit(self, problem: Problem, members: Whole, points: Array, steps: int) -> Fitted:
        """From points (k, members, copies), while starts compete."""
        batch = Batch(problem, members, points.shape[2])
        return fit(batch, points.reshape(len(points), -1), steps=steps, tolerance=_LOOSE, budget=self.budget)

    def _compete(self, members: Whole, points: Array, steps: int) -> Array:
        """Fit from points (k, members, copies); the best of each expression stays. The losses of the points (B,)."""
        ended = self._fit(self.small, members, points, steps)
        losses = ended.loss.reshape(points.shape[1:])
        best, least = _leaders(ended.constants, losses, points.shape, 1)[:, :, 0], losses.min(axis=1)
        new = least < self.loss[members] * (1 - _SAME)
        there = members[new]
        self.agreed[there] = 0
        self.best[:, there] = best[:, new]
        self.loss[there] = least[new]
        same = np.isfinite(losses) & (losses <= self.loss[members, None] * (1 + _SAME))
        self.agreed[members] += same.sum(axis=1)
        return ended.before

    def judge(self) -> Array:
        """The best brought to their minima on all rows; what is not better than the start is taken back.

        Then the losses (which,), inf where values are not finite.
        """
        which, batch = self.which, Batch(self.full, self.which, slopes=Slopes.NONE)
        loss = batch.losses(self.best[: batch.width, which])
        self.converged[which] = loss <= _AS_EXACT * batch.floor
        if self.steps > 0:
            unsolved = np.flatnonzero(~self.converged[which])
            if len(unsolved):
                loss[unsolved] = self._polished(which[unsolved])
            # What the start loses on a part of the rows it loses on all; most need no more to be known of it.
            unsure = np.flatnonzero(~(loss < 0.5 * self.before[which]))
            if len(unsure):
                loss[unsure] = self._not_worse(which[unsure], loss[unsure])
        return loss

    def _polished(self, members: Whole) -> Array:
        """Steps on all rows, more of them where the loss still falls fast; then the losses (members,)."""
        falling = members
        for _ in range(_LAST_ROUNDS):
            batch = Batch(self.full, falling)
            steps = self._steps(_LAST)
            ended = fit(batch, self.best[:, falling], steps=steps, tolerance=_TIGHT, budget=self.budget)
            self.best[:, falling], self.converged[falling] = ended.constants, ended.converged
            falling = falling[~ended.converged & (ended.loss < _FAST * ended.before)]
            if not len(falling) or self.budget.over():
                break
        # Those of the fit were foreseen when the linear constants moved, not computed.
        judged = Batch(self.full, members, slopes=Slopes.NONE)
        return judged.losses(self.best[: judged.width, members])

    def _not_worse(self, members: Whole, loss: Array) -> Array:
        """The start where it does not lose more than the best constants; the losses (members,) after that."""
        batch = Batch(self.full, members, slopes=Slopes.NONE)
        first = batch.losses(self.starts[: batch.width, members])
        worse = members[~(loss < first)]
        self.best[:, worse] = self.starts[:, worse]
        return np.minimum(loss, first)


def _problem(program: Program, data: Array, y: Array, weight: Array) -> Problem:
    """For y and weights (expressions, rows), or (1, rows) for all."""
    root = np.sqrt(weight)
    target = y * root
    floor = np.maximum((target * target).sum(axis=1) * _EXACT, np.finfo(np.float64).tiny)
    shape = len(program.count), data.shape[1]
    return Problem(
        program, data, np.broadcast_to(target, shape), np.broadcast_to(root, shape), np.broadcast_to(floor, shape[0])
    )


def _tempered(y: Array, weight: Array) -> Array:
    """Weights, at most those that came, and smaller where y is very large; both (expressions, rows) or (1, rows)."""
    size = _LARGE * np.median(np.abs(y), axis=1, keepdims=True)
    size[size == 0] = np.inf
    return np.asarray(weight / (1 + (y / size) ** 2))


def _leaders(points: Array, loss: Array, shape: tuple[int, ...], most: int) -> Array:
    """Of points of this shape (k, members, copies) up to so many (k, members, most) of the least losses."""
    order = np.argsort(loss.reshape(shape[1:]), axis=1, kind="stable")[:, :most]
    return np.take_along_axis(points.reshape(shape), order[None], axis=2)


def _draw(constants: Array, random: np.random.Generator) -> Array:
    """Points around: each constant times a log-uniform factor, some with the other sign; a zero becomes normal."""
    spread = math.log(_SPREAD)
    factor = np.exp(random.uniform(-spread, spread, constants.shape))
    factor[random.random(constants.shape) < _FLIP] *= -1
    return np.where(constants == 0, random.standard_normal(constants.shape), constants * factor)
