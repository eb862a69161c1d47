"""What a search is asked: checked data, settings, and how large a pass may be. Fixed while the search runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from symenum.core.memory import DEFAULT_MEMORY
from symenum.core.seeds import some_rows
from symenum.core.target import Target
from symenum.engine.architecture import check_mask_fits, fits_memory
from symenum.engine.layer import layer_sizes
from symenum.engine.network import PSRN
from symenum.expressions import Expression, Variable, evaluate, variables
from symenum.expressions.candidate import Candidate
from symenum.fitting.losses import Loss, Squared
from symenum.front import Front
from symenum.heads.operator_grammar import NO_PRIOR, Prior
from symenum.heads.response import Data, make_data
from symenum.heads.stages import SCAN_ROWS, AllHeads, Stage, telling
from symenum.operators import Operator, get_operators
from symenum.search.front_update import loss_floor, outlier_weights
from symenum.tokens import TokenContext, TokenGenerator, get_generator

__all__ = ["Plan", "Settings", "Task", "make_plan", "make_task"]


# --------------------------------------------------------------------------------------------------------------------
# How large a pass may be: layers, inputs, and what fills the slots, chosen from the problem and the memory limit.
#
# Not from the cores of the machine: with a seed and an iteration limit a search does the same on any machine.


# Candidates by the paper's formula, duplicates included, that two cores score in about a second and a half.
_MOST_CANDIDATES = 4_000_000_000
_MOST_INPUTS = 100
_FEWEST_INPUTS = 3
_SPARE_SLOTS = 2  # for tokens, however many variables there are
_MOST_TOKENS = 4
_DEEP = 3


@dataclass(frozen=True)
class Plan:
    """`inputs` slots of a network of `layers` layers; up to `variables` of them are variables, the rest tokens."""

    layers: int
    inputs: int
    variables: int
    candidates: int  # by the paper's formula, duplicates included

    def __str__(self) -> str:
        tokens = self.inputs - self.variables
        return (
            f"{self.layers} layers on {self.inputs} inputs ({self.variables} variables, {tokens} tokens), "
            f"{Decimal(self.candidates):.2g} candidates a pass"  # a deep network has more than a float can count
        )


def make_plan(
    variables: int,
    operators: tuple[Operator, ...],
    *,
    layers: int | None,
    inputs: int | None,
    max_memory: int,
) -> Plan:
    """The plan for that many variables; what the caller has fixed stays.

    Three layers where half of the variables or more fit beside two tokens; two, with many more inputs, elsewhere.
    """
    most = min(_MOST_INPUTS, variables + _MOST_TOKENS)

    def widest(depth: int) -> int:
        found = _FEWEST_INPUTS
        while found < most and _fits(found + 1, operators, depth, max_memory):
            found += 1
        return found

    if layers is None:
        width = inputs or widest(_DEEP)
        deep = _fits(width, operators, _DEEP, max_memory) and 2 * (width - _SPARE_SLOTS) >= variables
        layers = _DEEP if deep else _DEEP - 1
    inputs = inputs or widest(layers)
    inside = max(1, min(variables, inputs - _SPARE_SLOTS))
    return Plan(layers, inputs, inside, layer_sizes(operators, inputs, layers)[-1])


def _fits(inputs: int, operators: tuple[Operator, ...], layers: int, max_memory: int) -> bool:
    return (
        fits_memory(inputs, operators, layers, max_memory)
        and layer_sizes(operators, inputs, layers)[-1] <= _MOST_CANDIDATES
    )


# --------------------------------------------------------------------------------------------------------------------
# What a search is asked: checked data, settings, and the plan made for them. Fixed while the search runs.


# Candidates are found and fitted on so many rows, and judged on all; see `Task.judge`.
_WORKING_ROWS = 2048
_TOKEN_ROWS = 256
_FETCHED = 5  # times as many candidates where some will be forbidden


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
    device: str = "auto"  # of the network's passes, and of the heads that can use a GPU
    loss: Loss = field(default_factory=Squared)  # of the front; scans are least squares
    prior: Prior = NO_PRIOR
    forbidden: tuple[str, ...] = ()  # variables that no law may have
    guesses: tuple[Expression, ...] = ()  # laws to begin with, constants fitted
    declared: Mapping[str, float] = field(default_factory=dict)  # constants that have a name
    max_memory: int = DEFAULT_MEMORY
    seed: int = 0  # of everything random
    leave_out: tuple[str, ...] = ()  # stages of the heads that do not run: what they bring is measured without them


@dataclass(frozen=True)
class Task:
    """`columns` (rows,) float64 by name and `target`: all rows, the weights summing to 1.

    `data` are the rows that are worked on: all of them, or an even selection. Columns that are constant, or equal to an
    earlier one, say nothing of their own and are left out of it. `working` is its target with the weights that the user
    gave; those of `data` may differ where the loss is not the mean square error.
    """

    columns: Mapping[str, Tensor]
    target: Target
    data: Data
    working: Target
    settings: Settings
    plan: Plan
    generator: TokenGenerator[Any]
    origin: Task | None = None  # the task whose rows have the user's weights, if this one has others

    @cached_property
    def heads(self) -> AllHeads:
        """All heads on the raw variables."""
        if self.origin is not None:
            return self.origin.heads.with_target(self.data.target)
        settings = self.settings
        k = self.fetched(min(10, settings.top_k))
        return AllHeads(
            self.data,
            settings.operators,
            k,
            settings.max_memory,
            settings.prior,
            device=settings.device,
            leave_out=settings.leave_out,
        )

    @property
    def prior(self) -> Prior:
        return self.settings.prior

    def allows(self, expression: Expression) -> bool:
        """Whether it may stand on the front."""
        return expression.complexity <= self.settings.max_complexity and self.prior.allows(expression)

    @property
    def squared(self) -> bool:
        """Whether the loss is that of the scans."""
        return self.settings.loss.is_squared

    @cached_property
    def empty_front(self) -> Front:
        """The front before anything is found."""
        return self._front(self.target)

    @cached_property
    def working_front(self) -> Front:
        """The same for the rows that are worked on."""
        return self._front(self.working)

    def _front(self, target: Target) -> Front:
        front = Front.of(target, self.settings.discount)
        return front if self.squared else replace(front, floor=loss_floor(self.settings.loss, target))

    def fetched(self, count: int) -> int:
        """How many to ask for where so many are wanted: the prior may forbid most of them."""
        return count * _FETCHED if self.prior.active else count

    def weighed(self, front: Front) -> Task:
        """The task for the next step: under a robust loss, with less weight on the rows that the best law denies."""
        if not self.settings.loss.robust or not front:
            return self
        law = front[-1].expression
        if law not in self._weighed:
            target = outlier_weights(law, self.data.columns, self.working)
            self._weighed.clear()
            self._weighed[law] = replace(self, data=replace(self.data, target=target), origin=self)
        return self._weighed[law]

    @cached_property
    def _weighed(self) -> dict[Expression, Task]:
        """The task of the last law, so that its stages are not laid out anew in every step."""
        return {}

    @cached_property
    def stages(self) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
        """The heads' stages for y, and those for transforms of it; without constants only the paper's own head."""
        if not self.settings.constants:
            return (self.heads.combined(),), ()
        rounds = 2 if self.settings.loss.robust else 1  # the first weights are those of a poor law
        return tuple(self.heads.on_target()) * rounds, tuple(self.heads.on_transforms())

    @cached_property
    def network(self) -> PSRN:
        if self.origin is not None:
            return self.origin.network
        return PSRN(self.plan.inputs, self.settings.operators, self.plan.layers, max_memory=self.settings.max_memory)

    @cached_property
    def token_context(self) -> TokenContext:
        """What token generators work with."""
        rows = some_rows(self.data.target.rows, _TOKEN_ROWS, self.settings.seed, "rows that tokens are judged on")
        target = self.data.target.at(rows)
        columns = {name: column[rows] for name, column in self.data.columns.items()}
        span = self.settings.constant_range if self.settings.constants else None
        return TokenContext(self.settings.operators, columns, target.y, target.weight, span)

    @cached_property
    def scale(self) -> float:
        """The loss of the mean of y, or 1 where it is nothing: losses in its units are of order 1."""
        y, weight = self.target.y, self.target.weight
        spread = self.settings.loss.total(y, torch.full_like(y, float((y * weight).sum())), weight)
        return spread if self.empty_front.floor < spread < float("inf") else 1.0

    @property
    def partial(self) -> bool:
        """Whether the rows that are worked on are not all."""
        return self.data.target.rows < self.target.rows

    def judge(self, candidate: Candidate) -> Candidate | None:
        """The candidate, with its loss on the working rows, with that on all; None where it is not finite on one."""
        if not self.partial:
            return candidate
        values = evaluate(candidate.expression, self.columns)
        loss = self.settings.loss.total(self.target.y, values, self.target.weight)
        return Candidate(candidate.expression, loss) if loss < float("inf") else None


def make_task(names: Sequence[str], X: Tensor, target: Target, settings: Settings) -> Task:
    """The task for X (rows, variables), float64 and finite, and its target."""
    allowed = [i for i, name in enumerate(names) if name not in settings.forbidden]
    kept = [allowed[i] for i in telling(X[:, allowed])]
    _check_variables(settings, {names[i] for i in kept})
    rows = some_rows(len(X), _WORKING_ROWS, settings.seed, "rows that are worked on")
    working = target.at(rows)
    seen = working
    factors = settings.loss.row_weights(working.y)
    if factors is not None:  # the loss is least squares with other weights
        weight = working.weight * factors
        seen = Target(working.y, weight / weight.sum())
    slots = [Variable(names[i]) for i in kept]
    data = make_data(slots, X[rows][:, kept].T.contiguous(), seen, SCAN_ROWS, settings.seed)
    plan = make_plan(
        len(kept),
        settings.operators,
        layers=settings.layers,
        inputs=settings.inputs,
        max_memory=settings.max_memory,
    )
    check_mask_fits(plan.inputs, settings.operators, plan.layers, settings.max_memory)
    columns = {name: X[:, i].contiguous() for i, name in enumerate(names)}
    return Task(columns, target, data, working, settings, plan, get_generator(settings.token_generator))


def _check_variables(settings: Settings, telling: set[str]) -> None:
    """Refuse laws that are asked for in variables which the search leaves out."""
    used = {"required_variables": set(settings.prior.required)}
    used["guesses"] = {name for law in settings.guesses for name in variables(law)}
    for parameter, names in used.items():
        if names - telling:
            raise ValueError(
                f"{parameter} has {min(names - telling)}, which is the same in all rows, or equal to another variable: "
                "the data cannot tell what it does; leave it out, or take the other one"
            )
