"""Whether the rows say that their noise grows with the values, and the finds of a search that weighs rows accordingly.

A front is made by least squares, where large values decide. Under noise that grows (`symenum.selection.growing_noise`)
the law may fit large values a little worse than others, and be far behind them on the front; it is found by scans whose
rows are weighed by the noise, and chosen at the end of the search (`believed`).
"""

from __future__ import annotations

from collections.abc import Sequence

from symenum.core.budget import Budget
from symenum.core.target import Training
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine
from symenum.front import Front
from symenum.heads.response import best_first
from symenum.heads.work import Sizes
from symenum.search.problem import Task
from symenum.selection.growing_noise import FittedLaw, best_with_growing_noise

__all__ = ["law_with_growing_noise", "looking_work", "with_least_squares"]

_FITTED = 10  # finds of a slice, the best first, that are fitted by least squares: as many as a head hands back
_STEPS = 20  # of Levenberg-Marquardt


def looking_work(sizes: Sizes) -> float:
    """Work units of a look at the laws of a front: three rounds of fits for each of about ten laws."""
    return sizes.fits(30)


def law_with_growing_noise(task: Task, front: Front, budget: Budget) -> FittedLaw | None:
    """The most probable law of the front if the noise grows with the values; None: the rows do not say that it does."""
    if not front:  # with units even the mean of y may be no law
        return None
    training = Training(task.data.columns, task.data.target)
    return best_with_growing_noise([law.expression for law in front], training, front.floor, budget)


def with_least_squares(task: Task, found: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """The best of these finds, whose constants suit growing noise, with those of least squares."""
    data = task.data
    laws = [law.expression for law in best_first(found, data.target)[:_FITTED]]
    if not laws:
        return []
    y, weight = data.target.y, data.target.weight
    fitted = refine(laws, data.columns, y, weight, starts=0, steps=_STEPS, integers=False, near=True, budget=budget)
    return [Candidate(one.expression, one.loss) for one in fitted if one.loss < float("inf")]
