"""Where a fit begins: at nothing, at the front of the fit before (`warm_start`), or at a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from symenum.enumeration.shortlist import Candidate
from symenum.estimator.keeping import Fitted, forget_others, keeper_of, signature_of
from symenum.expressions import variables
from symenum.fitting.recognise import fitted_constants
from symenum.fitting.under_loss import judged
from symenum.search import Outcome, State, Task
from symenum.search.checkpoint import Checkpoint, Keeper

__all__ = ["Beginning", "Left", "beginning"]


@dataclass(frozen=True)
class Left:
    """What a fit leaves for the next one: its last whole state, the signature of data and settings, and the loss."""

    state: State
    signature: str | None
    loss: object  # the parameter: a callable is not in the signature


@dataclass(frozen=True)
class Beginning:
    """The state to go on from, if there is one, laws that are known already, and who keeps checkpoints.

    `done`: steps of earlier fits, which an iteration limit does not count.
    """

    state: State | None = None
    known: tuple[Candidate, ...] = ()
    keeper: Keeper | None = None
    signature: str | None = None
    done: int = 0

    def keep(self, outcome: Outcome) -> None:
        """The last checkpoint, whatever was written before."""
        if self.keeper is not None and self.signature is not None:
            self.keeper.write(outcome.whole, outcome.front)
            forget_others(self.keeper.path, self.signature)

    def most(self, max_iterations: int | None) -> int | None:
        """The limit of iterations on the state's own count."""
        return None if max_iterations is None else max_iterations + self.done


class Estimator(Protocol):
    """PSERegressor, as far as its beginning needs it."""

    checkpoint: str | Path | None
    warm_start: bool
    loss: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def beginning(model: Estimator, task: Task, data: Fitted, kept: Checkpoint | None) -> Beginning:
    """Of a fit of `model` on these data, from a checkpoint or not."""
    if model.checkpoint is None and not model.warm_start and kept is None:
        return Beginning()
    parameters = model.get_params(deep=False)
    signature = signature_of(data, parameters)
    begin = Beginning(signature=signature)
    if kept is not None:
        if kept.signature != signature:
            raise ValueError(
                "X, y and sample_weight are not those of the checkpoint (or its settings were changed): give the data "
                "that the search began with, or start anew with fit"
            )
        begin = replace(begin, state=kept.state, known=tuple(kept.front))
    elif model.warm_start and hasattr(model, "front_"):
        begin = replace(begin, known=_known(task, model.front_))
        left: Left = model._left  # type: ignore[attr-defined]
        if left.signature == signature and left.loss == model.loss:
            begin = replace(begin, state=left.state, done=left.state.iteration)
    if model.checkpoint is not None:
        begin = replace(begin, keeper=keeper_of(Path(model.checkpoint), data, parameters, signature))
    return begin


def _known(task: Task, front: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The laws of an earlier front that the task allows, finite on every row of its data, with their losses there."""
    settings, target = task.settings, task.target
    usable = set(task.columns) - set(settings.forbidden)
    allowed = [
        entry.expression
        for entry in front
        if set(variables(entry.expression)) <= usable
        and task.allows(entry.expression)
        and (settings.constants or not fitted_constants(entry.expression))
    ]
    found = [judged(law, task.columns, target.y, target.weight, settings.loss) for law in allowed]
    return tuple(candidate for candidate in found if candidate.loss < float("inf"))
