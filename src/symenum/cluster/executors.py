"""Where work runs: the protocol that the driver speaks, and the executors that need nothing but Python.

An executor has *places*, each of which does one piece of work at a time: a worker of Dask, a process of a pool. The
driver submits a message to a place, gathers answers as they come, and cancels what it no longer needs. It is the driver
that decides what is done again, and where; an executor only says that an answer is lost. Dask and Ray have modules of
their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures import Executor as FuturesPool
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Protocol

from symenum.cluster.errors import ClusterError
from symenum.cluster.worker import answer

__all__ = ["Executor", "Futures", "InProcess", "LocalProcesses", "Place", "Reply"]

_MOST_PLACES = 1024  # of a pool that does not say how many workers it has


@dataclass(frozen=True)
class Place:
    """A worker: its name, the threads and GPUs that it may use, and its memory in bytes (0: not known).

    `addressed`: work that is sent to this place runs in one process, always the same. Places of a pool are numbers
    only: whichever process is free takes the work.
    """

    name: str
    threads: int = 1
    gpus: int = 0
    memory: int = 0
    addressed: bool = True


@dataclass(frozen=True)
class Reply:
    """The end of a piece of work: its answer (bytes), or why there is none.

    `lost`: the place has died or left, which says nothing about the work; else the work itself could not be done.
    """

    ticket: int
    answer: bytes | None = None
    error: str = ""
    lost: bool = False


class Executor(Protocol):
    """An engine that runs `symenum.cluster.worker.answer` on other processes or machines."""

    @property
    def name(self) -> str:
        """What it is, for people: "Dask at tcp://10.0.0.1:8786"."""
        ...

    def places(self) -> tuple[Place, ...]:
        """The workers that are there now, in a fixed order."""
        ...

    def submit(self, place: Place, message: bytes) -> int:
        """Send a message to a place; the ticket that its reply will have. ClusterError if the place is gone."""
        ...

    def gather(self, timeout: float) -> list[Reply]:
        """The replies since the last call; waits for the first one for up to `timeout` seconds."""
        ...

    def cancel(self, ticket: int) -> None:
        """Forget a piece of work: no reply will come. What runs already may run to its end."""
        ...

    def close(self) -> None:
        """Let go of what was opened here; workers of the user's stay."""
        ...


class InProcess:
    """One worker: this process. The default, and what tests compare the others with."""

    name = "this process"

    def __init__(self, threads: int = 1) -> None:
        self._place = Place("this process", threads)
        self._tickets = itertools.count()
        self._waiting: dict[int, bytes] = {}

    def places(self) -> tuple[Place, ...]:
        return (self._place,)

    def submit(self, place: Place, message: bytes) -> int:
        ticket = next(self._tickets)
        self._waiting[ticket] = message
        return ticket

    def gather(self, timeout: float) -> list[Reply]:
        if not self._waiting:
            return []
        ticket = next(iter(self._waiting))
        return [Reply(ticket, answer(self._waiting.pop(ticket)))]

    def cancel(self, ticket: int) -> None:
        self._waiting.pop(ticket, None)

    def close(self) -> None:
        self._waiting.clear()


class Futures:
    """Any executor of `concurrent.futures`; also the base of those whose work comes back as its futures.

    `workers`: how many pieces it does at a time, where it does not say so itself.
    """

    def __init__(self, pool: FuturesPool, workers: int | None = None) -> None:
        self._pool = pool
        count = workers or int(getattr(pool, "_max_workers", 0)) or 1
        self._places = tuple(
            Place(f"{type(pool).__name__} {number + 1}", addressed=False) for number in range(min(count, _MOST_PLACES))
        )
        self._tickets = itertools.count()
        self._running: dict[Future[bytes], int] = {}
        self._broken = False

    @property
    def name(self) -> str:
        return f"{type(self._pool).__name__} with {len(self._places)} workers"

    def places(self) -> tuple[Place, ...]:
        return () if self._broken else self._places

    def submit(self, place: Place, message: bytes) -> int:
        try:
            future = self._pool.submit(answer, message)
        except (BrokenExecutor, RuntimeError) as error:  # RuntimeError: it was shut down
            self._broken = True
            raise ClusterError(f"{self.name} takes no more work ({error})") from error
        ticket = next(self._tickets)
        self._running[future] = ticket
        return ticket

    def gather(self, timeout: float) -> list[Reply]:
        if not self._running:
            return []
        done, _ = wait(self._running, timeout, return_when=FIRST_COMPLETED)
        return [self._reply(self._running.pop(future), future) for future in done]

    def _reply(self, ticket: int, future: Future[bytes]) -> Reply:
        try:
            return Reply(ticket, future.result())
        except (BrokenExecutor, CancelledError) as error:
            self._broken = self._broken or isinstance(error, BrokenExecutor)
            return Reply(ticket, error=f"{type(error).__name__}: {error}", lost=True)
        except Exception as error:  # the pool's own trouble with the call; `answer` hands its errors back as bytes
            return Reply(ticket, error=f"{type(error).__name__}: {error}")

    def cancel(self, ticket: int) -> None:
        for future, number in list(self._running.items()):
            if number == ticket:
                future.cancel()
                del self._running[future]

    def close(self) -> None:
        for future in self._running:
            future.cancel()
        self._running.clear()


class LocalProcesses(Futures):
    """So many processes of this machine, of one thread each. Where one dies, all are started again."""

    def __init__(self, count: int, start: Callable[[int], FuturesPool] | None = None) -> None:
        self._count = count
        self._start = start or _spawned
        super().__init__(self._start(count), count)
        self._places = tuple(Place(f"process {number + 1}", addressed=False) for number in range(count))

    @property
    def name(self) -> str:
        return f"{self._count} processes of this machine"

    def places(self) -> tuple[Place, ...]:
        if self._broken and not self._running:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool, self._broken = self._start(self._count), False
        return super().places()

    def restart(self) -> None:
        """End all processes, and start others at the next look: one hangs, maybe with the queue that all read from."""
        for process in self._processes():
            process.kill()

    def close(self) -> None:
        """End the processes with the work that they have: nobody waits for it, and Python would, at its end."""
        super().close()
        processes = self._processes()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()

    def _processes(self) -> list[BaseProcess]:
        return list((getattr(self._pool, "_processes", None) or {}).values())


def _spawned(count: int) -> FuturesPool:
    """Processes that are started anew: a forked one would have torch's locks, but none of its threads."""
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))
