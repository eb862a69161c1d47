"""Steps one after another, until something says stop: the clock, a count, the front, the user."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from symenum.core.budget import Budget
from symenum.core.devices import ANY_WORK, choose_devices, urgent
from symenum.core.exactness import overflow_allowed
from symenum.core.interrupts import ctrl_c_ends
from symenum.core.memory import large_blocks_returned
from symenum.core.threads import single_threaded
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search.polish import in_supported_digits, refitted
from symenum.search.problem import Task
from symenum.search.schedule import check_shares, moves_of
from symenum.search.state import State, StepReport, Turn
from symenum.search.step import start, step, stop_reason

__all__ = ["EASY", "Advance", "Outcome", "run", "time_is_over"]

Callback = Callable[[StepReport], object]
Keep = Callable[[State, Front], object]


class Advance(Protocol):
    """What takes a search on, in place of a step in this process; `symenum.cluster` has one."""

    def __call__(self, state: State, budget: Budget) -> State | None:
        """A later state, with its turns in `history`; None: there is nothing left to do."""
        ...

    def said(self) -> str:
        """Where the search runs, for reports."""
        ...


# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_SEARCH_SHARE = 0.9  # part of the time for steps, where constants are fitted on all rows at the end
_MIN_LAST_FIT = 0.2  # seconds for that fit, even where the last step took longer than it should,
_LATEST = 0.5  # but not beyond so many seconds after the limit

_SHORTEST = 1e-9  # seconds: a Budget needs a limit above 0, and rates need a time above 0
_INTERRUPTED = "interrupted"


EASY = 0.5
"""Work units: a search that ends with less never needs the GPU made ready."""


def time_is_over(max_time: float | None) -> str:
    """Why a search ends at its time limit of so many seconds."""
    return f"the time limit of {max_time:g} s is over"


@dataclass(frozen=True)
class Outcome:
    """The last state, the front, why the search ended, whether by Ctrl-C, and the error that ended it, if one did.

    The front is the state's, with constants fitted on all rows where the search worked on a part of them, and written
    in the digits that the data support. `whole` is the state after the last step that was not cut short: from there a
    search goes on as if it had not ended.
    """

    state: State
    front: Front
    reason: str
    whole: State
    interrupted: bool = False
    error: BaseException | None = None


def run(
    task: Task,
    seed: int,
    *,
    max_time: float | None = None,
    max_iterations: int | None = None,
    callbacks: Iterable[Callback] = (),
    state: State | None = None,
    known: Iterable[Candidate] = (),
    keep: Keep | None = None,
    stopping: Budget | None = None,
    began: float | None = None,
    reserve: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    advance: Advance | None = None,
) -> Outcome:
    """Search from the beginning, or from a state that an earlier run has left.

    `max_time` in seconds, from `began` on (a time of `clock`), else from now; the caller needs the last `reserve` of
    them for what follows. A callback gets each StepReport; one that
    returns True ends the search. Ctrl-C ends the budget `stopping`, and so may anyone who holds it: the step ends at
    its next look at the clock, and its finds are kept. A second Ctrl-C ends the search at once with the front of the
    steps before, and is the outcome's error. `known` laws of earlier runs join the front without leading the search.
    `keep` gets the state and the front at the beginning and after each whole step, to write them down. `advance`: what
    makes the steps, if not this process.
    """
    check_shares(task.settings.shares, moves_of(task))
    stopping = stopping or Budget()
    began = clock() if began is None else began
    limits = (max_time, max_iterations)
    running = _Run(task, tuple(callbacks), *limits, tuple(known), keep, stopping, began, reserve, clock, advance)
    devices = choose_devices(task.settings.device, ANY_WORK) if task.plan.gpu else ()
    with (
        ctrl_c_ends(stopping),
        large_blocks_returned(task.settings.max_memory),
        single_threaded(),
        overflow_allowed(),
        urgent(devices),
    ):
        return running.outcome(state or start(task, seed, running.searching))


@dataclass(frozen=True)
class _Run:
    """One run: its limits, its clock, and those who are told of its steps."""

    task: Task
    callbacks: tuple[Callback, ...]
    max_time: float | None
    max_iterations: int | None
    known: tuple[Candidate, ...]
    keep: Keep | None
    stopping: Budget
    began: float
    reserve: float
    clock: Callable[[], float]
    advance: Advance | None

    @cached_property
    def searching(self) -> Budget:
        """The budget of the steps; the rest of the time is for `refitted`."""
        return self._budget(_SEARCH_SHARE if self.task.partial else 1.0)

    @property
    def finishing(self) -> Budget:
        """The budget of the last work on the front."""
        return self._budget(1.0, at_least=_MIN_LAST_FIT)

    def _budget(self, part: float, at_least: float = 0.0) -> Budget:
        if self.max_time is None:
            return Budget(stop=self.stopping.over)
        elapsed = self.clock() - self.began
        remaining = part * (self.max_time - self.reserve) - elapsed
        seconds = max(remaining, min(at_least, self.max_time + _LATEST - elapsed), _SHORTEST)
        return Budget(seconds, stop=self.stopping.over)

    def outcome(self, state: State) -> Outcome:
        """Steps from the state on until something ends the search, and what it ended with."""
        earlier = state.elapsed
        whole = state
        error: BaseException | None = None
        try:
            self._keep(whole)
            while (reason := self._reason(state)) is None:
                after = self._step(state, earlier) if self.advance is None else self.advance(state, self.searching)
                if after is None:
                    reason = "every move has been made"
                    break
                state = after
                if not self.searching.over():  # else the step may have been cut short
                    whole = state
                    self._keep(whole)
                if self._tell(state):
                    reason = "a callback asked to stop"
                    break
        except KeyboardInterrupt as raised:
            reason = _INTERRUPTED
            error = raised if self.stopping.over() else None  # the second Ctrl-C
            self.stopping.end()
        except Exception as raised:  # handed on with what was found; the caller decides
            error, reason = raised, f"failed: {raised}"
        finally:
            self.task.scan_ahead.give_up()
        front = state.front
        if self.task.partial and self.task.settings.constants and error is None:
            front = refitted(self.task, front, self.finishing)
        front = self._with_known(front)
        if self.task.settings.constants and error is None:
            front = in_supported_digits(self.task, front, self.finishing)
        state = replace(state, elapsed=earlier + self.clock() - self.began)
        return Outcome(state, front, reason, whole, reason == _INTERRUPTED, error)

    def _step(self, state: State, earlier: float) -> State | None:
        """The state after one more step, `earlier` seconds of the search being over before; None: no move is left."""
        if not state.opened and state.work >= EASY:
            self.task.warm_up()
        before = self.clock()
        after, move = step(self.task, state, self.searching)
        if move is None:
            return None
        gain = after.record(move).gain - state.record(move).gain
        began, seconds = earlier + before - self.began, self.clock() - before
        return after.timed(Turn(after.iteration, move, began, seconds, gain))

    def _keep(self, whole: State) -> None:
        if self.keep is not None:
            self.keep(whole, self._with_known(whole.front))

    def _with_known(self, front: Front) -> Front:
        return front.update(self.known, self.task.settings.max_complexity) if self.known else front

    def _tell(self, state: State) -> bool:
        """Whether a callback asks to stop; all of them are told. Without a turn there is nothing to tell."""
        if not state.history:  # the islands of a cluster came back with nothing done
            return False
        turn = state.history[-1]
        report = StepReport(
            state.iteration,
            turn.move,
            turn.seconds,
            state.elapsed,
            None if self.max_time is None else max(0.0, self.max_time - (self.clock() - self.began)),
            state.scored,
            state.scored / max(state.elapsed, _SHORTEST),
            self._with_known(state.front),
            str((self.task.on_cpu if state.on_cpu else self.task).plan),
            state.passes,
            turn.gain,
            {record.move: record.error for record in state.records if record.error},
            "" if self.advance is None else self.advance.said(),
        )
        answers = [callback(report) for callback in self.callbacks]
        return any(answers)

    def _reason(self, state: State) -> str | None:
        """Why the search must end before the next step, if it must."""
        if self.stopping.over():
            return _INTERRUPTED
        found = stop_reason(self.task, state.front)
        if found is not None:
            return found
        if self.searching.over():
            if self.stopping.over():  # since the first look above
                return _INTERRUPTED
            return time_is_over(self.max_time)
        if self.max_iterations is not None and state.iteration >= self.max_iterations:
            return f"the limit of {self.max_iterations} iteration{'' if self.max_iterations == 1 else 's'} is reached"
        return None
