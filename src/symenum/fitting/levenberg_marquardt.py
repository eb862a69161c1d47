"""Levenberg–Marquardt for a batch of problems, with the linear constants eliminated (variable projection).

This is the only nonlinear least squares of the program. Who has problems to solve writes an adapter (`Problems`), which
says what the derivatives are; damping, acceptance, elimination, stopping and the budget are decided here, for all of
them by one rule. The adapters: `fitting.batch` (compiled expressions), `fitting.form` (a user's form) and
`heads.projected_fit` (columns that a head computes).

Every member of a batch has a damping of its own and leaves the batch when it is done. The linear constants are put at
their least squares after each evaluation, undamped. That moves them away from where the derivatives were taken; where
they moved far, the next step of that member only takes the derivatives anew (it is "stale"). Members are the last axis
of all arrays here, so that what is done for each of them is done for all at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from symenum.core.budget import Budget
from symenum.fitting.program import Array, Flags, Whole

__all__ = [
    "Elimination",
    "Fitted",
    "Problems",
    "State",
    "evaluate",
    "fit",
    "held",
    "part_of_size",
    "solve_positive",
]

_RIDGE = 1e-15  # of a diagonal of ones, as large as its rounding: a constant that does nothing leaves it solvable
_LEAST_PIVOT = 1e-15  # of a system whose diagonal is near 1: what is smaller is rounding
_FIRST_DAMPING = 1e-2  # of a diagonal of ones: nearly a Gauss–Newton step
_LEAST_DAMPING, _MOST_DAMPING = 1e-14, 1e9  # below the one it is rounding; above the other a step changes no digit
# Where a step gains so much of what it promised, the damping is multiplied by so much; where it gains nothing, by the
# last. Of 450 random expressions of benchmarks/fitting.py (seeds 0 to 2, 24 starts) these solve 439; limits of 0.5 and
# 0.1 or 0.9 and 0.5, factors a third and three times as large, and 3 or 10 for 5 solve 437 to 441.
_GOOD, _MUCH_LESS = 0.75, 0.03
_FAIR, _LESS = 0.25, 0.2
_MORE = 5.0
_ROUNDING = 1e-15  # of a loss before the linear constants moved: what is left below it is not known
_STALE = 1.0  # relative movement of the linear constants after which derivatives are taken anew
_LONGEST, _SMALL = 0.5, 0.3  # the largest step of a constant c of unknown size is 0.5·(|c| + 0.3)
_COMPACT = 1000  # idle members times steps ahead: above this it pays to make the batch anew without them


class Elimination:
    """Which constants of each member are linear (k, B), and how these are put at their least squares."""

    def __init__(self, linear: Flags) -> None:
        self.linear = linear
        self._outer = linear.astype(np.float64)
        # The linear constants of each member are gathered: they are few, and so is what it takes to solve for them.
        width, members = linear.shape
        count: Whole = np.count_nonzero(linear, axis=0)
        here = np.arange(members)
        lines: Whole = np.argsort(~linear, axis=0, kind="stable")[: int(count.max(initial=0))]
        # 1 for those; beyond its own a member has others of its constants here, which count nothing.
        self._own = (np.arange(len(lines))[:, None] < count).astype(np.float64)
        self._own_pairs = self._own[:, None] * self._own
        self._gathered = lines * members + here
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
        # Ones for the constants that do nothing, and for those beyond the number of this member's.
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
        # What rounding leaves of a large loss is not known; the next evaluation will tell (the member is stale).
        loss = np.maximum(loss - (shift * gradient).sum(axis=0), _ROUNDING * loss)
        loss[np.isnan(loss)] = np.inf
        gradient = gradient - np.einsum("ijb,jb->ib", normal, shift)
        size = (np.abs(constants) * self._outer * scale).max(axis=0)
        far = np.abs(shift).max(axis=0) > _STALE * size
        return State(constants + shift / scale, loss, normal, gradient, scale, far)


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
    def groups(self) -> Whole:
        """(B,) numbers from 0: when a member is at its floor, the others of its group end too."""

    def products(self, constants: Array) -> tuple[Array, Array]:
        """JᵀJ with the residual as one more line (k + 1, k + 1, B), weighted, and the constants (k, B) of these.

        They are the constants that came, or have the linear ones at their least squares already. A derivative that
        is not finite counts as zero (`held`); a value that is not finite makes the residual's own product inf or NaN.
        """

    def longest_step(self, constants: Array) -> Array:
        """How far each constant (k, B) may move in one step; inf: any way. Those of linear ones play no part."""

    def without_idle(self, working: Flags) -> tuple[Problems, Whole]:
        """A batch of fewer members, among them all that work (B,), and where these stood in this one."""


@dataclass(frozen=True)
class Fitted:
    """For each member: constants (k, B), loss (B,), whether it ended at rounding or at a minimum (B,), and the loss
    (B,) of the constants that came in."""

    constants: Array
    loss: Array
    converged: Flags
    before: Array


def part_of_size(constants: Array) -> Array:
    """The longest steps (k, B) of constants of which nothing is known but where they stand: half of their size."""
    return _LONGEST * (np.abs(constants) + _SMALL)


def held(products: Array) -> Array:
    """The products (k + 1, k + 1, B) with zeros for constants whose derivative is not finite on some row.

    As an exponent's over a negative base; such a constant stays where it is. The array itself is changed.
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
    """Up to so many steps from constants (at least k, B); what is beyond k of them stays as it is.

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
            problems, kept = problems.without_idle(working)
            place, damping, done, working = place[kept], damping[kept], done[kept], working[kept]
            state = state.take(kept, len(problems.elimination.linear))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            step, promised = _step(state, damping, problems)
            step[:, state.stale] = 0.0
            new = evaluate(problems, state.constants + step)
            gain = state.loss - new.loss
            better = (gain > 0) | (state.stale & np.isfinite(new.loss))
            small = (promised <= tolerance * state.loss) & (np.abs(gain) <= tolerance * state.loss)
            done |= working & ~state.stale & (small | (~better & (damping >= _MOST_DAMPING)))
            damping = _next_damping(damping, gain / promised, better, state.stale)
        state.update(better & working, new)
        exact = working & (state.loss <= problems.floor)
        done |= exact
        solved[problems.groups[exact]] = True
        working &= ~done & ~solved[problems.groups]
    _store(found, place, state, done)
    return found


def _store(found: Fitted, place: Whole, state: State, done: Flags) -> None:
    found.constants[: len(state.constants), place] = state.constants
    found.loss[place] = state.loss
    found.converged[place] = done


def _next_damping(damping: Array, ratio: Array, better: Flags, stale: Flags) -> Array:
    """`ratio` (B,): what the step gained over what it promised."""
    factor = np.where(ratio > _GOOD, _MUCH_LESS, np.where(ratio > _FAIR, _LESS, 1.0))
    factor[~better] = _MORE
    factor[stale] = 1.0
    return np.clip(damping * factor, _LEAST_DAMPING, _MOST_DAMPING)


def _step(state: State, damping: Array, problems: Problems) -> tuple[Array, Array]:
    """The damped step (k, B), not finite where there is none, and the fall of the loss that it promises (B,)."""
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

    Elimination without pivoting, all systems side by side: for systems of six, five times as fast as LAPACK one by one.
    Where A is singular, x is one of the solutions if there are any; it is NaN where A or b is.
    """
    k, size = len(b), b.shape[1]
    system = np.empty((k, k + 1, size))
    system[:, :k], system[:, k] = A, b
    np.einsum("iib->ib", system[:, :k])[...] += diagonal
    products = np.empty((k * k, size))  # one piece of memory for all of them: at these sizes a new one costs as much
    for j in range(k):
        row, below = system[j, j + 1 :], k - 1 - j
        row /= np.maximum(system[j, j], _LEAST_PIVOT)
        product = products[: below * (below + 1)].reshape(below, below + 1, size)
        np.multiply(system[j + 1 :, j, None], row, out=product)
        system[j + 1 :, j + 1 :] -= product
    x = system[:, k]
    for j in range(k - 1, 0, -1):
        x[:j] -= np.multiply(system[:j, j], x[j], out=products[:j])
    return x
