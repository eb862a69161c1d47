"""Levenberg–Marquardt for a batch of programs, with the linear constants eliminated (variable projection).

Every member has a damping of its own and leaves the batch when it is done. The linear constants are put at their least
squares after each evaluation, undamped. That moves them away from where the derivatives were taken; where they moved
far, the next step of that member only takes the derivatives anew (it is "stale").
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.fitting.program import Machine, Program, Whole
from symenum.fitting.small_systems import Array, Flags, solve_positive

__all__ = ["Fitted", "Problem", "fit", "project"]

_RIDGE = 1e-15  # keeps a system with a constant that does nothing solvable
_FIRST_DAMPING = 1e-2
_LEAST_DAMPING, _MOST_DAMPING = 1e-14, 1e9
_ROUNDING = 1e-15
_STALE = 0.05  # relative movement of the linear constants after which derivatives are taken anew
_COMPACT = 0.7  # the batch is made anew when fewer than this part of its members are at work


@dataclass(frozen=True)
class Problem:
    """The program; for each expression its target times the roots of the weights (expressions, rows), those roots
    (rows,), and for each expression the loss that is rounding (expressions,)."""

    program: Program
    target: Tensor
    root: Tensor
    floor: Array


@dataclass(frozen=True)
class Fitted:
    """For each member: constants (B, k), loss (B,), and whether it ended at rounding or at a minimum (B,)."""

    constants: Array
    loss: Array
    converged: Flags


@dataclass
class _State:
    """Where the members stand. Losses are inf where values are not finite."""

    constants: Array  # (B, k)
    loss: Array  # (B,)
    normal: Array  # (B, k, k): JᵀJ, with a scale (B, k) taken out that makes its diagonal 1
    gradient: Array  # (B, k): Jᵀ·residual, scaled too
    scale: Array  # (B, k)
    stale: Flags  # (B,)

    def take(self, which: Whole, width: int) -> _State:
        k = slice(0, width)
        return _State(
            self.constants[which, k],
            self.loss[which],
            self.normal[which, k, k],
            self.gradient[which, k],
            self.scale[which, k],
            self.stale[which],
        )

    def update(self, which: Whole, new: _State) -> None:
        """Take over some members of a new state."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(new, field.name)[which]


def project(problem: Problem, members: Whole, constants: Array) -> tuple[Array, Array]:
    """The constants (B, k) with the linear ones at their least squares, and the losses (B,)."""
    batch = _Batch(problem, members)
    state = batch.evaluate(constants[:, : batch.width])
    constants = constants.copy()
    constants[:, : batch.width] = state.constants
    return constants, state.loss


def fit(problem: Problem, members: Whole, constants: Array, *, steps: int, tolerance: float, budget: Budget) -> Fitted:
    """Up to so many steps from constants (B, k) of the members (B,).

    A member is done when its loss is rounding, when a step promised less than `tolerance` of the loss and gained no
    more, or when no damping gives a better point. When one is at rounding, the other starts of its expression end.
    """
    found = Fitted(constants.copy(), np.full(len(members), np.inf), np.zeros(len(members), dtype=bool))
    batch = _Batch(problem, members)
    place = np.arange(len(members))
    state = batch.evaluate(constants[:, : batch.width])
    damping = np.full(len(members), _FIRST_DAMPING)
    done = state.loss <= batch.floor
    solved = np.zeros(len(problem.floor), dtype=bool)
    solved[members[done]] = True
    working = np.isfinite(state.loss) & ~solved[members]
    for _ in range(steps):
        if budget.over() or not working.any():
            break
        if working.sum() < _COMPACT * len(place):
            _store(found, place, state, done)
            kept = np.flatnonzero(working)
            place, damping, done, working = place[kept], damping[kept], done[kept], working[kept]
            batch = _Batch(problem, batch.members[kept])
            state = state.take(kept, batch.width)
        step, promised = _step(state, damping, batch.linear)
        step[state.stale] = 0.0
        new = batch.evaluate(state.constants + step)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            gain = state.loss - new.loss
            better = (gain > 0) | (state.stale & np.isfinite(new.loss))
            small = (promised <= tolerance * state.loss) & (np.abs(gain) <= tolerance * state.loss)
            done |= working & ~state.stale & (small | (~better & (damping >= _MOST_DAMPING)))
            damping = _next_damping(damping, gain / promised, better, state.stale)
        state.update(np.flatnonzero(better & working), new)
        exact = working & (state.loss <= batch.floor)
        done |= exact
        solved[batch.members[exact]] = True
        working &= ~done & ~solved[batch.members]
    _store(found, place, state, done)
    return found


