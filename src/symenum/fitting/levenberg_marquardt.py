"""Levenberg–Marquardt for a batch of problems, with the linear constants eliminated (variable projection).

This is the only nonlinear least squares of the program. A caller with problems to solve writes an adapter (`Problems`),
which gives the derivatives; damping, acceptance, elimination, stopping and the budget are decided here, by one rule for
all. The adapters: `refine.Batch` (compiled expressions), `form` (a user's form) and `many_starts` (columns that a head
computes).

Every member of a batch has a damping of its own and leaves the batch when it is done. The linear constants are put at
their least squares after each evaluation, undamped. That moves them away from where the derivatives were taken; where
they moved far, the member is "stale", and its next step only takes the derivatives anew. Members are the last axis of
all arrays here, so that one call works on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from symenum.core.budget import Budget
from symenum.core.exactness import EPSILON
from symenum.fitting.batch_program import Array, Flags, Integers

__all__ = [
    "LAST_DIGITS",
    "Elimination",
    "Fitted",
    "Problems",
    "State",
    "evaluate",
    "fit",
    "longest_step_by_size",
    "solve_positive",
    "zero_bad_derivatives",
]

LAST_DIGITS = (4 * EPSILON) ** 2
"""Part of the mean square of the target: a loss below this is four roundings of each row, and no step lowers it."""
_ROUNDING = 1e-15  # part of a number of size 1 that is rounding: some five epsilons
_RIDGE = _ROUNDING  # added to a diagonal of ones: a constant that does nothing leaves the system solvable
_MIN_PIVOT = _ROUNDING  # of a system whose diagonal is near 1
_MIN_DAMPING = 1e-14  # of a diagonal of ones: a smaller one is rounding
_MAX_DAMPING = 1e9  # of a diagonal of ones: with a larger one a step changes no digit
# The damping is multiplied by `_GOOD_FACTOR` where a step gains more than `_GOOD_GAIN` of what it promised, else by
# `_FAIR_FACTOR` where it gains more than `_FAIR_GAIN`, and by `_FAILED_FACTOR` where the loss did not fall. Of 450
# random expressions of benchmarks/fitting.py (seeds 0 to 2, 24 starts) these solve 439. Parts of 0.5 and 0.1 or of 0.9
# and 0.5, factors a third and three times as large, and 3 or 10 for 5 solve 437 to 441.
_GOOD_GAIN = 0.75  # part of the promised gain
_GOOD_FACTOR = 0.03  # of the damping
_FAIR_GAIN = 0.25  # part of the promised gain
_FAIR_FACTOR = 0.2  # of the damping
_FAILED_FACTOR = 5.0  # of the damping
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_FIRST_DAMPING = 1e-2  # of a diagonal of ones: nearly a Gauss–Newton step
_STALE = 1.0  # movement of the linear constants, relative to their size, after which derivatives are taken anew
_STEP_PART = 0.5  # the longest step of a constant c of unknown size is 0.5·(|c| + 0.3)
_STEP_SIZE = 0.3  # see `_STEP_PART`
_COMPACT = 1000  # idle members times steps ahead: above this the batch is made anew without the idle ones


class Elimination:
    """Which constants of each member are linear (k, B), and how these are put at their least squares."""

    def __init__(self, linear: Flags) -> None:
        self.linear = linear
        self._outer = linear.astype(np.float64)
        # The linear constants of each member are gathered at the top: a small system for each member.
        width, members = linear.shape
        count: Integers = np.count_nonzero(linear, axis=0)
        lines: Integers = np.argsort(~linear, axis=0, kind="stable")[: int(count.max(initial=0))]
        # 1 for the linear constants of a member; its other constants fill the lines up, with 0.
        self._own = (np.arange(len(lines))[:, None] < count).astype(np.float64)
        self._own_pairs = self._own[:, None] * self._own
        self._gathered = lines * members + np.arange(members)
        self._gathered_pairs = lines[:, None] * (width * members) + self._gathered

    def state(self, constants: Array, products: Array) -> State:
        """The state at constants (k, B), the linear ones moved to their least squares.

        `products` (k + 1, k + 1, B): JᵀJ at these constants with the residual as one more line.
        """
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return self._state(constants, products)

    def _state(self, constants: Array, products: Array) -> State:
        k = len(constants)
        loss = products[k, k]
        scale = np.sqrt(np.einsum("iib->ib", products)[:k])
        scale[scale == 0] = 1.0
        normal = products[:k, :k] / (scale[:, None] * scale)
        # Ones for constants that do nothing, among them those beyond the number of a member's constants.
        diagonal = np.einsum("iib->ib", normal)
        diagonal[diagonal == 0] = 1.0
        gradient = products[:k, k] / scale
        if not len(self._own):
            loss = np.where(np.isnan(loss), np.inf, loss)
            # A copy, because a state is changed in place and the constants are the caller's.
            return State(constants.copy(), loss, normal, gradient, scale, np.zeros(len(loss), dtype=bool))
        own = self._own
        system = normal.take(self._gathered_pairs) * self._own_pairs
        moved = solve_positive(system, gradient.take(self._gathered) * own, 1 - own + _RIDGE)
        moved[np.isnan(moved)] = 0.0
        shift = np.zeros_like(gradient)
        shift.put(self._gathered, moved)
        # A loss below the rounding of the loss that it is subtracted from is not known. Such a member is stale, and
        # its next evaluation computes the loss.
        loss = np.maximum(loss - (shift * gradient).sum(axis=0), _ROUNDING * loss)
        loss[np.isnan(loss)] = np.inf
        gradient = gradient - np.einsum("ijb,jb->ib", normal, shift)
        size = (np.abs(constants) * self._outer * scale).max(axis=0)
        far = np.abs(shift).max(axis=0) > _STALE * size
        return State(constants + shift / scale, loss, normal, gradient, scale, far)


@dataclass
class State:
    """The constants, losses and normal equations of the members. Losses are inf where values are not finite."""

    constants: Array  # (k, B)
    loss: Array  # (B,)
    normal: Array  # (k, k, B): JᵀJ, with a scale (k, B) taken out that makes its diagonal 1
    gradient: Array  # (k, B): Jᵀ·residual, scaled too
    scale: Array  # (k, B)
    stale: Flags  # (B,)

    def take(self, which: Integers, width: int) -> State:
        """The state of some members, with their first `width` constants."""
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


class Problems(Protocol):
    """A batch of B problems with up to k constants each; what a member does not have is a constant that does nothing.

    The loss of a member is the sum of squares of its residual (target - values, both times the roots of the weights).
    """

    @property
    def elimination(self) -> Elimination:
        """Which constants (k, B) are linear."""

    @property
    def floor(self) -> Array:
        """(B,) the loss that is rounding: no step can make it better."""

    @property
    def groups(self) -> Integers:
        """(B,) numbers from 0: when a member is at its floor, the others of its group end too."""

    def products(self, constants: Array) -> tuple[Array, Array]:
        """JᵀJ with the residual as one more line (k + 1, k + 1, B), weighted, and the constants (k, B) of these.

        Those are the constants of the argument, or have the linear ones at their least squares already. A derivative
        that is not finite counts as zero (`zero_bad_derivatives`); a value that is not finite makes the residual's own
        product inf or NaN.
        """

    def longest_step(self, constants: Array) -> Array:
        """How far each constant (k, B) may move in one step; inf: no limit. Entries of linear constants are ignored."""

    def without_idle(self, working: Flags) -> tuple[Problems, Integers]:
        """A batch of fewer members, among them all that work (B,), and where these stood in this one."""


@dataclass(frozen=True)
class Fitted:
    """What became of the members of a batch."""

    constants: Array  # (k, B)
    loss: Array  # (B,)
    converged: Flags  # (B,): the loss is at rounding or at a minimum
    before: Array  # (B,): the loss of the constants at which the fit began


def longest_step_by_size(constants: Array) -> Array:
    """The longest steps (k, B) of constants (k, B) whose size alone is known: about half of it."""
    return _STEP_PART * (np.abs(constants) + _STEP_SIZE)


def zero_bad_derivatives(products: Array) -> Array:
    """The products (k + 1, k + 1, B), changed in place, with zeros for constants whose derivative is not finite.

    An exponent over a negative base is such a constant. It stays where it is.
    """
    bad = ~np.isfinite(np.einsum("iib->ib", products))
    bad[-1] = False
    if bad.any():
        products[bad[:, None] | bad[None]] = 0.0
    return products


def evaluate(problems: Problems, constants: Array) -> State:
    """The state at these constants (k, B), the linear ones moved to their least squares."""
    products, constants = problems.products(constants)
    return problems.elimination.state(constants, products)


def fit(problems: Problems, constants: Array, *, steps: int, tolerance: float, budget: Budget) -> Fitted:
    """Up to `steps` steps from constants (at least k, B); those beyond the k of the problems stay as they are.

    A member is done when its loss is rounding, when a step promised less than `tolerance` of the loss and gained no
    more, or when no damping gives a better point. When one is at rounding, the others of its group end.
    """
    groups = problems.groups
    width, members = problems.elimination.linear.shape
    place = np.arange(members)
    products, first = problems.products(constants[:width])
    state = problems.elimination.state(first, products)
    found = Fitted(constants.copy(), state.loss.copy(), np.zeros(members, dtype=bool), products[-1, -1])
    damping = np.full(members, _FIRST_DAMPING)
    done = state.loss <= problems.floor
    solved = np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)
    solved[groups[done]] = True
    working = np.isfinite(state.loss) & ~solved[groups]
    for step_number in range(steps):
        if budget.over() or not working.any():
            break
        if (len(place) - np.count_nonzero(working)) * (steps - step_number) > _COMPACT:
            _store(found, place, state, done)
            problems, still = problems.without_idle(working)
            place, damping, done, working = place[still], damping[still], done[still], working[still]
            state = state.take(still, len(problems.elimination.linear))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            step, promised = _step(state, damping, problems)
            step[:, state.stale] = 0.0
            new = evaluate(problems, state.constants + step)
            gain = state.loss - new.loss
            better = (gain > 0) | (state.stale & np.isfinite(new.loss))
            small = (promised <= tolerance * state.loss) & (np.abs(gain) <= tolerance * state.loss)
            done |= working & ~state.stale & (small | (~better & (damping >= _MAX_DAMPING)))
            damping = _next_damping(damping, gain / promised, better, state.stale)
        state.update(better & working, new)
        exact = working & (state.loss <= problems.floor)
        done |= exact
        solved[problems.groups[exact]] = True
        working &= ~done & ~solved[problems.groups]
    _store(found, place, state, done)
    return found


def _store(found: Fitted, place: Integers, state: State, done: Flags) -> None:
    found.constants[: len(state.constants), place] = state.constants
    found.loss[place] = state.loss
    found.converged[place] = done


def _next_damping(damping: Array, ratio: Array, better: Flags, stale: Flags) -> Array:
    """The damping (B,) of the next step; `ratio` (B,) is the gain of this one over the gain that it promised."""
    factor = np.where(ratio > _GOOD_GAIN, _GOOD_FACTOR, np.where(ratio > _FAIR_GAIN, _FAIR_FACTOR, 1.0))
    factor[~better] = _FAILED_FACTOR
    factor[stale] = 1.0
    return np.clip(damping * factor, _MIN_DAMPING, _MAX_DAMPING)


def _step(state: State, damping: Array, problems: Problems) -> tuple[Array, Array]:
    """The damped step (k, B) and the fall of the loss that it promises (B,).

    A step that is too long in one constant is shortened in all. It is not finite where the products are not.
    """
    linear = problems.elimination.linear
    diagonal = _RIDGE + np.where(linear, 0.0, damping)
    scaled = solve_positive(state.normal, state.gradient, diagonal)
    promised = (scaled * (state.gradient + scaled * diagonal)).sum(axis=0)
    step = scaled / state.scale
    too_long = np.where(linear, 0.0, np.abs(step) / problems.longest_step(state.constants)).max(axis=0)
    part = 1 / np.maximum(1.0, too_long)
    return step * part, promised * part * (2 - part)


def solve_positive(A: Array, b: Array, diagonal: Array | float = 0.0) -> Array:
    """x (k, B) with (A + diagonal) x = b for A (k, k, B), b (k, B) and a diagonal (k, B), which make a diagonal near 1.

    Elimination without pivoting, all systems at once: for systems of six, five times as fast as LAPACK one by one.
    Where A is singular, x is one of the solutions if there are any; it is NaN where A or b is.
    """
    k, size = len(b), b.shape[1]
    system = np.empty((k, k + 1, size))
    system[:, :k], system[:, k] = A, b
    np.einsum("iib->ib", system[:, :k])[...] += diagonal
    products = np.empty((k * k, size))  # reused: at these sizes an allocation costs as much as the work
    for j in range(k):
        row, below = system[j, j + 1 :], k - 1 - j
        row /= np.maximum(system[j, j], _MIN_PIVOT)
        product = products[: below * (below + 1)].reshape(below, below + 1, size)
        np.multiply(system[j + 1 :, j, None], row, out=product)
        system[j + 1 :, j + 1 :] -= product
    x = system[:, k]
    for j in range(k - 1, 0, -1):
        x[:j] -= np.multiply(system[:j, j], x[j], out=products[:j])
    return x
