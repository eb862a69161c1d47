"""Real engines: Dask, threads and processes do the same as the cluster of the other tests, and die like people's do."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from symenum import PSRN, PSERegressor
from symenum.cluster import Crew, connected, dask_executor, search_network
from symenum.cluster.crew import Worker
from symenum.cluster.dask_executor import Dask

JOINED = 60.0  # seconds for workers to say what they are


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(0.5, 2, (20, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1]


@pytest.fixture(scope="module")
def dask() -> Iterator[Dask]:
    """Two workers of Dask in this process: its protocol, without the time that processes take to start."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", resources={"GPU": 1}
        ) as cluster,
        connected(cluster) as executor,
    ):
        yield executor  # type: ignore[misc]


def test_the_workers_of_dask_are_places_with_their_threads_gpus_and_memory(dask: Dask) -> None:
    places = dask.places()
    assert [(place.threads, place.gpus, place.addressed) for place in places] == [(1, 1, True)] * 2
    assert all(place.memory > 0 for place in places)


def test_a_pass_on_dask_is_that_of_one_machine(dask: Dask, table: tuple[np.ndarray, np.ndarray]) -> None:
    net = PSRN(2, ["+", "*", "sin"], 2)
    assert search_network(net, *table, 5, crew=Crew(dask)) == net.search(*table, 5, device="cpu")


def test_a_cancelled_piece_of_dask_gives_no_reply(dask: Dask) -> None:
    ticket = dask.submit(dask.places()[0], b"no message")
    dask.cancel(ticket)
    other = dask.submit(dask.places()[0], b"no message")
    replies = [reply.ticket for _ in range(20) for reply in dask.gather(0.1)]
    assert replies == [other]


def test_a_worker_of_dask_without_symenum_is_told_of_by_its_name(dask: Dask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "_ANSWER", "symenum_that_is_not_there.cluster.worker:answer")
    monkeypatch.setattr(dask, "_answers", {})
    crew = Crew(dask)
    assert crew.gathered(1, 10.0) == ()
    assert set(crew.refused) == {place.name for place in dask.places()}
    assert all("symenum is not installed there: pip install symenum" in why for why in crew.refused.values())


def test_a_fit_on_threads_finds_the_law(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = table
    with ThreadPoolExecutor(2) as pool:
        model = PSERegressor(["+", "*"], cluster=pool, max_time=20, random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert str(model.best_expression_) == "x1*x2"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["dask", "processes"])
def test_a_killed_process_costs_its_piece_only(engine: str) -> None:
    rng = np.random.default_rng(0)
    net, X = PSRN(4, "koza", 3), rng.uniform(0.5, 2.0, (32, 4))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=32)
    with _processes(engine) as executor:
        crew = Crew(executor, silence=5.0)
        crew.gathered(2, JOINED)
        killed: list[int] = []

        def kill(worker: Worker) -> None:
            pid = int(worker.facts["process"].rpartition(":")[2])
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

        crew.run = _striking(crew, kill)  # type: ignore[method-assign]
        assert search_network(net, X, y, 10, crew=crew) == net.search(X, y, 10, device="cpu")
    assert len(killed) == 1
    assert crew.lost >= 1


def _processes(engine: str):  # type: ignore[no-untyped-def]
    if engine == "processes":
        return connected(2)
    distributed = pytest.importorskip("distributed")
    return connected(distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))


def _striking(crew: Crew, strike):  # type: ignore[no-untyped-def]
    """`crew.run` that strikes the worker of the first piece with parts as soon as that piece has gone out."""
    run = crew.run

    def struck(source, budget) -> None:  # type: ignore[no-untyped-def]
        following, done = source.next, []

        def next_piece(worker: Worker) -> object:
            piece = following(worker)
            if piece is not None and piece.key[1] and not done:
                done.append(worker)
            elif done and len(done) == 1:
                strike(done[0])
                done.append(worker)
            return piece

        source.next = next_piece
        run(source, budget)

    return struck
