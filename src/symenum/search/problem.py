"""What a search is asked: checked data, settings, and the plan of a pass. Fixed while the search runs.

The plan says how large a pass is: layers, inputs, and how many slots are variables and tokens. It follows from the
problem and the memory limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from threading import Thread
from typing import Any, NamedTuple

import torch
from torch import Tensor

from symenum.core.devices import ANY_WORK, choose_devices
from symenum.core.memory import DEFAULT_MEMORY
from symenum.core.seeds import sample_rows
from symenum.core.target import Target, Training
from symenum.engine.architecture import check_mask_fits, fits_memory
from symenum.engine.layer import layer_sizes
from symenum.engine.network import PSRN
from symenum.expressions import Constant, Expression, Units, Variable, evaluate, variables
from symenum.expressions.candidate import Candidate
from symenum.expressions.complexity import ComplexityWeights
from symenum.expressions.template import Template
from symenum.fitting.losses import Loss, Squared
from symenum.front import Front
from symenum.heads.operator_grammar import NO_PRIOR, Prior
from symenum.heads.response import Data, make_data
from symenum.heads.stages import SCAN_ROWS, TRANSFORMS, AllHeads, Stage, in_turn, informative_columns, joined
from symenum.heads.work import Work
from symenum.operators import Operator, get_operators
from symenum.operators.traits import ARITHMETIC
from symenum.sanity import Policy
from symenum.sanity.shapes import Shape
from symenum.search.column_screening import ranked_columns
from symenum.search.front_update import loss_floor, outlier_weights
from symenum.search.scan_ahead import ScanAhead
from symenum.selection import DISCOUNT
from symenum.selection.growing_noise import GrowingNoise
from symenum.tokens import TokenContext, TokenGenerator, get_generator

__all__ = ["NETWORK_ROWS", "Plan", "Settings", "Task", "make_plan", "make_task"]

_RESIDUALS = Work(
    3e-8, lambda sizes: sizes.extended * sizes.scanned, lambda sizes: sizes.fits(4 * sizes.k)
)  # of a turn
_MAX_LAYERS = 3  # the paper's depth; two layers where three do not fit

# What a pass costs. Constants, not measures of this machine: with a seed and an iteration limit a search does the same
# on any machine, whatever the number of threads. benchmarks/loop.py prints what passes take.
_DISTINCT = {3: 0.4}  # part of the candidates of the paper's formula that are distinct, by layers; else nearly all
_CPU_RATE = 1.1e9  # distinct candidates that two cores score in a second,
_DIRECT_RATE = 3.6e7  # and those of binary operators without a bilinear form, such as pow
_GPU_RATE = 4e12  # distinct candidates that a GPU scores in a second (H200)
_CPU_PASS = 1.3  # work units (seconds on two cores) of the largest scan on a CPU
_GPU_PASS = 0.05  # seconds of the largest scan on a GPU
_COUNTLESS = 10**18  # candidates that no pass scores; a deep network has more than a float can count
_CPU_SETS = 2  # passes in a batch at most: one proposal of tokens and one fit serve them all;
_GPU_SETS = 32  # the same on a GPU,
# Part of the time that the scans of a batch may take, be it of one pass. With no limit for one pass as many random
# laws are recovered in 10 s (8 of 24); with it no turn of a short search is long.
_BATCH_SHARE = 0.1
_PASS_FITS = 0.3  # work units for the tokens of a batch and for the fits of its best candidates

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_MIN_TOKENS = 2  # slots for tokens, however many variables there are
_MAX_TOKENS = 4  # slots for tokens where all variables fit,
_MAX_GPU_TOKENS = 6  # the same on a GPU,
_MAX_PAIRED_TOKENS = 56  # and in a network of two layers, whose depth comes from its tokens
_MIN_INPUTS = 1 + _MIN_TOKENS  # slots: there is at least one variable
_MAX_INPUTS = 100  # slots of a network, variables and tokens
NETWORK_ROWS = 32
"""Rows of the network, drawn anew in every pass as in the paper, which takes 20 to 200."""
_WORKING_ROWS = 2048  # rows that candidates are found and fitted on; they are judged on all rows (`Task.judge`)
_ALL_COLUMNS = 64  # up to so many columns are slots of the heads, all of them;
_CHOSEN_COLUMNS = 40  # of more columns so many are, those that say most about y
_TOKEN_ROWS = 256  # rows that token generators see
_SLOT_ROWS = 256  # rows that the heads scan on the slots of a pass
_HEAD_CANDIDATES = 10  # that a head hands back, at most
_SPARE_FACTOR = 5  # times as many candidates are asked for where a prior may forbid some


@dataclass(frozen=True)
class Plan:
    """`inputs` slots of a network of `layers` layers; up to `variables` of them are variables, the rest tokens.

    `sets` passes make a batch. `last`: the operators of the last layer, where they are not all. `gpu`: whether passes
    run on a GPU. The CPU is free for other moves while a GPU scans, so `work` counts the scan on a CPU only.
    """

    layers: int
    inputs: int
    variables: int
    candidates: int  # of a pass, by the paper's formula, duplicates included
    work: float  # units that a batch keeps the CPU busy for
    scan: float  # units of the scans of a batch, wherever they run
    sets: int = 1
    last: tuple[Operator, ...] | None = None
    gpu: bool = False

    def __str__(self) -> str:
        tokens = self.inputs - self.variables
        batch = f", {self.sets} passes at once" if self.sets > 1 else ""
        return (
            f"{self.layers} layers on {self.inputs} inputs ({self.variables} variables, {tokens} tokens), "
            f"{Decimal(self.candidates):.2g} candidates a pass{batch}"  # a deep network has more than a float can count
        )


def make_plan(
    variables: int,
    operators: tuple[Operator, ...],
    *,
    layers: int | None,
    inputs: int | None,
    max_memory: int,
    gpu: bool = False,
    seconds: float = math.inf,
) -> Plan:
    """The plan for so many variables; `layers` and `inputs` stay where the caller has fixed them.

    Three layers where half of the variables or more fit beside two tokens; else two layers on many more tokens. Where
    operators without a bilinear form would take most of the time, the last layer does without them. `max_memory` in
    bytes. `gpu`: whether passes run on a GPU. `seconds`: of the whole search. Raises ValueError where not even the
    narrowest such network fits.
    """
    check_mask_fits(inputs or _MIN_INPUTS, operators, layers or _MAX_LAYERS - 1, max_memory)
    last = _with_form(operators)
    if not last:
        last = operators

    longest = min(_GPU_PASS if gpu else _CPU_PASS, _BATCH_SHARE * seconds)

    def fits(width: int, depth: int) -> bool:
        if not fits_memory(width, operators, depth, max_memory):  # first: the work of a deep network is no float
            return False
        return _scan_work(width, operators, last, depth, gpu=gpu) <= longest

    def widest(depth: int) -> int:
        tokens = _MAX_PAIRED_TOKENS if depth < _MAX_LAYERS else _MAX_GPU_TOKENS if gpu else _MAX_TOKENS
        max_inputs = min(_MAX_INPUTS, variables + tokens)
        width = _MIN_INPUTS
        while width < max_inputs and fits(width + 1, depth):
            width += 1
        return width

    if layers is None:
        width = inputs or widest(_MAX_LAYERS)
        deep = fits(width, _MAX_LAYERS) and 2 * (width - _MIN_TOKENS) >= variables
        layers = _MAX_LAYERS if deep else _MAX_LAYERS - 1
    inputs = inputs or widest(layers)
    variable_slots = max(1, min(variables, inputs - _MIN_TOKENS))
    every = _scan_work(inputs, operators, operators, layers, gpu=gpu)
    if last == operators or every <= 2 * _scan_work(inputs, operators, last, layers, gpu=gpu):
        last = operators
    scan = _scan_work(inputs, operators, last, layers, gpu=gpu)
    sets = max(1, int(min(_GPU_SETS if gpu else _CPU_SETS, _BATCH_SHARE * seconds / scan)))
    scans = sets * scan
    work = 2 * _PASS_FITS if gpu else scans + _PASS_FITS
    candidates = sum(_candidates(inputs, operators, last, layers))
    return Plan(layers, inputs, variable_slots, candidates, work, scans, sets, None if last == operators else last, gpu)


def _with_form(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """The operators but for binary ones that are no bilinear form, which are evaluated pair by pair."""
    return tuple(one for one in operators if one.arity == 1 or one.role in ARITHMETIC)


def _candidates(
    inputs: int, operators: tuple[Operator, ...], last: tuple[Operator, ...], layers: int
) -> tuple[int, int]:
    """The candidates of operators with a bilinear form, or with one operand; and those of all other operators."""
    below = layer_sizes(operators, inputs, layers - 1)[-1] if layers > 1 else inputs
    whole = layer_sizes(last, below, 1)[0]
    formed = layer_sizes(_with_form(last), below, 1)[0] if _with_form(last) else 0
    return formed, whole - formed


def _scan_work(
    inputs: int, operators: tuple[Operator, ...], last: tuple[Operator, ...], layers: int, *, gpu: bool
) -> float:
    """Work units of the scan of one pass. Candidates without a form are scored on the CPU in any case."""
    formed, direct = (min(count, _COUNTLESS) for count in _candidates(inputs, operators, last, layers))
    distinct = _DISTINCT.get(layers, 1.0)
    return distinct * (formed / (_GPU_RATE if gpu else _CPU_RATE) + direct / _DIRECT_RATE)


@dataclass(frozen=True)
class Settings:
    """The settings of a search; `layers` and `inputs` are chosen by `make_plan` where they are None."""

    operators: tuple[Operator, ...] = get_operators("koza")
    layers: int | None = None
    inputs: int | None = None
    token_generator: str = "gp"
    constants: bool = True
    constant_range: tuple[float, float] = (-3.0, 3.0)
    top_k: int = 30
    discount: float = DISCOUNT
    max_complexity: int = 50
    stop_loss: float | None = None
    probe: Expression | None = None
    threads: int | None = None
    device: str = "auto"  # of the network's passes, and of the heads that can use a GPU
    loss: Loss = field(default_factory=Squared)  # that laws of the front are judged by; scans are least squares
    prior: Prior = NO_PRIOR
    forbidden: tuple[str, ...] = ()  # variables that no law may have
    guesses: tuple[Expression, ...] = ()  # laws to begin with, constants fitted
    declared: Mapping[str, float] = field(default_factory=dict)  # the user's constants: name -> value
    max_memory: int = DEFAULT_MEMORY  # bytes
    seed: int = 0  # of everything random
    leave_out: tuple[str, ...] = ()  # stages of the heads that do not run, to measure what they bring
    shares: Mapping[str, float] = field(default_factory=dict)  # of moves, by name; see `schedule`
    weights: ComplexityWeights | None = None  # what complexity counts; None: the paper's weights of operators
    planned_time: float | None = None  # seconds that the user gives the search, by which the schedule plans
    template: Template | None = None  # of laws that are known in part
    shape: Shape | None = None  # what the user knows of how laws behave
    final_units: Units | None = None  # that laws must keep to once constants have their names; see `Knowledge`
    sanity: str = "on"  # one of SANITY of `symenum.sanity`


class Stages(NamedTuple):
    """The stages of the heads, by what they run on."""

    on_variables: tuple[Stage, ...]
    on_slots: tuple[Stage, ...]


@dataclass(frozen=True)
class Task:
    """`columns` (rows,) float64 by name and `target`: all rows, the weights summing to 1.

    `data` holds the working rows: all rows, or a random selection of 2048. Columns that are constant, or equal to an
    earlier one, are left out of it. Where there are more than 64, its slots are the 40 that say most about y; `ranking`
    asks again for what a law leaves of y. `working` is its target with the user's weights; the weights of `data` differ
    from them where the loss is not the mean square error.
    """

    columns: Mapping[str, Tensor]
    target: Target
    data: Data
    working: Target
    settings: Settings
    plan: Plan
    generator: TokenGenerator[Any]
    origin: Task | None = None  # the task with the user's weights, if this one has others (see `reweighted`)

    @cached_property
    def heads(self) -> AllHeads:
        """All heads on the raw variables."""
        if self.origin is not None:
            return self.origin.heads.with_target(self.data.target)
        return self.make_heads(self.data)

    def make_heads(self, data: Data) -> AllHeads:
        """All heads on the slots of `data`."""
        settings = self.settings
        return AllHeads(
            data,
            settings.operators,
            self.with_spares(min(_HEAD_CANDIDATES, settings.top_k)),
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
        return self.empty_front.complexity_of(expression) <= self.settings.max_complexity and self.prior.allows(
            expression
        )

    @cached_property
    def policy(self) -> Policy:
        """What may stand on the front, judged on the working rows and on the region of all rows."""
        if self.origin is not None:
            return self.origin.policy
        settings = self.settings
        return Policy.of(self.data.columns, self.working, self.columns, sanity=settings.sanity, shape=settings.shape)

    @property
    def squared(self) -> bool:
        """Whether the loss is the mean square error, as in the scans."""
        return self.settings.loss.is_squared

    @cached_property
    def empty_front(self) -> Front:
        """The front before anything is found, for losses on all rows."""
        return self._front(self.target)

    @cached_property
    def working_front(self) -> Front:
        """The same for losses on the working rows."""
        return self._front(self.working) if self.partial else self.empty_front

    def _front(self, target: Target) -> Front:
        front = Front.of(target, self.settings.discount, self.settings.weights)
        return front if self.squared else replace(front, floor=loss_floor(self.settings.loss, target))

    def with_spares(self, count: int) -> int:
        """How many candidates to ask for where `count` are wanted: five times as many if a prior may forbid some."""
        return count * _SPARE_FACTOR if self.prior.active or self.settings.shape is not None else count

    def reweighted(self, front: Front) -> Task:
        """The task for the next step: under a robust loss, rows far from the best law of the front weigh less."""
        if not self.settings.loss.robust or not front:
            return self
        law = front[-1].expression
        if law not in self._last_reweighted:
            target = outlier_weights(law, self.data.columns, self.working)
            self._last_reweighted.clear()
            self._last_reweighted[law] = replace(self, data=replace(self.data, target=target), origin=self)
        return self._last_reweighted[law]

    @cached_property
    def _last_reweighted(self) -> dict[Expression, Task]:
        """The task of the last law, by that law, so that its stages are not laid out anew in every step."""
        return {}

    def under(self, noise: GrowingNoise, law: Expression) -> Task:
        """The task whose scans weigh the rows as they should be weighed if this is the law, with that noise."""
        if (noise, law) not in self._last_under_noise:
            data = self.data
            rows = Training(data.columns, data.target)
            target = noise.around(law, rows).weigh(rows).target
            self._last_under_noise.clear()
            self._last_under_noise[noise, law] = replace(self, data=replace(data, target=target), origin=self)
        return self._last_under_noise[noise, law]

    @cached_property
    def _last_under_noise(self) -> dict[tuple[GrowingNoise, Expression], Task]:
        """The task of the last such law, so that its stages are not laid out anew in every step."""
        return {}

    def quick_slice(self, number: int) -> tuple[Stage, int] | None:
        """A slice of the quick stages on the variables, and of those for transforms; those that end cheapest first.

        None: there are not so many. They are laid out as they are asked for, since that is work too.
        """
        known, more = self._quick_slices
        while len(known) <= number:
            found = next(more, None)
            if found is None:
                return None
            known.append(found)
        return known[number]

    @cached_property
    def _quick_slices(self) -> tuple[list[tuple[Stage, int]], Iterator[tuple[Stage, int]]]:
        return [], in_turn((*self.heads.on_reduced(), *self.heads.on_transforms()))

    @cached_property
    def stages(self) -> Stages:
        """The heads' stages: those for y and for transforms of it, and those that run on the slots of a pass."""
        transforms = self.heads.on_transforms()
        on_transforms = (joined(TRANSFORMS, transforms),) if transforms else ()
        return Stages((*self.heads.on_target(), *on_transforms), self.heads.on_slots())

    @property
    def residuals_work(self) -> float:
        """Work units of a turn of the heads on what a law leaves, which scans all features for one response."""
        return _RESIDUALS.of(self.heads.sizes)

    def heads_on(self, slots: tuple[Expression, ...]) -> AllHeads:
        """All heads on those of the slots that are no constants; kept until other slots are asked for."""
        if slots not in self._last_heads:
            self._last_heads.clear()
            varying = [slot for slot in slots if not isinstance(slot, Constant)]
            values = torch.stack([self.data.evaluate(slot) for slot in varying])
            data = make_data(
                varying, values, self.data.target, _SLOT_ROWS, self.settings.seed, self.settings.prior.units
            )
            self._last_heads[slots] = self.make_heads(data)
        return self._last_heads[slots]

    @cached_property
    def _last_heads(self) -> dict[tuple[Expression, ...], AllHeads]:
        """The heads on the last slots, by these, since several moves use the same features."""
        return {}

    @cached_property
    def on_cpu(self) -> Task:
        """The same task without a GPU, and with a plan for the CPU."""
        settings = replace(self.settings, device="cpu")
        return replace(self, settings=settings, plan=_plan(settings, len(self.data.slots)), origin=None)

    @cached_property
    def network(self) -> PSRN:
        if self.origin is not None:
            return self.origin.network
        return PSRN(
            self.plan.inputs,
            self.settings.operators,
            self.plan.layers,
            last_operators=self.plan.last,
            max_memory=self.settings.max_memory,
        )

    def warm_up(self) -> None:
        """Let a GPU compile what a pass needs, in a thread of its own; `warm_network` waits for it.

        Python waits for that thread before it exits: a thread in the middle of compiling would abort the process.
        """
        if self.plan.gpu and not self._warming:
            rows = min(NETWORK_ROWS, self.data.target.rows)
            arguments = (rows, self.with_spares(self.settings.top_k))
            thread = Thread(target=self._warm_up, args=arguments, name="symenum-warm-up")
            self._warming.append(thread)
            thread.start()

    def _warm_up(self, rows: int, k: int) -> None:
        try:
            self.network.warm_up(rows, k, device=self.settings.device)
        except (RuntimeError, MemoryError):  # the first pass meets the same error, and the search deals with it
            return

    @cached_property
    def _warming(self) -> list[Thread]:
        """The thread that makes the GPU ready, once it has begun."""
        return []

    @property
    def warm_network(self) -> PSRN:
        """The network, once the GPU is ready for it."""
        for thread in (self.origin or self)._warming:
            thread.join()
        return self.network

    @cached_property
    def scan_ahead(self) -> ScanAhead:
        """What is scanned while other moves have their turns; one for all tasks of a search."""
        return self.origin.scan_ahead if self.origin is not None else ScanAhead()

    def ranking(self, law: Expression | None) -> tuple[Variable, ...]:
        """All variables, those that say most about what the law leaves of y first; None: about y."""
        if law not in self._last_ranking:
            data = self.data
            left = data.target.y if law is None else data.target.y - data.evaluate(law)
            names = list(data.columns)
            order = ranked_columns([*data.columns.values()], left, data.target.weight, self.settings.seed)
            self._last_ranking.clear()
            self._last_ranking[law] = tuple(Variable(names[at]) for at in order)
        return self._last_ranking[law]

    @cached_property
    def _last_ranking(self) -> dict[Expression | None, tuple[Variable, ...]]:
        """The last ranking, by its law, since several passes ask for the same."""
        return {}

    def material(self, law: Expression | None, count: int) -> tuple[Variable, ...]:
        """At most `count` variables that the next parts of a law are made of, or its own if these are more.

        Its own come first, then those that say most about what it leaves of y.
        """
        columns = self.data.columns
        if len(columns) <= count:
            return tuple(Variable(name) for name in columns)
        own = () if law is None else tuple(Variable(name) for name in variables(law))
        others = tuple(one for one in self.ranking(law) if one not in own)
        return own + others[: max(0, count - len(own))]

    def token_context_after(self, law: Expression | None) -> TokenContext:
        """What token generators work with; of many columns, their tokens are made of the law's material."""
        if len(self.data.columns) <= len(self.data.slots):
            return self.token_context
        return replace(self.token_context, material=self.material(law, len(self.data.slots)))

    @cached_property
    def token_context(self) -> TokenContext:
        """What token generators work with, on all columns."""
        rows = sample_rows(self.data.target.rows, _TOKEN_ROWS, self.settings.seed, "rows that tokens are judged on")
        target = self.data.target.at(rows)
        columns = {name: column[rows] for name, column in self.data.columns.items()}
        span = self.settings.constant_range if self.settings.constants else None
        return TokenContext(self.settings.operators, columns, target.y, target.weight, span)

    @cached_property
    def template_parts(self) -> dict[Template, object]:
        """What the move of a template has laid out, for all its turns; see `template_search`."""
        return {}

    @cached_property
    def part_tables(self) -> dict[object, object]:
        """What is known of the part of a law that is being searched, by that part; see `part_search`."""
        return {}

    @cached_property
    def scale(self) -> float:
        """The loss of the mean of y, or 1 where that is zero up to rounding: losses in its units are of order 1.

        It counts from the front's zero, as the losses that it divides must.
        """
        y, weight = self.target.y, self.target.weight
        mean_loss = self.settings.loss.total(y, torch.full_like(y, float((y * weight).sum())), weight)
        front = self.empty_front
        return mean_loss - front.zero if front.floor < mean_loss < float("inf") else 1.0

    @property
    def partial(self) -> bool:
        """Whether the working rows are a part of the rows."""
        return self.data.target.rows < self.target.rows

    def judge(self, candidate: Candidate) -> Candidate | None:
        """The candidate with its loss on all rows in place of the working rows; None where that is not finite."""
        if not self.partial:
            return candidate
        values = evaluate(candidate.expression, self.columns)
        loss = self.settings.loss.total(self.target.y, values, self.target.weight)
        return Candidate(candidate.expression, loss) if loss < float("inf") else None


