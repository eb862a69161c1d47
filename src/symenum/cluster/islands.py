"""Islands: one search by many workers, each with tokens and random numbers of its own; laws go between them.

An island is a state of the search. It goes to a worker, takes some turns there and comes back; then its finds join the
common front. With the front each island gets, when it goes out again,

- the laws of all the others, whose parts its token generator learns from;
- its share of the work that is the same on every island, so that nothing is done twice: of the heads some stages, whose
  slices go on where the last island stopped, and every n-th of the laws to polish, to grow and to continue, and of the
  parts of laws that are searched by themselves.

With an iteration limit there are always `ISLANDS` of them, and rounds of fixed work: each goes out once in a round, and
all come back before they are merged in the order of their numbers. So the front depends on seed and limit only. With a
time limit alone there are as many islands as workers, and each goes out again at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from symenum.cluster.crew import Crew, Piece, Result, Worker
from symenum.cluster.errors import ClusterError
from symenum.core.budget import Budget
from symenum.core.seeds import stream
from symenum.expressions import Expression
from symenum.fitting.free_constants import form_of
from symenum.search.checkpoint import Checkpoint, ReadExpression, document_of, restored
from symenum.search.front_update import near, runners_up
from symenum.search.moves import GROWTH, NETWORK, SIMPLE_GROWTH, HeadsOnTokens, Parts, Residuals, Variants
from symenum.search.part_search import LawPart, parts_to_search
from symenum.search.problem import Task
from symenum.search.schedule import moves_of
from symenum.search.state import Record, State

__all__ = ["ISLANDS", "IslandSearch", "merged_with", "seed_of", "state_document", "state_from", "state_to_send"]

ISLANDS = 8
"""Islands of a search with an iteration limit, whatever the number of workers: more workers than that would idle, and
on fewer the islands take turns. A choice, not a measurement: with more of them each learns later what others found."""

_OWN_MOVES = frozenset([NETWORK, HeadsOnTokens.name, Variants.name, GROWTH, SIMPLE_GROWTH, Residuals.name, Parts.name])
"""Moves that depend on an island's tokens, or whose laws are dealt out; all others are the same on every island."""

_FIRST_ROUND, _ROUND_GROWTH, _LONGEST_ROUND = 0.1, 3.0, 4.0
"""Work units (about seconds of two cores) that an island takes in the first round, the factor from round to round, and
at most: a simple law ends a search in the first second, and later the 0.2 s that a state travels count little."""
_SHARE_OF_TIME, _SHORTEST = 0.05, 0.5
"""With a time limit alone: the part of it that an island is away, and the seconds that it is away at least."""
_SLACK = 5.0  # times the seconds that a turn should take: one slice may take a second, and its worker may be slow
_END, _END_SHARE = (
    0.5,
    0.1,
)  # seconds before the end of the time at which islands should be back; of a short time a part
_MOST_TURNS, _MOST_LAWS = 2000, 1000  # that the common state remembers; more would make checkpoints of megabytes


def seed_of(seed: int, island: int) -> int:
    """The seed of an island; that of the search for the first one."""
    return seed if not island else int(stream(seed, f"island {island}").integers(1 << 31))


def state_document(state: State, generator: str) -> dict[str, Any]:
    """A state as plain values; `generator`: the name of the token generator."""
    return document_of(Checkpoint(state, replace(state.front, entries=()), generator, ""))


def state_from(document: Any, read: ReadExpression) -> State:
    """The state of `state_document`; ClusterError where it is none."""
    try:
        return restored(Path("an island"), document, read).state
    except ValueError as error:
        raise ClusterError(f"the state of an island cannot be read: {error}") from error


def shared_moves(task: Task) -> tuple[str, ...]:
    """The moves that are the same on every island, so that each is on one island at a time."""
    return tuple(move.name for move in moves_of(task) if move.name not in _OWN_MOVES)


def state_to_send(
    merged: State, own: State, shared: Sequence[str], stages: frozenset[str], share: tuple[int, int]
) -> State:
    """The state that an island goes out with: its own tokens, the common front, and its share of the common work.

    `stages`: those of the `shared` moves that it holds. `share` (i, n): of n parts of the laws the i-th is its own.
    """
    part, parts = share
    laws = [*reversed(merged.front), *near(merged.front, merged.runners_up)]
    others = [law.expression for number, law in enumerate(laws) if number % parts != part]
    forms = tuple(dict.fromkeys(map(form_of, others)))
    # By what it is and not by its place in the list, which changes with the front while an island is at work on it.
    left = [one.form for one in parts_to_search(merged.front, merged.parted)]
    mine = [LawPart(*own.parting).form] if own.parting else []
    others_parts = [form for form in left if crc32(str(form).encode()) % parts != part and form not in mine]
    records = [record for record in own.records if record.move in _OWN_MOVES]
    for name in shared:
        record = merged.record(name)
        records.append(record if name in stages or record.ended else Record(name, ended=True))
    return replace(
        own,
        front=merged.front,
        runners_up=merged.runners_up,
        polished=(*merged.polished, *others),
        grown=(*merged.grown, *forms),
        continued=(*merged.continued, *forms),
        parted=(*merged.parted, *others_parts),
        records=tuple(records),
        refused=(),
        history=(),
    )


