"""When a pass must end: a time limit, the caller's stop flag, or an error in another thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Real

__all__ = ["Budget"]


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