def make_task(names: Sequence[str], X: Tensor, target: Target, settings: Settings) -> Task:
    """The task for X (rows, variables), float64, finite and on the CPU, and its target."""
    allowed = [i for i, name in enumerate(names) if name not in settings.forbidden]
    # To choose columns takes a copy of the table: not where all are allowed.
    used = [allowed[i] for i in informative_columns(X if len(allowed) == len(names) else X[:, allowed])]
    _check_variables(settings, {names[i] for i in used})
    rows = sample_rows(len(X), _WORKING_ROWS, settings.seed, "rows that are worked on")
    working = target.at(rows)
    scanned = working
    factors = settings.loss.row_weights(working.y)
    if factors is not None:  # the loss is least squares with other weights
        weight = working.weight * factors
        scanned = Target(working.y, weight / weight.sum())
    values = _part(X, used, rows)
    slots = [Variable(names[i]) for i in used]
    data = make_data(slots, values, scanned, SCAN_ROWS, settings.seed, settings.prior.units)
    if len(used) > _ALL_COLUMNS:
        chosen = _chosen_slots(slots, values, scanned, settings)
        data = replace(data, slots=chosen, stand_ins=chosen)
    plan = _plan(settings, len(data.slots))
    columns = {name: X[:, i].contiguous() for i, name in enumerate(names)}
    return Task(columns, target, data, working, settings, plan, get_generator(settings.token_generator))


