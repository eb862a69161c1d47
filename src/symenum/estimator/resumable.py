"""What an estimator needs to be stopped and taken up again: methods that its class inherits, and the watch on a fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from symenum.core.budget import Budget
from symenum.core.interrupts import ctrl_c_ends
from symenum.estimator.keeping import opened
from symenum.search.checkpoint import Checkpoint

__all__ = ["Attendance", "Resumable", "attended"]

_BEFORE_SEARCH = 0.3  # of the time, at most


@dataclass(frozen=True)
class Attendance:
    """A fit that runs: when it began, on the monotonic clock, and the wish that it end, which Ctrl-C fulfils."""

    began: float = field(default_factory=time.monotonic)
    wish: Budget = field(default_factory=Budget)

    def before_search(self, max_time: float | None) -> Budget:
        """For what is fitted before the first step, as the constants of guesses."""
        if max_time is None:
            return Budget(stop=self.wish.over)
        return Budget(max(_BEFORE_SEARCH * max_time - (time.monotonic() - self.began), 1e-9), stop=self.wish.over)


@contextmanager
def attended(model: Resumable) -> Iterator[Attendance]:
    """While a fit of the model runs: Ctrl-C and `model.stop()` end it."""
    attendance = Attendance()
    model._attendance = attendance
    try:
        with ctrl_c_ends(attendance.wish):
            yield attendance
    finally:
        model._attendance = None
        model._kept = None


class Resumable(BaseEstimator):  # type: ignore[misc]
    """An estimator whose `fit` can be stopped from another thread, and go on from a checkpoint."""

    _attendance: Attendance | None = None
    _kept: Checkpoint | None = None  # where the next fit goes on from

    def fit(self, X: object, y: object, sample_weight: object = None, validation: object = None) -> Any:
        raise NotImplementedError

    def stop(self) -> None:
        """Ask a `fit` that runs in another thread to end now, as Ctrl-C does in the main one."""
        if self._attendance is not None:
            self._attendance.wish.end()

    @classmethod
    def resume(
        cls,
        path: str | Path,
        X: object = None,
        y: object = None,
        sample_weight: object = None,
        *,
        validation: object = None,
        **changes: Any,
    ) -> Any:
        """The estimator of a checkpoint, gone on from there to its limits, or to those given in `changes`.

        X and y are those of the fit; without, they are read from the file beside the checkpoint. With an iteration
        limit the result is that of one uninterrupted fit. What decides the search's way (operators, layers, …) cannot
        change; operators of your own must be given again, since a checkpoint holds no code, and so must `validation`.
        """
        names = cls._get_param_names()
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        found = opened(Path(path), changes, names, with_data=X is None)
        if found.data is not None:
            X, y, sample_weight = found.data.frame(), found.data.y, found.data.weight
        model = cls(**found.parameters)
        model._kept = found.checkpoint
        return model.fit(X, y, sample_weight, validation)
