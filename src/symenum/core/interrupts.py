"""All that the program does with signals: Ctrl-C ends a budget, SIGTERM acts as Ctrl-C, Ctrl-C waits for results.

Python allows signal handlers in the main thread only, and cannot restore a handler that was not set from Python. In
another thread, and where such a handler is set, these context managers change nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from symenum.core.budget import Budget

__all__ = ["ctrl_c_ends", "ctrl_c_ignored", "sigterm_as_ctrl_c"]

Handler = Callable[[int, FrameType | None], None] | signal.Handlers


@contextmanager
def ctrl_c_ends(budget: Budget) -> Iterator[None]:
    """Inside, the first Ctrl-C ends `budget`, and a second one raises KeyboardInterrupt.

    Only Python's own handler is replaced: a server with a handler of its own keeps it, and may end `budget` there.
    """
    received = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received:
            raise KeyboardInterrupt
        received = True
        budget.end()

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with _handled(signal.SIGINT, handle):
        yield


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Inside, SIGTERM, which `timeout` and job queues send, does what Ctrl-C does: a search ends with its results.

    A shell makes a command that its script starts with & ignore Ctrl-C. Such a command obeys it again, inside: else
    SIGTERM would do nothing at all.
    """
    with ExitStack() as stack:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            stack.enter_context(_handled(signal.SIGINT, signal.default_int_handler))
        stack.enter_context(_handled(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT)))
        yield


@contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """Inside, Ctrl-C does nothing: one meant for the search must not cost its results while they are written."""
    with _handled(signal.SIGINT, signal.SIG_IGN):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Inside, `handler` is called for the signal; afterwards the previous handler is back."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(number) is None:
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
