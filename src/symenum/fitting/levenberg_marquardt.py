"""Levenberg–Marquardt for a batch of programs, with the linear constants eliminated (variable projection).

Every member has a damping of its own and leaves the batch when it is done. The linear constants are put at their least
squares after each evaluation, undamped. That moves them away from where the derivatives were taken; where they moved
far, the next step of that member only takes the derivatives anew (it is "stale"). Members are the last axis of all
arrays here, so that what is done for each of them is done for all at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.fitting.blocks import HOST, Blocks, DeviceBlocks
from symenum.fitting.machine import Machine, Slopes
from symenum.fitting.program import Array, Flags, Program, Whole
from symenum.fitting.small_systems import solve_positive

__all__ = ["Batch", "Fitted", "Problem", "State", "fit"]

_RIDGE = 1e-15  # keeps a system with a constant that does nothing solvable
_FIRST_DAMPING = 1e-2
_LEAST_DAMPING, _MOST_DAMPING = 1e-14, 1e9
_ROUNDING = 1e-15
_STALE = 1.0  # relative movement of the linear constants after which derivatives are taken anew
_LONGEST, _SMALL = 0.5, 0.3  # a constant inside moves by so much of its size at most, or as if its size were the other
_COMPACT = 1000  # idle members times steps ahead: above this it pays to make the batch anew without them
_LARGE = 20_000_000  # numbers from which a device is worth it
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


@dataclass(frozen=True)
class Fitted:
    """For each member: constants (k, B), loss (B,), whether it ended at rounding or at a minimum (B,), and the loss
    (B,) of the constants that came in."""

    constants: Array
    loss: Array
    converged: Flags
    before: Array


@dataclass
class State:
    """Where the members stand. Losses are inf where values are not finite."""

    constants: Array  # (k, B)
    loss: Array  # (B,)
    normal: Array  # (k, k, B): JᵀJ, with a scale (k, B) taken out that makes its diagonal 1
    gradient: Array  # (k, B): Jᵀ·residual, scaled too
    scale: Array  # (k, B)
    stale: Flags  # (B,)

    def take(self, which: Whole, width: int) -> State:
        k = slice(0, width)
        return State(
            self.constants[k, which],
            self.loss[which],
            self.normal[k, k, which],
            self.gradient[k, which],
            self.scale[k, which],
            self.stale[which],
        )

    def update(self, which: Flags, new: State) -> None:
        """Take over some members of a new state."""
        for field in fields(self):
            np.copyto(getattr(self, field.name), getattr(new, field.name), where=which)


def fit(batch: Batch, constants: Array, *, steps: int, tolerance: float, budget: Budget) -> Fitted:
    """Up to so many steps from constants (k, B) of the batch's members.

    A member is done when its loss is rounding, when a step promised less than `tolerance` of the loss and gained no
    more, or when no damping gives a better point. When one is at rounding, the other starts of its expression end.
    """
    problem, members = batch.problem, batch.members
    place = np.arange(len(members))
    products = batch.products(constants[: batch.width])
    state = batch.project(constants[: batch.width], products)
    found = Fitted(constants.copy(), state.loss.copy(), np.zeros(len(members), dtype=bool), products[-1, -1])
    damping = np.full(len(members), _FIRST_DAMPING)
    done = state.loss <= batch.floor
    solved = np.zeros(len(problem.floor), dtype=bool)
    solved[members[done]] = True
    working = np.isfinite(state.loss) & ~solved[members]
    for step_number in range(steps):
        if budget.over() or not working.any():
            break
        if (len(place) - np.count_nonzero(working)) * (steps - step_number) > _COMPACT:
            _store(found, place, state, done)
            batch, kept = batch.without_idle(working)
            place, damping, done, working = place[kept], damping[kept], done[kept], working[kept]
            state = state.take(kept, batch.width)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            step, promised = _step(state, damping, batch.linear)
            step[:, state.stale] = 0.0
            new = batch.evaluate(state.constants + step)
            gain = state.loss - new.loss
            better = (gain > 0) | (state.stale & np.isfinite(new.loss))
            small = (promised <= tolerance * state.loss) & (np.abs(gain) <= tolerance * state.loss)
            done |= working & ~state.stale & (small | (~better & (damping >= _MOST_DAMPING)))
            damping = _next_damping(damping, gain / promised, better, state.stale)
        state.update(better & working, new)
        exact = working & (state.loss <= batch.floor)
        done |= exact
        solved[batch.members[exact]] = True
        working &= ~done & ~solved[batch.members]
    _store(found, place, state, done)
    return found


def _store(found: Fitted, place: Whole, state: State, done: Flags) -> None:
    found.constants[: len(state.constants), place] = state.constants
    found.loss[place] = state.loss
    found.converged[place] = done


def _next_damping(damping: Array, ratio: Array, better: Flags, stale: Flags) -> Array:
    factor = np.where(ratio > 0.75, 0.03, np.where(ratio > 0.25, 0.2, 1.0))
    factor[~better] = 5.0
    factor[stale] = 1.0
    return np.clip(damping * factor, _LEAST_DAMPING, _MOST_DAMPING)


def _step(state: State, damping: Array, linear: Flags) -> tuple[Array, Array]:
    """The damped step (k, B), not finite where there is none, and the fall of the loss that it promises (B,)."""
    diagonal = _RIDGE + np.where(linear, 0.0, damping)
    scaled = solve_positive(state.normal, state.gradient, diagonal)
    promised = (scaled * (state.gradient + scaled * diagonal)).sum(axis=0)
    step = scaled / state.scale
    relative = np.where(linear, 0.0, np.abs(step) / (np.abs(state.constants) + _SMALL)).max(axis=0)
    part = np.minimum(1.0, _LONGEST / np.maximum(relative, _LONGEST))
    return step * part, promised * part * (2 - part)


class Batch:
    """The members at work, and what stays the same for them: so many starts of each of some expressions.

    `slopes`: by which constants derivatives are taken. Those by the linear ones are enough to project these out.
    """

    def __init__(self, problem: Problem, expressions: Whole, copies: int = 1, slopes: Slopes = Slopes.ALL) -> None:
        self._expressions, self._copies, self._slopes = expressions, copies, slopes
        self.members = np.repeat(expressions, copies)
        self.floor = problem.floor[self.members]
        self.problem = problem
        rows, first = problem.data.shape[1], problem.program.first
        # All rows at once, or in parts of one size: the last one begins earlier, and what it repeats weighs nothing.
        places = copies * _PLACES * (len(expressions) + int((first[expressions + 1] - first[expressions]).sum()))
        on_device = problem.device is not None and places * rows >= _LARGE
        self._blocks: Blocks = DeviceBlocks(problem.device) if problem.device and on_device else HOST
        room = self._blocks.room // (_VALUES_ONLY if slopes is Slopes.NONE else 1)
        part = min(rows, max(_LEAST_ROWS, room // places))
        self._parts = [(min(at, rows - part), at) for at in range(0, rows, part)]
        self._size = part
        self.machine = Machine(problem.program, expressions, part, copies, slopes, self._blocks)
        self.width = self.machine.width
        self.linear: Flags = problem.program.linear[self.members, : self.width].T
        self._outer = self.linear.astype(np.float64)
        # The linear constants of each member are gathered: they are few, and so is what it takes to solve for them.
        count: Whole = np.count_nonzero(self.linear, axis=0)
        here = np.arange(len(self.members))
        lines: Whole = np.argsort(~self.linear, axis=0, kind="stable")[: int(count.max())]
        # 1 for those; beyond its own a member has others of its constants here, which count nothing.
        self._own = (np.arange(len(lines))[:, None] < count).astype(np.float64)
        self._own_pairs = self._own[:, None] * self._own
        self._gathered = lines * len(here) + here
        self._gathered_pairs = lines[:, None] * (self.width * len(here)) + self._gathered
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

    def products(self, constants: Array) -> Array:
        """JᵀJ with the residual as one more line (k + 1, k + 1, B), all weighted, at constants (k, B)."""
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
        products: Array = np.asarray(total).reshape(-1, self.width + 1, self.width + 1).transpose(1, 2, 0).copy()
        # A constant whose derivative is not finite somewhere (an exponent over a negative base) is held.
        bad = ~np.isfinite(np.einsum("iib->ib", products))
        bad[-1] = False
        if bad.any():
            products[bad[:, None] | bad[None]] = 0.0
        return products

    def evaluate(self, constants: Array) -> State:
        """The state at these constants (k, B), the linear ones moved to their least squares."""
        return self.project(constants, self.products(constants))

    def project(self, constants: Array, products: Array) -> State:
        """The same from `products`."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return self._project(constants, products)

    def _project(self, constants: Array, products: Array) -> State:
        k = self.width
        loss = products[k, k]
        scale = np.sqrt(np.einsum("iib->ib", products)[:k])
        scale[scale == 0] = 1.0
        normal = products[:k, :k] / (scale[:, None] * scale)
        # Ones for the constants that do nothing, and for those beyond the number of this member's.
        diagonal = np.einsum("iib->ib", normal)
        diagonal[diagonal == 0] = 1.0
        gradient = products[:k, k] / scale
        if not len(self._own):
            loss = np.where(np.isnan(loss), np.inf, loss)
            return State(constants, loss, normal, gradient, scale, np.zeros(len(loss), dtype=bool))
        own = self._own
        system = normal.take(self._gathered_pairs) * self._own_pairs
        moved = solve_positive(system, gradient.take(self._gathered) * own, 1 - own + _RIDGE)
        moved[np.isnan(moved)] = 0.0
        shift = np.zeros_like(gradient)
        shift.put(self._gathered, moved)
        # What rounding leaves of a large loss is not known; the next evaluation will tell (the member is stale).
        loss = np.maximum(loss - (shift * gradient).sum(axis=0), _ROUNDING * loss)
        loss[np.isnan(loss)] = np.inf
        gradient = gradient - np.einsum("ijb,jb->ib", normal, shift)
        size = (np.abs(constants) * self._outer * scale).max(axis=0)
        far = np.abs(shift).max(axis=0) > _STALE * size
        return State(constants + shift / scale, loss, normal, gradient, scale, far)
