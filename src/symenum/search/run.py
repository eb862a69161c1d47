"""Steps one after another, until something says stop: the clock, a count, the front, the user."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from symenum.enumeration.budget import Budget
from symenum.front import Front
from symenum.search.coefficients import refitted
from symenum.search.interrupts import interrupts
from symenum.search.state import State, StepReport
from symenum.search.step import start, step, stop_reason
from symenum.search.task import Task

__all__ = ["Outcome", "run"]

Callback = Callable[[StepReport], object]

_SEARCHING = 0.9  # of the time, where constants are fitted anew on all rows in the end


@dataclass(frozen=True)
class Outcome:
    """The last state, the front, why the search ended, whether by Ctrl-C, and the error that ended it, if one did.

    The front is the state's, with constants fitted on all rows where the search worked on a part of them.
    """

    state: State
    front: Front
    reason: str
    interrupted: bool = False
    error: Exception | None = None


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

    A callback gets each StepReport; one that returns True ends the search. So does Ctrl-C, at the next look at the
    clock inside the step, whose finds are kept; a second Ctrl-C ends it at once with the front of the steps before.
    """
    callbacks = tuple(callbacks)
    begin = clock()
    whole = Budget(max_time)
    searching = Budget(None if max_time is None else max_time * (_SEARCHING if task.partial else 1.0))
    state = state or start(task, seed)
    earlier = state.elapsed
    error: Exception | None = None
    with interrupts(searching) as interrupted:
        try:
            while True:
                reason = "interrupted" if interrupted() else _reason(task, state, searching, max_time, max_iterations)
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
        except KeyboardInterrupt:
            return Outcome(state, state.front, "interrupted", interrupted=True)
        except Exception as raised:  # handed on with what was found: whoever drives the search decides
            error, reason = raised, f"failed: {raised}"
    front = state.front
    if task.partial and task.settings.constants and error is None:
        front = refitted(task, front, whole)
    state = replace(state, elapsed=earlier + clock() - begin)
    return Outcome(state, front, reason, interrupted=reason == "interrupted", error=error)


def _reason(
    task: Task, state: State, searching: Budget, max_time: float | None, max_iterations: int | None
) -> str | None:
    """Why the search must end before the next step, if it must."""
    found = stop_reason(task, state.front)
    if found is not None:
        return found
    if searching.over():
        return f"the time limit of {max_time:g} s is over"
    if max_iterations is not None and state.iteration >= max_iterations:
        return f"the limit of {max_iterations} iterations is reached"
    return None