def _part(X: Tensor, columns: Sequence[int], rows: Tensor) -> Tensor:
    """These columns and rows (int64, ascending) of X (rows, features): (columns, rows), contiguous in each row.

    A view where these are all: a table may take a quarter of the memory, so copies of it count.
    """
    values = X.T if len(columns) == X.shape[1] else X.T[list(columns)]
    values = values if len(rows) == len(X) else values[:, rows]
    return values if values.stride(1) == 1 else values.contiguous()


def _chosen_slots(
    slots: Sequence[Variable], values: Tensor, target: Target, settings: Settings
) -> tuple[Expression, ...]:
    """The slots that say most about the target, and those that the user's laws need, in their order.

    `values` (slots, rows).
    """
    needed = {*settings.prior.required, *(name for law in settings.guesses for name in variables(law))}
    order = ranked_columns([*values], target.y, target.weight, settings.seed)[:_CHOSEN_COLUMNS]
    return tuple(slot for at, slot in enumerate(slots) if at in set(order) or slot.name in needed)


def _plan(settings: Settings, variables: int) -> Plan:
    return make_plan(
        variables,
        settings.operators,
        layers=settings.layers,
        inputs=settings.inputs,
        max_memory=settings.max_memory,
        gpu=bool(choose_devices(settings.device, work=ANY_WORK)),
        seconds=math.inf if settings.planned_time is None else settings.planned_time,
    )


def _check_variables(settings: Settings, used: set[str]) -> None:
    """Refuse required variables and guesses in variables that the search leaves out; `used` are the others."""
    wanted = {"required_variables": set(settings.prior.required)}
    if settings.template is not None:
        template = settings.template
        parts = (template.skeleton, *(argument for call in template.calls for argument in call.arguments))
        known = {call.place for call in template.calls} | set(template.constants)
        wanted["template"] = {name for part in parts for name in variables(part)} - known
    wanted["guesses"] = {name for law in settings.guesses for name in variables(law)}
    for parameter, names in wanted.items():
        if names - used:
            raise ValueError(
                f"{parameter} has {min(names - used)}, which is the same in all rows, or equal to another variable: "
                "the data cannot tell what it does; leave it out, or take the other one"
            )
