"""All that the program does with signals: Ctrl-C as a wish, SIGTERM as Ctrl-C, and no Ctrl-C while results are saved.

Handlers belong to the main thread, and one that was not set from Python cannot be put back: in another thread, and
where there is such a handler, each of these changes nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from symenum.core.budget import Budget

__all__ = ["ctrl_c_ends", "ctrl_c_ignored", "sigterm_as_ctrl_c"]

Handler = Callable[[int, FrameType | None], None] | signal.Handlers


@contextmanager
def ctrl_c_ends(wish: Budget) -> Iterator[None]:
    """Inside, the first Ctrl-C ends `wish`, and a second one raises KeyboardInterrupt.

    Only where Python's own handler would be called: a server with a handler of its own keeps it. Whoever holds `wish`
    may end it there.
    """
    came: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)
        wish.end()

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with _handled(signal.SIGINT, handle):
        yield


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """SIGTERM, which `timeout` and job queues send, ends a search as Ctrl-C does: with its results."""
    with _handled(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT)):
        yield


@contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """A second Ctrl-C, meant for the search, must not cost the results while they are printed and written."""
    with _handled(signal.SIGINT, signal.SIG_IGN):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Inside, `handler` is called for the signal; afterwards the one before."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(number) is None:
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
