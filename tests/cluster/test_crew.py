"""The crew: who may work, what happens where nobody can, and what users are told."""

from __future__ import annotations

import dataclasses

import pytest
from cluster.unreliable import Clock, Unreliable

from symenum.cluster import Crew, InProcess, NoWorkersError, Place, Reply, connected
from symenum.cluster.crew import Piece, Result, Worker
from symenum.cluster.dask_executor import connect_dask
from symenum.cluster.errors import ClusterError
from symenum.cluster.messages import Message, decode, encode
from symenum.cluster.words import names_a_cluster
from symenum.core.budget import Budget


@dataclasses.dataclass
class Questions:
    """So many pieces that ask workers what they are: the cheapest work there is."""

    count: int
    asked: int = 0
    answers: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    def next(self, worker: Worker) -> Piece | None:
        self.asked += 1
        return Piece("facts", self.asked, {"number": self.asked}) if self.asked <= self.count else None

    def done(self, piece: Piece, result: Result) -> None:
        self.answers.append(result.worker.name)

    def failed(self, piece: Piece, error: str) -> None:
        self.errors.append(error)

    def finished(self) -> bool:
        return len(self.answers) + len(self.errors) == self.count


def test_a_worker_of_another_version_does_not_take_part() -> None:
    executor = Unreliable(2)
    executor.identity["w1"] = {"symenum": "0.0.9"}
    notes: list[str] = []
    crew = Crew(executor, note=notes.append)
    crew.gathered(2, 5.0)
    crew.run(source := Questions(3), Budget())
    assert set(source.answers) == {"w0"}
    assert "it has symenum 0.0.9, and this is symenum" in crew.refused["w1"]
    assert notes == [f"w1 does not take part: {crew.refused['w1']}"]


def test_a_worker_with_other_operators_does_not_take_part() -> None:
    executor = Unreliable(2)
    executor.identity["w0"] = {"operators": "0" * 16}
    crew = Crew(executor)
    crew.gathered(2, 5.0)
    crew.run(source := Questions(3), Budget())
    assert set(source.answers) == {"w1"}
    assert "table of operators" in crew.refused["w0"]


def test_a_worker_with_too_little_memory_does_not_take_part() -> None:
    executor = Unreliable(2)
    executor.memory = {"w0": 1 << 30, "w1": 8 << 30}
    crew = Crew(executor, memory=2 << 30)
    crew.gathered(2, 5.0)
    crew.run(source := Questions(2), Budget())
    assert set(source.answers) == {"w1"}
    assert "it has 1.0 GiB of memory, and the work may take 2.0" in crew.refused["w0"]


def test_no_workers_for_a_while_is_an_error_that_says_why() -> None:
    executor = Unreliable(1)
    executor.identity["w0"] = {"symenum": "0.0.9"}
    with pytest.raises(NoWorkersError, match=r"no worker for 60 s \(w0 does not take part: it has symenum 0.0.9"):
        Crew(executor, clock=Clock(20.0)).run(Questions(1), Budget())


def test_workers_may_join_while_the_crew_works() -> None:
    executor = Unreliable(1)
    crew = Crew(executor, clock=Clock())
    source = Questions(20)
    before = source.next

    def next_piece(worker: Worker) -> Piece | None:
        if source.asked == 5 and len(executor.names) == 1:
            executor.names.append("late")
        return before(worker)

    source.next = next_piece  # type: ignore[method-assign]
    crew.run(source, Budget())
    assert set(source.answers) == {"w0", "late"}


def test_a_worker_that_leaves_just_before_its_piece_costs_nothing() -> None:
    class Leaving(Unreliable):
        def submit(self, place: Place, message: bytes) -> int:
            if place.name == "w0" and "number" in decode(message).document:
                self.names = [name for name in self.names if name != "w0"]
            return super().submit(place, message)

    crew = Crew(Leaving(2))
    crew.gathered(2, 5.0)
    crew.run(source := Questions(4), Budget())
    assert source.answers == ["w1"] * 4
    assert not source.errors


