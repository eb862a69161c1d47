"""Islands: the front depends on seed and limit only, whatever workers there are and whatever becomes of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from cluster.unreliable import Unreliable

from symenum import PSERegressor, make_operator
from symenum.cluster import ClusterError, InProcess, NoWorkersError
from symenum.cluster import islands as islands_module
from symenum.cluster.islands import merged_with, seed_of, shared_moves, state_document, state_from, state_to_send
from symenum.core.budget import NO_LIMIT
from symenum.core.target import Target, check_target
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search import Settings, make_task, start, step
from symenum.search.part_search import parts_to_search
from symenum.search.step import State, Task

SMALL = {"operators": ["+", "*"], "constants": False, "max_time": None, "random_state": 3, "layers": 2, "inputs": 3}


def small_table(rows: int = 20) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(0.5, 2, (rows, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1]


def fitted(cluster: object, **settings: object) -> PSERegressor:
    return PSERegressor(**{**SMALL, "max_iterations": 12, "cluster": cluster, **settings}).fit(*small_table())


@pytest.fixture(scope="module")
def alone() -> PSERegressor:
    return fitted(InProcess())


@pytest.mark.parametrize("workers", [1, 3, 11])
def test_the_front_is_the_same_whatever_the_number_of_workers(workers: int, alone: PSERegressor) -> None:
    model = fitted(Unreliable(workers, seed=workers))
    assert model.front_ == alone.front_
    assert model.n_iter_ == alone.n_iter_ == 12
    assert model.scored_ == alone.scored_


def test_the_front_is_the_same_though_workers_die(alone: PSERegressor) -> None:
    deaths = iter([True, False, False, True, True])
    executor = Unreliable(6, lambda name, request: "dies" if next(deaths, False) else "fine")
    assert fitted(executor).front_ == alone.front_
    assert len(executor.names) == 3


def test_islands_have_tokens_of_their_own() -> None:
    executor = Unreliable(1)
    fitted(executor)
    seeds = {request.document["state"]["state"]["seed"] for _, request in executor.sent}
    assert len(seeds) == islands_module.ISLANDS
    assert seed_of(3, 0) == 3


def test_a_search_goes_on_from_its_checkpoint_as_if_it_had_not_ended(tmp_path: Path, alone: PSERegressor) -> None:
    path = tmp_path / "search.json"
    rounds: list[int] = []

    def after_the_first(report: object) -> bool:
        rounds.append(1)
        return True  # the driver ends here, as if it were killed

    first = fitted(InProcess(), checkpoint=path, callbacks=after_the_first, max_iterations=12)
    assert rounds == [1]
    resumed = PSERegressor.resume(path, cluster=Unreliable(2), max_iterations=12)
    assert resumed.n_iter_ == 12
    assert resumed.front_ == alone.front_
    assert first.n_iter_ < 12


def test_a_driver_that_died_between_its_two_files_goes_on_as_if_it_had_not(tmp_path: Path, alone: PSERegressor) -> None:
    path, first = tmp_path / "search.json", tmp_path / "first"
    rounds: list[int] = []

    def until_the_second(report: object) -> bool:
        rounds.append(1)
        if len(rounds) == 1:
            first.write_bytes(path.read_bytes())
        return len(rounds) == 2

    fitted(InProcess(), checkpoint=path, callbacks=until_the_second, max_iterations=12)
    path.write_bytes(first.read_bytes())  # the islands' file is of the second round, the checkpoint of the first
    assert json.loads((tmp_path / "search.json.islands").read_text(encoding="utf-8"))["rounds"] == 2
    resumed = PSERegressor.resume(path, cluster=InProcess(), max_iterations=12)
    assert resumed.front_ == alone.front_


def test_a_damaged_file_of_islands_is_a_warning_and_the_front_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    first = fitted(InProcess(), checkpoint=path, max_iterations=8)
    (tmp_path / "search.json.islands").write_text('{"format": "symenum islands"', encoding="utf-8")
    with pytest.warns(RuntimeWarning, match="all begin from the front of the checkpoint"):
        resumed = PSERegressor.resume(path, cluster=InProcess(), max_iterations=10)
    assert resumed.front_[-1].loss <= first.front_[-1].loss


def test_progress_shows_the_workers() -> None:
    messages: list[str] = []
    fitted(Unreliable(2), callbacks=lambda report: messages.append(report.where))
    assert "2 workers, 8 islands" in messages[0]


def test_with_a_time_limit_alone_there_are_as_many_islands_as_workers() -> None:
    messages: list[str] = []

    def stop(report: object) -> bool:
        messages.append(report.where)  # type: ignore[attr-defined]
        return True

    model = fitted(Unreliable(3), max_iterations=None, max_time=3.0, callbacks=stop)
    assert "3 workers, 3 islands" in messages[0]
    assert len(model.front_)


def test_an_exact_law_ends_the_search() -> None:
    X, _ = small_table()
    model = PSERegressor(**{**SMALL, "max_iterations": 16, "cluster": Unreliable(2)}).fit(X, X[:, 0] * X[:, 1])
    assert str(model.best_expression_) == "x1*x2"
    assert "a law that equals the data" in model.stop_reason_


def test_no_usable_worker_is_an_error_that_says_why() -> None:
    executor = Unreliable(1)
    executor.identity["w0"] = {"symenum": "0.0.9"}
    with (
        pytest.warns(RuntimeWarning, match="w0 does not take part"),
        pytest.raises(NoWorkersError, match=r"no worker that can be used \(w0 does not take part: it has symenum"),
    ):
        fitted(executor)


def test_islands_that_always_fail_end_the_search_and_keep_the_front() -> None:
    executor = Unreliable(2, lambda name, request: "ValueError: a poisoned task")
    model = PSERegressor(**{**SMALL, "max_iterations": 12, "cluster": executor})
    with (
        pytest.warns(RuntimeWarning, match="could not take its turns"),
        pytest.raises(ClusterError, match="no island can take its turns: ValueError: a poisoned task"),
    ):
        model.fit(*small_table())
    assert len(model.front_)


def test_an_island_that_always_fails_ends_a_search_with_a_time_limit_too() -> None:
    executor = Unreliable(1, lambda name, request: "ValueError: a poisoned task")
    with (
        pytest.warns(RuntimeWarning, match="could not take its turns"),
        pytest.raises(ClusterError, match="no island can take its turns: ValueError: a poisoned task"),
    ):
        fitted(executor, max_iterations=None, max_time=60.0)


def test_a_time_limit_below_the_reserve_for_islands_to_come_back_still_finds_laws() -> None:
    assert len(fitted(Unreliable(1), max_iterations=None, max_time=0.4).front_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": lambda y, p: float(abs(y - p).mean())}, "the value of loss is code"),
        ({"operators": ["+", make_operator("mine", lambda a: a * a + a)]}, r"operators of your own \(mine\) is code"),
    ],
)
def test_code_is_not_sent_and_an_error_says_so(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        fitted(InProcess(), **settings)


def test_a_wrong_cluster_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="cluster must be an address such as"):
        fitted(3.5)


# States between islands


@pytest.fixture(scope="module")
def task() -> Task:
    X, y = small_table()
    target = Target(torch.tensor(y), torch.full((len(y),), 1 / len(y), dtype=torch.float64))
    return make_task(["x1", "x2"], torch.tensor(X), target, Settings(seed=1))


def after_steps(task: Task, state: State, count: int) -> State:
    for _ in range(count):
        state, _ = step(task, state, NO_LIMIT)
    return state


def test_a_state_comes_back_as_it_went(task: Task) -> None:
    state = after_steps(task, start(task, 1), 3)
    document = json.loads(json.dumps(state_document(state, "gp")))
    assert state_from(document, parse) == state


def test_each_shared_move_is_on_one_island_and_each_law_belongs_to_one(task: Task) -> None:
    merged = after_steps(task, start(task, 1), 4)
    shared = shared_moves(task)
    stages = [frozenset(shared[number::3]) for number in range(3)]
    sent = [state_to_send(merged, merged, shared, stages[i], (i, 3)) for i in range(3)]
    for name in shared:
        ready = [not one.record(name).ended for one in sent]
        assert sum(ready) == (not merged.record(name).ended)
    laws = [entry.expression for entry in merged.front if entry.expression not in merged.polished]
    for law in laws:
        assert sum(law not in one.polished for one in sent) == 1


def test_what_islands_have_done_adds_up(task: Task) -> None:
    merged = after_steps(task, start(task, 1), 2)
    shared = shared_moves(task)
    total = merged
    for number in range(2):
        stages = frozenset(shared[number::2])
        sent = state_to_send(merged, dataclasses.replace(merged, seed=number), shared, stages, (number, 2))
        back = after_steps(task, sent, 2)
        total = merged_with(total, sent, back, stages, 50)
        assert total.front.loss_up_to(50) <= back.front.loss_up_to(50)
    assert total.iteration == merged.iteration + 4
    assert sum(record.turns for record in total.records) == sum(record.turns for record in merged.records) + 4
    assert not [record.move for record in total.records if record.ended and not record.turns]


def test_two_islands_search_different_parts_and_none_is_left_out() -> None:
    laws = ["x1*(x2 - 0.1665*x2**3 + 0.0083*x2**5) + x3", "x1*(x2 - 0.1666*x2**3) + x3"]
    laws += ["x1*(x2 - 0.1665*x2**3) + exp(0.3*x3)*x3 - 0.35*x3**2", "x1*exp(0.3*x2)*x2 - log(x3)*x3 + x3**2"]
    found = [Candidate(parse(law), 1e-9 / (at + 1)) for at, law in enumerate(laws)]
    front = Front.of(check_target(np.arange(1.0, 61.0), None, 60)[0]).update([Candidate(parse("3"), 9.0), *found], 90)
    state = State(0, 0, front)
    every = {one.form for one in parts_to_search(front, ())}
    shares = []
    for number in range(2):
        sent = state_to_send(state, state, (), frozenset(), (number, 2))
        shares.append({one.form for one in parts_to_search(sent.front, sent.parted)})
    assert len(every) >= 4
    assert shares[0] | shares[1] == every
    assert not shares[0] & shares[1]


def test_an_island_keeps_the_part_that_it_is_at() -> None:
    front = Front.of(check_target(np.arange(1.0, 61.0), None, 60)[0])
    front = front.update([Candidate(parse("3"), 9.0), Candidate(parse("x1*(x2 - 0.16*x2**3) + x3"), 1e-9)], 90)
    (one, *_) = parts_to_search(front, ())
    own = State(0, 0, front, parting=(one.rest, one.part))
    for number in range(2):
        assert one.form not in state_to_send(State(0, 0, front), own, (), frozenset(), (number, 2)).parted
