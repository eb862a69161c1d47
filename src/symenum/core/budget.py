"""When work must end: a time limit, the caller's stop flag, or an error in another thread.

A loop asks `over` and ends with what it has. A build that is of no use in part calls `check` instead: where the time
is over, CutShortError gives the build up, and whoever asked for it goes on without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Real

__all__ = ["NO_LIMIT", "Budget", "CutShortError"]


class CutShortError(Exception):
    """Work was given up because the time is over; whoever asked for it goes on without."""


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
        """Whether the work must end now."""
        if not self._over:
            late = self._deadline is not None and time.monotonic() >= self._deadline
            self._over = late or (self._stop is not None and bool(self._stop()))
        return self._over

    def check(self) -> None:
        """Raise CutShortError if the work must end now."""
        if self.over():
            raise CutShortError

    def end(self) -> None:
        """End the work from inside, for all threads."""
        self._over = True


class _NoLimit(Budget):
    """Shared by all who were given no budget, so nobody may end it."""

    def end(self) -> None:
        raise RuntimeError("NO_LIMIT is shared and cannot be ended: make a Budget() of your own")


NO_LIMIT: Budget = _NoLimit()
"""The default of functions that take a budget: never over."""
