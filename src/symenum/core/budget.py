"""When work must end: a time limit, the caller's stop flag, or an error in another thread.

A loop asks `over` between two parts of its work and ends with what it has found. Work whose first half is useless
alone calls `check` instead, which raises CutShortError once the budget is over; the caller goes on without the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Real

__all__ = ["NO_LIMIT", "Budget", "CutShortError"]


class CutShortError(Exception):
    """Work was given up because its budget is over; the caller goes on without its result."""


class Budget:
    """A time limit in seconds, a stop flag of the caller, or neither. Once over, a budget stays over."""

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

    def seconds_left(self) -> float | None:
        """Seconds until the time limit, 0 once it is over; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def check(self) -> None:
        """Raise CutShortError if the work must end now."""
        if self.over():
            raise CutShortError

    def end(self) -> None:
        """Make this budget over, for every thread that asks it."""
        self._over = True


class _NoLimit(Budget):
    """The budget that is never over. All callers without a budget share it, so it cannot be ended."""

    def end(self) -> None:
        raise RuntimeError("NO_LIMIT is shared and cannot be ended: make a Budget() of your own")


NO_LIMIT: Budget = _NoLimit()
"""The default of functions that take a budget: never over."""