def _store(found: Fitted, place: Whole, state: _State, done: Flags) -> None:
    found.constants[place, : state.constants.shape[1]] = state.constants
    found.loss[place] = state.loss
    found.converged[place] = done


def _next_damping(damping: Array, ratio: Array, better: Flags, stale: Flags) -> Array:
    factor = np.where(ratio > 0.75, 0.1, np.where(ratio > 0.25, 0.4, 2.0))
    factor[~better] = 6.0
    factor[stale] = 1.0
    return np.clip(damping * factor, _LEAST_DAMPING, _MOST_DAMPING)


def _step(state: _State, damping: Array, linear: Flags) -> tuple[Array, Array]:
    """The damped step (B, k), not finite where there is none, and the fall of the loss that it promises (B,)."""
    diagonal = _RIDGE + np.where(linear, 0.0, damping[:, None])
    system = state.normal.copy()
    np.einsum("bii->bi", system)[...] += diagonal
    scaled = solve_positive(system, state.gradient)
    promised = (scaled * (state.gradient + scaled * diagonal)).sum(axis=1)
    return scaled / state.scale, promised


class _Batch:
    """The members at work, and what stays the same for them."""

    def __init__(self, problem: Problem, members: Whole) -> None:
        self.members = members
        self.machine: Machine = problem.program.machine(members, problem.root)
        self.width = self.machine.width
        self.linear: Flags = problem.program.linear[members, : self.width]
        self.floor = problem.floor[members]
        self._target = problem.target[members]
        self._root = problem.root
        self._outer = self.linear.astype(np.float64)
        self._outer_pairs = self._outer[:, :, None] * self._outer[:, None, :]
        self._projects = bool(self.linear.any())

    def evaluate(self, constants: Array) -> _State:
        """The state at these constants (B, k), the linear ones moved to their least squares."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self._evaluate(constants)

    def _evaluate(self, constants: Array) -> _State:
        values, J = self.machine.linearise(torch.from_numpy(constants))
        block, k = self.machine.block, self.width
        # The residual is one more line of the block, so that one product gives JᵀJ, the gradient and the loss.
        torch.addcmul(self._target, values, self._root, value=-1, out=block[:, k])
        gram = torch.bmm(block, block.transpose(1, 2)).numpy()
        if not np.isfinite(np.einsum("bii->bi", gram)[:, :k]).all():
            # A constant whose derivative is not finite somewhere (an exponent over a negative base) is held.
            J[torch.from_numpy(~np.isfinite(np.einsum("bii->bi", gram)[:, :k]))] = 0.0
            gram = torch.bmm(block, block.transpose(1, 2)).numpy()
        loss = gram[:, k, k].copy()
        normal = gram[:, :k, :k].copy()
        diagonal = np.einsum("bii->bi", normal)
        scale = np.sqrt(diagonal)
        scale[scale == 0] = 1.0
        normal /= scale[:, :, None] * scale[:, None, :]
        # Ones for the constants that do nothing, and for those beyond the number of this member's.
        diagonal[diagonal == 0] = 1.0
        gradient = gram[:, :k, k] / scale
        far = np.zeros(len(constants), dtype=bool)
        moved = np.zeros_like(constants)
        if self._projects:
            system = normal * self._outer_pairs
            np.einsum("bii->bi", system)[...] += 1 - self._outer + _RIDGE
            shift = solve_positive(system, gradient * self._outer)
            shift[np.isnan(shift)] = 0.0
            moved = shift / scale
            # What rounding leaves of a large loss is not known; the next evaluation will tell (the member is stale).
            loss = np.maximum(loss - (shift * gradient).sum(axis=1), _ROUNDING * loss)
            gradient = gradient - (normal @ shift[:, :, None])[:, :, 0]
            size = (np.abs(constants) * self._outer * scale).max(axis=1)
            far = (np.abs(shift)).max(axis=1) > _STALE * size
        loss[np.isnan(loss)] = np.inf
        return _State(constants + moved, loss, normal, gradient, scale, far)
