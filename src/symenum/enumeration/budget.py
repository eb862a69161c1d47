"""When a pass must end: a time limit, the caller's stop flag, or an error in another thread.

Loops ask the budget that they are given, and end with what they have. A build that is of no use in part, deep below
those who know of time, calls `check_time` instead: where the budget that governs it is over, it is given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real

__all__ = ["Budget", "CutShortError", "check_time", "governing"]


class Budget:
    """Asked between tiles; once over, it stays over."""

    def __init__(self, time_limit: float | None = None, stop: Callable[[], bool] | None = None) -> None:
        if time_limit is not None and (isinstance(time_limit, bool) or not isinstance(time_limit, Real)):
            raise TypeError(f"time_limit must be a number of seconds, not {type(time_limit).__name__}")
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit must be a number of seconds above zero, not {time_limit!r}")
        if stop is not None and not callable(stop):
            raise TypeError(
                "stop must be a callable that returns True when the pass shall end (for a threading.Event: "
                f"event.is_set), not {type(stop).__name__}"
            )
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._stop = stop
        self._over = False

    def over(self) -> bool:
        """Whether the pass must end now."""
        if not self._over:
            late = self._deadline is not None and time.monotonic() >= self._deadline
            self._over = late or (self._stop is not None and bool(self._stop()))
        return self._over

    def end(self) -> None:
        """End the pass from inside, for all threads."""
        self._over = True


class CutShortError(Exception):
    """Work was given up because the time is over; whoever governs it goes on without."""


_governor: ContextVar[Budget | None] = ContextVar("governor", default=None)


@contextmanager
def governing(budget: Budget) -> Iterator[None]:
    """Inside, and in this thread, `check_time` asks this budget."""
    before = _governor.set(budget)
    try:
        yield
    finally:
        _governor.reset(before)


def check_time() -> None:
    """Raise CutShortError if the governing budget, where there is one, is over."""
    budget = _governor.get()
    if budget is not None and budget.over():
        raise CutShortError
