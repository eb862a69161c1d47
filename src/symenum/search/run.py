"""Steps one after another, until something says stop: the clock, a count, the front, the user."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from symenum.enumeration.budget import Budget
from symenum.search.coefficients import refitted
from symenum.search.state import State, StepReport
from symenum.search.step import start, step, stop_reason
from symenum.search.task import Task

__all__ = ["Outcome", "run"]

Callback = Callable[[StepReport], object]

_SEARCHING = 0.9  # of the time, where constants are fitted anew on all rows in the end


@dataclass(frozen=True)
class Outcome:
    """The last state, why the search ended, and whether that was the user's Ctrl-C."""

    state: State
    reason: str
    interrupted: bool = False


def run(
    task: Task,
    seed: int,
    *,
    max_time: float | None = None,
    max_iterations: int | None = None,
    callbacks: Iterable[Callback] = (),
    state: State | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Search from the beginning, or from a state that an earlier run has left.

    A callback gets each StepReport; one that returns True ends the search. Ctrl-C ends it too, with the front of the
    steps before.
    """
    callbacks = tuple(callbacks)
    begin = clock()
    whole = Budget(max_time)
    searching = Budget(None if max_time is None else max_time * (_SEARCHING if task.partial else 1.0))
    state = state or start(task, seed)
    earlier = state.elapsed
    try:
        while True:
            reason = stop_reason(task, state.front)
            if reason is None and searching.over():
                reason = f"the time limit of {max_time:g} s is over"
            if reason is None and max_iterations is not None and state.iteration >= max_iterations:
                reason = f"the limit of {max_iterations} iterations is reached"
            if reason is not None:
                break
            before = clock()
            after, stage = step(task, state, searching)
            now = clock()
            state = replace(after, elapsed=earlier + now - begin)
            report = StepReport(
                state.iteration,
                stage,
                now - before,
                state.elapsed,
                None if max_time is None else max(0.0, max_time - (now - begin)),
                state.scored,
                state.scored / max(state.elapsed, 1e-9),
                state.front,
                str(task.plan),
            )
            answers = [callback(report) for callback in callbacks]  # every one of them is told
            if any(answers):
                reason = "a callback asked to stop"
                break
        if task.partial and task.settings.constants:
            state = replace(state, front=refitted(task, state.front, whole))
    except KeyboardInterrupt:
        return Outcome(state, "interrupted", interrupted=True)
    return Outcome(replace(state, elapsed=earlier + clock() - begin), reason)
