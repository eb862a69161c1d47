"""What becomes of a step's finds: judged by the loss that the user has chosen, refused, or remembered as runners-up.

Under the mean square error a find has its loss already. Under any other loss the scan and its fits only find forms: the
best of them get their constants fitted anew under that loss. Runners-up are laws that nearly stand on the front: with
one more coefficient one of them may be better than what stands there. What would enter the front must pass the policy
of `symenum.sanity`; a law that is refused as a limit in disguise gives way to its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.core.exactness import EXACTNESS
from symenum.core.target import Target
from symenum.expressions import Expression, evaluate
from symenum.expressions.candidate import Candidate
from symenum.fitting.fit_under_loss import refit, with_loss
from symenum.fitting.free_constants import form_of
from symenum.fitting.losses import Loss, typical_size
from symenum.front import Front, with_digits_of
from symenum.heads.head import LAST_FITS
from symenum.heads.response import law_limit, surplus_constants
from symenum.sanity import Policy
from symenum.sanity.policy import DISGUISED_LIMIT

__all__ = ["Admitted", "admitted", "best_under", "loss_floor", "near", "outlier_weights", "runners_up"]


_MAX_RUNNERS_UP = 240  # in all, the simplest first; this and the next two by benchmarks/breadth.py, on random laws
_RUNNERS_UP_PER_COMPLEXITY = 12  # the best first
_NEAR_FACTOR = 10.0  # a runner-up's loss is at most so many times that of the front at its complexity

_NOT_FAR_ABOVE = 1.5  # times the front's loss: with less loss than that, a find may enter for its fewer constants

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
    least = LAST_FITS if loss.weights(target.y, target.y) is not None else 1  # a user's loss may take long
    for place, expression in enumerate(distinct):
        if place >= least and budget.over():
            break
        candidate = with_loss(expression, columns, target.y, target.weight, loss)
        plain += [candidate] if candidate.loss < float("inf") else []
    simple = [candidate for candidate in plain if empty.complexity_of(candidate.expression) <= max_complexity]
    chosen = {candidate.expression: candidate for candidate in empty.update(simple)}
    for candidate in sorted(simple, key=lambda one: one.loss)[:_FITTED_FINDS]:
        chosen[candidate.expression] = candidate
    if not fit:
        return list(chosen.values())
    losses = [candidate.loss for candidate in chosen.values()]
    fitted = refit(list(chosen), columns, target.y, target.weight, loss, known_losses=losses, budget=budget, seed=seed)
    return [*chosen.values(), *(candidate for candidate in fitted if candidate.expression not in chosen)]


@dataclass(frozen=True)
class Admitted:
    """The front with the finds that may stand on it; the finds without those refused; and why those were refused."""

    front: Front
    found: list[Candidate]
    reasons: tuple[str, ...]


def admitted(
    front: Front,
    found: Sequence[Candidate],
    policy: Policy,
    limit_of: Callable[[Candidate], Candidate | None],
    max_complexity: int,
) -> Admitted:
    """The front with the finds, but for those that the policy refuses. Only what would enter the front is judged.

    `limit_of`: the law that a find is a limit of in disguise, if it is one; that law is then a find too.
    """
    possible = _may_enter(front, found)
    refused: dict[Expression, str] = {}
    out: set[Expression] = set()  # what was refused, and the finds that it has its digits from
    judged: set[Expression] = {entry.expression for entry in front}
    limits: list[Candidate] = []
    while True:
        new = front.update(possible, max_complexity)
        entering = [entry for entry in new if entry.expression not in judged]
        if not entering:
            rest = [candidate for candidate in found if candidate.expression not in out]
            return Admitted(new, [*rest, *limits], tuple(refused.values()))
        for entry in entering:
            judged.add(entry.expression)
            exact = entry.loss <= front.floor and not surplus_constants(entry.expression, front.rows)
            limit = limit_of(entry)
            reason = policy.reason(entry.expression, exact=exact) if limit is None else DISGUISED_LIMIT
            if reason is not None:
                refused[entry.expression] = reason
                alike = [one.expression for one in possible if one.loss == entry.loss]
                out |= {one for one in alike if with_digits_of(entry.expression, one) == entry.expression}
                out.add(entry.expression)
            if limit is not None:
                limits.append(front.in_its_form(limit))
        possible = [one for one in (*possible, *limits) if one.expression not in out]


def _may_enter(front: Front, found: Sequence[Candidate]) -> list[Candidate]:
    """The finds that are not much worse than the front at their complexity: all others are dominated in any case."""
    return [one for one in found if one.loss <= max(_NOT_FAR_ABOVE * front.loss_up_to(one.complexity), front.floor)]


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
    """The twelve best of each complexity, at most 240 in all, each function and each form once; by complexity and loss.

    Other digits of its constants make no other law: they would take the places of laws that are others.
    """
    best: dict[int, list[Candidate]] = {}
    forms: set[Expression] = set()
    for candidate in sorted(candidates, key=lambda candidate: candidate.loss):
        alike = best.setdefault(candidate.complexity, [])
        known = alike and candidate.loss <= alike[-1].loss + EXACTNESS.tie * abs(alike[-1].loss)
        if (
            len(alike) < _RUNNERS_UP_PER_COMPLEXITY
            and not known
            and (form := form_of(candidate.expression)) not in forms
        ):
            forms.add(form)
            alike.append(candidate)
    return tuple(candidate for complexity in sorted(best) for candidate in best[complexity])[:_MAX_RUNNERS_UP]


def near(front: Front, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates whose loss is at most ten times that of the front at their complexity; members are left out."""
    known = {entry.expression for entry in front}
    found = []
    for candidate in candidates:
        near_loss = front.zero + _NEAR_FACTOR * (front.loss_up_to(candidate.complexity) - front.zero)
        if candidate.loss <= near_loss < float("inf") and candidate.expression not in known:
            found.append(candidate)
    return found
