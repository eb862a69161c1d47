"""The most probable law of a search stands on its front, also where it was a runner-up.

A front holds one law of a complexity, that of the least loss; on few rows with noise the more probable one may be
another, whose constants are rounder or fewer. And where the noise grows with the values, it is one whose constants were
fitted with rows weighed by the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine, with_one_less
from symenum.fitting.fit_under_loss import with_loss
from symenum.front import Front
from symenum.search.polish import in_few_digits, limit_in_disguise
from symenum.search.problem import Task
from symenum.search.state import State
from symenum.selection import most_probable
from symenum.selection.alternatives import most_promising
from symenum.selection.growing_noise import (
    FittedLaw,
    best_with_growing_noise,
    fitted_to_growing_noise,
    noise_may_grow,
)

__all__ = ["with_most_probable"]

_LOOKED_AT = 8  # laws of the front, the most promising first, that tell whether the noise grows
_COMPARED = 30  # laws, the most promising by least squares, that are fitted if it does: some tenths of a second
_SHORTENINGS = 4  # parts that a law may lose which growing noise does not need
_LAST_STEPS = 8  # of Levenberg-Marquardt on all rows, from constants that fit a part of them

Allowed = Callable[[Candidate], bool]


def with_most_probable(
    task: Task, front: Front, state: State, budget: Budget, *, noise_is_known: bool = False
) -> tuple[Front, Candidate]:
    """The front of a search that has ended, with the most probable law of all that it has kept; and that law.

    A law that enters has passed the policy, and has its constants in the digits that the data support.
    `noise_is_known`: the user has said how large the errors are, so the rows are not asked whether they grow.
    """
    settings = task.settings

    def allowed(law: Candidate) -> bool:
        if task.policy.reason(law.expression, exact=law.loss <= front.floor) is not None:
            return False
        return limit_in_disguise(task, law, budget) is None

    training = Training(task.columns, task.target)
    others = [law for law in state.runners_up if front.may_hold(law)]
    open_question = settings.constants and not noise_is_known and not front.has_law()
    if open_question and noise_may_grow(training, settings.loss):
        fitted = _with_growing_noise(task, training, front, others, allowed, budget)
        if fitted is not None:
            return _placed(task, front, _written(task, training, fitted, budget))
    law = most_probable(front.entries, others, training, front.floor, settings.loss, allowed)
    if law in front.entries:
        return front, law
    law = with_loss(law.expression, task.columns, task.target.y, task.target.weight, settings.loss)  # on all rows
    if settings.constants and settings.sanity != "off":
        law = in_few_digits(task, law, front.floor)
    return _placed(task, front, law)


def _placed(task: Task, front: Front, law: Candidate) -> tuple[Front, Candidate]:
    law = front.weighed(law)
    return front.with_law(law), law


def _with_growing_noise(
    task: Task, training: Training, front: Front, others: Sequence[Candidate], allowed: Allowed, budget: Budget
) -> FittedLaw | None:
    """The most probable law if the noise grows, without parts that it does not need; None: it does not grow."""
    floor = front.floor
    looked_at = most_promising(front, floor, front.rows)[:_LOOKED_AT]
    if best_with_growing_noise(looked_at, training, floor, budget) is None:
        return None
    laws = most_promising([*front, *others], floor, front.rows)[:_COMPARED]

    def may_stand(one: FittedLaw) -> bool:
        return allowed(_with_plain_loss(task, one.law)) and task.allows(one.law)

    def best_of(laws: Sequence[Expression]) -> FittedLaw | None:
        fitted = sorted(fitted_to_growing_noise(laws, training, floor, budget), key=lambda one: -one.nats)
        return next(filter(may_stand, fitted), None)

    best = best_of(laws)
    for _ in range(_SHORTENINGS):
        shorter = None if best is None else best_of(with_one_less(best.law))
        if best is None or shorter is None or shorter.nats <= best.nats:
            break
        best = shorter
    return best


def _with_plain_loss(task: Task, law: Expression) -> Candidate:
    return with_loss(law, task.columns, task.target.y, task.target.weight, task.settings.loss)


def _written(task: Task, training: Training, fitted: FittedLaw, budget: Budget) -> Candidate:
    """The law fitted on all rows by their noise, in the digits that these support; its loss is that of the search."""
    rows = fitted.noise.around(fitted.law, training).weigh(training)
    target = rows.target
    (result,) = refine(
        [fitted.law],
        rows.columns,
        target.y,
        target.weight,
        starts=0,
        steps=_LAST_STEPS,
        integers=False,
        near=True,
        budget=budget,
    )
    law = result.expression
    if task.settings.sanity != "off":
        working = fitted.noise.around(law, training).weigh(Training(task.data.columns, task.working))
        by_noise = replace(task, target=target, working=working.target)
        law = in_few_digits(by_noise, Candidate(law, result.loss), task.empty_front.floor).expression
    return _with_plain_loss(task, law)
