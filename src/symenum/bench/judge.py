"""Questions for SymPy, asked in a process that is killed when its time is over: never a hang.

The process is kept between questions, since importing takes seconds, and made anew after it had to be killed.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Literal

from symenum.bench.symbolic import Points, constant_apart_by_sympy, equal_by_sympy

__all__ = ["Answer", "Judge"]

Answer = Literal["yes", "no", "unknown", "out of time", "failed"]

_QUESTIONS: Mapping[str, Callable[[str, str, bool, Points], bool | None]] = {
    "equal": equal_by_sympy,
    "srbench": constant_apart_by_sympy,
}
_ANSWERS: Mapping[bool | None, Answer] = {True: "yes", False: "no", None: "unknown"}
_MEMORY = 4 << 30
_START_SECONDS = 120.0


class Judge:
    """`ask` never takes longer than it is told. Use as a context, so that the process ends."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(
        self, question: str, found: str, law: str, seconds: float, *, positive: bool = False, points: Points = ()
    ) -> Answer:
        """Whether `found` is `law` (both as text of our grammar): "equal", or "srbench" for up to a constant.

        `positive`: whether the variables are; `points`: some of the data, where the two can be told apart.
        """
        pipe = self._pipe or self._start()
        try:
            pipe.send((question, found, law, positive, [dict(point) for point in points]))
            if not pipe.poll(seconds):
                self.close()
                return "out of time"
            answer: Answer = pipe.recv()
        except (EOFError, OSError):  # it has died, of memory most likely
            self.close()
            return "failed"
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        if not ours.poll(_START_SECONDS):  # importing does not count against the question
            self.close()
            raise TimeoutError(f"the process that asks SymPy did not start within {_START_SECONDS:g} s")
        ours.recv()
        return ours


def _serve(pipe: Connection) -> None:
    """Answer questions until the other end is closed."""
    _limit_memory()
    pipe.send("ready")
    while True:
        try:
            question, found, law, positive, points = pipe.recv()
        except EOFError:
            return
        try:
            answer = _ANSWERS[_QUESTIONS[question](found, law, positive, points)]
        except Exception:  # SymPy raises all sorts of things; a question without an answer is one
            answer = "failed"
        pipe.send(answer)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
