"""Ctrl-C as a wish, not an accident: the first one ends a budget, the second one raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from symenum.enumeration.budget import Budget

__all__ = ["interrupts"]


@contextmanager
def interrupts(wish: Budget) -> Iterator[None]:
    """Inside, the first Ctrl-C ends `wish`, and a second one raises KeyboardInterrupt.

    Only where Python's own handler would be called, in the main thread: a server with a handler of its own keeps it,
    and in another thread there is no Ctrl-C. Whoever holds `wish` may end it there.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)
        wish.end()

    came: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
