"""The constants of what a step has found: inserted, fitted on the working rows, taken out, and written in few digits.

All losses are those on the working rows, but for `refitted`, which ends a search on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from symenum.core.budget import Budget
from symenum.expressions import Expression, simplify
from symenum.expressions.candidate import Candidate
from symenum.fitting import (
    Refined,
    free_constants,
    limit_of_law,
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

__all__ = ["fitted", "loosened", "pruned", "refined", "refitted", "rounded"]

_DIGITS = (1, 2, 3)  # significant digits that people write constants in
_FIRST_VARIANTS = 2400  # with one more coefficient, in the step after the heads' stages; by benchmarks/breadth.py

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_HEAD_FINDS = 10  # finds of the heads, the best first, whose inner constants are fitted; the outer ones are already
_STARTS = 2  # random starts of a fit, beside the constants that the family has
_VARIANTS = 150  # laws with one more coefficient, in any other step
_PRUNING_ROUNDS = 3  # parts that a law may lose in one step
_SHORTER_LAWS = 60  # laws with a part less that are fitted in one round
_REFIT_STEPS = 4  # Levenberg-Marquardt steps from constants that fit already
_COMPLEXITY_SLACK = 1.5  # times `max_complexity` that a family may have: coefficients may turn out to be 1 or 0


def refined(
    task: Task, raw: Sequence[Expression], fitted: Sequence[Candidate], front: Front, budget: Budget
) -> list[Candidate]:
    """All of `raw` and `fitted` as they are, and those of them that are worth it with their constants fitted.

    `raw`: expressions without coefficients of their own; all of them get some. `fitted`: candidates of the heads, whose
    outer coefficients are solved already; the ten best are fitted. Nothing is fitted where one of them is the law.
    Nice numbers for constants are looked for in those that would stand on the `front`.
    """
    data = task.data
    found = [candidate for expression in raw if (candidate := data.candidate(simplify(expression))) is not None]
    found += fitted
    if not task.settings.constants or any(data.is_law(candidate) for candidate in found):
        return found
    best = [candidate.expression for candidate in best_first(fitted, data.target)[:_HEAD_FINDS]]
    limit = _COMPLEXITY_SLACK * task.settings.max_complexity
    families = [family for expression in raw if (family := with_coefficients(expression)).complexity <= limit]
    found += _refined(task, [*families, *best], budget)
    return found + _tidied(task, found, budget, front)


def loosened(task: Task, expressions: Sequence[Expression], budget: Budget, *, first: bool = False) -> list[Candidate]:
    """The laws with one more fitted coefficient, at each place that may have one: tanh(x) becomes tanh(2.7*x).

    The heads solve outer coefficients; on data with noise inner ones are worth more than a further term. At most 150
    such laws are fitted, the `first` time 2400.
    """
    limit = _FIRST_VARIANTS if first else _VARIANTS
    max_complexity = task.settings.max_complexity
    variants: dict[Expression, None] = {}
    for expression in expressions:
        variants |= dict.fromkeys(family for family in with_one_more(expression) if family.complexity <= max_complexity)
    found = _refined(task, list(variants)[:limit], budget)
    return found + _tidied(task, found, budget)


def pruned(task: Task, expressions: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """The laws without one of their parts, fitted; then the best of these without another part: three rounds."""
    found: list[Candidate] = []
    known: set[Expression] = set()
    for _ in range(_PRUNING_ROUNDS):
        shorter = (variant for expression in expressions for variant in with_one_less(expression))
        new_laws = list(dict.fromkeys(islice((variant for variant in shorter if variant not in known), _SHORTER_LAWS)))
        if not new_laws or budget.over():
            break
        known.update(new_laws)
        new = fitted(task, new_laws, budget)
        found += new
        front = Front.of(task.data.target).update(found, task.settings.max_complexity)
        expressions = [entry.expression for entry in front if entry in new]
    return found


def rounded(task: Task, found: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """The finds that stand on a front of their own, with constants of one, two and three digits.

    Such a law fits a little worse and is what people would write; a factor that is nearly 1 falls out. Where the law
    became simpler (an exponent is whole, a term is gone), its other constants are fitted again, and both come back.
    """
    data = task.data
    variants: dict[Expression, bool] = {}  # rounded law -> whether it is simpler than before
    for entry in Front.of(data.target).update(found, task.settings.max_complexity):
        constants = free_constants(entry.expression, integers=False)
        for digits in _DIGITS if constants else ():
            values = [float(f"{value:.{digits}g}") for value in constants]
            variant = simplify(with_constants(entry.expression, values, integers=False))
            variants[variant] = variant.complexity < entry.complexity
    short = [candidate for expression in variants if (candidate := data.candidate(expression)) is not None]
    return short + fitted(task, [expression for expression, simpler in variants.items() if simpler], budget)


def refitted(task: Task, front: Front, budget: Budget) -> Front:
    """The front with constants fitted on all rows, the best law first, until the budget is over.

    For the end of a search that worked on a part of the rows.
    """
    found: list[Candidate] = []
    for entry in reversed(front):
        if budget.over():
            break
        if not task.squared:
            target = task.target
            loss, seed = task.settings.loss, task.settings.seed
            found += refit(
                [entry.expression],
                task.columns,
                target.y,
                target.weight,
                loss,
                known_losses=[entry.loss],
                budget=budget,
                seed=seed,
            )
            continue
        results = refine(
            [entry.expression],
            task.columns,
            task.target.y,
            task.target.weight,
            starts=0,
            steps=_REFIT_STEPS,
            integers=False,
            budget=budget,
            seed=task.settings.seed,
        )
        found += [Candidate(result.expression, result.loss) for result in results if result.loss < entry.loss]
    return front.update(found, task.settings.max_complexity)


def _refined(task: Task, families: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """The families with the best constants that several starts find; those without a finite loss are left out."""
    data, target = task.data, task.data.target
    device, seed = task.settings.device, task.settings.seed
    results = refine(
        families, data.columns, target.y, target.weight, starts=_STARTS, budget=budget, device=device, seed=seed
    )
    finite = [result for result in results if result.loss < float("inf")]
    if any(operator.role is Role.STEP for operator in task.settings.operators):
        finite = [_determined(task, result, budget) for result in finite]
    return [Candidate(result.expression, result.loss) for result in finite]


def _determined(task: Task, law: Refined, budget: Budget) -> Refined:
    """The law, or the step function that it is the limit of: a slope that no row shows is not a constant found."""
    data = task.data
    seed = task.settings.seed
    step = limit_of_law(law, data.columns, data.target.y, data.target.weight, budget=budget, seed=seed)
    return law if step is None or not task.allows(step.expression) else step


def fitted(task: Task, expressions: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """The expressions with the best constants near their own; whole numbers stay."""
    data, target = task.data, task.data.target
    results = refine(
        expressions,
        data.columns,
        target.y,
        target.weight,
        starts=0,
        steps=_REFIT_STEPS,
        integers=False,
        budget=budget,
        seed=task.settings.seed,
    )
    return [Candidate(result.expression, result.loss) for result in results if result.loss < float("inf")]


def _tidied(task: Task, found: Sequence[Candidate], budget: Budget, known: Front | None = None) -> list[Candidate]:
    """The finds that stand on a front of their own, with nice numbers for constants where the data allow them.

    With a front that is `known`, only those that stand on it too.
    """
    data = task.data
    best = Front.of(data.target).update(found, task.settings.max_complexity).entries
    if known is not None:
        joint = known.update(best, task.settings.max_complexity).entries
        best = tuple(candidate for candidate in best if candidate in joint)
    tidied: list[Candidate] = []
    for candidate in reversed(best):  # the best first: the time may run out
        if budget.over():
            break
        target, seed = data.target, task.settings.seed
        result = tidy(candidate.expression, data.columns, target.y, target.weight, budget=budget, seed=seed)
        if result.loss < float("inf"):
            tidied.append(Candidate(result.expression, result.loss))
    return tidied
