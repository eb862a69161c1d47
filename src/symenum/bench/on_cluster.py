"""Runs of a bench on a cluster: each run is a piece of work, in a process of its own on its worker, as it is here.

A worker runs the job under the same limits and hands back its row; judging and keeping rows is the driver's business.
So the table is that of one machine, but for seconds, which are those of the workers' processors. A run that no worker
could do is not kept: the same command tries it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

from symenum.bench.jobs import Job, Row, row_from_json, row_to_json
from symenum.bench.problems import get_set
from symenum.bench.run import Limits, run_unjudged
from symenum.cluster.crew import Crew, Piece, Result, Worker
from symenum.cluster.messages import Message
from symenum.cluster.worker import Request
from symenum.core.budget import Budget

__all__ = ["run_here", "run_on_crew"]

_JUDGES = 2  # rows that are judged at a time, while workers go on


def run_on_crew(
    jobs: Sequence[Job],
    crew: Crew,
    limits: Limits,
    version: str,
    *,
    keep: Callable[[Row], None],
    note: Callable[[str], None],
) -> int:
    """Run the jobs on a crew, and say how many were run; `keep` judges a row and keeps it, in a thread of its own."""
    with ThreadPoolExecutor(_JUDGES) as judges:
        source = _Jobs(list(jobs), limits, version, lambda row: judges.submit(keep, row), note)
        crew.run(source, Budget())
        for future in source.kept:
            future.result()  # an error of keeping a row, such as a full disk, ends the bench
    return len(source.kept)


@dataclass
class _Jobs:
    """The jobs as pieces of work."""

    todo: list[Job]
    limits: Limits
    version: str
    keep: Callable[[Row], Future[None]]
    note: Callable[[str], None]
    kept: list[Future[None]] = field(default_factory=list)
    _running: int = 0

    def next(self, worker: Worker) -> Piece | None:
        if not self.todo:
            return None
        job = self.todo.pop(0)
        self._running += 1
        document = {"job": asdict(job), "limits": asdict(self.limits), "version": self.version}
        return Piece("bench", job, document, seconds=self.limits.hard_seconds)

    def done(self, piece: Piece, result: Result) -> None:
        self._running -= 1
        self.kept.append(self.keep(row_from_json(str(result.document["row"]))))

    def failed(self, piece: Piece, error: str) -> None:
        self._running -= 1
        self.note(f"{piece.key}: no worker could run it ({error}); the same command tries it again")

    def finished(self) -> bool:
        return not self.todo and not self._running


def run_here(request: Request) -> Message:
    """One run on a worker: its row, not judged yet."""
    document = request.document
    job, limits = Job(**document["job"]), Limits(**document["limits"])
    get_set(job.set).problem(job.problem)  # an error here says which files a worker lacks
    began = time.monotonic()
    row = run_unjudged(job, limits, str(document["version"]), request.budget.over)
    return Message({"row": row_to_json(row), "wall": time.monotonic() - began})
