"""The constants of many expressions of different structure fitted at once, by least squares in double precision.

The expressions are compiled into one program, and a `Batch` of them is a set of problems of `levenberg_marquardt`. Only
JᵀJ leaves the machine that computes derivatives, so that rows go through it in parts that fit into the caches, or onto
a GPU. Starts compete on few rows (`_Task`); the best of each expression is then fitted on all rows.

Not for a form whose constants have names (`form`), nor for a loss other than the mean square error (`fit_under_loss`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.devices import choose_devices, device_failed
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import sample_rows, stream
from symenum.core.user_warnings import warn_user
from symenum.expressions import Constant, Expression, evaluate
from symenum.fitting.batch_evaluation import HOST, Blocks, DeviceBlocks, Machine, Slopes
from symenum.fitting.batch_program import Array, Flags, Integers, Program, compile_program
from symenum.fitting.free_constants import postfix, rebuilt
from symenum.fitting.levenberg_marquardt import Elimination, Fitted, fit, longest_step_by_size, zero_bad_derivatives
from symenum.fitting.levenberg_marquardt import evaluate as evaluate_batch

__all__ = ["Batch", "Problem", "Refined", "refine"]

_EXACT = EXACTNESS.stalled**2  # part of the mean square of y: no step can gain below this loss
_EXACT_ON_ALL_ROWS = (EXACTNESS.fitted / EXACTNESS.stalled) ** 2  # times that: the loss on all rows of an exact law
_SAME = EXACTNESS.scanned_tie  # relative difference of the losses of one minimum that was reached twice
_NUMBERS_PER_NODE = 5  # for each row, about: a value, up to two gathered operands, a slope, a slope passed on
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
# Machines and memory.
_WORTH_A_DEVICE = 5_000_000  # numbers in a batch from which a GPU is faster than the CPU
_WORTH_ASKING = 1_000_000  # values, nodes times rows, of a program below which nobody asks for a GPU
_EVALUATIONS = 1000  # work of a value in units of `choose_devices`: "auto" takes a GPU from 2e6 values on
_MIN_PART_ROWS = 16  # rows that go through the machine at once
_VALUES_ONLY_PARTS = 3  # parts are this many times smaller without slopes: few calls, and the inner cache is faster
_MAX_TOGETHER = 512  # expressions that are fitted at once
_POINTS_TOGETHER = 512  # drawn points that are evaluated at once
# Rows on which starts compete, and how they count there.
_MANY_ROWS = 40  # with no more rows than this, starts compete on all of them
_COMPETITION_ROWS = 24  # else on this many
_ROWS_PER_CONSTANT = 4  # or on this many for each constant, whichever is more
_SPARSE_ROWS = 12  # drawn points are evaluated on this many of them
_SPARSE_ROWS_PER_CONSTANT = 2  # or on this many for each constant, whichever is more
_LARGE = 3.0  # times the median of |y|: while starts compete, rows with a larger |y| count relative to it
# Starts.
_DRAWS_PER_START = 10  # points that are drawn and evaluated for each start that is taken
_SPREAD = 4.0  # a drawn constant is the start's times a factor from 1/4 to 4
_FLIP_CHANCE = 0.05  # that a drawn constant changes its sign
_ENOUGH_AGREE = 3  # starts that end at the best minimum: then there is hardly a better one
# Steps, as parts of the caller's number of steps.
_FIRST_STEPS = 0.2  # from the constants as they stand
_LAST_STEPS = 0.25  # on all rows, in each round
_MAX_LAST_ROUNDS = 4  # further rounds on all rows
_FAST = 0.1  # a further round follows while the loss falls below this part of what it was
_LOOSE_TOLERANCE = 1e-3  # part of the loss, see `fit`: while starts compete
_TIGHT_TOLERANCE = 1e-10  # the same for the best of them, on all rows
_NEAR_TOLERANCE = 1e-6  # the same for constants near a minimum: a millionth of the loss is far below what noise moves


@dataclass(frozen=True)
class Problem:
    """The expressions of a program and what they are fitted to, on some rows."""

    program: Program
    data: Array  # (columns, rows)
    target: Array  # (expressions, rows), times the roots of the weights
    root: Array  # (expressions, rows): the roots of the weights
    floor: Array  # (expressions,): the loss that is rounding
    device: torch.device | None = None  # for large batches; None: the CPU for all


class Batch:
    """Some expressions of a problem, `copies` starts of each, as problems of `levenberg_marquardt`.

    Members are ordered by expression, then by copy; `groups` (B,) are their expressions. `slopes`: by which constants
    derivatives are taken. Those by the linear constants are enough to put these at their least squares.
    """

    def __init__(self, problem: Problem, expressions: Integers, copies: int = 1, slopes: Slopes = Slopes.ALL) -> None:
        self._expressions, self._copies, self._slopes = expressions, copies, slopes
        self.groups = np.repeat(expressions, copies)
        self.floor = problem.floor[self.groups]
        self.problem = problem
        rows, first = problem.data.shape[1], problem.program.first
        # All rows at once, or in parts of one size: the last begins earlier, and rows that it repeats have weight 0.
        nodes = int((first[expressions + 1] - first[expressions]).sum())
        numbers = copies * _NUMBERS_PER_NODE * (len(expressions) + nodes)
        on_device = problem.device is not None and numbers * rows >= _WORTH_A_DEVICE
        self._blocks: Blocks = DeviceBlocks(problem.device) if problem.device and on_device else HOST
        room = self._blocks.room // (_VALUES_ONLY_PARTS if slopes is Slopes.NONE else 1)
        part = min(rows, max(_MIN_PART_ROWS, room // numbers))
        self._parts = [(min(at, rows - part), at) for at in range(0, rows, part)]
        self._size = part
        self.machine = Machine(problem.program, expressions, part, copies, slopes, self._blocks)
        self.width = self.machine.width
        self.elimination = Elimination(problem.program.linear[self.groups, : self.width].T)
        self._load(*self._parts[0])

    def without_idle(self, working: Flags) -> tuple[Batch, Integers]:
        """See `Problems`."""
        flags = working.reshape(-1, self._copies)
        still = np.flatnonzero(flags.any(axis=1))
        copies = int(flags.sum(axis=1).max())
        places = still[:, None] * self._copies + np.argsort(~flags[still], axis=1, kind="stable")[:, :copies]
        return Batch(self.problem, self._expressions[still], copies), places.ravel()

    def _load(self, at: int, fresh: int) -> None:
        """Take the part of the rows from `at` on; those before `fresh` belong to another part and have weight 0."""
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
        """The losses (B,) at constants (k, B), the linear ones not moved."""
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


@dataclass(frozen=True)
class _Stage:
    """Starts for the expressions that are not solved yet, and steps, as parts of the numbers that the caller gave."""

    starts: float
    sparse_steps: float  # of all starts, on the sparse rows; 0: all starts go on at once
    survivors: float  # starts that go on
    steps: float  # of these


# A few starts first, then many of which the best go on. Chosen by trial.
_STAGES = (_Stage(1 / 12, 0.0, 1.0, 0.2), _Stage(2 / 3, 0.15, 1 / 6, 0.25))


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
    near: bool = False,
) -> list[Refined]:
    """Each expression with the constants of least loss that were found from its own and from further starts.

    `columns` holds (rows,) float64 for each variable, y and weight are (rows,) float64; weights sum to 1 (None: all
    the same). A y or weight of (expressions, rows) is one for each. The constants as they stand are the first start;
    an expression that does not reach rounding from there gets `starts` further ones. `steps` bounds the steps of
    Levenberg–Marquardt from each start (0: the constants stay, and only the loss is computed). `integers`: whether
    whole numbers are free too (never those in exponents). The budget is asked between steps; when it is over, the best
    so far counts. The results have the order of the expressions, and none is worse than its expression. Same seed, same
    result.

    `device`: a GPU's name, or "auto"; steps of many expressions on many rows are then made there.

    `near`: the constants are known to be near a minimum. All steps are then made from them, on all rows, and there are
    no further starts: a few rows would lead a law of many constants away from where it is.
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
    chosen = _choose_device(device, len(program.key) * rows)
    for which in (free[at : at + _MAX_TOGETHER] for at in range(0, len(free), _MAX_TOGETHER)):
        loss, task = _run(_Task(program, y.numpy(), weight.numpy(), which, steps, budget, seed, chosen, near), starts)
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


