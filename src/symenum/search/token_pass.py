"""One pass with tokens (the paper's Algorithm 2, lines 1 to 4): slots, network, heads, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symenum.core.budget import Budget, CutShortError
from symenum.enumeration.shortlist import Candidate, Shortlist
from symenum.expressions import Constant, Expression, Variable
from symenum.heads.all_heads import AllHeads
from symenum.heads.goal import make_data
from symenum.search.coefficients import refined
from symenum.search.task import Task
from symenum.tokens.trees import random_constant

__all__ = ["Passed", "token_pass"]

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
        slots.append(random_constant(task.material, rng))
    wanted = plan.inputs - len(slots)
    asked = task.fetched(wanted) if task.prior.forbids_parts else wanted
    tokens, generator = task.generator.propose(task.material, generator, asked, rng, budget)
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
