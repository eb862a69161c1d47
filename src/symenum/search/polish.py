"""The constants of what a step has found: inserted, fitted on the working rows, taken out, and written in few digits.

All losses are those on the working rows, but for `refitted`, which ends a search on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, permutations

from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.exactness import EXACTNESS
from symenum.expressions import Constant, Expression, Variable, apply, simplify, substitute, variables
from symenum.expressions.algebra import with_numbers_in_sums
from symenum.expressions.candidate import Candidate
from symenum.fitting import (
    free_constants,
    limit_of_law,
    limit_of_tiny_arguments,
    refine,
    standard_errors,
    tidy,
    with_coefficients,
    with_constants,
    with_one_less,
    with_one_more,
)
from symenum.fitting.fit_under_loss import refit, with_loss
from symenum.fitting.one_wave import with_one_wave
from symenum.fitting.round_exponents import with_round_exponents
from symenum.front import Front
from symenum.heads.response import best_first
from symenum.operators.traits import Role
from symenum.search.problem import Task

__all__ = [
    "fitted",
    "in_few_digits",
    "in_supported_digits",
    "limit_in_disguise",
    "loosened",
    "pruned",
    "refined",
    "refitted",
    "rounded",
    "simplest_exact",
    "with_right_units",
]

_DIGITS = (1, 2, 3)  # significant digits that people write constants in
_FIRST_VARIANTS = 2400  # with one more coefficient, in the step after the heads' stages; by benchmarks/breadth.py

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_HEAD_FINDS = 10  # finds of the heads, the best first, whose inner constants are fitted; the outer ones are already
_STARTS = 2  # random starts of a fit, beside the constants that the family has
_VARIANTS = 150  # laws with one more coefficient, in any other step
_PRUNING_ROUNDS = 3  # parts that a law may lose in one step
_SHORTER_LAWS = 60  # laws with a part less that are fitted in one round
_REFIT_STEPS = 4  # Levenberg-Marquardt steps from constants that fit already
_DIGITS_COST = 0.01  # growth of the loss by shorter constants, in units of loss/rows
_MAX_DIGITS = 17  # significant digits of a double
_CHANCE_WINDOW = 1.5  # standard errors that a constant may move to a number of few digits
_CHANCE = 0.05  # largest chance that such a number lies there without a reason, by definition
_EXACT_ROUNDS = 4  # of making an exact law simpler; each needs a simpler one from the round before
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
    limit, complexity_of = _COMPLEXITY_SLACK * task.settings.max_complexity, task.empty_front.complexity_of
    families = [family for expression in raw if complexity_of(family := with_coefficients(expression)) <= limit]
    found += _refined(task, [*families, *best], budget)
    return found + tidied(task, found, budget, front)


def loosened(task: Task, expressions: Sequence[Expression], budget: Budget, *, first: bool = False) -> list[Candidate]:
    """The laws with one more fitted coefficient, at each place that may have one: tanh(x) becomes tanh(2.7*x).

    The heads solve outer coefficients; on data with noise inner ones are worth more than a further term. At most 150
    such laws are fitted, the `first` time 2400.
    """
    limit = _FIRST_VARIANTS if first else _VARIANTS
    max_complexity, complexity_of = task.settings.max_complexity, task.empty_front.complexity_of
    variants: dict[Expression, None] = {}
    for expression in expressions:
        variants |= dict.fromkeys(
            family for family in with_one_more(expression) if complexity_of(family) <= max_complexity
        )
    found = _refined(task, list(variants)[:limit], budget)
    return found + tidied(task, found, budget)


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
        new = [task.empty_front.in_its_form(law) for law in fitted(task, new_laws, budget)]
        found += new
        front = Front.of(task.data.target, weights=task.settings.weights).update(found, task.settings.max_complexity)
        expressions = [entry.expression for entry in front if entry in new]
    return found


def rounded(task: Task, found: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """The finds that stand on a front of their own, with constants of one, two and three digits, round exponents, and
    two waves as one.

    Such a law fits a little worse and is what people would write; a factor that is nearly 1 falls out. Where the law
    became simpler (an exponent is whole, a term is gone), its other constants are fitted again, and both come back.
    """
    data = task.data
    variants: dict[Expression, bool] = {}  # rounded law -> whether it is simpler than before
    for entry in Front.of(data.target, weights=task.settings.weights).update(found, task.settings.max_complexity):
        constants = free_constants(entry.expression, integers=False)
        for digits in _DIGITS if constants else ():
            values = [float(f"{value:.{digits}g}") for value in constants]
            variant = simplify(with_constants(entry.expression, values, integers=False))
            variants[variant] = variant.complexity < entry.expression.complexity
        shorter = (*with_round_exponents(entry.expression), *with_one_wave(entry.expression))
        variants |= dict.fromkeys(shorter, True)
    short = [candidate for expression in variants if (candidate := data.candidate(expression)) is not None]
    return short + fitted(task, [expression for expression, simpler in variants.items() if simpler], budget)


def simplest_exact(task: Task, laws: Sequence[Candidate], budget: Budget) -> list[Candidate]:
    """Laws that may be simpler than these, which equal y up to rounding, and just as exact.

    Tried are: other columns that say the same, one part less, two waves as one, numbers multiplied into sums, and nice
    numbers for constants; each on what the others have brought, as long as a simpler exact law comes of it.
    """
    floor = task.working_front.floor
    found: list[Candidate] = []
    exact = list(laws)
    for _ in range(_EXACT_ROUNDS):
        expressions = [law.expression for law in exact]
        others = [shorter for law in expressions for shorter in (*with_one_wave(law), with_numbers_in_sums(law))]
        others = [law for law in others if law not in expressions]
        new = pruned(task, [*expressions, *fewer_columns(task, expressions)], budget) + fitted(task, others, budget)
        new += tidied(task, new, budget) + rounded(task, new, budget)
        found += new
        simpler = [law for law in new if law.loss <= floor and law.complexity < min(one.complexity for one in exact)]
        if not simpler or budget.over():
            break
        exact = simpler
    return found + tidied(task, exact, budget)


def fewer_columns(task: Task, laws: Sequence[Expression]) -> list[Expression]:
    """The laws with one column in place of another that is a multiple of it: of L_m and L_cm one says all."""
    columns = task.data.columns
    variants: dict[Expression, None] = {}
    for law in laws:
        for kept, dropped in permutations(variables(law), 2):
            ratio = _ratio(columns[dropped], columns[kept])
            if ratio is not None:
                multiple = apply("mul", Constant(ratio), Variable(kept))
                variants[simplify(substitute(law, {dropped: multiple}))] = None
    return list(variants)


def _ratio(one: Tensor, other: Tensor) -> float | None:
    """The number that `one` is a multiple of `other` by, on all rows; both (rows,) float64."""
    ratios = one / other
    value = float(ratios.median())
    same = (ratios - value).abs() <= EXACTNESS.noise_free * abs(value)
    return value if math.isfinite(value) and bool(same.all()) else None


def limit_in_disguise(task: Task, law: Candidate, budget: Budget) -> Candidate | None:
    """The limit that this law is in disguise, on the working rows; None where its constants are determined.

    3e6*sin(1e-7*x) is 0.3*x; and where sign is an operator, tanh(2e5*x) is sign(x). Under another loss than the mean
    square error the limit is found by least squares, and judged by the loss.
    """
    settings, data = task.settings, task.data
    if settings.sanity == "off" or not settings.constants or not free_constants(law.expression, integers=False):
        return None
    target, columns = data.target, data.columns
    (refined,) = refine([law.expression], columns, target.y, target.weight, starts=0, steps=0)
    roles = {operator.role for operator in settings.operators}
    limit = limit_of_tiny_arguments(
        refined,
        columns,
        target.y,
        target.weight,
        budget=budget,
        seed=settings.seed,
        exponentials=Role.EXPONENTIAL in roles,
    )
    if limit is None and Role.STEP in roles:
        limit = limit_of_law(refined, columns, target.y, target.weight, budget=budget, seed=settings.seed)
    if limit is None or not task.allows(limit.expression):
        return None
    if task.squared:
        return Candidate(limit.expression, limit.loss)
    return with_loss(limit.expression, columns, task.working.y, task.working.weight, settings.loss)


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
    policy = replace(task.policy, shape=None)  # the front of a search may hold laws that break it, see `keeping_shape`
    sane = [law for law in found if policy.reason(law.expression, exact=law.loss <= front.floor) is None]
    return front.update(sane, task.settings.max_complexity)


def in_supported_digits(task: Task, front: Front, budget: Budget = NO_LIMIT) -> Front:
    """The front with constants in the digits that the data support: two of the first digits of their standard error.

    A constant that is so near to a number of few digits that this is hardly chance becomes that number: 0.5 for 0.50007
    with an error of 0.0001. Where constants depend on each other, as those of a line far from zero, more digits are
    needed: one more at a time, until the loss grows by no more than a hundredth of what one constant takes off it by
    chance. The best laws come first; those that are left when the time is over keep all their digits.
    """
    if task.settings.sanity == "off":
        return front
    written = [entry if budget.over() else in_few_digits(task, entry, front.floor) for entry in reversed(front)]
    return replace(front, entries=()).update(written)


def in_few_digits(task: Task, law: Candidate, floor: float) -> Candidate:
    """A law with its loss on all rows, and its constants in the digits that the data support.

    How much the loss grows by fewer digits is told by the working rows.
    """
    constants = free_constants(law.expression, integers=False)
    if not constants:
        return law
    columns, working, loss = task.data.columns, task.working, task.settings.loss
    on_working = standard_errors(law.expression, columns, working.y, working.weight, integers=False)
    fewer_rows = math.sqrt(working.rows / task.target.rows)  # errors fall with the number of rows
    errors = [fewer_rows * error for error in on_working]
    digits = [_digits(value, error) for value, error in zip(constants, errors, strict=True)]
    few = [_likely_digits(value, error) for value, error in zip(constants, errors, strict=True)]
    exact = law.loss <= floor

    def loss_of(expression: Expression) -> float:
        return with_loss(expression, columns, working.y, working.weight, loss).loss

    before = loss_of(law.expression)
    if not exact and any(few):
        likely = [number or most for number, most in zip(few, digits, strict=True)]
        short = _in_digits(law.expression, constants, likely)
        if loss_of(short) <= before * (1 + _CHANCE_WINDOW**2 * sum(map(bool, few)) / task.target.rows):
            return _on_all_rows(task, short)
    allowed = floor if exact else before * (1 + _DIGITS_COST / task.target.rows)
    for more in range(_MAX_DIGITS):
        short = _in_digits(law.expression, constants, [number + more for number in digits])
        if loss_of(short) <= allowed:
            return _on_all_rows(task, short)
    return law


def _on_all_rows(task: Task, law: Expression) -> Candidate:
    return with_loss(law, task.columns, task.target.y, task.target.weight, task.settings.loss)


def _in_digits(law: Expression, constants: Sequence[float], digits: Sequence[int]) -> Expression:
    """The law with so many significant digits of each constant."""
    values = [float(f"{value:.{min(d, _MAX_DIGITS)}g}") for value, d in zip(constants, digits, strict=True)]
    return with_constants(law, values, integers=False)


def _likely_digits(value: float, error: float) -> int:
    """The fewest digits of a number that the constant is likely to be; 0 where there is none.

    It lies within 1.5 standard errors of the constant, and numbers of so few digits are so far apart that one of them
    would lie there by chance in one of 20 cases at most.
    """
    if not (0 < error < math.inf) or value == 0:
        return 0
    for digits in range(1, _MAX_DIGITS):
        step = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
        if 2 * _CHANCE_WINDOW * error > _CHANCE * step:
            return 0
        if abs(float(f"{value:.{digits}g}") - value) <= _CHANCE_WINDOW * error:
            return digits
    return 0


def _digits(value: float, error: float) -> int:
    """The significant digits of a constant down to the second one of its standard error; two where that is unknown."""
    if not (0 < error < math.inf) or value == 0:
        return 2
    return max(2, min(_MAX_DIGITS, math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2))


def _refined(task: Task, families: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """The families with the best constants that several starts find; those without a finite loss are left out."""
    data, target = task.data, task.data.target
    device, seed = task.settings.device, task.settings.seed
    families = with_right_units(task, families)
    results = refine(
        families, data.columns, target.y, target.weight, starts=_STARTS, budget=budget, device=device, seed=seed
    )
    return [Candidate(result.expression, result.loss) for result in results if result.loss < float("inf")]


def fitted(task: Task, expressions: Sequence[Expression], budget: Budget) -> list[Candidate]:
    """The expressions with the best constants near their own; whole numbers stay."""
    data, target = task.data, task.data.target
    expressions = with_right_units(task, expressions)
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


def with_right_units(task: Task, laws: Sequence[Expression]) -> Sequence[Expression]:
    """The laws that have the unit of the target, without numbers that are added to something with a unit."""
    units = task.prior.units
    if units is None:
        return laws
    return [law for law in dict.fromkeys(map(units.repaired, laws)) if units.allows(law)]


def tidied(task: Task, found: Sequence[Candidate], budget: Budget, known: Front | None = None) -> list[Candidate]:
    """The finds that stand on a front of their own, with nice numbers for constants where the data allow them.

    With a front that is `known`, only those that stand on it too.
    """
    data = task.data
    best = Front.of(data.target, weights=task.settings.weights).update(found, task.settings.max_complexity).entries
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
