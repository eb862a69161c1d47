"""The constants of many expressions of different structure fitted at once, by least squares in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.enumeration.target import ROUNDING_FLOOR
from symenum.expressions import Expression, evaluate
from symenum.fitting.levenberg_marquardt import Problem, fit, project
from symenum.fitting.parameters import free_constants, with_constants
from symenum.fitting.program import Program, Whole, compile_program
from symenum.fitting.small_systems import Array, Flags

__all__ = ["Refined", "refine"]

_EXACT = 0.01 * ROUNDING_FLOOR  # of the mean square of y: no step can gain from here on
_LOOSE, _TIGHT = 1e-3, 1e-10  # when a fit ends: while starts compete, and for the best of them
_DRAWS = 6  # points that are looked at for each start that is taken
_SPREAD = 5.0  # further starts are off by a factor of up to this, or down to its inverse
_FLIP = 0.15  # the chance that a constant changes its sign
_ELIMINATION = 4  # of so many starts one goes on after the first few steps
_SAME = 1e-6  # two minima whose losses differ by less than this part are one
_ENOUGH = 3  # so many starts that end at the best minimum say that there is no better one
_MANY_ROWS, _FEW_ROWS = 256, 64  # above the one, starts compete on the other (or on more, for many constants)
_ROWS_PER_CONSTANT = 10
_SINGULAR = 1e-14  # of the largest eigenvalue: below this a direction is not determined
_CELLS, _PLACES = 1_000_000, 16  # numbers in the memory of one batch, and about so many of them for a row of a member


@dataclass(frozen=True)
class Refined:
    """An expression with fitted constants.

    `loss` is the weighted mean square error of exactly this expression (inf where it is not finite on some row).
    `constants` and their standard `errors` follow `free_constants(expression)`, from left to right; an error is inf
    where the data do not determine the constant. `converged`: the loss is at rounding, or at a minimum.
    """

    expression: Expression
    loss: float
    constants: tuple[float, ...]
    errors: tuple[float, ...]
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
) -> list[Refined]:
    """Each expression with the constants of least loss that were found from its own and from further starts.

    `columns` holds (rows,) float64 for each variable, y and weight are (rows,) float64; weights sum to 1 (None: all
    the same). A y of (expressions, rows) is a target for each. The constants as they stand are the first start; only
    what does not reach rounding from there gets `starts` further ones. `steps` bounds the Levenberg–Marquardt steps
    from each start (0: the constants stay, and are only judged). `integers`: whether whole numbers are free too
    (never those in exponents). The budget is asked between steps; what is found by then is returned. None of the
    results is worse than what came in; one list in, one list of the same order out. Same seed, same result.
    """
    budget = Budget() if budget is None else budget
    y = y.expand(len(expressions), -1)
    rows = y.shape[1]
    weight = torch.full((rows,), 1 / rows, dtype=torch.float64) if weight is None else weight
    which = [i for i, expression in enumerate(expressions) if free_constants(expression, integers=integers)]
    found: dict[int, Refined] = {}
    if which:
        program = compile_program([expressions[i] for i in which], columns, integers=integers)
        task = _Task(program, y[which], weight, steps, budget)
        if steps > 0:
            task.run(starts, np.random.default_rng(seed))
        better, loss, errors = task.judge()
        for j, i in enumerate(which):
            size = int(program.count[j])
            constants = tuple(task.best[j, :size].tolist())
            changed = with_constants(expressions[i], constants, integers=integers) if better[j] else expressions[i]
            error = tuple(errors[j, :size].tolist())
            found[i] = Refined(changed, float(loss[j]), constants, error, bool(task.converged[j]))
    for i, expression in enumerate(expressions):
        if i not in found:
            mse = float((evaluate(expression, columns).to(torch.float64) - y[i]).square() @ weight)
            found[i] = Refined(expression, mse if mse < np.inf else np.inf, (), (), True)
    return [found[i] for i in range(len(expressions))]


class _Task:
    """The expressions that have constants, and the best constants so far."""

    def __init__(self, program: Program, y: Tensor, weight: Tensor, steps: int, budget: Budget) -> None:
        self.program, self.y, self.weight, self.steps, self.budget = program, y, weight, steps, budget
        self.size = len(program.count)
        self.full = _problem(program, y, weight)
        self.small = self.full
        if len(weight) > _MANY_ROWS:
            few = max(_FEW_ROWS, _ROWS_PER_CONSTANT * int(program.count.max()))
            rows = torch.randperm(len(weight), generator=torch.Generator().manual_seed(0))[:few].sort().values
            self.small = _problem(program.at(rows), y[:, rows], weight[rows] / weight[rows].sum())
        self.best = program.starts.copy()
        self.loss = np.full(self.size, np.inf)
        self.agreed = np.zeros(self.size, dtype=np.int64)  # how many starts ended at the best minimum
        self.converged = np.zeros(self.size, dtype=bool)

    def run(self, starts: int, random: np.random.Generator) -> None:
        """Find the best constants."""
        everyone = np.arange(self.size)
        self._compete(everyone, self.program.starts, self.steps // 5)
        inner = self.program.count > self.program.linear.sum(axis=1)
        for part in (starts // 4, starts - starts // 4):
            left = np.flatnonzero((self.loss > self.small.floor) & inner & (self.agreed < _ENOUGH))
            if part and len(left):
                self._further(left, part, random)
        polished = np.flatnonzero((self.loss > self.full.floor) | (self.small is not self.full))
        self.converged[:] = True
        for here in _blocks(polished, len(self.weight)):
            ended = fit(self.full, here, self.best[here], steps=self.steps // 2, tolerance=_TIGHT, budget=self.budget)
            self.best[here], self.converged[here] = ended.constants, ended.converged

    def _further(self, members: Whole, starts: int, random: np.random.Generator) -> None:
        """Draw points, and start from the most promising."""
        repeated = np.repeat(members, starts * _DRAWS)
        drawn = _draw(self.program.starts[repeated], random)
        rows = self.small.program.data.shape[1]
        loss = np.empty(len(repeated))
        for here in _blocks(np.arange(len(repeated)), rows):
            if self.budget.over():
                return
            drawn[here], loss[here] = project(self.small, repeated[here], drawn[here])
        order = np.argsort(loss.reshape(len(members), -1), axis=1, kind="stable")[:, :starts]
        chosen = (order + np.arange(len(members))[:, None] * starts * _DRAWS).ravel()
        chosen = chosen[np.isfinite(loss[chosen])]
        # What was found so far goes on too: it may not be at its minimum yet.
        going = members[np.isfinite(self.loss[members])]
        repeated, drawn = np.concatenate([repeated, going]), np.concatenate([drawn, self.best[going]])
        chosen = np.concatenate([chosen, np.arange(len(repeated) - len(going), len(repeated))])
        for part in _blocks(chosen, rows):
            early = fit(
                self.small, repeated[part], drawn[part], steps=self.steps // 8, tolerance=_LOOSE, budget=self.budget
            )
            kept = _leaders(repeated[part], early.loss, 1 + starts // _ELIMINATION)
            self._compete(repeated[part][kept], early.constants[kept], self.steps // 4)

    def _compete(self, members: Whole, constants: Array, steps: int) -> None:
        """Fit from these points; the best of each expression stays."""
        ended = fit(self.small, members, constants, steps=steps, tolerance=_LOOSE, budget=self.budget)
        for i in np.argsort(ended.loss, kind="stable"):
            j, loss = members[i], ended.loss[i]
            if loss < self.loss[j] * (1 - _SAME):
                self.best[j], self.loss[j], self.agreed[j] = ended.constants[i], loss, 1
            elif loss <= self.loss[j] * (1 + _SAME):
                self.agreed[j] += 1

    def judge(self) -> tuple[Flags, Array, Array]:
        """Whether the best is better than the start (expressions,); takes back what is not.

        Then the losses (expressions,), inf where values are not finite, and standard errors (expressions, k).
        """
        better = np.zeros(self.size, dtype=bool)
        final, errors = np.empty(self.size), np.empty_like(self.best)
        free = np.maximum(len(self.weight) - self.program.count, 0)
        for here in _blocks(np.arange(self.size), len(self.weight)):
            machine = self.program.machine(here, self.full.root)
            k = machine.width

            def loss(values: Tensor, y: Tensor = self.y[here]) -> Array:
                mse: Array = ((values - y).square() @ self.weight).numpy()
                return np.asarray(np.where(np.isnan(mse), np.inf, mse))

            before = loss(machine.values(torch.from_numpy(self.program.starts[here, :k])))
            after = loss(machine.values(torch.from_numpy(self.best[here, :k])))
            better[here] = after < before
            kept = here[~better[here]]
            self.best[kept] = self.program.starts[kept]
            values, J = machine.linearise(torch.from_numpy(self.best[here, :k]))
            final[here] = loss(values)
            errors[here, :k] = _standard_errors((J @ J.transpose(1, 2)).numpy(), final[here], free[here])
        return better, final, errors


def _blocks(members: Whole, rows: int) -> list[Whole]:
    """The members in parts whose programs fit into a bounded memory."""
    size = max(1, _CELLS // (rows * _PLACES))
    return [members[at : at + size] for at in range(0, len(members), size)]


def _problem(program: Program, y: Tensor, weight: Tensor) -> Problem:
    root = weight.sqrt()
    floor = np.maximum(((y.square() @ weight) * _EXACT).numpy(), np.finfo(np.float64).tiny)
    return Problem(program, y * root, root, floor)


def _leaders(members: Whole, loss: Array, most: int) -> Whole:
    """The places of up to so many of the least losses of each member."""
    order = np.lexsort((loss, members))
    first = np.searchsorted(members[order], members[order])
    return np.asarray(order[(np.arange(len(order)) - first < most) & np.isfinite(loss[order])])


def _draw(constants: Array, random: np.random.Generator) -> Array:
    """Points around: each constant times a log-uniform factor, some with the other sign; a zero becomes normal."""
    factor = _SPREAD ** random.uniform(-1, 1, constants.shape)
    factor[random.random(constants.shape) < _FLIP] *= -1
    return np.where(constants == 0, random.standard_normal(constants.shape), constants * factor)


def _standard_errors(normal: Array, loss: Array, free: Whole) -> Array:
    """From JᵀJ (B, k, k), weighted; inf where the data do not determine the constants, or have too few rows."""
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.einsum("bii->bi", normal))
        unused = scale == 0  # also the places beyond the number of constants
        scale[unused] = 1.0
        normal = normal / (scale[:, :, None] * scale[:, None, :])
        np.einsum("bii->bi", normal)[unused] = 1.0
        fine = np.isfinite(normal).all(axis=(1, 2)) & (free > 0)
        values, vectors = np.linalg.eigh(np.where(fine[:, None, None], normal, np.eye(normal.shape[1])))
        fine &= values[:, 0] > _SINGULAR * values[:, -1]
        errors = np.sqrt((vectors**2 / values[:, None, :]).sum(axis=2) * (loss / free)[:, None]) / scale
    errors[~fine] = np.inf
    errors[unused] = np.inf
    return np.asarray(errors)
