"""What a search is asked: checked data, settings, and the plan made for them. Fixed while the search runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from symenum.enumeration.memory import DEFAULT_MEMORY, check_mask_fits
from symenum.enumeration.network import PSRN
from symenum.enumeration.shortlist import Candidate
from symenum.enumeration.target import Target
from symenum.enumeration.threads import available_cores
from symenum.expressions import Expression, Variable, evaluate
from symenum.heads.all_heads import AllHeads, Stage
from symenum.heads.first_pass import SCAN_ROWS, telling
from symenum.heads.goal import Data, make_data
from symenum.operators import Operator, get_operators
from symenum.search.plan import Plan, make_plan
from symenum.tokens import Material, TokenGenerator, get_generator

__all__ = ["Settings", "Task", "make_task"]

# Candidates are found and fitted on so many rows, and judged on all; see `Task.judge`.
_WORKING_ROWS = 2048
_TOKEN_ROWS = 256


@dataclass(frozen=True)
class Settings:
    """The knobs of a search; `layers` and `inputs` are chosen by `make_plan` where they are None."""

    operators: tuple[Operator, ...] = get_operators("koza")
    layers: int | None = None
    inputs: int | None = None
    token_generator: str = "gp"
    constants: bool = True
    constant_range: tuple[float, float] = (-3.0, 3.0)
    top_k: int = 30
    discount: float = 0.99
    max_complexity: int = 50
    stop_loss: float | None = None
    probe: Expression | None = None
    threads: int | None = None
    device: str = "auto"  # of the network's passes
    max_memory: int = DEFAULT_MEMORY


@dataclass(frozen=True)
class Task:
    """`columns` (rows,) float64 by name and `target`: all rows, the weights summing to 1.

    `data` are the rows that are worked on: all of them, or an even selection. Columns that are constant, or equal to an
    earlier one, say nothing of their own and are left out of it.
    """

    columns: Mapping[str, Tensor]
    target: Target
    data: Data
    settings: Settings
    plan: Plan
    generator: TokenGenerator[Any]

    @cached_property
    def heads(self) -> AllHeads:
        """All heads on the raw variables."""
        return AllHeads(self.data, self.settings.operators, min(10, self.settings.top_k), self.settings.max_memory)

    @cached_property
    def stages(self) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
        """The heads' stages for y, and those for transforms of it; without constants only the paper's own head."""
        if not self.settings.constants:
            return (self.heads.combined(),), ()
        return tuple(self.heads.on_target()), tuple(self.heads.on_transforms())

    @cached_property
    def network(self) -> PSRN:
        return PSRN(self.plan.inputs, self.settings.operators, self.plan.layers, max_memory=self.settings.max_memory)

    @cached_property
    def material(self) -> Material:
        """What token generators work with."""
        rows = _some(self.data.target.rows, _TOKEN_ROWS)
        target = self.data.target.at(rows)
        columns = {name: column[rows] for name, column in self.data.columns.items()}
        span = self.settings.constant_range if self.settings.constants else None
        return Material(self.settings.operators, columns, target.y, target.weight, span)

    @cached_property
    def scale(self) -> float:
        """The variance of y, or 1 where it is nothing: losses in its units are of order 1."""
        mean = float((self.target.y * self.target.weight).sum())
        variance = float(((self.target.y - mean).square() * self.target.weight).sum())
        return variance if variance > self.target.floor else 1.0

    @property
    def partial(self) -> bool:
        """Whether the rows that are worked on are not all."""
        return self.data.target.rows < self.target.rows

    def judge(self, candidate: Candidate) -> Candidate | None:
        """The candidate with its loss on all rows; None where it is not finite on one of them."""
        if not self.partial:
            return candidate
        loss = float(self.target.loss(evaluate(candidate.expression, self.columns)[None]))
        return Candidate(candidate.expression, loss) if loss < float("inf") else None


def make_task(names: Sequence[str], X: Tensor, target: Target, settings: Settings) -> Task:
    """The task for X (rows, variables), float64 and finite, and its target."""
    threads = settings.threads or available_cores()
    kept = telling(X)
    rows = _some(len(X), _WORKING_ROWS)
    data = make_data([Variable(names[i]) for i in kept], X[rows][:, kept].T.contiguous(), target.at(rows), SCAN_ROWS)
    plan = make_plan(
        len(kept),
        settings.operators,
        layers=settings.layers,
        inputs=settings.inputs,
        max_memory=settings.max_memory,
        cores=threads,
    )
    check_mask_fits(plan.inputs, settings.operators, plan.layers, settings.max_memory)
    columns = {name: X[:, i].contiguous() for i, name in enumerate(names)}
    return Task(columns, target, data, settings, plan, get_generator(settings.token_generator))


def _some(rows: int, most: int) -> Tensor:
    """All rows, or a random selection in order: data may be sorted, or repeat with a period."""
    if rows <= most:
        return torch.arange(rows)
    return torch.randperm(rows, generator=torch.Generator().manual_seed(0))[:most].sort().values
