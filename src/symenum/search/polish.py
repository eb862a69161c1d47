"""The coefficients of what a pass has found: inserted, fitted on the working rows, and written as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from symenum.core.budget import Budget
from symenum.expressions import Expression, simplify
from symenum.expressions.candidate import Candidate
from symenum.fitting import (
    Refined,
    as_step,
    free_constants,
    refine,
    tidy,
    with_coefficients,
    with_constants,
    with_one_less,
    with_one_more,
)
from symenum.fitting.fit_under_loss import refit
from symenum.front import Front
from symenum.heads.response import best_first
from symenum.operators.traits import Role
from symenum.search.problem import Task

__all__ = ["loosened", "pruned", "refined", "refitted", "rounded"]


_BEST = 10  # of the heads' finds, whose outer coefficients are fitted already
_STARTS = 2
_VARIANTS = 150  # in one step
_FIRST_VARIANTS = 2400  # where the heads have done their part, and all that they found is looked into
_PRUNED = 3  # parts that a law may lose in one step
_SHORTER = 60  # of the simplest laws, at a time
_DIGITS = (1, 2, 3)
_LAST_STEPS = 4  # from constants that fit thousands of rows already
_SLACK = 1.5  # a family may be so much more complex than allowed: coefficients may turn out to be 1 or 0


def refined(task: Task, raw: Sequence[Expression], fitted: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """All candidates, and what becomes of the best of them with their constants fitted; losses on the working rows.

    `raw` are expressions without coefficients of their own, `fitted` candidates whose outer ones are solved already.
    """
    data = task.data
    found = [candidate for expression in raw if (candidate := data.candidate(simplify(expression))) is not None]
    found += fitted
    if not task.settings.constants or any(data.is_law(candidate) for candidate in found):
        return found
    best = [candidate.expression for candidate in best_first(fitted, data.target)[:_BEST]]
    most = _SLACK * task.settings.max_complexity
    families = [family for expression in raw if (family := with_coefficients(expression)).complexity <= most]
    found += _refined(task, [*families, *best], budget)
    return found + _tidied(task, found, budget)


def loosened(task: Task, expressions: Sequence[Expression], budget: Budget, *, first: bool = False) -> list[Candidate]:
    """What becomes of them with one more coefficient than they have, wherever there may be one: tanh(x), tanh(2.7*x).

    The heads solve outer coefficients; on data with noise inner ones are worth more than a further term. The `first`
    time there are more of them.
    """
    limit = _FIRST_VARIANTS if first else _VARIANTS
    most = task.settings.max_complexity
    variants: dict[Expression, None] = {}
    for expression in expressions:
        variants |= dict.fromkeys(family for family in with_one_more(expression) if family.complexity <= most)
    found = _refined(task, list(variants)[:limit], budget)
    return found + _tidied(task, found, budget)


def pruned(task: Task, expressions: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """What becomes of them without one of their parts, and of the best of these without another, and so on."""
    found: list[Candidate] = []
    known: set[Expression] = set()
    for _ in range(_PRUNED):
        shorter = (variant for expression in expressions for variant in with_one_less(expression))
        some = list(dict.fromkeys(islice((variant for variant in shorter if variant not in known), _SHORTER)))
        if not some or budget.over():
            break
        known.update(some)
        new = _fitted(task, some, budget)
        found += new
        front = Front.of(task.data.target).update(found, task.settings.max_complexity)
        expressions = [entry.expression for entry in front if entry in new]
    return found


def rounded(task: Task, found: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """Those that stand on a front of their own with constants of few digits: a factor that is nearly 1 falls out.

    Such a law may fit a little worse than its constants could make it, and is what people would write down. Where an
    exponent became whole or a term fell out, the constants that are left have other best values: both are handed back.
    """
    data = task.data
    variants: dict[Expression, bool] = {}  # and whether the form is a simpler one
    for entry in Front.of(data.target).update(found, task.settings.max_complexity):
        constants = free_constants(entry.expression, integers=False)
        for digits in _DIGITS if constants else ():
            values = [float(f"{value:.{digits}g}") for value in constants]
            variant = simplify(with_constants(entry.expression, values, integers=False))
            variants[variant] = variant.complexity < entry.complexity
    short = [candidate for expression in variants if (candidate := data.candidate(expression)) is not None]
    return short + _fitted(task, [expression for expression, simpler in variants.items() if simpler], budget)


def refitted(task: Task, front: Front, budget: Budget) -> Front:
    """The front with constants fitted on all rows, as far as the time goes; ends a search on a part of them."""
    found: list[Candidate] = []
    for entry in reversed(front):  # the best first
        if budget.over():
            break
        if not task.squared:
            target = task.target
            loss, seed = task.settings.loss, task.settings.seed
            found += refit([entry.expression], task.columns, target.y, target.weight, loss, budget=budget, seed=seed)
            continue
        results = refine(
            [entry.expression],
            task.columns,
            task.target.y,
            task.target.weight,
            starts=0,
            steps=_LAST_STEPS,
            integers=False,
            budget=budget,
            seed=task.settings.seed,
        )
        found += [Candidate(result.expression, result.loss) for result in results if result.loss < entry.loss]
    return front.update(found, task.settings.max_complexity)


def _refined(task: Task, families: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """With the best constants that further starts find, on the working rows."""
    data, target = task.data, task.data.target
    device, seed = task.settings.device, task.settings.seed
    results = refine(
        families, data.columns, target.y, target.weight, starts=_STARTS, budget=budget, device=device, seed=seed
    )
    fine = [result for result in results if result.loss < float("inf")]
    if any(operator.role is Role.STEP for operator in task.settings.operators):
        fine = [_determined(task, result, budget) for result in fine]
    return [Candidate(result.expression, result.loss) for result in fine]


def _determined(task: Task, law: Refined, budget: Budget) -> Refined:
    """The law, or what it is the limit of: a slope that no row shows would count as a constant found."""
    data = task.data
    seed = task.settings.seed
    step = as_step(law, data.columns, data.target.y, data.target.weight, budget=budget, seed=seed)
    return law if step is None or not task.allows(step.expression) else step


def _fitted(task: Task, expressions: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """With the best constants near their own, on the working rows; whole numbers stay."""
    data, target = task.data, task.data.target
    results = refine(
        expressions,
        data.columns,
        target.y,
        target.weight,
        starts=0,
        steps=_LAST_STEPS,
        integers=False,
        budget=budget,
        seed=task.settings.seed,
    )
    return [Candidate(result.expression, result.loss) for result in results if result.loss < float("inf")]


def _tidied(task: Task, found: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """Those that stand on a front of their own, with nice numbers for constants where the data allow them."""
    data = task.data
    front = Front.of(data.target).update(found, task.settings.max_complexity)
    tidied: list[Candidate] = []
    for candidate in reversed(front):  # the best first: the time may run out
        if budget.over():
            break
        target, seed = data.target, task.settings.seed
        result = tidy(candidate.expression, data.columns, target.y, target.weight, budget=budget, seed=seed)
        if result.loss < float("inf"):
            tidied.append(Candidate(result.expression, result.loss))
    return tidied