def _choose_device(device: str, values: int) -> torch.device | None:
    """The GPU for a program of that many values, nodes times rows; None where there is none, or it is not worth it."""
    if device == "cpu" or values < _WORTH_ASKING:
        return None
    return next(iter(choose_devices(device, values * _EVALUATIONS)), None)


def _run(task: _Task, starts: int) -> tuple[Array, _Task]:
    """The losses of the best constants and the task that holds these; on the CPU if the GPU has no room."""
    try:
        if task.steps > 0 and not task.near:
            task.run(starts, stream(task.seed, "starts of constants"))
        return task.judge(), task
    except RuntimeError as error:
        if not device_failed(error):
            raise
        if isinstance(error, torch.cuda.OutOfMemoryError):
            torch.cuda.empty_cache()
            warn_user("the GPU has no memory left to fit constants: the CPU does it")
        else:
            warn_user(f"the GPU failed while constants were fitted ({error}): the CPU does it")
        return _run(task.on_cpu(), starts)


class _Task:
    """Some expressions of a program that have constants, and the best constants so far.

    Starts compete on few rows. There, residuals of values far above the median count relative to these values: in a law
    that spans many powers of ten the largest row would decide alone. The best start of each expression is then fitted
    on all rows with their own weights.
    """

    def __init__(
        self,
        program: Program,
        y: Array,
        weight: Array,
        which: Integers,
        steps: int,
        budget: Budget,
        seed: int,
        device: torch.device | None = None,
        near: bool = False,
    ) -> None:
        self.near = near
        self.program, self.which, self.steps, self.budget = program, which, steps, budget
        self._data = y, weight
        self.seed = seed
        max_constants = int(program.count[which].max())
        rows = np.arange(y.shape[1])
        if len(rows) > _MANY_ROWS:
            count = max(_COMPETITION_ROWS, _ROWS_PER_CONSTANT * max_constants)
            rows = sample_rows(len(rows), count, seed, "rows on which starts compete").numpy()
        count = min(len(rows), max(_SPARSE_ROWS, _SPARSE_ROWS_PER_CONSTANT * max_constants))
        sparse = rows[np.arange(count) * len(rows) // count]
        self.full = replace(_problem(program, program.data, y, weight), device=device)
        self.small, self.sparse = (
            _problem(program, program.data[:, some], y[:, some], _tempered(y[:, some], weight[:, some]))
            for some in (rows, sparse)
        )
        size = len(program.count)
        self.starts = program.starts.T
        self.best = self.starts.copy()
        self.loss = np.full(size, np.inf)  # of the best, on the rows on which starts compete
        self.before = np.zeros(size)  # a lower bound of the loss of the caller's constants on all rows
        self.agreed = np.zeros(size, dtype=np.int64)  # how many starts ended at the best minimum
        self.converged = np.zeros(size, dtype=bool)

    def on_cpu(self) -> _Task:
        """The same from the beginning, without a GPU."""
        return _Task(self.program, *self._data, self.which, self.steps, self.budget, self.seed, None, self.near)

    def run(self, starts: int, random: np.random.Generator) -> None:
        """Find the best constants."""
        self.before[self.which] = self._compete(self.which, self.starts[:, self.which, None], self._steps(_FIRST_STEPS))
        inner = self.program.count > self.program.linear.sum(axis=1)
        for stage in _STAGES if starts else ():
            unsolved = (self.loss > self.small.floor) & inner & (self.agreed < _ENOUGH_AGREE)
            members = self.which[unsolved[self.which]]
            if len(members):
                self._further(members, starts, stage, random)

    def _steps(self, part: float) -> int:
        return max(1, round(self.steps * part))

    def _further(self, members: Integers, starts: int, stage: _Stage, random: np.random.Generator) -> None:
        """Draw points, and start from the most promising."""
        drawn = self._drawn(members, max(1, round(starts * stage.starts)), random)
        # The best so far goes on too: it may not be at its minimum yet.
        points = np.concatenate([drawn, self.best[:, members, None]], axis=2)
        if stage.sparse_steps:
            early = self._fit(self.sparse, members, points, self._steps(stage.sparse_steps))
            points = _leaders(early.constants, early.loss, points.shape, max(1, round(starts * stage.survivors)))
        self._compete(members, points, self._steps(stage.steps))

    def _drawn(self, members: Integers, taken: int, random: np.random.Generator) -> Array:
        """The best points (k, members, taken) of ten times as many, their linear constants at least squares."""
        draws = taken * _DRAWS_PER_START
        copies = min(max(_POINTS_TOGETHER // len(members), 1), draws)
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

    def _fit(self, problem: Problem, members: Integers, points: Array, steps: int) -> Fitted:
        """From points (k, members, copies), while starts compete."""
        batch = Batch(problem, members, points.shape[2])
        return fit(batch, points.reshape(len(points), -1), steps=steps, tolerance=_LOOSE_TOLERANCE, budget=self.budget)

    def _compete(self, members: Integers, points: Array, steps: int) -> Array:
        """Fit from points (k, members, copies) and take over the best of each expression; the losses (B,) before."""
        ended = self._fit(self.small, members, points, steps)
        losses = ended.loss.reshape(points.shape[1:])
        best, least = _leaders(ended.constants, losses, points.shape, 1)[:, :, 0], losses.min(axis=1)
        new = least < self.loss[members] * (1 - _SAME)
        improved = members[new]
        self.agreed[improved] = 0
        self.best[:, improved] = best[:, new]
        self.loss[improved] = least[new]
        same = np.isfinite(losses) & (losses <= self.loss[members, None] * (1 + _SAME))
        self.agreed[members] += same.sum(axis=1)
        return ended.before

    def judge(self) -> Array:
        """The losses (which,) on all rows of the best constants, brought to their minima there.

        The caller's constants replace those that are not better. inf where values are not finite.
        """
        which, batch = self.which, Batch(self.full, self.which, slopes=Slopes.NONE)
        loss = batch.losses(self.best[: batch.width, which])
        self.converged[which] = loss <= _EXACT_ON_ALL_ROWS * batch.floor
        if self.steps > 0:
            unsolved = np.flatnonzero(~self.converged[which])
            if len(unsolved):
                loss[unsolved] = self._polished(which[unsolved])
            # The loss of the start on a part of the rows bounds that on all rows from below: mostly that is enough.
            unsure = np.flatnonzero(~(loss < 0.5 * self.before[which]))
            if len(unsure):
                loss[unsure] = self._not_worse(which[unsure], loss[unsure])
        return loss

    def _polished(self, members: Integers) -> Array:
        """The losses (members,) after steps on all rows, more of them where the loss still falls fast."""
        falling = members
        for _ in range(_MAX_LAST_ROUNDS):
            batch = Batch(self.full, falling)
            steps = self.steps if self.near else self._steps(_LAST_STEPS)
            tolerance = _NEAR_TOLERANCE if self.near else _TIGHT_TOLERANCE
            ended = fit(batch, self.best[:, falling], steps=steps, tolerance=tolerance, budget=self.budget)
            self.best[:, falling], self.converged[falling] = ended.constants, ended.converged
            falling = falling[~ended.converged & (ended.loss < _FAST * ended.before)]
            if not len(falling) or self.budget.over():
                break
        # The losses of the fit were predicted when the linear constants moved, not computed.
        judged = Batch(self.full, members, slopes=Slopes.NONE)
        return judged.losses(self.best[: judged.width, members])

    def _not_worse(self, members: Integers, loss: Array) -> Array:
        """The losses (members,) after the start has replaced best constants that are not better than it."""
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
    """The weights, made smaller where y is very large; y and weights (expressions, rows) or (1, rows)."""
    size = _LARGE * np.median(np.abs(y), axis=1, keepdims=True)
    size[size == 0] = np.inf
    return np.asarray(weight / (1 + (y / size) ** 2))


def _leaders(points: Array, loss: Array, shape: tuple[int, ...], count: int) -> Array:
    """The `count` points (k, members, count) of least loss of each member; `shape` of all is (k, members, copies)."""
    order = np.argsort(loss.reshape(shape[1:]), axis=1, kind="stable")[:, :count]
    return np.take_along_axis(points.reshape(shape), order[None], axis=2)


def _draw(constants: Array, random: np.random.Generator) -> Array:
    """Points around constants: each times a log-uniform factor, some with the other sign; normal numbers for zeros."""
    spread = math.log(_SPREAD)
    factor = np.exp(random.uniform(-spread, spread, constants.shape))
    factor[random.random(constants.shape) < _FLIP_CHANCE] *= -1
    return np.where(constants == 0, random.standard_normal(constants.shape), constants * factor)
