"""The rule: the cheap first, the network at least its share, the others by what they brought; and bad shares."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from symenum.core.budget import Budget
from symenum.core.devices import DeviceLostError
from symenum.core.memory import DEFAULT_MEMORY, LEAST_MEMORY
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.heads.stages import STAGE_NAMES
from symenum.operators import get_operators
from symenum.search import problem, run, start, step
from symenum.search import schedule as rule
from symenum.search.moves import MOVES, HeadOnVariables, Network, Variants
from symenum.search.schedule import Schedule, check_shares, front_decades, moves_of
from symenum.search.state import Record, State


@dataclass(frozen=True)
class FakeMove:
    """A move that says how much work it is, and is never run."""

    name: str
    units: float
    opens: bool = True

    def work(self, state: State) -> float:
        return self.units

    def ready(self, state: State) -> bool:
        return True


def hard(a, b):
    return np.sin(3 * a) / (b + np.exp(np.cos(a * b))) + np.tanh(a - b)


def play(
    schedule: Schedule,
    turns: int,
    gains: dict[str, float] | None = None,
    last: dict[str, int] | None = None,
    front: Front | None = None,
):
    """The names of the moves of so many turns. `gains` of a turn by move; `last`: the number of turns that it has."""
    state, names = State(0, 0, front or Front()), []
    for _ in range(turns):
        move = schedule.next_move(state)
        names.append(move.name)
        record = state.record(move.name)
        done = record.turns + 1 == (last or {}).get(move.name)
        gain = record.gain + (gains or {}).get(move.name, 0.0)
        record = replace(record, turns=record.turns + 1, work=record.work + move.units, gain=gain, ended=done)
        opening = state.opening_work + (move.units if move.name != "network" and not state.passes else 0.0)
        passes = state.passes + (move.name == "network")
        state = replace(state.with_record(record), passes=passes, opening_work=opening)
    return names, state


def made(*moves: FakeMove, shares: dict[str, float] | None = None, seconds: float = 100.0) -> Schedule:
    return Schedule((*moves, FakeMove("network", 1.0, opens=False)), shares or {}, seconds)


def test_the_opening_has_the_cheapest_moves_first_and_no_dear_one() -> None:
    schedule = made(FakeMove("middle", 0.5), FakeMove("dear", 20.0), FakeMove("cheap", 0.1))
    names, _ = play(schedule, 4, last={"middle": 1, "cheap": 2})
    assert names == ["cheap", "cheap", "middle", "network"]


def test_the_opening_ends_when_its_part_of_the_time_is_spent() -> None:
    names, state = play(made(FakeMove("endless", 1.0), seconds=100.0), 40)
    assert 10 <= names.index("network") <= 20
    assert state.opening_work <= 15.0


def test_the_network_gets_its_share_of_the_work_after_the_opening() -> None:
    for shares, least in (({}, 0.5), ({"network": 0.8}, 0.8), ({"network": 1.0}, 1.0)):
        _, state = play(made(FakeMove("a", 4.0), FakeMove("b", 5.0), shares=shares), 300)
        done = sum(record.work for record in state.records) - state.opening_work
        assert state.record("network").work >= (least - 0.05) * done


def test_the_others_share_the_rest_by_what_they_brought() -> None:
    moves = [FakeMove("rich", 4.0), FakeMove("poor", 4.0)]
    names, _ = play(made(*moves), 400, gains={"rich": 1.0})
    count = Counter(names)
    assert count["rich"] > 10 * count["poor"]
    assert count["poor"] >= 1  # each is tried


def test_what_they_brought_does_not_count_where_the_front_shows_no_noise() -> None:
    moves = [FakeMove("rich", 4.0), FakeMove("poor", 4.0)]
    series = Front((Candidate(parse("x1"), 1.0), Candidate(parse("x1 + x1**3/6"), 1e-7)))
    count = Counter(play(made(*moves), 400, gains={"rich": 1.0}, front=series)[0])
    assert abs(count["rich"] - count["poor"]) <= 1


def test_moves_that_bring_nothing_get_the_same_work() -> None:
    _, state = play(made(FakeMove("a", 4.0), FakeMove("b", 8.0)), 400)
    assert state.record("a").work == pytest.approx(state.record("b").work, rel=0.2)


def test_a_share_is_a_factor_and_zero_leaves_a_move_out() -> None:
    moves = [FakeMove("a", 4.0), FakeMove("b", 4.0)]
    count = Counter(play(made(*moves, shares={"a": 3.0}), 400)[0])
    assert 2 * count["b"] < count["a"] < 4 * count["b"]


def test_where_nothing_is_left_there_is_no_move() -> None:
    schedule = Schedule((FakeMove("a", 1.0),), {}, 60.0)
    ended = State(0, 0, Front(), records=(Record("a", ended=True),))
    assert schedule.next_move(ended) is None


def test_a_search_without_moves_ends_and_says_so(make) -> None:
    task = make(hard, rows=20)
    shares = {move.name: 0.0 for move in moves_of(task) if move.name != "polynomials"}
    outcome = run(make(hard, rows=20, shares=shares), 0)
    assert outcome.reason == "every move has been made"
    assert [record.move for record in outcome.state.records] == ["polynomials"]
    assert outcome.state.record("polynomials").ended


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"network": -0.1}, "for 'network': a share is a number of at least 0"),
        ({"reductions": float("nan")}, "at least 0"),
        ({"network": 1.5}, "at most 1"),
        ({"netwrk": 0.5}, "did you mean 'network'"),
    ],
)
def test_bad_shares_are_refused(make, shares, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_shares(shares, moves_of(make(hard)))


def test_shares_that_leave_no_move_are_refused(make) -> None:
    moves = moves_of(make(hard))
    with pytest.raises(ValueError, match="leaves no move"):
        check_shares({move.name: 0.0 for move in moves}, moves)
    with pytest.raises(ValueError, match="leaves no move"):
        run(make(hard, shares={move.name: 0.0 for move in moves}), 0)


def test_every_move_has_a_name_of_its_own_and_costs_something(make) -> None:
    task = make(hard)
    moves = moves_of(task)
    names = [move.name for move in moves]
    assert len(set(names)) == len(names)
    assert {Network.name, Variants.name} <= set(names)
    assert all(move.work(start(task, 0)) > 0 for move in moves)
    assert all(isinstance(move, (HeadOnVariables, Network)) for move in moves_of(make(hard, constants=False)))


def test_a_slice_that_was_cut_short_comes_again_and_the_next_one_is_not_laid_out(make) -> None:
    task = make(hard)
    state, over = start(task, 0), Budget()
    over.end()
    move = next(move for move in moves_of(task) if isinstance(move, HeadOnVariables))
    laid_out: list[int] = []
    stage = replace(move.stage, slices=SimpleNamespace(at=lambda number: laid_out.append(number)))
    found, after = replace(move, stage=stage).run(task, state, np.random.default_rng(0), over)
    assert (found, after, laid_out) == ([], state, [0])


def test_the_decades_of_a_front_grow_when_it_gets_lower() -> None:
    def law(text: str, loss: float) -> Candidate:
        return Candidate(parse(text), loss)

    mean = Front((law("1.5", 1.0),), floor=1e-20)
    assert front_decades(mean, 1.0, 9) == pytest.approx(0.0)
    better = replace(mean, entries=(law("1.5", 1.0), law("x1*x2", 0.01)))  # two decades from complexity 1 on
    assert front_decades(better, 1.0, 9) == pytest.approx(2 * 9 / 10, rel=0.2)
    exact = replace(mean, entries=(law("1.5", 1.0), law("x1*x2", 0.0)))
    assert front_decades(better, 1.0, 9) < front_decades(exact, 1.0, 9) <= 20.0


class Failing:
    """A token generator that fails, or loses the device, when it is asked for tokens."""

    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def start(self, context):
        return None

    def propose(self, context, state, count, rng, budget):
        raise self.error

    def learn(self, context, state, reward, front):
        return None


def test_a_move_that_raises_is_left_out_and_the_search_goes_on(make) -> None:
    task = make(hard, rows=20, planned_time=0.5)
    task = replace(task, generator=Failing(ZeroDivisionError("no tokens today")))
    reports = []
    with pytest.warns(RuntimeWarning, match=r"'network' failed \(ZeroDivisionError: no tokens today\)") as caught:
        outcome = run(task, 0, max_iterations=50, callbacks=[reports.append])
    assert len([one for one in caught if "network" in str(one.message)]) == 1
    record = outcome.state.record("network")
    assert (record.turns, record.ended) == (1, True)
    assert "no tokens today" in record.error
    assert reports[-1].errors == {"network": record.error}
    after = [turn for turn in outcome.state.history if turn.move != "network"]
    assert len(after) > 20
    assert outcome.error is None


def test_a_lost_gpu_lets_the_search_go_on_on_the_cpu(make) -> None:
    task = make(hard, rows=20, device="auto")
    broken = replace(task, generator=Failing(DeviceLostError("the GPU cuda:0 is gone")))
    state = replace(start(broken, 0), records=tuple(Record(m.name, ended=True) for m in moves_of(task)[:-1]))
    with pytest.warns(RuntimeWarning, match=r"cuda:0 is gone; the search goes on on the CPU"):
        state, name = step(broken, state, Budget())
    assert name == "network"
    assert state.on_cpu
    assert not state.record("network").ended
    state, name = step(task, state, Budget())
    assert (name, state.passes) == ("network", task.plan.sets)


def test_more_memory_makes_turns_dearer_but_none_long(make) -> None:
    """With ten times the memory heads have ten times the features; the schedule must still get to the network."""
    settings = {"operators": get_operators("koza"), "layers": None, "inputs": None, "top_k": 30}
    little, much = (
        make(lambda *x: x[0] * x[1], variables=30, rows=500, noise=0.1, max_memory=memory, **settings)
        for memory in (LEAST_MEMORY, DEFAULT_MEMORY)
    )
    assert little.plan == much.plan
    begun = [(task, start(task, 0)) for task in (little, much)]
    turns = [{move.name: move.work(state) for move in moves_of(task)} for task, state in begun]
    assert turns[0]["residuals"] < turns[1]["residuals"]
    assert all(work < 1.5 for work_of in turns for name, work in work_of.items() if name != "network")


def test_shares_are_of_moves_that_there_are() -> None:
    assert set(rule._SHARES) <= {*MOVES, *STAGE_NAMES}


def test_no_pass_takes_more_than_a_tenth_of_a_short_search(make) -> None:
    free = {"operators": get_operators("koza"), "layers": None, "inputs": None}
    short, long = (make(hard, rows=40, planned_time=seconds, **free).plan for seconds in (5.0, 600.0))
    assert short.candidates < long.candidates
    assert short.work - problem._PASS_FITS <= 0.5
