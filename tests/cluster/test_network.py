"""One pass on many workers: whoever does which part, and whatever becomes of workers, the shortlist is the same."""

from __future__ import annotations

import numpy as np
import pytest
from cluster.unreliable import Clock, Unreliable

from symenum import PSRN, make_operator
from symenum.cluster import ClusterError, Crew, InProcess, connected, search_network
from symenum.cluster import network as network_module
from symenum.cluster.messages import Message
from symenum.core.threads import Job
from symenum.engine import cpu
from symenum.engine.shortlist import Scorer

SETTINGS = range(12)  # benchmarks/cluster.py equality has 50, with real processes


def random_setting(seed: int) -> tuple[PSRN, np.ndarray, np.ndarray, dict[str, object]]:
    """A network, slots' values, a target and options, all drawn at random."""
    rng = np.random.default_rng(seed)
    operators = ["koza", "arithmetic", ["+", "*", "sin", "exp"], ["+", "-", "pow", "abs"]][seed % 4]
    inputs, layers = int(rng.integers(2, 4)), 2 if seed % 3 else 3
    rows = int(rng.choice([12, 30, 300]))
    X = rng.uniform(0.3, 2.5, (rows, inputs))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, -1]) + rng.normal(0, rng.choice([0.0, 0.1]), rows)
    weight = rng.uniform(0.5, 2, rows) if seed % 2 else None
    options = {"k": int(rng.integers(1, 40)), "sample_weight": weight, "mode": "screen" if seed % 5 == 0 else "exact"}
    return PSRN(inputs, operators, layers if operators != ["+", "-", "pow", "abs"] else 2), X, y, options


@pytest.mark.parametrize("seed", SETTINGS)
def test_the_shortlist_is_that_of_one_machine_bit_for_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "_PIECE_SECONDS", 0.01)  # so that there are many pieces
    net, X, y, options = random_setting(seed)
    alone = net.search(X, y, device="cpu", **options)
    together = search_network(net, X, y, crew=Crew(Unreliable(3, seed=seed)), **options)
    assert together == alone


def test_data_go_to_each_worker_once() -> None:
    net, X, y, options = random_setting(0)
    executor = Unreliable(2)
    crew = Crew(executor)
    for _ in range(2):
        search_network(net, X, y, crew=crew, **options)
    with_data = [name for name, request in executor.sent if any(one.startswith("blob") for one in request.arrays)]
    assert sorted(with_data) == ["w0", "w1"]


def test_all_workers_build_their_banks_before_the_driver_builds_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    net, X, y, options = random_setting(3)
    executor = Unreliable(3)
    sent_before: list[int] = []
    build = cpu.numbered_jobs

    def counting(scorer: Scorer) -> list[tuple[int, Job]]:
        sent_before.append(len(executor.sent))
        return build(scorer)

    crew = Crew(executor)
    crew.gathered(3, 5.0)
    monkeypatch.setattr(cpu, "numbered_jobs", counting)
    search_network(net, X, y, crew=crew, **options)
    assert [(one.document["first"], one.document["last"]) for _, one in executor.sent[:3]] == [(0, 0)] * 3
    assert min(sent_before) >= 1  # the first bank of all is a worker's or the driver's, with the first pieces sent


@pytest.mark.parametrize("workers", [2, 5])
def test_the_last_pieces_are_small_so_that_all_workers_end_together(workers: int) -> None:
    net, X, y, options = random_setting(0)
    executor = Unreliable(workers)
    crew = Crew(executor)
    crew.gathered(workers, 5.0)
    search_network(net, X, y, crew=crew, **options)
    sizes = net.numbered(X, y, options["k"], options["sample_weight"], mode=options["mode"]).sizes
    spans = [(one.document["first"], one.document["last"]) for _, one in executor.sent if one.document["last"]]
    left = sum(sizes)
    for first, last in spans:
        pairs = sum(sizes[first:last])
        assert pairs <= left / (2 * workers) + max(sizes[first:last])
        left -= pairs
    assert left == 0


def test_a_worker_that_dies_costs_its_piece_only() -> None:
    net, X, y, options = random_setting(3)
    deaths = iter([False, True, False, True])
    executor = Unreliable(4, lambda name, request: "dies" if next(deaths, False) else "fine")
    crew = Crew(executor)
    assert search_network(net, X, y, crew=crew, **options) == net.search(X, y, device="cpu", **options)
    assert crew.lost == 2
    assert len(executor.names) == 2


def test_a_worker_that_hangs_is_done_without() -> None:
    net, X, y, options = random_setting(3)
    executor = Unreliable(2, lambda name, request: "hangs" if name == "w0" and request.document["last"] else "fine")
    notes: list[str] = []
    crew = Crew(executor, note=notes.append, clock=Clock(5.0))
    crew.gathered(2, 1000.0)
    assert search_network(net, X, y, crew=crew, **options) == net.search(X, y, device="cpu", **options)
    assert any("w0 has not answered" in line for line in notes)


def test_a_part_that_fails_twice_is_reported() -> None:
    def poisoned(name: str, request: Message) -> str:
        return "ValueError: no" if request.document["first"] == 0 < request.document["last"] else "fine"

    net, X, y, options = random_setting(3)
    executor = Unreliable(3, poisoned)
    with pytest.raises(ClusterError, match=r"a part of the pass could not be done: ValueError: no"):
        search_network(net, X, y, crew=Crew(executor), **options)
    tried = [name for name, request in executor.sent if poisoned(name, request) != "fine"]
    assert len(set(tried)) == 2  # once more, and elsewhere


def test_operators_of_your_own_are_refused_with_the_reason() -> None:
    mine = make_operator("mine", lambda a: a * a + a)
    with pytest.raises(ClusterError, match=r"operators of your own \(mine\) are code"):
        search_network(PSRN(2, ["+", mine], 2), [[1.0, 2.0]], [3.0], crew=Crew(InProcess()))


def test_a_time_limit_ends_the_pass_with_what_was_found() -> None:
    net, X, y, options = random_setting(3)
    with connected(InProcess()) as executor:
        found = search_network(net, X, y, crew=Crew(executor), time_limit=1e-6, **options)
    assert not found.complete
    assert found.scored == 0
