"""The choice of a law by rows that it was not fitted on: a table of its own, or folds of the one that there is.

Of laws that such rows cannot tell apart the simplest is chosen: one that is worse by no more than the standard error of
the difference, row by row, is as good as the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import validate_data
from torch import Tensor

from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.target import check_target
from symenum.estimator.given import TIE, Training
from symenum.expressions import Expression, evaluate
from symenum.fitting import refine
from symenum.fitting.losses import Loss, make_loss
from symenum.fitting.under_loss import refit
from symenum.front import Front, rule_of
from symenum.heads.goal import law_limit
from symenum.search.judging import loss_floor

__all__ = ["HELD_OUT", "HeldOut", "check_validation", "choose_law", "on_folds", "on_rows"]

HELD_OUT = ("validation", "kfold")
"""Rules of `model_selection` beside those of a front."""
_FOLDS = 5


@dataclass(frozen=True)
class HeldOut:
    """The loss of each law on rows that it was not fitted on, and that of each row (laws, rows) where rows have one."""

    losses: tuple[float, ...]
    rows: Tensor | None
    weight: Tensor
    floor: float

    def select(self) -> int | None:
        """The simplest law that is as good as the best; None where no law is finite on all of these rows."""
        losses = [max(loss, self.floor) for loss in self.losses]
        best = min(range(len(losses)), key=lambda i: losses[i])
        if losses[best] == math.inf:
            return None
        return next(i for i, loss in enumerate(losses) if loss - losses[best] <= self._error(i, best))

    def _error(self, one: int, other: int) -> float:
        """The standard error of the difference of two losses."""
        tie = TIE * max(self.losses[other], self.floor)
        if self.rows is None or self.losses[one] == math.inf or len(self.weight) < 2:
            return tie
        difference = self.rows[one] - self.rows[other]
        off = (difference - (difference * self.weight).sum()) * self.weight
        count = len(self.weight)
        return max(tie, math.sqrt(float(off.square().sum()) * count / (count - 1)))


def choose_law(
    front: Front, rule: str, training: Training, validation: Training | None, loss: Loss
) -> tuple[int, HeldOut | None]:
    """The law's index by a rule of `model_selection`, and what the rows that were held out say, where some were."""
    held = None
    if rule == "kfold":
        held = on_folds(front, training, loss)
    elif validation is not None:
        held = on_rows([entry.expression for entry in front], validation, loss)
    chosen = held.select() if held is not None and rule in (*HELD_OUT, "best") else None
    if chosen is None:
        judged = _by_most_rows(front, training) if loss.robust else front
        chosen = judged.select(rule_of(rule))
    return chosen, held


def _by_most_rows(front: Front, training: Training) -> Front:
    """The front with the square of the median residual of each law as its loss, for the choice of one of them.

    Outliers cost every law the same and hide by how much one is better than another; and a law may have bent to them.
    """
    target = training.target
    sizes = [float((evaluate(entry.expression, training.columns) - target.y).abs().median()) for entry in front]
    entries = [Candidate(entry.expression, size**2) for entry, size in zip(front, sizes, strict=True)]
    return replace(front, entries=tuple(entries), floor=law_limit(target))


def on_rows(laws: Sequence[Expression], held: Training, loss: Loss) -> HeldOut:
    """Laws as they are, on rows that were held out."""
    target = held.target
    values = [evaluate(law, held.columns).to(torch.float64) for law in laws]
    losses = tuple(loss.total(target.y, value, target.weight) for value in values)
    rows = [row for value in values if (row := loss.rows(target.y, value)) is not None]
    return HeldOut(losses, torch.stack(rows) if rows else None, target.weight, loss_floor(loss, target))


def on_folds(front: Front, training: Training, loss: Loss) -> HeldOut:
    """Laws with their constants fitted without each fifth of the rows in turn, on that fifth."""
    laws = [entry.expression for entry in front]
    count = training.target.rows
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    rows = torch.empty(len(laws), count, dtype=torch.float64)
    losses = np.zeros(len(laws))
    for fold in order.chunk(min(_FOLDS, count)):
        inside = torch.ones(count, dtype=torch.bool)
        inside[fold] = False
        held = _part(training, fold)
        result = on_rows(_fitted_on(laws, _part(training, inside.nonzero().flatten()), loss), held, loss)
        losses += float(training.target.weight[fold].sum()) * np.array(result.losses)
        if result.rows is not None:
            rows[:, fold] = result.rows
    by_row = None if loss.rows(training.target.y, training.target.y) is None else rows
    return HeldOut(tuple(losses.tolist()), by_row, training.target.weight, loss_floor(loss, training.target))


def check_validation(estimator: Any, validation: object, names: Sequence[str]) -> Training | None:
    """The rows of `fit(validation=...)`, for an estimator that knows its features, `names` in laws; or an error."""
    if validation is None:
        if estimator.model_selection == "validation":
            raise ValueError("model_selection='validation' needs rows to choose on: fit(X, y, validation=(X2, y2))")
        return None
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
        raise ValueError("validation must be a pair (X, y) or a triple (X, y, sample_weight)")
    try:
        values, y = validate_data(
            estimator, validation[0], validation[1], dtype=np.float64, y_numeric=True, reset=False
        )
        weight = validation[2] if len(validation) == 3 else None
        target, rows = check_target(np.asarray(y, dtype=np.float64), weight, len(values))
        make_loss(estimator.loss, target, weighted=weight is not None)  # only to refuse what it cannot judge
    except (TypeError, ValueError) as error:
        raise ValueError(f"validation: {error}") from error
    return Training.of(torch.tensor(values)[rows], names, target)


def _part(training: Training, rows: Tensor) -> Training:
    return Training({name: column[rows] for name, column in training.columns.items()}, training.target.at(rows))


def _fitted_on(laws: Sequence[Expression], training: Training, loss: Loss) -> list[Expression]:
    columns, target = training.columns, training.target
    if loss.is_squared:
        results = refine(laws, columns, target.y, target.weight, starts=0, integers=False)
        return [result.expression for result in results]
    return [one.expression for one in refit(laws, columns, target.y, target.weight, loss)]
