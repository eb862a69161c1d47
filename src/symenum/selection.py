"""How a law is chosen from a front: the one home of that decision.

There are two kinds of rules. Those of MODEL_SELECTIONS use the loss and the complexity of each law on the rows of the
fit. Those of HELD_OUT use rows that the laws were not fitted on: another table (`on_rows`), or folds of the same one
(`on_folds`). Of laws that such rows cannot tell apart the simplest is chosen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.seeds import torch_stream
from symenum.core.target import Training
from symenum.expressions import Constant, Expression, evaluate, walk
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine
from symenum.fitting.fit_under_loss import refit
from symenum.fitting.losses import Loss
from symenum.heads.response import law_limit

__all__ = [
    "DISCOUNT",
    "HELD_OUT",
    "MODEL_SELECTIONS",
    "HeldOut",
    "choose_law",
    "description_length",
    "description_lengths",
    "on_folds",
    "on_rows",
    "reward",
    "rule_while_searching",
    "scores",
    "select",
]

MODEL_SELECTIONS = ("best", "accuracy", "reward", "mdl")
"""Rules that need no rows beside those of the fit."""
HELD_OUT = ("validation", "kfold")
"""Rules that look at rows that the laws were not fitted on."""
DISCOUNT = 0.99
"""η of the paper's reward: the factor for each unit of complexity."""
_NEARLY_BEST = 1.5  # PySR's value: its "best" considers losses up to this factor above the smallest
_FOLDS = 5  # the usual number: each fit keeps four fifths of the rows
_MIN_LOSS = 1e-300  # near the smallest normal double: logarithms are taken of losses of at least this
_SIGN_AND_SIZE = 2  # bits of a fitted constant beside its digits: one for the sign, one for the order of magnitude
_MIN_FITTED_BITS = math.log2(1 + 7) + 1  # of a fitted constant, however few the rows: those of the whole number 7
_MAX_WHOLE = 1e6  # larger whole numbers count as fitted; chosen by trial, see benchmarks/constants.py


class Laws(Protocol):
    """A front, as far as the choice of a law needs it."""

    @property
    def entries(self) -> tuple[Candidate, ...]: ...
    @property
    def floor(self) -> float: ...
    @property
    def rows(self) -> int: ...
    @property
    def discount(self) -> float: ...


def reward(loss: float, complexity: int, discount: float = DISCOUNT) -> float:
    """η^α / (1 + √MSE), the paper's equation for the feedback to the token generator.

    >>> round(reward(1.0, 2), 4)
    0.49
    """
    return float(discount**complexity / (1 + math.sqrt(loss)))


def scores(laws: Sequence[Candidate], floor: float) -> tuple[float, ...]:
    """PySR's score of each law: how fast ln(loss) falls with complexity; 0 for the first."""
    rates = [0.0] if laws else []
    for before, law in itertools.pairwise(laws):
        fall = math.log(_clamped(before.loss, floor)) - math.log(_clamped(law.loss, floor))
        rates.append(fall / (law.complexity - before.complexity))
    return tuple(rates)


def description_lengths(laws: Sequence[Candidate], floor: float, rows: int) -> tuple[float, ...]:
    """Bits to write each law, its constants in the digits that so many rows support, and its residuals."""
    return tuple(
        0.5 * rows * math.log2(_clamped(law.loss, floor)) + description_length(law.expression, rows) for law in laws
    )


def description_length(expression: Expression, rows: int) -> float:
    """Bits to write an expression: its symbols, and its constants in the digits that so many rows support."""
    nodes = list(walk(expression))
    symbols = {getattr(node, "name", None) or type(node).__name__ for node in nodes}
    bits = len(nodes) * math.log2(1 + len(symbols))
    for node in nodes:
        if isinstance(node, Constant) and node.name is None:
            fitted = max(_MIN_FITTED_BITS, 0.5 * math.log2(max(2, rows)) + _SIGN_AND_SIZE)
            whole = float(node.value).is_integer() and abs(node.value) < _MAX_WHOLE
            bits += math.log2(1 + abs(node.value)) + 1 if whole else fitted
    return bits


def select(laws: Sequence[Candidate], rule: str, *, floor: float, rows: int, discount: float = DISCOUNT) -> int:
    """The index of the law to believe, by one of MODEL_SELECTIONS; laws by complexity ascending.

    `mdl`: the shortest description of law and data. `best`: PySR's rule, the highest score among those with a loss of
    up to 1.5 times the smallest; but a law that is longer to describe than the `mdl` one, and more accurate, has only
    fitted the noise, and takes no part. `accuracy`: the smallest loss. `reward`: the highest reward.

    `floor`: losses up to it are zero up to rounding. `rows`: of the data. `discount`: η of the reward.
    """
    if rule not in MODEL_SELECTIONS:
        raise ValueError(f"model_selection must be one of {', '.join(map(repr, MODEL_SELECTIONS))}, not {rule!r}")
    if not laws:
        raise ValueError("the front is empty: nothing to select from")
    indices = range(len(laws))
    if rule == "accuracy":
        return len(laws) - 1
    if rule == "reward":
        rewards = [reward(law.loss, law.complexity, discount) for law in laws]
        return max(indices, key=lambda i: rewards[i])
    lengths = description_lengths(laws, floor, rows)
    shortest = min(indices, key=lambda i: lengths[i])
    if rule == "mdl":
        return shortest
    rates = scores(laws, floor)
    limit = _NEARLY_BEST * _clamped(laws[shortest].loss, floor)
    believable = (i for i in indices[: shortest + 1] if _clamped(laws[i].loss, floor) <= limit)
    return max(believable, key=lambda i: rates[i])


