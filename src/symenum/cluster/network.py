"""One pass of the network on many workers: its parts by their numbers, and the shortlist of a single machine.

The driver knows how many pairs of columns each part has, hands out runs of parts of about a second at each worker's
measured speed, and puts what comes back into one pool. The limit of that pool goes along with the next parts, so that
no worker evaluates what could not stay. Slots and target go to each worker once; the bank is built there, since that
takes less time than to send it (docs/scaling.md), by all workers and the driver at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from symenum.cluster.crew import Crew, Piece, Result, Worker
from symenum.cluster.errors import ClusterError
from symenum.cluster.messages import Message, encode
from symenum.cluster.worker import Request
from symenum.core.budget import Budget
from symenum.core.target import check_slots
from symenum.engine.network import PSRN, slot_expressions
from symenum.engine.numbered import NumberedPass
from symenum.engine.shortlist import Finds, Shortlist
from symenum.expressions import Expression, parse
from symenum.operators import get_operator

__all__ = ["scan_parts", "search_network"]

_PIECE_SECONDS = 1.0  # of work in a piece: a thousand times what a message takes, and all that a killed worker loses
_FIRST_SPEED = 1e8  # pairs of columns a second, before a worker has shown its own: a slow core's
_FIRST_PIECE, _LATER_PIECE = 30.0, 5.0  # seconds that a piece should take at most: a worker's first one builds the bank
_END = 2  # pieces that each worker should still get of what is left, so that all end at about the same time
_FINDS = ("loss", "complexity", "number", "signature")


def search_network(
    net: PSRN,
    values: object,
    y: object,
    k: int = 10,
    sample_weight: object = None,
    *,
    crew: Crew,
    slots: Iterable[str | Expression] | None = None,
    mode: str = "auto",
    time_limit: float | None = None,
    seed: int = 0,
) -> Shortlist:
    """What `net.search` gives on the CPU, bit for bit, by the workers of a crew; arguments as there.

    After `time_limit` seconds the best so far come back, and `complete` is False. ClusterError where a part could not
    be done by two workers.
    """
    own = [operator.name for operator in net.operators if not operator.built_in]
    if own:
        raise ClusterError(f"operators of your own ({', '.join(own)}) are code, which is not sent to workers")
    budget = Budget(time_limit)
    expressions = slot_expressions(slots, net.inputs)
    whole = net.numbered(values, y, k, sample_weight, slots=expressions, mode=mode, seed=seed)
    document = {
        "inputs": net.inputs,
        "operators": [operator.name for operator in net.operators],
        "last": [operator.name for operator in net.last_operators],
        "layers": net.layers,
        "max_memory": net.max_memory,
        "k": k,
        "slots": [str(one) for one in expressions],
        "mode": mode,
        "seed": seed,
    }
    arrays = {"values": check_slots(values, net.inputs).numpy(), "y": _column(y)}
    if sample_weight is not None:
        arrays["weight"] = _column(sample_weight)
    source = _Parts(whole, encode(Message(document, arrays)), crew)
    crew.run(source, budget)
    if source.error:
        raise ClusterError(f"a part of the pass could not be done: {source.error}")
    return whole.shortlist(source.pool, source.pairs)


def _column(values: object) -> npt.NDArray[np.float64]:
    """A target or weights, checked by `PSRN.numbered` before, as an array."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64).reshape(-1))


@dataclass
class _Parts:
    """The parts of a pass, as pieces: contiguous runs of numbers.

    A worker's first piece has no part: it builds the bank, while the driver builds its own and counts the parts.
    """

    whole: NumberedPass
    data: bytes
    crew: Crew
    pairs: int = 0  # scanned
    error: str = ""
    _next: int = 0
    _waiting: int = 0  # parts that are with workers
    _left: int = 0  # pairs of columns that nobody has been given
    _began: set[str] = field(default_factory=set)  # workers that have their first piece
    _speed: dict[str, float] = field(default_factory=dict)  # of workers, in pairs a second

    def __post_init__(self) -> None:
        self.pool = self.whole.new_pool()

    def next(self, worker: Worker) -> Piece | None:
        if worker.name not in self._began:
            self._began.add(worker.name)
            return self._piece(0, 0, _FIRST_PIECE)
        sizes, first = self.whole.sizes, self._next
        if first == len(sizes):
            return None
        if not first:
            self._left = sum(sizes)
        speed = self._speed.get(worker.name) or max(self._speed.values(), default=0.0) or _FIRST_SPEED
        wanted = min(_PIECE_SECONDS * speed, self._left / (_END * max(1, len(self.crew.workers))))
        last, pairs = first + 1, sizes[first]
        while last < len(sizes) and pairs < wanted:
            pairs += sizes[last]
            last += 1
        self._next = last
        self._left -= pairs
        self._waiting += last - first
        return self._piece(first, last, _LATER_PIECE if worker.name in self._speed else _FIRST_PIECE)

    def _piece(self, first: int, last: int, seconds: float) -> Piece:
        limit = np.array([self.pool.limit])
        return Piece("pass", (first, last), {"first": first, "last": last}, {"limit": limit}, self.data, seconds)

    def done(self, piece: Piece, result: Result) -> None:
        first, last = piece.key
        self._waiting -= last - first
        pairs = int(result.document["pairs"])
        self.pairs += pairs
        if pairs and result.document["scanning"] > 0:
            self._speed[result.worker.name] = pairs / float(result.document["scanning"])
        if result.arrays:
            self.pool.add(Finds(*(torch.from_numpy(result.arrays[name].copy()) for name in _FINDS)))

    def failed(self, piece: Piece, error: str) -> None:
        self.error = self.error or error

    def finished(self) -> bool:
        if self.error or not self._began:  # who asks for the sizes builds the bank: not before the workers do so, too
            return bool(self.error)
        return self._next == len(self.whole.sizes) and not self._waiting


# On a worker


def scan_parts(request: Request) -> Message:
    """The finds of some parts of a pass."""
    import time

    whole: NumberedPass = request.made("pass", lambda message: _made(message, request.threads))
    assert whole.sizes is not None  # the bank is built before the clock runs that tells this worker's speed
    began = time.perf_counter()
    parts = range(int(request.document["first"]), int(request.document["last"]))
    found = whole.scan(parts, float(request.arrays["limit"][0]), request.budget)
    seconds = time.perf_counter() - began
    arrays: dict[str, npt.NDArray[Any]] = {}
    if found.finds is not None:
        arrays = {name: getattr(found.finds, name).numpy() for name in _FINDS}
    return Message({"pairs": found.done, "scanning": seconds, "complete": found.complete}, arrays)


def _made(message: Message, threads: int) -> NumberedPass:
    document = message.document
    net = PSRN(
        document["inputs"],
        [get_operator(name) for name in document["operators"]],
        document["layers"],
        last_operators=[get_operator(name) for name in document["last"]],
        max_memory=document["max_memory"],
    )
    return net.numbered(
        message.arrays["values"],
        message.arrays["y"],
        document["k"],
        message.arrays.get("weight"),
        slots=[parse(text) for text in document["slots"]],
        mode=document["mode"],
        threads=threads,
        seed=document["seed"],
    )
