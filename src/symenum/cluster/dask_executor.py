"""Dask as an executor: each worker of its scheduler is a place, and gets its pieces by name.

Dask moves the bytes, sees that a worker has gone, and starts workers anew where it is told to; what is done again, and
where, is decided by `crew`. So its own retries are off: a piece goes to one worker, and to no other.
"""

from __future__ import annotations

import itertools
import pkgutil
import queue
import socket
import threading
from operator import methodcaller
from typing import Any

from symenum.cluster.errors import ClusterError
from symenum.cluster.executors import Place, Reply

__all__ = ["Dask", "connect_dask"]

CONNECT_SECONDS = 5.0
"""Seconds in which a scheduler must answer: a name is resolved and a connection made in far less, across a country."""
_GPU = "GPU"  # the name of the resource, as Dask's own documentation has it: dask worker --resources "GPU=1"
_ANSWER = "symenum.cluster.worker:answer"
_LOST = ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError", "NoWorkerError")


def connect_dask(address: str, seconds: float = CONNECT_SECONDS) -> Dask:
    """The executor of the scheduler at an address such as tcp://host:8786; ClusterError where nobody answers."""
    try:
        import distributed
    except ImportError as error:
        raise ClusterError(
            f"cluster: {address!r} is an address of Dask, which is not installed here: pip install 'symenum[dask]'"
        ) from error
    _refuse_closed_port(address, seconds)
    try:
        client = distributed.Client(address, timeout=f"{seconds}s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"cluster: no Dask scheduler answered at {address} within {seconds:g} s ({type(error).__name__}): start "
            "one there (dask scheduler), and see that its port can be reached from this machine"
        ) from error
    return Dask(client, own=True)


def _refuse_closed_port(address: str, seconds: float) -> None:
    """Refuse what is no address, and a port that takes no connection: Dask would wait for longer, and then for itself.

    Other protocols than these are for Dask to judge.
    """
    scheme, _, place = address.partition("://")
    if scheme not in ("tcp", "tls"):
        return
    host, colon, port = place.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ClusterError(
            f"cluster: {place!r} is no address: give one such as tcp://host:8786, ray, or a number of processes"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except OSError as error:
        raise ClusterError(
            f"cluster: no Dask scheduler answered at {address} within {seconds:g} s ({error.strerror or error}): "
            "start one there (dask scheduler), and see that its port can be reached from this machine"
        ) from error


class Dask:
    """The workers of a Dask client. `own`: the client was opened here, so it is closed here."""

    def __init__(self, client: Any, *, own: bool = False) -> None:
        self._client = client
        self._own = own
        self._tickets = itertools.count()
        self._futures: dict[int, Any] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._answers: dict[str, Any] = {}  # of each place the future of its function `answer`
        self._run = f"{id(self):x}"  # keys of Dask are for all clients of a scheduler

    @property
    def name(self) -> str:
        return f"Dask at {getattr(self._client.scheduler, 'address', 'an unknown address')}"

    def places(self) -> tuple[Place, ...]:
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, KeyError, TypeError):  # the scheduler is gone for a moment, or for good
            return ()
        found = []
        for address in sorted(workers):
            facts = workers[address]
            if facts.get("status") in ("closing", "closed", "closing_gracefully"):
                continue
            gpus = int((facts.get("resources") or {}).get(_GPU, 0))
            found.append(Place(address, int(facts.get("nthreads", 1)), gpus, int(facts.get("memory_limit") or 0)))
        return tuple(found)

    def submit(self, place: Place, message: bytes) -> int:
        ticket = next(self._tickets)
        try:
            future = self._client.submit(
                methodcaller("__call__", message),
                self._answer(place),
                key=f"symenum-{self._run}-{ticket}",
                workers=[place.name],
                allow_other_workers=False,
                pure=False,
                retries=0,
                resources={_GPU: 1} if place.gpus else None,
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ClusterError(f"{self.name} takes no more work ({error})") from error
        self._futures[ticket] = future
        future.add_done_callback(lambda _: self._ended.put(ticket))
        return ticket

    def _answer(self, place: Place) -> Any:
        """The function of a place that answers, named and not sent: Dask ends a worker that cannot read a task.

        Where symenum is not installed, each message to the place has that error instead.
        """
        if place.name not in self._answers:
            key = f"symenum-{self._run}-answer-{next(self._tickets)}"
            self._answers[place.name] = self._client.submit(
                pkgutil.resolve_name, _ANSWER, key=key, workers=[place.name], allow_other_workers=False, pure=False
            )
        return self._answers[place.name]

    def gather(self, timeout: float) -> list[Reply]:
        replies = []
        try:
            ticket = self._ended.get(timeout=timeout) if timeout > 0 else self._ended.get_nowait()
            while True:
                if ticket in self._futures:
                    replies.append(self._reply(ticket, self._futures.pop(ticket)))
                ticket = self._ended.get_nowait()
        except queue.Empty:
            return replies

    def _reply(self, ticket: int, future: Any) -> Reply:
        try:
            found = future.result(timeout=CONNECT_SECONDS)
        except Exception as error:  # anything that Dask raises for a task, or cannot fetch
            name = type(error).__name__
            return Reply(
                ticket, error=f"{name}: {error}", lost=name in _LOST or isinstance(error, (OSError, TimeoutError))
            )
        finally:
            future.release()
        return Reply(ticket, found)

    def cancel(self, ticket: int) -> None:
        future = self._futures.pop(ticket, None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        for ticket in list(self._futures):
            self.cancel(ticket)
        for function in self._answers.values():
            function.release()
        self._answers.clear()
        if self._own:
            self._client.close(timeout=CONNECT_SECONDS)
