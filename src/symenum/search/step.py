"""One step of a search: a stage of the heads on the raw variables, or a pass with tokens; then the front.

First the heads look for y itself, so that simple laws come out in the first second. After that passes with tokens
take turns with the heads on transforms of y, as long as there are transforms. What is new on the front is then tried
with further coefficients; before the first pass with tokens, the whole front is.
"""

from __future__ import annotations

import numpy as np

from symenum.enumeration.budget import Budget
from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.threads import torch_threads
from symenum.expressions import Constant, same_function
from symenum.front import Front, reward
from symenum.heads.all_heads import Stage
from symenum.search.coefficients import loosened, rounded
from symenum.search.state import State
from symenum.search.task import Task
from symenum.search.token_pass import token_pass
from symenum.tokens import Praised

__all__ = ["start", "step", "stop_reason"]

_LINEAR = 30  # variables; beyond, the linear regression is left to the sums of terms
TOKENS, COEFFICIENTS = "tokens", "coefficients"


def start(task: Task, seed: int) -> State:
    """The state before the first step, warmed up with the mean and the linear regression."""
    found = task.heads.constant()
    slots = task.data.stand_ins
    if task.settings.constants and len(slots) <= min(_LINEAR, task.data.target.rows - 2):
        linear = task.heads.goal.fit([Constant(1), *slots])
        found += [] if linear is None else [linear]
    front = _updated(task, Front.of(task.target, task.settings.discount), found)
    return State(seed, 0, front)


def step(task: Task, state: State, budget: Budget) -> tuple[State, str]:
    """The state after one more step, and what the step was."""
    work = _work(task, state.iteration)
    scored, generator = 0, state.generator
    with torch_threads(1):  # thousands of small operations; the scans have threads of their own
        if isinstance(work, Stage):
            found, name = work.run(budget), work.name
        elif work == COEFFICIENTS:
            found, name = loosened(task, [entry.expression for entry in reversed(state.front)], budget), work
        else:
            rng = np.random.default_rng([state.seed, state.iteration])
            if generator is None:
                generator = task.generator.start(task.material)
            passed = token_pass(task, generator, rng, budget)
            found, scored, generator, name = passed.found, passed.scored, passed.generator, work
        if task.settings.constants:
            found = [*found, *rounded(task, found)]
        front = _updated(task, state.front, found)
        if task.settings.constants and state.iteration > len(task.stages[0]) and not front.has_law(task.target):
            new = [entry.expression for entry in front if entry not in state.front.entries]
            front = _updated(task, front, loosened(task, new, budget))
        if budget.over():  # the step was cut short: its reward says nothing
            generator = state.generator
        elif work == TOKENS:
            generator = task.generator.learn(task.material, generator, _best_reward(task, found), _praised(task, front))
    return State(state.seed, state.iteration + 1, front, generator, state.scored + scored, state.elapsed), name


def stop_reason(task: Task, front: Front) -> str | None:
    """Why the search is at its end, if it is: the law, the loss that was asked for, or the probe was found."""
    settings = task.settings
    if settings.probe is not None and any(same_function(entry.expression, settings.probe) for entry in front):
        return "the probe expression was found"
    if settings.stop_loss is not None and front and front[-1].loss <= settings.stop_loss:
        return f"the loss is at most {settings.stop_loss:g}"
    if front.has_law(task.target):
        return "a law that equals the data up to rounding was found"
    return None


def _work(task: Task, iteration: int) -> Stage | str:
    """What that step does; the same for every run."""
    first, later = task.stages
    if iteration < len(first):
        return first[iteration]
    if task.settings.constants:
        if iteration == len(first):
            return COEFFICIENTS
        iteration -= 1
    turn, tokens = divmod(iteration - len(first) + 1, 2)
    return later[turn - 1] if not tokens and turn <= len(later) else TOKENS


def _updated(task: Task, front: Front, found: list[Candidate]) -> Front:
    """The front with what was found, each with its loss on all rows."""
    if task.partial:  # judging all would cost more than finding them: only those that can stand on the front
        found = list(Front.of(task.data.target).update(found, task.settings.max_complexity))
    judged = [whole for candidate in found if (whole := task.judge(candidate)) is not None]
    return front.update(judged, task.settings.max_complexity)


def _best_reward(task: Task, found: list[Candidate]) -> float:
    """The best of those that could stand on a front."""
    front = Front.of(task.data.target).update(found, task.settings.max_complexity)
    return max((_reward(task, candidate) for candidate in front), default=0.0)


def _praised(task: Task, front: Front) -> list[Praised]:
    return [Praised(entry.expression, _reward(task, entry)) for entry in front]


def _reward(task: Task, candidate: Candidate) -> float:
    """The paper's reward with losses in units of the variance of y, so that units do not matter to the generator."""
    return reward(candidate.loss / task.scale, candidate.complexity, task.settings.discount)
