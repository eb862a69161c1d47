"""A pass of the network with tokens (the paper's Algorithm 2): slots, scan, coefficients; on a GPU several at once.

A batch has one proposal of tokens, which are dealt into several sets of slots. All sets are scored on the same rows,
32 drawn at random, so their shortlists compare, and the best candidates of the whole batch are fitted together. On a
GPU a batch is launched in one turn and collected in a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from symenum.core.budget import Budget
from symenum.engine.layer_dimensions import SlotDimensions
from symenum.engine.shortlist import Shortlist
from symenum.expressions import Apply, Constant, Expression, Variable
from symenum.expressions.candidate import Candidate
from symenum.search.front_update import near
from symenum.search.polish import refined
from symenum.search.problem import NETWORK_ROWS, Task
from symenum.search.scan_ahead import Scan
from symenum.search.state import Batch, State
from symenum.selection import reward
from symenum.tokens import ScoredExpression, TokenContext, deal
from symenum.tokens.trees import random_constant

__all__ = ["network_pass", "reward_of"]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_CONSTANT_SHARE = 0.5  # chance that a set of slots has a constant, where there is room for one
_MAX_PROPOSED = 100  # tokens that are proposed for a batch; its passes share them
_MAX_TAUGHT = 40  # runners-up that the generator learns from, beside the front


def network_pass(task: Task, state: State, rng: np.random.Generator, budget: Budget) -> tuple[list[Candidate], State]:
    """The finds of one batch, with their losses on the working rows, and the state with its slots and generator.

    Raises CutShortError where the budget is over before the slots are filled.
    """
    batch, state = _proposed(task, state, rng, budget)
    return _finds(task, state, batch, _scan_of(task, batch)(budget), budget)


def launched(task: Task, state: State, rng: np.random.Generator, budget: Budget) -> State:
    """The state after a GPU has begun to scan a batch; raises CutShortError as `network_pass` does."""
    batch, state = _proposed(task, state, rng, budget)
    batch = replace(batch, due=state.work + task.plan.work / 2 + task.plan.scan)
    task.scan_ahead.start(batch, _scan_of(task, batch))
    return replace(state, scanning=batch)


def collected(task: Task, state: State, batch: Batch, budget: Budget) -> tuple[list[Candidate], State]:
    """What `network_pass` gives, of a batch that was launched; CutShortError where the time is over before its end."""
    shortlists = task.scan_ahead.result(batch, _scan_of(task, batch), budget)
    return _finds(task, replace(state, scanning=None), batch, shortlists, budget)


def _proposed(task: Task, state: State, rng: np.random.Generator, budget: Budget) -> tuple[Batch, State]:
    """The next batch, and the state with its generator."""
    budget.check()
    law = state.front[-1].expression if state.front else None
    context = task.token_context_after(law)
    generator = state.generator
    if generator is None:
        generator = task.generator.start(context)
    else:  # what heads and fits made of the last tokens counts for these tokens too
        generator = task.generator.learn(context, generator, state.reward, _taught(task, state))
    sets, generator = _slot_sets(task, context, law, generator, rng, budget)
    target = task.data.target
    rows = np.arange(target.rows)
    if target.rows > NETWORK_ROWS:
        rows = np.sort(rng.choice(target.rows, NETWORK_ROWS, replace=False))
    weights = target.weight[torch.from_numpy(rows)]
    batch = Batch(tuple(map(tuple, sets)), tuple(rows.tolist()), tuple(weights.tolist()))
    return batch, replace(state, generator=generator, reward=0.0)


def _finds(
    task: Task, state: State, batch: Batch, shortlists: Sequence[Shortlist], budget: Budget
) -> tuple[list[Candidate], State]:
    """The best candidates of the batch with their constants fitted, and the state that has counted its passes."""
    sets = batch.sets
    best = [shortlist[0].loss if len(shortlist) else float("inf") for shortlist in shortlists]
    merged = sorted((candidate for shortlist in shortlists for candidate in shortlist), key=lambda one: one.loss)
    raw = list(dict.fromkeys(one.expression for one in merged if task.prior.allows(one.expression)))
    found = refined(task, raw[: task.settings.top_k], _tokens_as_laws(task, sets), state.front, budget)
    scored = sum(shortlist.scored for shortlist in shortlists)
    after = replace(
        state,
        slots=sets[int(np.argmin(best))],
        scored=state.scored + scored,
        passes=state.passes + len(sets),
    )
    return found, after


def _tokens_as_laws(task: Task, sets: Sequence[Sequence[Expression]]) -> list[Candidate]:
    """The tokens of the batch as candidates: some are whole laws in which the generator has changed a part."""
    tokens = dict.fromkeys(slot for slots in sets for slot in slots if isinstance(slot, Apply))
    found = [task.data.candidate(token) for token in tokens if task.allows(token)]
    return [candidate for candidate in found if candidate is not None]


def reward_of(task: Task, candidate: Candidate) -> float:
    """The paper's reward with losses in units of the variance of y, so that units do not matter to the generator."""
    loss = max(candidate.loss - task.empty_front.zero, 0.0)
    return reward(loss / task.scale, candidate.complexity, task.settings.discount)