def rule_while_searching(model_selection: str, otherwise: str = "best") -> str:
    """The rule that marks a law while the search runs: held-out rows are used only at its end.

    `otherwise`: the rule in place of a `model_selection` that needs such rows.
    """
    return model_selection if model_selection in MODEL_SELECTIONS else otherwise


def choose_law(front: Laws, rule: str, held: HeldOut | None, training: Training, *, robust: bool) -> int:
    """The index of the law by a rule of MODEL_SELECTIONS or HELD_OUT.

    `held`: the losses on held-out rows; they decide for the rules of HELD_OUT and for "best". `robust`: whether the
    loss is one that outliers do not decide; the choice then goes by median residuals.
    """
    if held is not None and rule in (*HELD_OUT, "best"):
        chosen = held.select()
        if chosen is not None:
            return chosen
    rule = rule_while_searching(rule)
    if not robust:
        return select(front.entries, rule, floor=front.floor, rows=front.rows, discount=front.discount)
    typical = _with_median_losses(front.entries, training)
    return select(typical, rule, floor=law_limit(training.target), rows=front.rows, discount=front.discount)


@dataclass(frozen=True)
class HeldOut:
    """The loss of each law on rows that it was not fitted on.

    `rows` (laws, rows): the loss of each row, None for a loss that is no mean over rows. `weight` (rows,) sums to 1.
    Losses up to `floor` are zero up to rounding.
    """

    losses: tuple[float, ...]
    rows: Tensor | None
    weight: Tensor
    floor: float

    def select(self) -> int | None:
        """The simplest law that is as good as the best; None where no law is finite on all of these rows.

        A law is as good as the best if it is worse by at most one standard error of the difference, row by row.
        """
        losses = [max(loss, self.floor) for loss in self.losses]
        best = min(range(len(losses)), key=lambda i: losses[i])
        if losses[best] == math.inf:
            return None
        return next(i for i, loss in enumerate(losses) if loss - losses[best] <= self._error(i, best))

    def _error(self, one: int, other: int) -> float:
        """The standard error of the difference of two losses, at least what counts as a tie."""
        tie = EXACTNESS.tie * abs(max(self.losses[other], self.floor))
        if self.rows is None or self.losses[one] == math.inf or len(self.weight) < 2:
            return tie
        difference = self.rows[one] - self.rows[other]
        deviation = (difference - (difference * self.weight).sum()) * self.weight
        count = len(self.weight)
        return max(tie, math.sqrt(float(deviation.square().sum()) * count / (count - 1)))


def on_rows(laws: Sequence[Expression], held: Training, loss: Loss, floor: float) -> HeldOut:
    """The losses of laws, as they are, on held-out rows. `floor`: of these losses."""
    target = held.target
    values = [evaluate(law, held.columns).to(torch.float64) for law in laws]
    losses = tuple(loss.total(target.y, value, target.weight) for value in values)
    rows = [row for value in values if (row := loss.rows(target.y, value)) is not None]
    return HeldOut(losses, torch.stack(rows) if rows else None, target.weight, floor)


def on_folds(
    laws: Sequence[Expression], training: Training, loss: Loss, floor: float, seed: int, budget: Budget = NO_LIMIT
) -> HeldOut | None:
    """The losses of laws on each fifth of the rows in turn, their constants fitted on the other four fifths.

    `seed` decides which rows form a fifth. When the time is over: on the fifths that were done, None without any.
    """
    count = training.target.rows
    order = torch.randperm(count, generator=torch_stream(seed, "folds"))
    rows = torch.empty(len(laws), count, dtype=torch.float64)
    losses = np.zeros(len(laws))
    done: list[Tensor] = []
    for fold in order.chunk(min(_FOLDS, count)):
        inside = torch.ones(count, dtype=torch.bool)
        inside[fold] = False
        refitted = _fitted_on(laws, training.at(inside.nonzero().flatten()), loss, seed, budget)
        if budget.over():  # some constants are still those of all rows
            break
        done.append(fold)
        result = on_rows(refitted, training.at(fold), loss, floor)
        losses += float(training.target.weight[fold].sum()) * np.array(result.losses)
        if result.rows is not None:
            rows[:, fold] = result.rows
    if not done:
        return None
    held = torch.cat(done).sort().values
    weight = training.target.weight[held]
    losses /= float(weight.sum())
    by_row = None if loss.rows(training.target.y, training.target.y) is None else rows[:, held]
    return HeldOut(tuple(losses.tolist()), by_row, weight / weight.sum(), floor)


def _fitted_on(
    laws: Sequence[Expression], training: Training, loss: Loss, seed: int, budget: Budget
) -> list[Expression]:
    """The laws with their constants fitted on these rows under the loss."""
    columns, target = training.columns, training.target
    if loss.is_squared:
        results = refine(laws, columns, target.y, target.weight, starts=0, integers=False, seed=seed, budget=budget)
        return [result.expression for result in results]
    return [one.expression for one in refit(laws, columns, target.y, target.weight, loss, seed=seed, budget=budget)]


def _with_median_losses(laws: Sequence[Candidate], training: Training) -> list[Candidate]:
    """The laws with the square of their median absolute residual as loss.

    The loss itself would mislead: outliers cost every law about the same, which hides how much better one law is.
    """
    y = training.target.y
    sizes = [float((evaluate(law.expression, training.columns) - y).abs().median()) for law in laws]
    return [Candidate(law.expression, size**2) for law, size in zip(laws, sizes, strict=True)]


def _clamped(loss: float, floor: float) -> float:
    """The loss, at least what is zero up to rounding, and above 0."""
    return max(loss, floor, _MIN_LOSS)
