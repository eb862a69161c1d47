"""Ctrl-C as a wish, not an accident: the first one ends a budget, the second one raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from symenum.enumeration.budget import Budget

__all__ = ["interrupts"]


@contextmanager
def interrupts(budget: Budget) -> Iterator[Callable[[], bool]]:
    """Inside, Ctrl-C ends the budget; the callable that is handed out says whether it came.

    Only where Python's own handler would be called, in the main thread: a notebook or a server with a handler of its
    own keeps it, and KeyboardInterrupt is raised as ever.
    """
    came: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)
        budget.end()

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, before)
