"""What a cluster is and how fast it is, measured: for `symenum cluster check`, and for the model of docs/scaling.md."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symenum.cluster.crew import Crew, Piece, Result, Worker
from symenum.cluster.messages import Message
from symenum.cluster.worker import Request
from symenum.core.budget import Budget
from symenum.engine.network import PSRN

__all__ = ["Measured", "measure_crew", "measure_here"]

_INPUTS, _ROWS, _BEST = 4, 32, 30  # of the pass that a worker is timed by: 2.9e8 candidates, about 0.3 s of a core
_ANSWERS = 20  # messages whose way there and back is timed
_BYTES = 1 << 20  # of a message that is timed for how many bytes a second go over
_MEASURING = 120.0  # seconds for all of it


@dataclass(frozen=True)
class Measured:
    """A worker: what it is, candidates a second of a pass, seconds of a message there and back, bytes a second."""

    worker: Worker
    rate: float
    answer: float
    bandwidth: float


def measure_crew(crew: Crew) -> list[Measured]:
    """Time each worker of a crew, one after another, so that they do not disturb each other."""
    found = []
    for worker in crew.workers:
        source = _Timed(worker.name)
        crew.run(source, Budget(_MEASURING))
        if source.rate:
            short, long = sorted(source.short)[len(source.short) // 2], source.long
            found.append(Measured(worker, source.rate, short, _BYTES / max(long - short, 1e-9)))
    return found


@dataclass
class _Timed:
    """The pieces that time one worker: a pass, short messages, a long one."""

    name: str
    rate: float = 0.0
    short: list[float] = field(default_factory=list)
    long: float = 0.0
    error: str = ""
    _sent: int = 0
    _began: float = 0.0

    def next(self, worker: Worker) -> Piece | None:
        if worker.name != self.name or self._sent > _ANSWERS + 1:
            return None
        self._sent += 1
        self._began = time.perf_counter()
        if self._sent == 1:
            return Piece("speed", "pass")
        if self._sent <= _ANSWERS + 1:
            return Piece("facts", "short")
        return Piece("facts", "long", arrays={"bytes": np.zeros(_BYTES, dtype=np.uint8)})

    def done(self, piece: Piece, result: Result) -> None:
        seconds = time.perf_counter() - self._began
        if piece.key == "pass":
            self.rate = float(result.document["rate"])
        elif piece.key == "short":
            self.short.append(seconds)
        else:
            self.long = seconds

    def failed(self, piece: Piece, error: str) -> None:
        self.error = error

    def finished(self) -> bool:
        return bool(self.error or self.long)


def measure_here(request: Request) -> Message:
    """Candidates a second of a pass in this process, with the threads of the worker; the second one counts."""
    rng = np.random.default_rng(0)
    values, y = rng.uniform(0.5, 2.0, (_ROWS, _INPUTS)), rng.normal(size=_ROWS)
    net = PSRN(_INPUTS, "koza", 3)
    taken: dict[str, Any] = {}
    for which in ("first", "second"):
        began = time.perf_counter()
        found = net.search(values, y, _BEST, device="cpu", threads=request.threads)
        taken[which] = time.perf_counter() - began
    return Message({"rate": found.scored / taken["second"], "first": taken["first"]})
