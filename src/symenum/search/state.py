"""What a search knows between two steps: plain values, which can be written down and taken up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from symenum.expressions import Expression
from symenum.expressions.candidate import Candidate
from symenum.front import Front

__all__ = ["Batch", "Record", "Refusals", "State", "StepReport", "Turn", "UnknownForms"]

_MAX_HISTORY = 2000  # turns that are remembered for `schedule_`, the last ones: an hour on two cores
_MAX_POLISHED = 400  # laws that are remembered as polished, grown, continued and parted, the last ones


@dataclass(frozen=True)
class Record:
    """What one move has done so far. The rule of the schedule reads it, so nothing in it but `seconds` is measured.

    `turns` are all turns, `part` is the number of its next one in the present round, `rounds` counts finished rounds.
    `work` is in work units and `gain` in decades of the front, see `schedule`. `pass_seen`: the number of network turns
    at its last turn. `ended`: it has nothing left to do, or it has failed with `error`.
    """

    move: str
    turns: int = 0
    part: int = 0
    rounds: int = 0
    pass_seen: int = 0
    work: float = 0.0
    gain: float = 0.0
    seconds: float = 0.0
    ended: bool = False
    error: str = ""


@dataclass(frozen=True)
class Turn:
    """One turn of a move: when it began and how long it took, in seconds of the search; and what it added.

    `gain` is in decades of the front, see `schedule`.
    """

    iteration: int
    move: str
    began: float
    seconds: float
    gain: float


@dataclass(frozen=True)
class Batch:
    """Passes of the network on one target: the slots of each, and the rows that all are scanned on with their weights.

    `due`: the work units of the whole search after which its finds are asked for, where the CPU does other work
    meanwhile.
    """

    sets: tuple[tuple[Expression, ...], ...]
    rows: tuple[int, ...]
    weights: tuple[float, ...]
    due: float = 0.0


@dataclass(frozen=True)
class Refusals:
    """How often a law was kept off the front for that reason (`symenum.sanity`)."""

    reason: str
    count: int


@dataclass(frozen=True)
class UnknownForms:
    """The forms of one unknown function of a template that were found so far, the best first; see `template_search`."""

    function: str
    forms: tuple[Expression, ...]


@dataclass(frozen=True)
class State:
    """All that a search knows after `iteration` steps; random numbers follow from seed and iteration.

    `generator`: the token generator's own state, once it has begun. `slots`: those of the last pass of the network.
    `reward`: the best since the generator has last learned. `runners_up`: finds that nearly stand on the front.
    `polished`: laws whose variants were tried. `grown`: forms of laws that a further part was inserted into.
    `continued`: forms of laws whose residuals the heads have searched, for a further term and a further factor;
    `continuing`: the law, if any, that waits for the factor. `parted`: forms of the parts of laws that were searched as
    tables of their own, and `parting`: the rest and the part, if any, that are being searched; see `part_search`.
    `head_slots`: the slots that the heads work on.
    `on_cpu`: a GPU was lost, and the search went on without it. `refused`: laws that sanity kept off the front.
    `scanning`: the batch that a GPU scans while other moves have their turns.
    `unknown_forms`: with a template, what was found for its unknown functions.
    """

    seed: int
    iteration: int
    front: Front
    generator: object = None
    scored: int = 0  # candidates of the network's passes
    passes: int = 0  # of the network
    elapsed: float = 0.0  # seconds
    slots: tuple[Expression, ...] = ()
    reward: float = 0.0
    runners_up: tuple[Candidate, ...] = ()
    polished: tuple[Expression, ...] = ()
    grown: tuple[Expression, ...] = ()
    continued: tuple[Expression, ...] = ()
    continuing: tuple[Expression, ...] = ()
    parted: tuple[Expression, ...] = ()
    parting: tuple[Expression, ...] = ()
    head_slots: tuple[Expression, ...] = ()
    records: tuple[Record, ...] = ()
    history: tuple[Turn, ...] = ()
    opening_work: float = 0.0  # work units before the first pass of the network
    on_cpu: bool = False
    refused: tuple[Refusals, ...] = ()
    scanning: Batch | None = None
    unknown_forms: tuple[UnknownForms, ...] = ()

    @property
    def opened(self) -> bool:
        """Whether the opening is over: the network has begun."""
        return self.passes > 0 or self.scanning is not None

    @property
    def work(self) -> float:
        """Work units of all turns so far."""
        return sum(record.work for record in self.records)

    def record(self, move: str) -> Record:
        """The record of the move of that name; an empty one before its first turn."""
        return next((record for record in self.records if record.move == move), Record(move))

    def with_record(self, record: Record) -> State:
        """The state with this record in place of the move's last one."""
        by_name = {old.move: old for old in self.records}
        by_name[record.move] = record
        return replace(self, records=tuple(by_name.values()))

    def with_refused(self, reasons: Iterable[str]) -> State:
        """The state that has counted these refusals, too."""
        counts = Counter({one.reason: one.count for one in self.refused})
        counts.update(reasons)
        return replace(self, refused=tuple(Refusals(reason, counts[reason]) for reason in sorted(counts)))

    def with_polished(self, laws: tuple[Expression, ...]) -> State:
        """The state that remembers these laws as polished."""
        return replace(self, polished=(*self.polished, *laws)[-_MAX_POLISHED:])

    def with_grown(self, form: Expression) -> State:
        """The state that remembers this form of a law as grown."""
        return replace(self, grown=(*self.grown, form)[-_MAX_POLISHED:])

    def with_continued(self, form: Expression) -> State:
        """The state that remembers this form of a law as continued."""
        return replace(self, continued=(*self.continued, form)[-_MAX_POLISHED:], continuing=())

    def with_parted(self, form: Expression) -> State:
        """The state that remembers this form of a part as searched."""
        return replace(self, parted=(*self.parted, form)[-_MAX_POLISHED:], parting=())

    def timed(self, turn: Turn) -> State:
        """The state with the clock's view of its last turn."""
        record = self.record(turn.move)
        state = self.with_record(replace(record, seconds=record.seconds + turn.seconds))
        return replace(state, elapsed=turn.began + turn.seconds, history=(*self.history, turn)[-_MAX_HISTORY:])


@dataclass(frozen=True)
class StepReport:
    """What callbacks are told after each step.

    `stage` is the name of the move. Times in seconds; `time_left` is None without a time limit. `scored` counts the
    candidates of the network's passes, `rate` is that per second. `message`: the plan of the passes. `gain`: what the
    step added to the front, in decades. `errors`: the moves that have failed so far, and why. `where`: of a search on a
    cluster its workers, in words.
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
    passes: int = 0
    gain: float = 0.0
    errors: Mapping[str, str] | None = None
    where: str = ""
