"""What becomes of a step's finds: judged by the loss that the user has chosen, or remembered as runners-up.

Under the mean square error a find has its loss already. Under any other loss the scan and its fits only find forms: the
best of them get their constants fitted anew under that loss. Runners-up are laws that nearly stand on the front: with
one more coefficient one of them may be better than what stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.expressions import Expression, evaluate
from symenum.expressions.candidate import Candidate
from symenum.fitting.fit_under_loss import refit, with_loss
from symenum.fitting.losses import Loss, typical_size
from symenum.front import Front
from symenum.heads.head import LAST_FITS
from symenum.heads.response import law_limit

__all__ = ["best_under", "loss_floor", "near", "outlier_weights", "runners_up"]


_MAX_RUNNERS_UP = 240  # in all, the simplest first; this and the next two by benchmarks/breadth.py, on random laws
_RUNNERS_UP_PER_COMPLEXITY = 12  # the best first
_NEAR_FACTOR = 10.0  # a runner-up's loss is at most so many times that of the front at its complexity

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_FITTED_FINDS = 8  # finds of the least loss that are fitted under the loss, beside those that stand on a front
_OUTLIER_SCALE = 4.0  # typical residuals: a row that far from the law has half of its weight


def best_under(
    loss: Loss,
    found: Sequence[Candidate],
    columns: Mapping[str, Tensor],
    target: Target,
    empty: Front,
    max_complexity: int,
    budget: Budget,
    *,
    fit: bool = True,
    seed: int = 0,
) -> list[Candidate]:
    """The finds that could stand on a front under the loss: as they are and, if `fit`, with constants fitted under it.

    `columns` (rows,) by name and `target`: the rows to judge them on. `empty`: a front without entries for the loss.
    They are judged by least squares first, the best first; when the time is over, a few more of them.
    """
    distinct = dict.fromkeys(candidate.expression for candidate in sorted(found, key=lambda one: one.loss))
    plain = []
    for place, expression in enumerate(distinct):
        if place >= LAST_FITS and budget.over():
            break
        candidate = with_loss(expression, columns, target.y, target.weight, loss)
        plain += [candidate] if candidate.loss < float("inf") else []
    simple = [candidate for candidate in plain if candidate.complexity <= max_complexity]
    chosen = {candidate.expression: candidate for candidate in empty.update(simple)}
    for candidate in sorted(simple, key=lambda one: one.loss)[:_FITTED_FINDS]:
        chosen[candidate.expression] = candidate
    if not fit:
        return list(chosen.values())
    losses = [candidate.loss for candidate in chosen.values()]
    fitted = refit(list(chosen), columns, target.y, target.weight, loss, known_losses=losses, budget=budget, seed=seed)
    return [*chosen.values(), *(candidate for candidate in fitted if candidate.expression not in chosen)]


def loss_floor(loss: Loss, target: Target) -> float:
    """The loss of y shifted by the largest residual that is rounding: up to it a law equals y."""
    step = law_limit(target) ** 0.5
    floors = [loss.total(target.y, target.y + sign * step, target.weight) for sign in (1.0, -1.0)]
    return max((floor for floor in floors if floor < float("inf")), default=0.0)


def outlier_weights(law: Expression, columns: Mapping[str, Tensor], target: Target) -> Target:
    """The target with less weight on the rows that the law is far from, for the next scan.

    The weights fall as 1/(1 + r²), where r is the residual in units of four typical residuals: slowly enough that rows
    which an imperfect law misses still count.
    """
    values: Tensor = evaluate(law, columns)
    residual = values.to(torch.float64) - target.y
    size = max(typical_size(residual), EXACTNESS.scanned * typical_size(target.y))
    weight = target.weight / (1 + (residual / (_OUTLIER_SCALE * size)).square())
    return Target(target.y, weight / weight.sum())


def runners_up(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The twelve best of each complexity, at most 240 in all, each function once; by complexity, then loss."""
    best: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.loss):
        alike = best.setdefault(candidate.complexity, [])
        known = alike and candidate.loss <= alike[-1].loss + EXACTNESS.tie * abs(alike[-1].loss)
        if len(alike) < _RUNNERS_UP_PER_COMPLEXITY and not known:
            alike.append(candidate)
    return tuple(candidate for complexity in sorted(best) for candidate in best[complexity])[:_MAX_RUNNERS_UP]


def near(front: Front, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates whose loss is at most ten times that of the front at their complexity; members are left out."""
    known = {entry.expression for entry in front}
    found = []
    for candidate in candidates:
        losses = (entry.loss for entry in front if entry.complexity <= candidate.complexity)
        front_loss = min(losses, default=front.zero)
        near_loss = front.zero + _NEAR_FACTOR * (front_loss - front.zero)
        if candidate.loss <= near_loss and candidate.expression not in known:
            found.append(candidate)
    return found