def merged_with(merged: State, sent: State, back: State, stages: frozenset[str], max_complexity: int) -> State:
    """The common state with what an island has done since it was sent out."""
    records = {record.move: record for record in merged.records}
    for record in back.records:
        before = sent.record(record.move)
        if record.move in stages:
            records[record.move] = record
        elif record.move in _OWN_MOVES and record != before:
            known = records.get(record.move, Record(record.move))
            records[record.move] = replace(
                record,
                turns=known.turns + record.turns - before.turns,
                work=known.work + record.work - before.work,
                gain=known.gain + record.gain - before.gain,
                seconds=known.seconds + record.seconds - before.seconds,
            )
    reasons = [one.reason for one in back.refused for _ in range(one.count)]
    return replace(
        merged.with_refused(reasons),
        iteration=merged.iteration + back.iteration - sent.iteration,
        front=merged.front.update(back.front, max_complexity),
        runners_up=runners_up([*merged.runners_up, *back.runners_up]),
        generator=back.generator,
        slots=back.slots,
        scored=merged.scored + back.scored - sent.scored,
        passes=merged.passes + back.passes - sent.passes,
        polished=_with_new(merged.polished, sent.polished, back.polished),
        grown=_with_new(merged.grown, sent.grown, back.grown),
        continued=_with_new(merged.continued, sent.continued, back.continued),
        parted=_with_new(merged.parted, sent.parted, back.parted),
        records=tuple(records.values()),
        history=(*merged.history, *back.history)[-_MOST_TURNS:],
        opening_work=max(merged.opening_work, back.opening_work),
    )


def _with_new(
    known: tuple[Expression, ...], sent: tuple[Expression, ...], back: tuple[Expression, ...]
) -> tuple[Expression, ...]:
    """What is known to be done, and what the island has done since."""
    before = {*known, *sent}
    return (*known, *(one for one in back if one not in before))[-_MOST_LAWS:]


@dataclass(frozen=True)
class _Away:
    """An island that is with a worker, or waits for the others of its round."""

    sent: State
    stages: frozenset[str]


