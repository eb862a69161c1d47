"""What each move of a search does in one turn. Which move has the next turn is decided in `schedule`.

A move is a value. It gets the task and the state, and gives back candidates and the state with its own part changed:
the slots and the generator of the network, the laws that have been polished, how far a head has come. The front is the
business of `step`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from symenum.core.budget import Budget
from symenum.expressions.candidate import Candidate
from symenum.fitting.free_constants import form_of
from symenum.heads.stages import Stage, in_turn
from symenum.heads.work import Sizes
from symenum.search.front_update import near
from symenum.search.growth import bases, continued, grown, growth_work, parts_of_continuation, simple_bases
from symenum.search.noisy_rows import law_with_growing_noise, looking_work, with_least_squares
from symenum.search.part_search import PART_TURN, LawPart, is_nearly_right, parts_to_search, searched_part
from symenum.search.passes import collected, launched, network_pass
from symenum.search.polish import loosened, pruned
from symenum.search.problem import Plan, Task
from symenum.search.state import State

__all__ = [
    "MOVES",
    "NETWORK",
    "Growth",
    "HeadOnVariables",
    "HeadsOnTokens",
    "Move",
    "Network",
    "NoisyRows",
    "Parts",
    "Residuals",
    "Variants",
]

Found = tuple[list[Candidate], State]

NETWORK = "network"
"""The name of the move that all others make room for."""

GROWTH = "growth"
"""The name of the move that goes on from the law of the lowest price."""
SIMPLE_GROWTH = "growth of simple laws"
"""The name of the move that goes on from the simplest laws."""

NOISY_ROWS = "rows by their noise"
"""The name of the move that searches with rows weighed by noise that grows."""
_FIRST_LOOK = 2.0  # work units: by then the opening has found what the residuals tell the noise by

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_LAWS_AT_ONCE = 24  # laws whose variants are tried in one turn,
_VARIANTS_WORK = 0.9  # and the work units of that turn


class Move(Protocol):
    """One kind of work.

    `opens`: whether it may belong to the opening.
    """

    @property
    def name(self) -> str: ...
    @property
    def opens(self) -> bool: ...

    def work(self, state: State) -> float:
        """Work units of the next turn, estimated before it."""
        ...

    def ready(self, state: State) -> bool:
        """Whether there is anything to do for it now."""
        ...

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        """One turn: candidates, with their losses on the working rows, and the state after it."""
        ...


@dataclass(frozen=True)
class HeadOnVariables:
    """A stage of the heads on the raw variables, one slice in a turn; all slices in each of `rounds` rounds."""

    stage: Stage
    rounds: int = 1
    opens: bool = True

    @property
    def name(self) -> str:
        return self.stage.name

    def work(self, state: State) -> float:
        return self.stage.work_of(state.record(self.name).part)

    def ready(self, state: State) -> bool:
        return True

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        record = state.record(self.name)
        found = self.stage.run(record.part, budget)
        if budget.over():  # the slice may have been cut short, and the next one may take long to lay out
            return found, state
        record = replace(record, part=record.part + 1)
        if self.stage.scan(record.part) is None:
            record = replace(record, part=0, rounds=record.rounds + 1, ended=record.rounds + 1 == self.rounds)
        return found, state.with_record(record)


@dataclass(frozen=True)
class NoisyRows:
    """The quick stages on the raw variables once more, with rows weighed by the noise, if that grows with the values.

    The first turn looks whether the laws of the front say so. If they do, each further turn is one slice of a stage; if
    not, the next look comes when twice the work is done. The finds are fitted anew with the weights of the user.
    `task`: of the search.
    """

    task: Task
    name: ClassVar[str] = NOISY_ROWS
    opens: bool = True

    def work(self, state: State) -> float:
        part = state.record(self.name).part
        found = self.task.quick_slice(part - 1) if part else None
        if found is None:
            return looking_work(self.task.heads.sizes)
        stage, number = found
        return stage.work_of(number)

    def ready(self, state: State) -> bool:
        record = state.record(self.name)
        return bool(record.part) or sum(one.work for one in state.records) >= _FIRST_LOOK * 2**record.rounds

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        record = state.record(self.name)
        fitted = law_with_growing_noise(task, state.front, budget)
        if fitted is None:
            return [], state.with_record(replace(record, part=0, rounds=record.rounds + 1))
        found: list[Candidate] = []
        place = task.under(fitted.noise, fitted.law).quick_slice(record.part - 1) if record.part else None
        if place is not None:
            stage, number = place
            found = stage.run(number, budget)
        record = replace(record, part=record.part + 1)
        if self.task.quick_slice(record.part - 1) is None:
            record = replace(record, part=0, rounds=record.rounds + 1, ended=True)
        return with_least_squares(task, found, budget), state.with_record(record)


@dataclass(frozen=True)
class HeadsOnTokens:
    """The quick stages of the heads on the slots of a pass of the network, one slice in a turn.

    The slots stay until all slices are done; then come those of the last pass. `slice_work`: of a slice, on average.
    """

    slice_work: float
    name: ClassVar[str] = "heads on tokens"
    opens: bool = False

    def work(self, state: State) -> float:
        return self.slice_work

    def ready(self, state: State) -> bool:
        record = state.record(self.name)
        return record.part > 0 or record.pass_seen < state.passes

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        record = state.record(self.name)
        if not record.part:
            record = replace(record, pass_seen=state.passes)
            state = replace(state, head_slots=state.slots)
        slices = list(in_turn(task.heads_on(state.head_slots).on_slots()))
        found: list[Candidate] = []
        if record.part < len(slices):
            stage, number = slices[record.part]
            found = stage.run(number, budget)
        record = replace(record, part=record.part + 1)
        if record.part >= len(slices):
            record = replace(record, part=0, rounds=record.rounds + 1)
        return found, state.with_record(record)


@dataclass(frozen=True)
class Variants:
    """The laws of the front, and those near it, without one of their parts and with one more coefficient."""

    name: ClassVar[str] = "variants"
    opens: bool = False

    def work(self, state: State) -> float:
        return _VARIANTS_WORK

    def ready(self, state: State) -> bool:
        return bool(_unpolished(state))

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        laws = _unpolished(state)[:_LAWS_AT_ONCE]
        expressions = [law.expression for law in laws]
        on_front = [law.expression for law in laws if law in state.front.entries]
        found = pruned(task, on_front, budget) + loosened(task, expressions, budget)
        return found, state.with_polished(tuple(expressions))


def _unpolished(state: State) -> list[Candidate]:
    """The laws of the front, the best first, and the runners-up near it, whose variants were not tried yet."""
    known = set(state.polished)
    laws = [*reversed(state.front), *near(state.front, state.runners_up)]
    return [law for law in laws if law.expression not in known]


@dataclass(frozen=True)
class Growth:
    """A law of the front with one more part at any place of it; what it no longer needs then leaves.

    One law in a turn, the one of the lowest price whose form has not grown yet; or, if `simple`, the simplest one, and
    runners-up that are nearly as good as the front are bases too. Without noise both take simple laws: the price of a
    long law that is nearly right is low there, and the law itself grows from a simple one. It begins after the opening:
    what heads find in the first seconds is found later otherwise.
    """

    sizes: Sizes
    simple: bool = False
    opens: bool = False

    @property
    def name(self) -> str:
        return SIMPLE_GROWTH if self.simple else GROWTH

    def work(self, state: State) -> float:
        return growth_work(self.sizes, self._bases(state)[0].complexity)

    def ready(self, state: State) -> bool:
        return bool(self._bases(state))

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        law = self._bases(state)[0].expression
        return grown(task, law, budget), state.with_grown(form_of(law))

    def _bases(self, state: State) -> list[Candidate]:
        if self.simple or state.front.shows_no_noise:
            return simple_bases(state)
        return bases(state.front, state.grown)


@dataclass(frozen=True)
class Residuals:
    """A law of the front with a further term, and then with a further factor, which heads find in what it leaves of y.

    One law after another: the cheapest of those that were not continued yet.
    """

    turn_work: float
    name: ClassVar[str] = "residuals"
    opens: bool = False

    def work(self, state: State) -> float:
        return self.turn_work

    def ready(self, state: State) -> bool:
        return bool(state.continuing or _not_continued(state))

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        record = state.record(self.name)
        if not record.part:  # the front may change between the turns of one law
            state = replace(state, continuing=(_not_continued(state)[0].expression,))
        (law,) = state.continuing
        found = continued(task, law, record.part, budget)
        record = replace(record, part=record.part + 1)
        if record.part == parts_of_continuation(task):
            record = replace(record, part=0, rounds=record.rounds + 1)
            state = state.with_continued(form_of(law))
        return found, state.with_record(record)


@dataclass(frozen=True)
class Parts:
    """A part of a nearly right law, searched by the heads as a table of its own; some slices in a turn.

    One part after another, each until its slices are done.
    """

    name: ClassVar[str] = "parts"
    opens: bool = True

    def work(self, state: State) -> float:
        return PART_TURN

    def ready(self, state: State) -> bool:
        return is_nearly_right(state.front) and bool(state.parting or _next_part(state))

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        record = state.record(self.name)
        if not state.parting:  # the front may change between the turns of one part
            one = _next_part(state)
            if one is None:
                return [], state
            record, state = replace(record, part=0), replace(state, parting=(one.rest, one.part))
        part = LawPart(*state.parting)
        found, following = searched_part(task, part, record.part, budget)
        if budget.over():  # the slices may have been cut short
            return found, state
        if following is None:
            record = replace(record, part=0, rounds=record.rounds + 1)
            state = state.with_parted(part.form)
        else:
            record = replace(record, part=following)
        return found, state.with_record(record)


def _next_part(state: State) -> LawPart | None:
    """The next part of a good law of the front that was not searched yet."""
    return next(parts_to_search(state.front, state.parted), None)


def _not_continued(state: State) -> list[Candidate]:
    """The laws of the front whose residuals were not searched yet; the mean is no law."""
    return [law for law in bases(state.front, state.continued) if law.complexity]


@dataclass(frozen=True)
class Network:
    """A pass of the network, or a batch of them, with tokens in its slots (the paper's Algorithm 2).

    On a GPU a batch has two turns: one proposes its tokens and launches it, the other one fits what it has found. In
    between the GPU scans, and the CPU is free for other moves.
    """

    plan: Plan
    name: ClassVar[str] = NETWORK
    opens: bool = False

    def work(self, state: State) -> float:
        return self.plan.work / 2 if self.plan.gpu else self.plan.work

    def ready(self, state: State) -> bool:
        return True

    def run(self, task: Task, state: State, rng: np.random.Generator, budget: Budget) -> Found:
        if not self.plan.gpu:  # a batch that a GPU was scanning is lost with it
            return network_pass(task, replace(state, scanning=None), rng, budget)
        if state.scanning is None:
            return [], launched(task, state, rng, budget)
        return collected(task, state, state.scanning, budget)


MOVES = frozenset(
    [*(move.name for move in (NoisyRows, HeadsOnTokens, Variants, Residuals, Parts, Network)), GROWTH, SIMPLE_GROWTH]
)
"""The names of the moves that are no stage of the heads."""
