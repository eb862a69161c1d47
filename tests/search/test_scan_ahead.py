"""A batch of passes that is scanned while other moves have their turns; here the CPU stands in for the GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from symenum.core.budget import NO_LIMIT, Budget, CutShortError
from symenum.search import Task
from symenum.search.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from symenum.search.moves import NETWORK
from symenum.search.scan_ahead import ScanAhead
from symenum.search.state import Batch, State
from symenum.search.step import start, step


@pytest.fixture
def ahead(make: Callable[..., Task]) -> Callable[[], Task]:
    """A task whose passes are scanned ahead, new in each call; no short law explains its data."""

    def made() -> Task:
        task = make(
            lambda a, b: np.sin(a * b) + a / (b + 0.3 * a), noise=0.05, device="cpu", threads=1, planned_time=0.3
        )
        return replace(task, plan=replace(task.plan, gpu=True, sets=2, scan=0.1))

    return made


def steps(task: Task, state: State, count: int) -> tuple[State, list[str]]:
    """The state after so many steps, and the names of their moves."""
    moves = []
    for _ in range(count):
        state, move = step(task, state, NO_LIMIT)
        moves.append(str(move))
    return state, moves


def launched(task: Task) -> State:
    """The state of a search that has just launched its first batch."""
    state = start(task, 0, NO_LIMIT)
    while state.scanning is None:
        state, _ = step(task, state, NO_LIMIT)
    return state


def test_other_moves_have_their_turns_while_a_batch_is_scanned_and_then_its_finds_count(ahead: Callable[[], Task]):
    task = ahead()
    state = launched(task)
    assert state.scanning is not None
    moves = []
    while state.scanning is not None:
        state, move = step(task, state, NO_LIMIT)
        moves.append(move)
    assert moves[-1] == NETWORK
    assert len(moves) > 1
    assert NETWORK not in moves[:-1]
    assert state.passes == 2
    assert state.scored > 0


def test_a_search_that_is_resumed_at_every_step_goes_the_same_way(ahead: Callable[[], Task], tmp_path: Path):
    task = ahead()
    state = launched(task)
    whole, moves = steps(task, state, 20)
    assert whole.passes >= 4
    again = []
    for _ in moves:
        write_checkpoint(tmp_path / "c.json", Checkpoint(state, state.front, "gp", ""))
        state = read_checkpoint(tmp_path / "c.json").state
        state, names = steps(ahead(), state, 1)
        again += names
    assert again == moves
    assert state.front == whole.front
    assert state.scored == whole.scored


def test_an_error_of_the_scan_ends_the_move_and_nothing_else(
    ahead: Callable[[], Task], monkeypatch: pytest.MonkeyPatch
):
    task = ahead()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(task.network, "search_many", broken)
    state = launched(task)
    with pytest.warns(RuntimeWarning, match="'network' failed .*no such kernel"):
        state, _ = steps(task, state, 30)
    assert state.record(NETWORK).ended
    assert len(state.front) > 1


def test_without_the_gpu_that_scanned_the_batch_the_search_goes_on_with_passes_of_its_own(ahead: Callable[[], Task]):
    state = launched(ahead())
    on_cpu = ahead()
    on_cpu = replace(on_cpu, plan=replace(on_cpu.plan, gpu=False))
    while not state.passes:
        state, _ = step(on_cpu, state, NO_LIMIT)
    assert state.scanning is None


def test_nobody_waits_for_a_scan_beyond_the_end_of_the_budget():
    held = threading.Event()
    batch, scans = Batch((), (), ()), ScanAhead()

    def scan(budget: Budget) -> list:
        held.wait()
        return []

    scans.start(batch, scan)
    over = Budget()
    over.end()
    with pytest.raises(CutShortError):
        scans.result(batch, scan, over)
    held.set()
    assert scans.result(batch, scan, NO_LIMIT) == []


def test_a_scan_that_is_given_up_is_told_so():
    told = threading.Event()
    scans = ScanAhead()

    def scan(budget: Budget) -> list:
        while not budget.over():
            pass
        told.set()
        return []

    scans.start(Batch((), (), ()), scan)
    scans.give_up()
    assert told.wait(10)
