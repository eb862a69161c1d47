"""The most probable law of a search stands on its front, also where it was a runner-up.

A front holds one law of a complexity, that of the least loss; on few rows with noise the more probable one may be
another, whose constants are rounder or fewer.
"""

from __future__ import annotations

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.expressions.candidate import Candidate
from symenum.fitting.fit_under_loss import with_loss
from symenum.front import Front
from symenum.search.polish import in_few_digits, limit_in_disguise
from symenum.search.problem import Task
from symenum.search.state import State
from symenum.selection import most_probable

__all__ = ["with_most_probable"]


def with_most_probable(task: Task, front: Front, state: State, budget: Budget) -> tuple[Front, Candidate]:
    """The front of a search that has ended, with the most probable law of all that it has kept; and that law.

    A law that enters has passed the policy, and has its constants in the digits that the data support.
    """
    settings = task.settings

    def allowed(law: Candidate) -> bool:
        if task.policy.reason(law.expression, exact=law.loss <= front.floor) is not None:
            return False
        return limit_in_disguise(task, law, budget) is None

    training = Training(task.columns, task.target)
    others = [law for law in state.runners_up if front.may_hold(law)]
    law = most_probable(front.entries, others, training, front.floor, settings.loss, allowed)
    if law in front.entries:
        return front, law
    law = with_loss(law.expression, task.columns, task.target.y, task.target.weight, settings.loss)  # on all rows
    if settings.constants and settings.sanity != "off":
        law = in_few_digits(task, law, front.floor)
    law = front.weighed(law)
    return front.with_law(law), law