@dataclass
class IslandSearch:
    """A search on a crew; an `Advance` of `symenum.search.run`, and the source of the crew's pieces.

    `data`: the problem, which `take_turns` of `symenum.estimator.islands` understands. `islands`: states to go on from,
    where an earlier run has left them. `max_iterations`: steps of all islands together.
    """

    task: Task
    crew: Crew
    data: bytes
    read: ReadExpression
    max_time: float | None = None
    max_iterations: int | None = None
    islands: list[State] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    began: float = field(default_factory=time.monotonic)
    warn: Callable[[str], None] = lambda line: None
    rounds: int = 0

    def __post_init__(self) -> None:
        self._shared = shared_moves(self.task)
        self._away: dict[int, _Away] = {}
        self._back: dict[int, State] = {}
        self._waiting: list[int] = []  # islands that go out in this round
        self._idle: set[int] = set()  # islands that had no move left when they were out last
        self._failures = 0
        self._merged: State | None = None
        self._changed = False
        self._earlier = 0.0
        self._budget = Budget()
        self._quota: dict[int, int] = {}  # steps of each island in this round

    @property
    def by_rounds(self) -> bool:
        """Whether the front must not depend on the workers."""
        return self.max_iterations is not None

    # As what takes a search on

    def __call__(self, state: State, budget: Budget) -> State | None:
        if self._merged is None:
            self._earlier = state.elapsed
        self._merged, self._changed, self._budget = state, False, budget
        if not self.islands:
            count = ISLANDS if self.by_rounds else max(1, len(self.crew.workers))
            self.islands = [replace(state, seed=seed_of(state.seed, number)) for number in range(count)]
        if self.by_rounds and not self._away:
            self._waiting = self._next_round(state)
            if not self._waiting:
                return None
        self.crew.work(self, budget)
        if not self._changed and not budget.over() and len(self._idle) == len(self.islands) and not self._away:
            return None
        return replace(self._merged, elapsed=self._earlier + self.clock() - self.began)

    def _next_round(self, state: State) -> list[int]:
        """The islands that go out in the next round; each may take an even part of the steps that are left."""
        able = [number for number in range(len(self.islands)) if number not in self._idle]
        self.rounds += 1
        if self.max_iterations is None or not able:
            return able
        each, rest = divmod(max(0, self.max_iterations - state.iteration), len(able))
        self._quota = {number: each + (place < rest) for place, number in enumerate(able)}
        return [number for number in able if self._quota[number]]

    def said(self) -> str:
        workers = sorted(self.crew.workers, key=lambda worker: worker.name)
        names = f"{len(workers)} worker{'s' * (len(workers) != 1)}, {len(self.islands)} islands"
        lost = f", {self.crew.lost} pieces given to others" if self.crew.lost else ""
        return f"{names}{lost}"

    # As a source of pieces

    def next(self, worker: Worker) -> Piece | None:
        number = self._next_island()
        if number is None or self._merged is None:
            return None
        left = self._budget.seconds_left()
        end = _END if self.max_time is None else min(_END, _END_SHARE * self.max_time)
        if left is not None and left <= end:
            return None
        stages = self._free_stages()
        state = state_to_send(self._merged, self.islands[number], self._shared, stages, self._share(number))
        self._away[number] = _Away(state, stages)
        seconds = self._seconds_away()
        document = {
            "state": state_document(state, self.task.settings.token_generator),
            "steps": self._quota.get(number),
            "work": self._work() if self.by_rounds else None,
            "seconds": None if self.by_rounds else seconds,
            "device": self._device(worker),
        }
        limit = None if left is None else left - end
        return Piece("island", number, document, {}, self.data, _SLACK * seconds, limit)

    def _next_island(self) -> int | None:
        if self.by_rounds:
            return self._waiting.pop(0) if self._waiting else None
        at_home = [number for number in range(len(self.islands)) if number not in self._away]
        if not at_home and len(self.islands) < len(self.crew.workers) and self._merged is not None:
            fresh = replace(self._merged, seed=seed_of(self.islands[0].seed, len(self.islands)), generator=None)
            self.islands.append(fresh)  # a worker has joined
            at_home = [len(self.islands) - 1]
        usable = [number for number in at_home if number not in self._idle]
        return min(usable, key=lambda number: (self.islands[number].iteration, number), default=None)

    def _free_stages(self) -> frozenset[str]:
        """Stages for one island: of those that nobody holds its even share, cheap and dear ones."""
        assert self._merged is not None
        held = {name for away in self._away.values() for name in away.stages}
        merged = self._merged
        free = [name for name in self._shared if name not in held and not merged.record(name).ended]
        free.sort(key=lambda name: merged.record(name).work)  # a stable order: equal ones as in the table of moves
        others = len(self._waiting) if self.by_rounds else len(self.islands) - len(self._away) - 1
        return frozenset(free[:: others + 1])

    def _share(self, number: int) -> tuple[int, int]:
        return (number + self.rounds) % len(self.islands), len(self.islands)

    def _work(self) -> float:
        grown = _FIRST_ROUND * _ROUND_GROWTH ** min(self.rounds - 1, 10)  # the exponent's limit only avoids an overflow
        return min(grown, _LONGEST_ROUND)

    def _seconds_away(self) -> float:
        if self.by_rounds or self.max_time is None:
            return _LONGEST_ROUND
        return max(_SHORTEST, min(_LONGEST_ROUND, _SHARE_OF_TIME * self.max_time))

    def _device(self, worker: Worker) -> str:
        """Where workers say what GPUs they have, those without one keep off the GPUs of their machine."""
        told = any(other.place.gpus for other in self.crew.workers)
        device = self.task.settings.device
        return "cpu" if told and not worker.place.gpus and device == "auto" else device

    def done(self, piece: Piece, result: Result) -> None:
        number: int = piece.key
        back = state_from(result.document["state"], self.read)
        if not result.document["more"]:
            self._idle.add(number)
        self._back[number] = back
        if not self.by_rounds or (not self._waiting and len(self._back) == len(self._away)):
            self._merge()

    def failed(self, piece: Piece, error: str) -> None:
        """The island stays where it was; if that happens to every island in a row, the search ends with the error."""
        number: int = piece.key
        self.warn(f"island {number + 1} could not take its turns ({error}); it goes on where it was")
        self._away.pop(number)
        self._failures += 1
        if self._failures >= max(2, len(self.islands)):
            raise ClusterError(f"no island can take its turns: {error}")
        self._changed = not self._away and not self._waiting
        if self._back and self.by_rounds and not self._waiting and len(self._back) == len(self._away):
            self._merge()

    def _merge(self) -> None:
        assert self._merged is not None
        for number in sorted(self._back):
            back, away = self._back[number], self._away.pop(number)
            limit = self.task.settings.max_complexity
            self._merged = merged_with(self._merged, away.sent, back, away.stages, limit)
            self.islands[number] = replace(back, history=())
        self._back.clear()
        self._failures = 0
        self._changed = True
        if self._idle and len(self._idle) < len(self.islands):
            self._idle.clear()  # what others have found gives them work again

    def finished(self) -> bool:
        if self._changed:
            return True
        return not self.by_rounds and not self._away and len(self._idle) == len(self.islands)
