"""One step of a search: a stage of the heads on the raw variables, or a pass with tokens; then the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.core.memory import hand_back
from symenum.core.threads import single_threaded
from symenum.engine.shortlist import Shortlist
from symenum.expressions import Constant, Expression, Variable, apply, same_function
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine, with_coefficients
from symenum.front import Front
from symenum.heads.head import LAST_FITS
from symenum.heads.response import make_data
from symenum.heads.stages import AllHeads, Stage
from symenum.search.front_update import best_under, near, runners_up
from symenum.search.named_constants import with_names
from symenum.search.polish import loosened, pruned, refined, rounded
from symenum.search.problem import Task
from symenum.selection import reward
from symenum.tokens import ScoredExpression
from symenum.tokens.trees import random_constant

__all__ = ["Passed", "State", "StepReport", "start", "step", "stop_reason", "token_pass"]


# --------------------------------------------------------------------------------------------------------------------
# Where a search stands, and what one step reports. Plain values: a search can be stopped, kept and taken up again.


@dataclass(frozen=True)
class State:
    """All that a search knows after `iteration` steps; random numbers follow from seed and iteration."""

    seed: int
    iteration: int
    front: Front
    generator: object = None  # the token generator's own state, once it has begun
    scored: int = 0
    elapsed: float = 0.0
    beside: tuple[Candidate, ...] = ()  # what the heads found that nearly stands on the front, until it is looked into


@dataclass(frozen=True)
class StepReport:
    """What callbacks are told after each step. `scored` and `rate` count candidates of the network's passes."""

    iteration: int
    stage: str
    seconds: float
    elapsed: float
    time_left: float | None
    scored: int
    rate: float
    front: Front
    message: str


# --------------------------------------------------------------------------------------------------------------------
# One pass with tokens (the paper's Algorithm 2, lines 1 to 4): slots, network, heads, coefficients.


_NETWORK_ROWS = 32  # a new draw in every pass, as in the paper; what is found is judged on all
_HEAD_ROWS = 256


@dataclass(frozen=True)
class Passed:
    """What was found (losses on the working rows), how many candidates were scored, and the generator's new state."""

    found: list[Candidate]
    scored: int
    generator: object


def token_pass(task: Task, generator: object, rng: np.random.Generator, budget: Budget) -> Passed:
    """Fill the slots, scan the network and the quick heads on them, and fit the coefficients of what comes out."""
    try:
        budget.check()
        slots, generator = _fill(task, generator, rng, budget)
    except CutShortError:
        return Passed([], 0, generator)
    values = torch.stack([task.data.evaluate(slot) for slot in slots])
    shortlist = _network(task, slots, values, rng, budget)
    found = [candidate.expression for candidate in shortlist if task.prior.allows(candidate.expression)]
    found = found[: task.settings.top_k]
    by_heads = _heads(task, slots, values, budget) if task.settings.constants else []
    return Passed(refined(task, found, by_heads, budget), shortlist.scored, generator)


def _fill(task: Task, generator: object, rng: np.random.Generator, budget: Budget) -> tuple[list[Expression], object]:
    """Slots for the network: variables in random order, a constant in every second pass or so, tokens."""
    plan, settings = task.plan, task.settings
    names = list(task.data.columns)
    chosen = rng.permutation(len(names))[: plan.variables]
    slots: list[Expression] = [Variable(names[i]) for i in chosen]
    if settings.constants and plan.inputs - len(slots) > 1 and rng.random() < 0.5:
        slots.append(random_constant(task.token_context, rng))
    wanted = plan.inputs - len(slots)
    asked = task.fetched(wanted) if task.prior.forbids_parts else wanted
    tokens, generator = task.generator.propose(task.token_context, generator, asked, rng, budget)
    allowed = [token for token in tokens if task.prior.allows_part(token)][:wanted]
    # The generator has seen a part of the rows only.
    slots += [token for token in allowed if bool(torch.isfinite(task.data.evaluate(token)).all())]
    filling = (Constant(float(value)) for value in range(1, plan.inputs + 1))
    while len(slots) < plan.inputs:
        filler = next(filling)
        if filler not in slots:
            slots.append(filler)
    return slots, generator


def _network(
    task: Task, slots: Sequence[Expression], values: Tensor, rng: np.random.Generator, budget: Budget
) -> Shortlist:
    """The network's best on some of the rows, for slot values (slots, rows)."""
    target = task.data.target
    rows = torch.arange(target.rows)
    if target.rows > _NETWORK_ROWS:
        rows = torch.from_numpy(np.sort(rng.choice(target.rows, _NETWORK_ROWS, replace=False)))
    part = target.at(rows)
    return task.network.search(
        values[:, rows].T,
        part.y,
        task.fetched(task.settings.top_k),
        part.weight,
        slots=slots,
        stop=budget.over,
        threads=task.settings.threads,
        device=task.settings.device,
        seed=task.settings.seed,
    )


def _heads(task: Task, slots: Sequence[Expression], values: Tensor, budget: Budget) -> list[Candidate]:
    varying = [i for i, slot in enumerate(slots) if not isinstance(slot, Constant)]
    data = make_data([slots[i] for i in varying], values[varying], task.data.target, _HEAD_ROWS, task.settings.seed)
    settings = task.settings
    k = task.fetched(min(10, settings.top_k))
    heads = AllHeads(
        data,
        settings.operators,
        k,
        settings.max_memory,
        settings.prior,
        device=settings.device,
        leave_out=settings.leave_out,
    )
    found: list[Candidate] = []
    for stage in heads.quick():
        found += stage.run(budget)
        if budget.over() or any(data.is_law(candidate) for candidate in found):
            break
    return found


# --------------------------------------------------------------------------------------------------------------------
# One step of a search: a stage of the heads on the raw variables, or a pass with tokens; then the front.
#
# First the heads look for y itself, so that simple laws come out in the first second. After that passes with tokens
# take turns with the heads on transforms of y, as long as there are transforms. What is new on the front is tried
# without one of its parts, and later with further coefficients; before the first pass with tokens, the whole front
# is.


_LINEAR = 30  # variables; beyond, the linear regression is left to the sums of terms
_QUICK = 4  # stages
TOKENS, COEFFICIENTS = "tokens", "coefficients"


def start(task: Task, seed: int) -> State:
    """The state before the first step, warmed up with the mean and the linear regression."""
    found = [*task.heads.constant(), *_of_required(task)]
    found += [guess for law in task.settings.guesses if (guess := task.data.candidate(law)) is not None]
    slots = task.data.stand_ins
    if task.settings.constants and len(slots) <= min(_LINEAR, task.data.target.rows - 2):
        linear = task.heads.response.fit([Constant(1), *slots])
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
                generator = task.generator.start(task.token_context)
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
                task.token_context, generator, _best_reward(task, judged), _praised(task, front)
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


def _praised(task: Task, front: Front) -> list[ScoredExpression]:
    """The members of the front, and the guesses, whose parts are tokens whether they stand on it or not."""
    known = {entry.expression for entry in front}
    guesses = [task.data.candidate(law) for law in task.settings.guesses if law not in known]
    members = [*front, *(guess for guess in guesses if guess is not None)]
    return [ScoredExpression(member.expression, _reward(task, member)) for member in members]


def _reward(task: Task, candidate: Candidate) -> float:
    """The paper's reward with losses in units of the variance of y, so that units do not matter to the generator."""
    return reward(candidate.loss / task.scale, candidate.complexity, task.settings.discount)
