"""What runs on a worker: one function, `answer`, that takes the bytes of a request and gives the bytes of a reply.

A request names its kind of work (`_WORK`), and by their hashes the data that it needs; data that the process does not
have yet are asked for, and then kept, as is what was made of them (a bank, a problem). A reply says who has answered,
so that a worker of another version is never believed. An error of the work is an answer too, not an exception of the
engine. The process remembers nothing else: any worker can do any piece of work, and do it again.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from symenum.cluster.errors import ClusterError
from symenum.cluster.messages import Message, decode, encode, hash_of
from symenum.core.budget import Budget
from symenum.core.registration import load_plugins
from symenum.core.threads import cores_limited
from symenum.version import __version__

__all__ = ["BLOB", "Request", "answer", "arithmetic", "identity"]

BLOB = "blob "
"""What the names of arrays begin with that hold data by their hash."""

# Kinds of work and where they are done. Rooms that come after this one are named and not imported: a worker imports
# them when it is asked for them.
_WORK = {
    "facts": "symenum.cluster.worker:facts",
    "speed": "symenum.cluster.check:measure_here",
    "pass": "symenum.cluster.network:scan_parts",
    "island": "symenum.estimator.islands:take_turns",
    "bench": "symenum.bench.on_cluster:run_here",
}
_MOST_BYTES = 1 << 30  # of data that a process keeps; the oldest go first
_MOST_MADE = 4  # banks and problems that a process keeps: as many as the shapes of passes that a GPU keeps
_TRACEBACK = 2000  # characters of the end of a traceback, which a reply holds
_PROBES = 64  # points on which operators are compared between machines


class _Store:
    """Data by their hashes, and what was made of them, in this process; several threads may ask."""

    def __init__(self) -> None:
        self._blobs: OrderedDict[str, bytes] = OrderedDict()
        self._made: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.RLock()

    def put(self, data: bytes) -> None:
        with self._lock:
            self._blobs[hash_of(data)] = data
            while len(self._blobs) > 1 and sum(map(len, self._blobs.values())) > _MOST_BYTES:
                self._blobs.popitem(last=False)

    def get(self, key: str) -> bytes | None:
        with self._lock:
            if key in self._blobs:
                self._blobs.move_to_end(key)
            return self._blobs.get(key)

    def made(self, key: tuple[str, str], make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            self._made.move_to_end(key)
            while len(self._made) > _MOST_MADE:
                self._made.popitem(last=False)
            return self._made[key]


_store = _Store()  # of the process: the point is that the next piece of work finds what this one has made


@dataclass(frozen=True)
class Request:
    """A piece of work as its function gets it: plain values, arrays, the data that it needs, and its time."""

    document: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    data: bytes = b""
    budget: Budget = field(default_factory=Budget)
    threads: int = 1

    def made(self, what: str, make: Callable[[Message], Any]) -> Any:
        """What `make` makes of the data; made once in this process, for the same data and the same threads."""
        key = f"{what}, {self.threads} threads"
        return _store.made((key, hash_of(self.data)), lambda: make(decode(self.data)))


Work = Callable[[Request], Message]


def answer(message: bytes) -> bytes:
    """The reply to a request; errors become replies too."""
    began = time.perf_counter()
    try:
        found = _reply(decode(message))
    except Exception as error:  # it crosses to the driver as text, and is reported there
        text = f"{type(error).__name__}: {error}"
        found = Message({"error": text, "traceback": traceback.format_exc()[-_TRACEBACK:]})
    seconds = time.perf_counter() - began
    return encode(Message({**found.document, "who": identity(), "seconds": seconds}, found.arrays))


def _reply(request: Message) -> Message:
    document, arrays = request.document, dict(request.arrays)
    for name in [name for name in arrays if name.startswith(BLOB)]:
        _store.put(arrays.pop(name).tobytes())
    key = document.get("data")
    data = b"" if key is None else _store.get(key)
    if data is None:
        return Message({"missing": key})
    kind = document["kind"]
    if kind not in _WORK:
        raise ClusterError(f"this worker (symenum {__version__}) does not know the work {kind!r:.40}")
    module, _, name = _WORK[kind].partition(":")
    work: Work = getattr(import_module(module), name)
    seconds = document.get("limit")
    budget = Budget() if seconds is None else Budget(max(float(seconds), 1e-9))  # a budget must be above zero
    threads = int(document.get("threads", 1))
    with cores_limited(threads):
        found = work(Request(document, arrays, data, budget, threads))
    return Message({"result": dict(found.document)}, found.arrays)


@cache
def identity() -> dict[str, str]:
    """What decides whether a worker's answers count: the version and the operators; and which process this is."""
    load_plugins()  # a worker's own: token generators, heads and losses that the driver's plug-ins have, too
    return {
        "symenum": __version__,
        "operators": _operators(),
        "process": f"{socket.gethostname()}:{os.getpid()}",
    }


@cache
def _operators() -> str:
    """A hash of the table of operators: of all that decides which candidates there are, and in which order."""
    from symenum.operators import OPERATOR_SETS, OPERATORS

    digest = hashlib.sha256()
    for one in OPERATORS.values():
        digest.update(repr((one.name, one.arity, one.kind.value, one.complexity, one.form, one.role.name)).encode())
    for name, members in OPERATOR_SETS.items():
        digest.update(repr((name, members)).encode())
    return digest.hexdigest()[:16]


@cache
def arithmetic() -> str:
    """A hash of what the operators compute here, to the last bit: processors and libraries may differ there."""
    import torch

    from symenum.operators import OPERATORS

    digest = hashlib.sha256()
    points = torch.linspace(0.1, 3.0, _PROBES, dtype=torch.float64)
    for one in OPERATORS.values():
        values = one.function(*(points, points.flip(0))[: one.arity])
        digest.update(np.ascontiguousarray(values.numpy()).tobytes())
    return digest.hexdigest()[:16]


def facts(request: Request) -> Message:
    """What a worker is: asked for when it joins."""
    import torch

    from symenum.core.devices import gpu_fault
    from symenum.core.memory import machine_memory
    from symenum.core.threads import available_cores

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a GPU that cannot be used is said by its fault
        gpus = torch.cuda.device_count() if gpu_fault(0) is None else 0
    return Message(
        {
            "torch": torch.__version__,
            "arithmetic": arithmetic(),
            "cores": available_cores(),
            "memory": machine_memory(),
            "gpus": gpus,
        }
    )
