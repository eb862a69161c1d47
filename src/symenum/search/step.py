"""One step of a search: a stage of the heads on the raw variables, or a pass with tokens; then the front.

First the heads look for y itself, so that simple laws come out in the first second. Then all that they found gets one
more coefficient. After that passes with tokens (the paper's Algorithm 2) take turns with the heads on transforms of y,
as long as there are transforms. New laws on the front are tried without one of their parts.

A state and a report are plain values: a search can be stopped, written down and taken up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.core.memory import return_freed_memory
from symenum.core.threads import single_threaded
from symenum.engine.shortlist import Shortlist
from symenum.expressions import Constant, Expression, Variable, apply, same_function
from symenum.expressions.candidate import Candidate
from symenum.fitting import refine, with_coefficients
from symenum.front import Front
from symenum.heads.head import LAST_FITS
from symenum.heads.response import make_data
from symenum.heads.stages import Stage
from symenum.search.front_update import best_under, near, runners_up
from symenum.search.named_constants import with_names
from symenum.search.polish import loosened, pruned, refined, rounded
from symenum.search.problem import Task
from symenum.selection import reward
from symenum.tokens import ScoredExpression
from symenum.tokens.trees import random_constant

__all__ = ["COEFFICIENTS", "TOKENS", "Passed", "State", "StepReport", "start", "step", "stop_reason", "token_pass"]

TOKENS, COEFFICIENTS = "tokens", "coefficients"
"""Names of the steps that are no stage of the heads."""

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_NETWORK_ROWS = 32  # rows of the network, drawn anew in every pass as in the paper, which takes 20 to 200
_HEAD_ROWS = 256  # rows that the heads scan in a pass with tokens
_CONSTANT_SHARE = 0.5  # chance that a pass has a constant among its slots, where there is room for one
_MAX_LINEAR = 30  # variables; with more, the linear regression is left to the sums of terms
_QUICK_STAGES = 4  # stages, the quickest, before laws lose parts: most laws without noise are found by then


@dataclass(frozen=True)
class State:
    """All that a search knows after `iteration` steps; random numbers follow from seed and iteration."""

    seed: int
    iteration: int
    front: Front
    generator: object = None  # the token generator's own state, once it has begun
    scored: int = 0  # candidates of the network's passes
    elapsed: float = 0.0  # seconds
    runners_up: tuple[Candidate, ...] = ()  # finds of the heads that nearly stand on the front, until `COEFFICIENTS`


@dataclass(frozen=True)
class StepReport:
    """What callbacks are told after each step.

    Times in seconds; `time_left` is None without a time limit. `scored` counts the candidates of the network's passes,
    `rate` is that per second. `message`: the plan of the passes.
    """

    iteration: int
    stage: str
    seconds: float
    elapsed: float
    time_left: float | None
    scored: int
    rate: float
    front: Front
    message: str


def start(task: Task, seed: int) -> State:
    """The state before the first step; its front holds the mean of y, the linear regression and the user's guesses."""
    found = [*task.heads.constant(), *_of_required(task)]
    found += [guess for law in task.settings.guesses if (guess := task.data.candidate(law)) is not None]
    slots = task.data.stand_ins
    if task.settings.constants and len(slots) <= min(_MAX_LINEAR, task.data.target.rows - 2):
        linear = task.heads.response.fit([Constant(1), *slots])
        found += [] if linear is None else [linear]
    front, _ = _updated(task, task.empty_front, found, Budget())
    return State(seed, 0, front)


