"""A fitted ODERegressor on the disk: what its file holds, and whether the parts belong together."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from symenum.dynamics.choose_on_trajectories import Chosen
from symenum.dynamics.noise import Noise
from symenum.dynamics.saved_laws import LawsFile
from symenum.dynamics.selection import Judged
from symenum.dynamics.system import Names
from symenum.expressions import Expression, variables
from symenum.fitting.free_constants import free_constants
from symenum.front import Front

__all__ = ["MOTION_FILE", "SavedChoice", "SavedSystem"]


@dataclass(frozen=True)
class SavedChoice:
    """A `Chosen` of the states in `moving`, with the fitted motion as tuples."""

    moving: tuple[str, ...]
    laws: tuple[Expression, ...]
    fitted: tuple[Expression, ...]
    errors: tuple[tuple[float, ...], ...]
    bits: tuple[float, ...]
    chi_square: tuple[float, ...]
    motion: tuple[tuple[float, ...], ...]
    others: tuple[tuple[tuple[Expression, float], ...], ...]

    @staticmethod
    def of(chosen: Chosen, moving: tuple[str, ...]) -> SavedChoice:
        """The choice as plain values."""
        parts = {field.name: getattr(chosen, field.name) for field in fields(chosen)}
        return SavedChoice(moving, **{**parts, "motion": tuple(map(tuple, chosen.motion.tolist()))})

    def chosen(self) -> Chosen:
        """The choice as fits make it."""
        parts = {field.name: getattr(self, field.name) for field in fields(Chosen)}
        return Chosen(**{**parts, "motion": np.array(self.motion, dtype=np.float64)})


@dataclass(frozen=True)
class SavedSystem:
    """What a fit has found. In the order of the states: `fronts`, `judged`, `reasons`, `size`, and `noise`, which a map
    has none of.

    `measured`: whether derivatives were given. `validation`: losses of each front on validation trajectories. `size`:
    the largest absolute value of each state; `start`: the first values of all variables.
    """

    names: Names
    measured: bool
    fronts: tuple[Front, ...]
    judged: tuple[Judged, ...]
    noise: tuple[Noise, ...]
    reasons: tuple[str, ...]
    validation: tuple[tuple[float, ...], ...] | None
    size: tuple[float, ...]
    start: tuple[float, ...]
    choice: SavedChoice | None
    elapsed: float
    steps: int
    scored: int
    interrupted: bool


def _check(saved: SavedSystem) -> None:
    """Raise an error where the parts do not belong together."""
    states = saved.names.states
    parts = (saved.fronts, saved.judged, saved.reasons, saved.size)
    if not states or any(len(part) != len(states) for part in parts) or len(saved.noise) not in (0, len(states)):
        raise ValueError("it has not one front, noise, size and reason for each state")
    if not all(np.isfinite(saved.size)):
        raise ValueError("the sizes of its states are not finite")
    known = {*saved.names.variables, *saved.names.accelerations}
    for i, (front, judged) in enumerate(zip(saved.fronts, saved.judged, strict=True)):
        measures = [judged.heldout, judged.chi_square, judged.bits, judged.indistinguishable]
        measures += [] if saved.validation is None else [saved.validation[i]]
        if not 0 <= judged.selected < len(front) or any(len(one) != len(front) for one in measures):
            raise ValueError("the measures of its laws do not belong to its fronts")
        strange = {name for entry in front for name in variables(entry.expression)} - known
        if strange:
            raise ValueError(f"its laws hold {', '.join(sorted(strange))}, which are no variables of it")
    if saved.choice is not None:
        _check_choice(saved.choice, states)


def _check_choice(choice: SavedChoice, states: tuple[str, ...]) -> None:
    parts = (choice.laws, choice.fitted, choice.errors, choice.bits, choice.chi_square, choice.motion, choice.others)
    if not set(choice.moving) <= set(states) or any(len(part) != len(choice.moving) for part in parts):
        raise ValueError("its fit to the trajectories is not one of its states")
    for law, errors in zip(choice.fitted, choice.errors, strict=True):
        if len(free_constants(law, integers=False)) != len(errors):
            raise ValueError("its fit to the trajectories has not one error for each constant")


MOTION_FILE = LawsFile("symenum motion", "ODERegressor", SavedSystem, _check)
"""How a fitted ODERegressor is written and read."""