def _taught(task: Task, state: State) -> list[ScoredExpression]:
    """What the generator learns from: the front, the user's guesses, and the best of the laws near the front."""
    known = {entry.expression for entry in state.front}
    guesses = [task.data.candidate(law) for law in task.settings.guesses if law not in known]
    others = sorted(near(state.front, state.runners_up), key=lambda one: one.loss)[:_MAX_TAUGHT]
    members = [*state.front, *(guess for guess in guesses if guess is not None), *others]
    return [ScoredExpression(member.expression, reward_of(task, member)) for member in members]


def _slot_sets(
    task: Task,
    context: TokenContext,
    law: Expression | None,
    generator: object,
    rng: np.random.Generator,
    budget: Budget,
) -> tuple[list[list[Expression]], object]:
    """The slots of each pass of the batch: variables in random order, tokens, sometimes a constant; and the new state.

    Where there are too few tokens, whole numbers fill the other slots. `law`: the best so far.
    """
    plan, settings = task.plan, task.settings
    size = plan.inputs - plan.variables
    asked = min(plan.sets * size, _MAX_PROPOSED)
    asked = task.with_spares(asked) if task.prior.forbids_parts else asked
    tokens, generator = task.generator.propose(context, generator, asked, rng, budget)
    allowed = [token for token in tokens if task.prior.allows_part(token)]
    # The generator has seen a part of the rows only: on the others a token may not be finite.
    usable = [token for token in allowed if bool(torch.isfinite(task.data.evaluate(token)).all())]
    sets: list[list[Expression]] = []
    for number, dealt in enumerate(deal(usable, plan.sets, size, rng)):
        slots = _variables(task, law, rng, asked_for=number % 2 == 1)
        if settings.constants and size > 1 and rng.random() < _CONSTANT_SHARE:
            slots.append(random_constant(task.token_context, rng))
        slots += dealt[: plan.inputs - len(slots)]
        fillers = (Constant(float(value)) for value in range(1, plan.inputs + 1))
        while len(slots) < plan.inputs:
            filler = next(fillers)
            if filler not in slots:
                slots.append(filler)
        sets.append(slots)
    return sets, generator


def _variables(task: Task, law: Expression | None, rng: np.random.Generator, *, asked_for: bool) -> list[Expression]:
    """The variables of a pass in random order, where there is no room for all of them drawn at random.

    If they are `asked_for`, half of them are those that say most about what the law leaves of y.
    """
    room, names = task.plan.variables, list(task.data.columns)
    slots: list[Expression] = [Variable(names[i]) for i in rng.permutation(len(names))]
    if asked_for and room < len(slots):
        slots = list(dict.fromkeys([*task.ranking(law)[: -(-room // 2)], *slots]))
    elif len(names) > len(task.data.slots):
        promising = task.material(law, len(task.data.slots))
        slots = [slot for slot in slots if slot in promising]
    return slots[:room]


def _scan_of(task: Task, batch: Batch) -> Scan:
    """The scan of a batch, for the network's shortlist of each set of slots; its slots are evaluated here and now."""
    rows = torch.tensor(batch.rows)
    values = [torch.stack([task.data.evaluate(slot)[rows] for slot in slots], dim=1) for slots in batch.sets]
    y, weights = task.data.target.y[rows], torch.tensor(batch.weights, dtype=torch.float64)
    count, dimensions = task.with_spares(task.settings.top_k), _dimensions(task, batch.sets)

    def scan(budget: Budget) -> list[Shortlist]:
        return task.warm_network.search_many(
            values,
            y,
            count,
            weights,
            slots=batch.sets,
            stop=budget.over,
            threads=task.settings.threads,
            device=task.settings.device,
            seed=task.settings.seed,
            dimensions=dimensions,
        )

    return scan


def _dimensions(task: Task, sets: Sequence[Sequence[Expression]]) -> list[SlotDimensions] | None:
    """The dimensions of the slots of each pass; None where units tell nothing, or numbers may have any.

    A candidate of the network gets coefficients afterwards, and where these may have units any dimension will do.
    """
    units = task.prior.units
    if units is None or units.free:
        return None
    return [SlotDimensions.of(slots, units) for slots in sets]
