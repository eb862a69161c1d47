"""Constants fitted under a loss that is not the mean square error, starting at those of least squares.

By iteratively reweighted least squares; for a callable of the user's, whose slopes are not known, by the simplex
method. What the losses are is said in `losses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy.optimize
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Constant, Expression, evaluate, substitute
from symenum.expressions.candidate import Candidate
from symenum.fitting.batch_program import Array
from symenum.fitting.form_fit import FormFit, fit_form, judge_form
from symenum.fitting.free_constants import free_constants, with_constants
from symenum.fitting.losses import Loss
from symenum.fitting.refine import refine

__all__ = ["fit_form_under", "refit", "with_loss"]


# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MAX_ROUNDS = 12  # of reweighting, for many expressions at once
_MAX_ROUNDS_OF_FORM = 100  # of reweighting, for the one form of a user
_STEPS_PER_ROUND = 8  # of Levenberg–Marquardt
_MIN_GAIN = 1e-7  # part of the loss: a round that gains less is the last
_CALLS_PER_CONSTANT = 80  # of a user's loss
_SIMPLEX_TOLERANCE = 1e-12  # size of the simplex at which it ends, in the unit of a constant


def with_loss(
    expression: Expression, columns: Mapping[str, Tensor], y: Tensor, weight: Tensor, loss: Loss
) -> Candidate:
    """The expression with its loss on columns, y and weight (rows,) float64; inf where it is not finite on some row."""
    values: Tensor = evaluate(expression, columns)
    return Candidate(expression, loss.total(y, values.to(torch.float64), weight))


def refit(
    expressions: Sequence[Expression],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    loss: Loss,
    *,
    known_losses: Sequence[float] | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> list[Candidate]:
    """Each expression with the constants of least loss near those that it has; none becomes worse.

    Whole numbers stay. `columns`, y and weight (rows,) float64, the weights summing to 1. `known_losses`: those of the
    expressions as they are, where the caller has them: a user's loss may take long.
    """
    budget = Budget() if budget is None else budget
    if known_losses is None:
        found = [with_loss(expression, columns, y, weight, loss) for expression in expressions]
    else:
        found = [Candidate(expression, value) for expression, value in zip(expressions, known_losses, strict=True)]
    moving = [
        i for i, one in enumerate(found) if one.loss < math.inf and free_constants(one.expression, integers=False)
    ]
    if not moving:
        return found
    if loss.weights(y, y) is None:
        for i in moving:
            if not budget.over():
                found[i] = _by_simplex(found[i], columns, y, weight, loss, budget)
        return found
    for _ in range(_MAX_ROUNDS):
        if not moving or budget.over():
            break
        weights = torch.stack([_reweighted(found[i].expression, columns, y, weight, loss) for i in moving])
        results = refine(
            [found[i].expression for i in moving],
            columns,
            y,
            weights,
            starts=0,
            steps=_STEPS_PER_ROUND,
            integers=False,
            budget=budget,
            seed=seed,
        )
        still_falling = []
        for i, result in zip(moving, results, strict=True):
            if budget.over():
                break
            new = with_loss(result.expression, columns, y, weight, loss)
            if new.loss < found[i].loss - _MIN_GAIN * abs(found[i].loss):
                still_falling.append(i)
            if new.loss < found[i].loss:
                found[i] = new
        moving = still_falling
    return found


def fit_form_under(
    form: Expression,
    starts: Mapping[str, float | None],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    loss: Loss,
    *,
    budget: Budget | None = None,
    seed: int = 0,
) -> FormFit:
    """`fit_form` under a loss, which is also the `loss` of the result.

    Standard errors are those at the loss's minimum; under a callable, those of least squares.
    """

    def total(constants: Mapping[str, float]) -> float:
        law = substitute(form, {name: Constant(value) for name, value in constants.items()})
        return with_loss(law, columns, y, weight, loss).loss

    budget = Budget() if budget is None else budget
    found = fit_form(form, starts, columns, y, weight, budget=budget, seed=seed)
    found = replace(found, loss=total(found.constants))
    names = tuple(found.constants)
    if loss.is_squared or not names or found.loss == math.inf:
        return found
    if loss.weights(y, y) is None:
        values, value = _simplex(
            lambda values: math.inf if budget.over() else total(dict(zip(names, values.tolist(), strict=True))),
            list(found.constants.values()),
        )
        if not value < found.loss:
            values, value = np.array(list(found.constants.values())), found.loss
        constants = dict(zip(names, values.tolist(), strict=True))
        return replace(judge_form(form, constants, columns, y, weight), loss=value)
    for _ in range(_MAX_ROUNDS_OF_FORM):
        if budget.over():
            break
        law = substitute(form, {name: Constant(value) for name, value in found.constants.items()})
        changed = _reweighted(law, columns, y, weight, loss)
        new = fit_form(form, found.constants, columns, y, changed, steps=_STEPS_PER_ROUND, budget=budget)
        before, value = found.loss, total(new.constants)
        if value < before:
            found = replace(new, loss=value)
        if not value < before - _MIN_GAIN * abs(before):
            break
    law = substitute(form, {name: Constant(value) for name, value in found.constants.items()})
    factors = loss.weights(y, evaluate(law, columns))
    return replace(judge_form(form, found.constants, columns, y, weight, factors), loss=found.loss)


def _reweighted(expression: Expression, columns: Mapping[str, Tensor], y: Tensor, weight: Tensor, loss: Loss) -> Tensor:
    """The weights (rows,), summing to 1, under which least squares falls as the loss does at this expression."""
    values: Tensor = evaluate(expression, columns)
    factors = loss.weights(y, values)
    assert factors is not None
    return weight * factors / (weight * factors).sum()


def _by_simplex(
    start: Candidate, columns: Mapping[str, Tensor], y: Tensor, weight: Tensor, loss: Loss, budget: Budget
) -> Candidate:
    def total(values: Array) -> float:
        if budget.over():
            return math.inf
        changed = with_constants(start.expression, values.tolist(), integers=False)
        return with_loss(changed, columns, y, weight, loss).loss

    values, value = _simplex(total, free_constants(start.expression, integers=False))
    if not value < start.loss:
        return start
    return Candidate(with_constants(start.expression, values.tolist(), integers=False), value)


def _simplex(total: Callable[[Array], float], start: Sequence[float]) -> tuple[Array, float]:
    """The values of least total near the start, and that total; the start and infinity where no total is finite."""
    first = np.array(start, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # the difference of two infinite totals, when the time is over
        ended = scipy.optimize.minimize(
            lambda values: total(values) if np.isfinite(values).all() else math.inf,
            first,
            method="Nelder-Mead",
            options={
                "maxfev": _CALLS_PER_CONSTANT * len(start),
                "xatol": _SIMPLEX_TOLERANCE,
                "fatol": 0.0,
                "adaptive": True,
            },
        )
    return (np.asarray(ended.x), float(ended.fun)) if ended.fun < math.inf else (first, math.inf)
