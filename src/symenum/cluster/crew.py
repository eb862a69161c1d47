"""The driver's side: a crew of workers that does pieces of work, whatever becomes of single workers.

A *source* hands out pieces, one at a time to each worker, and takes their results. In between, the crew

- lets a worker in only if it has the driver's version and operators, and as much memory as the work needs;
- sends data along with the first piece for which a worker lacks them, and never again;
- gives a piece of a worker that has died, left or fallen silent to another one; the late answer is ignored;
- tries a piece that failed once more, on another worker where there is one, and then hands the error to the source;
- waits for workers for a while where there are none, and then says so.

Which worker does what never decides a result: a piece's result depends on the piece only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from symenum.cluster.errors import ClusterError, NoWorkersError
from symenum.cluster.executors import Executor, Place, Reply
from symenum.cluster.messages import Message, decode, encode, hash_of
from symenum.cluster.worker import BLOB, arithmetic, identity
from symenum.core.budget import Budget

__all__ = ["Crew", "Piece", "Result", "Source", "Worker"]

_GIB = 1 << 30
NO_WORKERS = 60.0
"""Seconds without any worker after which the driver gives up: a batch system may take so long to start one again."""
_LOOK = 1.0  # seconds between two looks at which workers are there
_WAIT = 0.2  # seconds that the driver waits for a reply before it looks at clocks and workers again
_IDLE = 0.005  # seconds between two looks while workers are there and the source has nothing for them
_SILENT = 30.0  # seconds beyond what a piece should take at most, after which its worker counts as hung: many times
# what starting Python and importing torch takes on a busy machine (4 s; benchmarks/cluster.py overhead)
_FACTOR = 4.0  # times what a piece should take at most: a machine may be shared
_FACTS = 60.0  # seconds for a worker's first answer, for which it imports torch from a disk that many read at once
_MOST_LOSSES = 5  # workers that one piece may lose: with so many, the piece itself is what kills them
_MOST_TRIES = 2  # of a piece that raises an error


@dataclass(frozen=True)
class Piece:
    """A piece of work: its kind, plain values, arrays, and the data (bytes) that it needs.

    `seconds`: what it should take at most, by which a hung worker is told. `limit`: after so many seconds the worker
    ends it with what it has. `key`: of the source, to know it again.
    """

    kind: str
    key: Any
    document: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    data: bytes = b""
    seconds: float = _SILENT
    limit: float | None = None


@dataclass(frozen=True)
class Result:
    """What a piece has given, the worker that did it, and the seconds that it took there."""

    document: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    worker: Worker
    seconds: float


class Source(Protocol):
    """Where pieces come from and results go to."""

    def next(self, worker: Worker) -> Piece | None:
        """The next piece, for this worker; None: there is none now."""
        ...

    def done(self, piece: Piece, result: Result) -> None: ...

    def failed(self, piece: Piece, error: str) -> None:
        """The piece could not be done, on two workers; `error` is the last one."""
        ...

    def finished(self) -> bool:
        """Whether all is done: asked before each look for replies."""
        ...


@dataclass
class Worker:
    """A worker as the crew knows it. `done` and `busy`: pieces and seconds that it has worked for this crew."""

    place: Place
    facts: Mapping[str, Any] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)  # hashes of the data that it has
    done: int = 0
    busy: float = 0.0

    @property
    def name(self) -> str:
        return self.place.name


@dataclass
class _Flight:
    """A piece that a worker has; None: the question what the worker is."""

    piece: Piece | None
    worker: Worker
    sent: float  # time.monotonic
    deadline: float


@dataclass
class _Trouble:
    """What has gone wrong with a piece so far, and where."""

    errors: int = 0
    losses: int = 0
    places: set[str] = field(default_factory=set)


class Crew:
    """The workers of an executor. `memory`: bytes that each must have. `note` gets a line for what users should know.

    `patience`: seconds without workers before NoWorkersError; `silence`: seconds beyond its time that a worker may take
    for a piece.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        memory: int = 0,
        note: Callable[[str], None] = lambda line: None,
        patience: float = NO_WORKERS,
        silence: float = _SILENT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.executor = executor
        self.memory = memory
        self.lost = 0  # pieces that were given to another worker
        self._note = note
        self._patience = patience
        self._silence = silence
        self._clock = clock
        self._workers: dict[str, Worker] = {}  # that may work
        self._refused: dict[str, str] = {}  # place -> why
        self._joining: set[str] = set()
        self._silent: dict[str, float] = {}  # places that did not answer in time -> when to ask them again
        self._source: Source | None = None  # while its pieces are done
        self._flights: dict[int, _Flight] = {}
        self._again: list[Piece] = []  # pieces that were lost or have failed once
        self._trouble: dict[int, _Trouble] = {}  # by id of the piece, which `_again` or a flight holds
        self._looked = -_LOOK
        self._last_seen = clock()

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Those that may work and are there."""
        return tuple(self._workers.values())

    @property
    def refused(self) -> Mapping[str, str]:
        """Workers that may not work, and why."""
        return dict(self._refused)

    def run(self, source: Source, budget: Budget) -> None:
        """Do the pieces of the source until it is finished or the budget is over; what runs then is given up."""
        try:
            self.work(source, budget)
        finally:
            self.drop()

    def work(self, source: Source, budget: Budget) -> None:
        """As `run`, but what runs at the end goes on, for the next call with the same source."""
        self._last_seen = self._clock()
        self._source = source
        while not source.finished() and not budget.over():
            self._look()
            self._hand_out(source)
            for reply in self.executor.gather(_WAIT if self._flights else 0.0):
                self._take(source, reply)
            self._give_up_the_silent()
            if not self._flights:
                self._wait_for_workers()
        if not budget.over():
            self._hand_out(source)  # so that nobody waits while the caller looks at what has come

    def drop(self) -> None:
        """Give up all pieces that are not done."""
        for ticket, flight in list(self._flights.items()):
            if flight.piece is not None:
                self.executor.cancel(ticket)
                del self._flights[ticket]
        self._again.clear()
        self._trouble.clear()
        self._source = None

    def gathered(self, count: int, seconds: float) -> tuple[Worker, ...]:
        """The workers, once `count` of them have joined or so many seconds are over."""
        end = self._clock() + seconds
        while len(self._workers) < count and self._clock() < end:
            self._look()
            for reply in self.executor.gather(min(_WAIT, max(0.0, end - self._clock()))):
                self._take_facts(reply)
            told = len(self._workers) + len(self._refused)
            if told and told >= len(self.executor.places()):
                break
            if not self._flights:  # nobody is there yet
                time.sleep(_WAIT)
        return self.workers

    # Who is there

    def _look(self) -> None:
        """See who has come and who has gone, once a second."""
        now = self._clock()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        places = {place.name: place for place in self.executor.places()}
        for known in (self._workers, self._refused, self._silent):
            for name in [*known]:
                if name not in places:
                    del known[name]
        for ticket, flight in list(self._flights.items()):
            if flight.worker.name not in places and flight.worker.place.addressed:
                self.executor.cancel(ticket)
                self._lose(ticket, f"{flight.worker.name} has left")
        for name, place in places.items():
            told = name in self._workers or name in self._refused or name in self._joining
            if not told and self._silent.get(name, now) <= now:
                self._ask(place)

    def _ask(self, place: Place) -> None:
        """Ask a place what it is; it may work once the answer is right."""
        message = encode(Message({"kind": "facts"}))
        try:
            ticket = self.executor.submit(place, message)
        except ClusterError:  # gone again
            return
        self._joining.add(place.name)
        now = self._clock()
        self._flights[ticket] = _Flight(None, Worker(place), now, now + _FACTS)

    def _take_facts(self, reply: Reply) -> None:
        flight = self._flights.pop(reply.ticket, None)
        if flight is None or flight.piece is not None:
            return
        worker = flight.worker
        self._joining.discard(worker.name)
        self._silent.pop(worker.name, None)
        if reply.lost:
            return
        why, document = self._why_not(worker.place, reply)
        if why is not None:
            self._refused[worker.name] = why
            self._note(f"{worker.name} does not take part: {why}")
            return
        worker.facts = {**document.get("who", {}), **document.get("result", {})}
        if worker.facts.get("arithmetic") != arithmetic():
            self._note(
                f"{worker.name} rounds some functions in another way than this machine: its last digits may differ"
            )
        self._workers[worker.name] = worker

    def _why_not(self, place: Place, reply: Reply) -> tuple[str | None, Mapping[str, Any]]:
        """Why a place may not work, and what it has said."""
        if reply.answer is None:
            if "symenum" in reply.error and "No module named" in reply.error:
                return "symenum is not installed there: pip install symenum in the environment of the workers", {}
            return f"it could not say what it is ({reply.error})", {}
        document = decode(reply.answer).document
        if "error" in document:
            return f"it could not say what it is ({document['error']})", {}
        return self._not_ours(document) or self._too_small(place, document["result"]), document

    def _not_ours(self, document: Mapping[str, Any]) -> str | None:
        theirs, ours = document.get("who", {}), identity()
        if theirs.get("symenum") != ours["symenum"]:
            return (
                f"it has symenum {theirs.get('symenum')}, and this is symenum {ours['symenum']}: install the same one"
            )
        if theirs.get("operators") != ours["operators"]:
            return "its table of operators is another one, though the version is the same: install the same symenum"
        return None

    def _too_small(self, place: Place, facts: Mapping[str, Any]) -> str | None:
        has = place.memory or int(facts.get("memory", 0))
        if self.memory and has and has < self.memory:
            return (
                f"it has {has / _GIB:.1f} GiB of memory, and the work may take {self.memory / _GIB:.1f}: give workers "
                "more, or set max_memory lower"
            )
        return None

    def _wait_for_workers(self) -> None:
        """Wait a moment where nobody works; an error after a while without workers."""
        now = self._clock()
        if self.workers or self._joining:
            self._last_seen = now
        if now - self._last_seen > self._patience:
            refused = [f"{name} does not take part: {why}" for name, why in self._refused.items()]
            others = [f"{len(self._silent)} did not answer in time"] if self._silent else []
            raise NoWorkersError(
                f"{self.executor.name}: no worker for {self._patience:.0f} s"
                + (
                    f" ({'; '.join([*refused, *others])})"
                    if refused or others
                    else ": start some, or look at their logs"
                )
            )
        time.sleep(_IDLE if self.workers else min(_WAIT, self._patience))

    # Pieces

    def _hand_out(self, source: Source) -> None:
        """Give each worker that has none a piece."""
        taken = {flight.worker.name for flight in self._flights.values()}
        for worker in self.workers:
            if worker.name in taken:
                continue
            piece = self._next(source, worker)
            if piece is not None:
                self._send(piece, worker)

    def _next(self, source: Source, worker: Worker) -> Piece | None:
        """A piece that needs another try, on a worker where it was not, if there is one; else the source's next one."""
        names = {other.name for other in self.workers}
        for number, piece in enumerate(self._again):
            trouble = self._trouble.get(id(piece))  # none where its worker had left before it was sent
            if trouble is None or worker.name not in trouble.places or names <= trouble.places:
                return self._again.pop(number)
        return source.next(worker)

    def _send(self, piece: Piece, worker: Worker, *, with_data: bool = False) -> None:
        document = {**piece.document, "kind": piece.kind, "threads": worker.place.threads, "limit": piece.limit}
        arrays = dict(piece.arrays)
        if piece.data:
            key = hash_of(piece.data)
            document["data"] = key
            if with_data or (key not in worker.known and worker.place.addressed):
                arrays[BLOB + key] = np.frombuffer(piece.data, dtype=np.uint8)
                worker.known.add(key)
        now = self._clock()
        deadline = now + max(_FACTOR * piece.seconds, piece.seconds + self._silence)
        try:
            ticket = self.executor.submit(worker.place, encode(Message(document, arrays)))
        except ClusterError:  # it has left a moment ago
            self._workers.pop(worker.name, None)
            self._again.append(piece)
            return
        self._flights[ticket] = _Flight(piece, worker, now, deadline)

    def _take(self, source: Source, reply: Reply) -> None:
        flight = self._flights.get(reply.ticket)
        if flight is None:
            return
        if flight.piece is None:
            self._take_facts(reply)
            return
        del self._flights[reply.ticket]
        piece, worker = flight.piece, flight.worker
        self._last_seen = self._clock()
        if reply.answer is None:
            if reply.lost and worker.place.addressed:
                self._workers.pop(worker.name, None)
            self._retry(piece, worker, reply.error, lost=reply.lost)
            return
        try:
            found = decode(reply.answer)
        except ClusterError as error:
            self._retry(piece, worker, str(error), lost=False)
            return
        why = self._not_ours(found.document)
        if why is not None:  # a pool whose processes differ
            self._workers.pop(worker.name, None)
            self._refused[worker.name] = why
            self._note(f"{worker.name} does not take part: {why}")
            self._retry(piece, worker, why, lost=True)
        elif "missing" in found.document:
            self._send(piece, worker, with_data=True)
        elif "error" in found.document:
            self._retry(piece, worker, str(found.document["error"]), lost=False)
        else:
            seconds = float(found.document["seconds"])
            worker.done += 1
            worker.busy += seconds
            self._trouble.pop(id(piece), None)
            source.done(piece, Result(found.document["result"], found.arrays, worker, seconds))

    def _lose(self, ticket: int, why: str) -> None:
        flight = self._flights.pop(ticket)
        if flight.piece is None:
            self._joining.discard(flight.worker.name)
        else:
            self._retry(flight.piece, flight.worker, why, lost=True)

    def _retry(self, piece: Piece, worker: Worker, why: str, *, lost: bool) -> None:
        """Let another worker do the piece, or tell the source that it cannot be done."""
        trouble = self._trouble.setdefault(id(piece), _Trouble())
        trouble.places.add(worker.name)
        trouble.losses += lost
        trouble.errors += not lost
        self.lost += 1
        if self._source is not None and (trouble.errors >= _MOST_TRIES or trouble.losses >= _MOST_LOSSES):
            del self._trouble[id(piece)]
            self._source.failed(piece, f"{trouble.losses} workers were lost with it, the last: {why}" if lost else why)
        else:
            self._again.append(piece)

    def _give_up_the_silent(self) -> None:
        """Workers whose time is long over: their pieces go to others, and they are asked again after a while."""
        now = self._clock()
        for ticket, flight in list(self._flights.items()):
            if now > flight.deadline:
                worker = flight.worker
                self.executor.cancel(ticket)
                if flight.piece is None or worker.place.addressed:
                    self._workers.pop(worker.name, None)
                    self._silent[worker.name] = now + self._silence
                self._note(f"{worker.name} has not answered for {now - flight.sent:.0f} s: others do its work")
                self._lose(ticket, "it did not answer in time")
                restart = getattr(self.executor, "restart", None)
                if restart is not None:  # the crew's own processes, of which nobody knows which one hangs
                    restart()