def test_a_piece_that_was_lost_with_every_worker_there_is_goes_to_one_of_them_again() -> None:
    class Pool(Unreliable):
        """Its places stay when a process dies, as those of a pool do."""

        lost = 0

        def places(self) -> tuple[Place, ...]:
            return tuple(Place(name, addressed=False) for name in self.names)

        def submit(self, place: Place, message: bytes) -> int:
            ticket = super().submit(place, message)
            if "number" in decode(message).document and self.lost < 4:
                self.lost += 1
                self._waiting[ticket] = Reply(ticket, error="a process has died", lost=True)
            return ticket

    crew = Crew(Pool(2))
    looks = iter([False] * 200)
    crew.run(source := Questions(1), Budget(stop=lambda: next(looks, True)))
    assert len(source.answers) == 1
    assert crew.lost == 4


def test_processes_of_the_crew_are_started_again_where_one_hangs() -> None:
    class Stuck(Unreliable):
        restarted = 0

        def places(self) -> tuple[Place, ...]:
            return tuple(Place(name, addressed=False) for name in self.names)

        def restart(self) -> None:
            self.restarted += 1

    executor = Stuck(2)
    hanging = iter([True, True])
    submit = executor.submit

    def stuck(place: Place, message: bytes) -> int:
        ticket = submit(place, message)
        if "number" in decode(message).document and next(hanging, False):
            executor._waiting[ticket] = None
        return ticket

    executor.submit = stuck  # type: ignore[method-assign]
    crew = Crew(executor, clock=Clock(5.0))
    crew.gathered(2, 1000.0)
    crew.run(source := Questions(2), Budget())
    assert len(source.answers) == 2
    assert executor.restarted >= 1


def test_a_budget_that_is_over_ends_the_work_though_a_worker_hangs() -> None:
    class Hanging(Unreliable):
        def gather(self, timeout: float) -> list:  # type: ignore[type-arg]
            return [reply for reply in super().gather(timeout) if not source.asked]

    source = Questions(1)
    looks = iter([False] * 5)
    Crew(Hanging(1)).run(source, Budget(stop=lambda: next(looks, True)))
    assert source.answers == []


def test_an_answer_that_is_no_message_is_tried_elsewhere_and_then_reported() -> None:
    class Broken(Unreliable):
        def _answered(self, name: str, message: bytes) -> bytes:
            return b"nonsense" if "number" in decode(message).document else super()._answered(name, message)

    crew = Crew(Broken(2))
    crew.run(source := Questions(1), Budget())
    assert len(source.errors) == 1
    assert "cannot be read" in source.errors[0]


@pytest.mark.parametrize("value", [None, "tcp://a:1", "a:8786", 4, InProcess()])
def test_what_may_be_a_cluster(value: object) -> None:
    assert names_a_cluster(value)


@pytest.mark.parametrize("value", ["", 0, -1, True, 1.5, [], {}])
def test_what_may_not_be_a_cluster(value: object) -> None:
    assert not names_a_cluster(value)
    with (
        pytest.raises(ValueError, match=r"cluster must be an address such as 'tcp://host:8786'"),
        connected(value),
    ):
        pytest.fail("connected")


def test_an_address_where_nobody_answers_says_what_was_tried() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError, match=r"no Dask scheduler answered at tcp://127.0.0.1:9 within 0.3 s"):
        connect_dask("tcp://127.0.0.1:9", 0.3)


def test_a_message_comes_back_as_it_went() -> None:
    import numpy as np

    sent = Message({"a": [1, 0.1, None, "x"]}, {"values": np.array([[1e-308, np.inf], [np.nan, -0.0]])})
    found = decode(encode(sent))
    assert found.document == sent.document
    assert found.arrays["values"].tobytes() == sent.arrays["values"].tobytes()