def step(task: Task, state: State, budget: Budget) -> tuple[State, str]:
    """The state after one more step, and the step's name: a stage of the heads, TOKENS or COEFFICIENTS."""
    return_freed_memory(task.settings.max_memory)
    task = task.reweighted(state.front)
    work = _work(task, state.iteration)
    scored, generator = 0, state.generator
    with single_threaded():  # thousands of small operations; the scans have threads of their own
        if isinstance(work, Stage):
            found, name = work.run(budget), work.name
        elif work == COEFFICIENTS:
            laws = [*reversed(state.front), *near(state.front, state.runners_up)]
            found, name = loosened(task, [law.expression for law in laws], budget, first=True), work
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
                task.token_context, generator, _best_reward(task, judged), _scored_members(task, front)
            )
    waiting = runners_up([*state.runners_up, *judged]) if _heads_at_work(task, state.iteration) else ()
    return State(state.seed, state.iteration + 1, front, generator, state.scored + scored, state.elapsed, waiting), name


def _variants(task: Task, state: State, front: Front, found: list[Candidate], budget: Budget) -> list[Candidate]:
    """Variants of the laws that are new on the front: without one of their parts, and with one more coefficient.

    Parts are taken out after the quick stages; the first time, of all laws of the front. Coefficients are added in
    passes with tokens, to runners-up too; the finds of the heads wait for the step COEFFICIENTS.
    """
    if state.iteration < _QUICK_STAGES:
        return []
    new = [entry for entry in front if state.iteration == _QUICK_STAGES or entry not in state.front.entries]
    variants = pruned(task, [entry.expression for entry in new], budget)
    if _heads_at_work(task, state.iteration):
        return variants
    laws = [*new, *near(front, runners_up(found))]
    return variants + loosened(task, [law.expression for law in laws], budget)


def _heads_at_work(task: Task, iteration: int) -> bool:
    """Whether the step is a stage of the heads that look for y itself."""
    return iteration < len(task.stages[0])


def stop_reason(task: Task, front: Front) -> str | None:
    """Why the search is at its end, if it is: the probe, the loss that was asked for, or the law was found."""
    settings = task.settings
    if settings.probe is not None and any(same_function(entry.expression, settings.probe) for entry in front):
        return "the probe expression was found"
    if settings.stop_loss is not None and front and front[-1].loss <= settings.stop_loss:
        return f"the loss is at most {settings.stop_loss:g}"
    if front.has_law():
        return "a law that equals the data up to rounding was found"
    return None


def _work(task: Task, iteration: int) -> Stage | str:
    """What the step of that number does: a stage of the heads, TOKENS or COEFFICIENTS. The same for every run."""
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
    """The front with the finds, by their losses on all rows; and the finds, with their losses on the working rows."""
    settings = task.settings
    columns, max_complexity = task.data.columns, settings.max_complexity
    found = [candidate for candidate in found if task.allows(candidate.expression)]
    if settings.declared:
        target = task.data.target
        found = with_names(found, settings.declared, columns, target, Front.of(target), task.allows, settings.seed)
    if not task.squared:
        fit = settings.constants
        working, empty, seed = task.working, task.working_front, settings.seed
        found = best_under(settings.loss, found, columns, working, empty, max_complexity, budget, fit=fit, seed=seed)
    if not task.partial:
        return front.update(found, max_complexity), found
    judged: list[Candidate] = []
    # Judging all finds would cost more than finding them: only those that can stand on the front, the best first.
    for at, candidate in enumerate(reversed(task.working_front.update(found, max_complexity))):
        if at >= LAST_FITS and budget.over():
            break
        on_all_rows = task.judge(candidate)
        judged += [] if on_all_rows is None else [on_all_rows]
    return front.update(judged, max_complexity), found


def _of_required(task: Task) -> list[Candidate]:
    """The sum and the product of the variables that every law must have, with their coefficients fitted."""
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
    """The parts joined from left to right by a binary operator."""
    result = parts[0]
    for part in parts[1:]:
        result = apply(operator, result, part)
    return result


def _best_reward(task: Task, found: list[Candidate]) -> float:
    """The highest reward of the finds that could stand on a front; 0 where there are none."""
    front = task.working_front.update(found, task.settings.max_complexity)
    return max((_reward(task, candidate) for candidate in front), default=0.0)


