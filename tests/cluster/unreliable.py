"""An executor in this process whose workers die, hang, lie, answer in any order, come and go, as a test says."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from symenum.cluster import ClusterError, Place, Reply
from symenum.cluster.messages import Message, decode, encode
from symenum.cluster.worker import answer

Fate = Callable[[str, Message], str]
"""From a worker's name and a request: "fine", "dies", "hangs", or the text of an error."""


def fine(name: str, request: Message) -> str:
    return "fine"


class Unreliable:
    """`workers` places; what becomes of each piece of work (not of the question what a worker is) is its `fate`."""

    name = "a test's cluster"

    def __init__(self, workers: int = 3, fate: Fate = fine, *, seed: int = 0, threads: int = 1) -> None:
        self.names = [f"w{number}" for number in range(workers)]
        self.fate = fate
        self.identity: dict[str, dict[str, str]] = {}  # what workers say of themselves instead of the truth
        self.memory: dict[str, int] = {}
        self.sent: list[tuple[str, Message]] = []
        self.closed = False
        self._threads = threads
        self._rng = np.random.default_rng(seed)
        self._tickets = itertools.count()
        self._waiting: dict[int, Reply | None] = {}

    def places(self) -> tuple[Place, ...]:
        return tuple(Place(name, self._threads, memory=self.memory.get(name, 0)) for name in self.names)

    def submit(self, place: Place, message: bytes) -> int:
        if place.name not in self.names:
            raise ClusterError("gone")
        ticket = next(self._tickets)
        request = decode(message)
        asked = request.document["kind"] == "facts"
        if not asked:
            self.sent.append((place.name, request))
        fate = "fine" if asked else self.fate(place.name, request)
        if fate == "hangs":
            self._waiting[ticket] = None
        elif fate == "dies":
            self.names.remove(place.name)
            self._waiting[ticket] = Reply(ticket, error="the connection was closed", lost=True)
        elif fate == "fine":
            self._waiting[ticket] = Reply(ticket, self._answered(place.name, message))
        else:
            self._waiting[ticket] = Reply(ticket, error=fate)
        return ticket

    def _answered(self, name: str, message: bytes) -> bytes:
        found = decode(answer(message))
        identity = {**found.document["who"], **self.identity.get(name, {})}
        return encode(Message({**found.document, "who": identity}, found.arrays))

    def gather(self, timeout: float) -> list[Reply]:
        ready = [ticket for ticket, reply in self._waiting.items() if reply is not None]
        if not ready:
            return []
        reply = self._waiting.pop(int(self._rng.choice(ready)))
        assert reply is not None
        return [reply]

    def cancel(self, ticket: int) -> None:
        self._waiting.pop(ticket, None)

    def close(self) -> None:
        self.closed = True


class Clock:
    """A clock that runs by itself, a step at each look: waiting costs a test no time."""

    def __init__(self, step: float = 0.5) -> None:
        self._now = 0.0
        self._step = step

    def __call__(self) -> float:
        self._now += self._step
        return self._now
