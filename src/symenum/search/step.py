"""One step of a search: a stage of the heads on the raw variables, or a pass with tokens; then the front.

First the heads look for y itself, so that simple laws come out in the first second. After that passes with tokens
take turns with the heads on transforms of y, as long as there are transforms. What is new on the front is tried
without one of its parts, and later with further coefficients; before the first pass with tokens, the whole front is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symenum.core.budget import Budget
from symenum.enumeration.allocator import hand_back
from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.threads import single_threaded
from symenum.expressions import Constant, Expression, apply, same_function
from symenum.fitting import refine, with_coefficients
from symenum.front import Front
from symenum.heads.all_heads import Stage
from symenum.heads.head import LAST_FITS
from symenum.search.coefficients import loosened, pruned, rounded
from symenum.search.declared import with_names
from symenum.search.judging import best_under
from symenum.search.runners_up import near, runners_up
from symenum.search.state import State
from symenum.search.task import Task
from symenum.search.token_pass import token_pass
from symenum.selection import reward
from symenum.tokens import Praised

__all__ = ["start", "step", "stop_reason"]

_LINEAR = 30  # variables; beyond, the linear regression is left to the sums of terms
_QUICK = 4  # stages
TOKENS, COEFFICIENTS = "tokens", "coefficients"


def start(task: Task, seed: int) -> State:
    """The state before the first step, warmed up with the mean and the linear regression."""
    found = [*task.heads.constant(), *_of_required(task)]
    found += [guess for law in task.settings.guesses if (guess := task.data.candidate(law)) is not None]
    slots = task.data.stand_ins
    if task.settings.constants and len(slots) <= min(_LINEAR, task.data.target.rows - 2):
        linear = task.heads.goal.fit([Constant(1), *slots])
        found += [] if linear is None else [linear]
    front, _ = _updated(task, task.empty_front, found, Budget())
    return State(seed, 0, front)


def step(task: Task, state: State, budget: Budget) -> tuple[State, str]:
    """The state after one more step, and what the step was."""
    hand_back(task.settings.max_memory)
    task = task.weighed(state.front)
    work = _work(task, state.iteration)
    scored, generator = 0, state.generator
    with single_threaded():  # thousands of small operations; the scans have threads of their own
        if isinstance(work, Stage):
            found, name = work.run(budget), work.name
        elif work == COEFFICIENTS:
            worthy = [*reversed(state.front), *near(state.front, state.beside)]
            found, name = loosened(task, [each.expression for each in worthy], budget, first=True), work
        else:
            rng = np.random.default_rng([state.seed, state.iteration])
            if generator is None:
                generator = task.generator.start(task.material)
            passed = token_pass(task, generator, rng, budget)
            found, scored, generator, name = passed.found, passed.scored, passed.generator, work
        if task.settings.constants:
            found = [*found, *rounded(task, found, budget)]
        front, judged = _updated(task, state.front, found, budget)
        if task.settings.constants and not front.has_law() and not budget.over():
            front, _ = _updated(task, front, _variants(task, state, front, judged, budget), budget)
        if budget.over():  # the step was cut short: its reward says nothing
            generator = state.generator
        elif work == TOKENS:
            generator = task.generator.learn(
                task.material, generator, _best_reward(task, judged), _praised(task, front)
            )
    beside = runners_up([*state.beside, *judged]) if _heads_at_work(task, state.iteration) else ()
    return State(state.seed, state.iteration + 1, front, generator, state.scored + scored, state.elapsed, beside), name


def _variants(task: Task, state: State, front: Front, found: list[Candidate], budget: Budget) -> list[Candidate]:
    """What is new on the front with a part less; in passes with tokens it, and what nearly is, with a coefficient more.

    The heads' finds wait for the step in which all of them get their coefficients. The first stages are the quickest,
    and most laws without noise are found there: parts are taken out after them.
    """
    if state.iteration < _QUICK:
        return []
    new = [entry for entry in front if state.iteration == _QUICK or entry not in state.front.entries]
    variants = pruned(task, [entry.expression for entry in new], budget)
    if _heads_at_work(task, state.iteration):
        return variants
    worthy = [*new, *near(front, runners_up(found))]
    return variants + loosened(task, [each.expression for each in worthy], budget)


def _heads_at_work(task: Task, iteration: int) -> bool:
    """Whether the heads look for y itself in that step."""
    return iteration < len(task.stages[0])


def stop_reason(task: Task, front: Front) -> str | None:
    """Why the search is at its end, if it is: the law, the loss that was asked for, or the probe was found."""
    settings = task.settings
    if settings.probe is not None and any(same_function(entry.expression, settings.probe) for entry in front):
        return "the probe expression was found"
    if settings.stop_loss is not None and front and front[-1].loss <= settings.stop_loss:
        return f"the loss is at most {settings.stop_loss:g}"
    if front.has_law():
        return "a law that equals the data up to rounding was found"
    return None


def _work(task: Task, iteration: int) -> Stage | str:
    """What that step does; the same for every run."""
    first, later = task.stages
    if _heads_at_work(task, iteration):
        return first[iteration]
    if task.settings.constants:
        if iteration == len(first):
            return COEFFICIENTS
        iteration -= 1
    turn, tokens = divmod(iteration - len(first) + 1, 2)
    return later[turn - 1] if not tokens and turn <= len(later) else TOKENS


def _updated(task: Task, front: Front, found: list[Candidate], budget: Budget) -> tuple[Front, list[Candidate]]:
    """The front with what was found, each with its loss on all rows; and the finds, with that on the working rows."""
    settings = task.settings
    columns, most = task.data.columns, settings.max_complexity
    found = [candidate for candidate in found if task.allows(candidate.expression)]
    if settings.declared:
        target = task.data.target
        found = with_names(found, settings.declared, columns, target, Front.of(target), task.allows, settings.seed)
    if not task.squared:
        fit = settings.constants
        working, empty, seed = task.working, task.working_front, settings.seed
        found = best_under(settings.loss, found, columns, working, empty, most, budget, fit=fit, seed=seed)
    if not task.partial:
        return front.update(found, most), found
    judged: list[Candidate] = []
    # Judging all would cost more than finding them: only those that can stand on the front, the best first.
    for at, candidate in enumerate(reversed(task.working_front.update(found, most))):
        if at >= LAST_FITS and budget.over():
            break
        whole = task.judge(candidate)
        judged += [] if whole is None else [whole]
    return front.update(judged, most), found


def _of_required(task: Task) -> list[Candidate]:
    """A sum and a product of the variables that every law must have: something to begin with."""
    required = task.prior.must_hold()
    if not required:
        return []
    forms = [_joined(name, required) for name in ("add", "mul")]
    if not task.settings.constants:
        return [candidate for form in forms if (candidate := task.data.candidate(form)) is not None]
    forms = [with_coefficients(form) for form in forms]
    target = task.data.target
    results = refine(forms, task.data.columns, target.y, target.weight, starts=0, seed=task.settings.seed)
    return [Candidate(result.expression, result.loss) for result in results if result.loss < float("inf")]


def _joined(operator: str, parts: Sequence[Expression]) -> Expression:
    result = parts[0]
    for part in parts[1:]:
        result = apply(operator, result, part)
    return result


def _best_reward(task: Task, found: list[Candidate]) -> float:
    """The best of those that could stand on a front."""
    front = task.working_front.update(found, task.settings.max_complexity)
    return max((_reward(task, candidate) for candidate in front), default=0.0)


def _praised(task: Task, front: Front) -> list[Praised]:
    """The members of the front, and the guesses, whose parts are tokens whether they stand on it or not."""
    known = {entry.expression for entry in front}
    guesses = [task.data.candidate(law) for law in task.settings.guesses if law not in known]
    members = [*front, *(guess for guess in guesses if guess is not None)]
    return [Praised(member.expression, _reward(task, member)) for member in members]


def _reward(task: Task, candidate: Candidate) -> float:
    """The paper's reward with losses in units of the variance of y, so that units do not matter to the generator."""
    return reward(candidate.loss / task.scale, candidate.complexity, task.settings.discount)