def _scored_members(task: Task, front: Front) -> list[ScoredExpression]:
    """The members of the front with their rewards, and the user's guesses, whose parts may be tokens too."""
    known = {entry.expression for entry in front}
    guesses = [task.data.candidate(law) for law in task.settings.guesses if law not in known]
    members = [*front, *(guess for guess in guesses if guess is not None)]
    return [ScoredExpression(member.expression, _reward(task, member)) for member in members]


def _reward(task: Task, candidate: Candidate) -> float:
    """The paper's reward with losses in units of the variance of y, so that units do not matter to the generator."""
    return reward(candidate.loss / task.scale, candidate.complexity, task.settings.discount)


# A pass with tokens (the paper's Algorithm 2, lines 1 to 4): slots, network, heads, coefficients


@dataclass(frozen=True)
class Passed:
    """The finds (losses on the working rows), the number of candidates scored, and the generator's new state."""

    found: list[Candidate]
    scored: int
    generator: object


def token_pass(task: Task, generator: object, rng: np.random.Generator, budget: Budget) -> Passed:
    """Fill the slots, scan the network and the quick heads on them, and fit the coefficients of the finds.

    Where the budget is over before the slots are filled, nothing is found and the generator's state stays.
    """
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
    """The slots: variables in random order, a constant in every second pass on average, tokens; and the new state.

    Where there are too few tokens, whole numbers fill the other slots.
    """
    plan, settings = task.plan, task.settings
    names = list(task.data.columns)
    chosen = rng.permutation(len(names))[: plan.variables]
    slots: list[Expression] = [Variable(names[i]) for i in chosen]
    if settings.constants and plan.inputs - len(slots) > 1 and rng.random() < _CONSTANT_SHARE:
        slots.append(random_constant(task.token_context, rng))
    wanted = plan.inputs - len(slots)
    asked = task.with_spares(wanted) if task.prior.forbids_parts else wanted
    tokens, generator = task.generator.propose(task.token_context, generator, asked, rng, budget)
    allowed = [token for token in tokens if task.prior.allows_part(token)][:wanted]
    # The generator has seen a part of the rows only: on the others a token may not be finite.
    slots += [token for token in allowed if bool(torch.isfinite(task.data.evaluate(token)).all())]
    fillers = (Constant(float(value)) for value in range(1, plan.inputs + 1))
    while len(slots) < plan.inputs:
        filler = next(fillers)
        if filler not in slots:
            slots.append(filler)
    return slots, generator


def _network(
    task: Task, slots: Sequence[Expression], values: Tensor, rng: np.random.Generator, budget: Budget
) -> Shortlist:
    """The network's shortlist on 32 rows drawn at random, for slot values (slots, rows), float64."""
    target = task.data.target
    rows = torch.arange(target.rows)
    if target.rows > _NETWORK_ROWS:
        rows = torch.from_numpy(np.sort(rng.choice(target.rows, _NETWORK_ROWS, replace=False)))
    part = target.at(rows)
    return task.network.search(
        values[:, rows].T,
        part.y,
        task.with_spares(task.settings.top_k),
        part.weight,
        slots=slots,
        stop=budget.over,
        threads=task.settings.threads,
        device=task.settings.device,
        seed=task.settings.seed,
    )


def _heads(task: Task, slots: Sequence[Expression], values: Tensor, budget: Budget) -> list[Candidate]:
    """What the quick heads find on the slots that are no constants; they end where one finds the law."""
    varying = [i for i, slot in enumerate(slots) if not isinstance(slot, Constant)]
    data = make_data([slots[i] for i in varying], values[varying], task.data.target, _HEAD_ROWS, task.settings.seed)
    found: list[Candidate] = []
    for stage in task.make_heads(data).quick():
        found += stage.run(budget)
        if budget.over() or any(data.is_law(candidate) for candidate in found):
            break
    return found
