"""Laws that nearly stand on the front."""

from __future__ import annotations

from symenum.core.budget import Budget
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search import start, step
from symenum.search.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from symenum.search.front_update import near, runners_up


def candidates(*pairs: tuple[str, float]) -> list[Candidate]:
    return [Candidate(parse(text), loss) for text, loss in pairs]


def test_the_best_of_each_complexity_are_kept_and_a_function_once() -> None:
    found = candidates(("x + y", 2.0), ("y + x", 2.0), ("x*y", 1.0), ("sin(x) + y", 0.5), ("x - y", 3.0))
    kept = runners_up(found)
    assert [str(each.expression) for each in kept] == ["x*y", "x + y", "x - y", "sin(x) + y"]
    many = [Candidate(parse(f"x + {i}"), float(i)) for i in range(1, 50)]
    assert runners_up(many) == tuple(many[: len(runners_up(many))])
    assert len(runners_up(many)) < len(many)


def test_near_is_what_the_front_does_not_leave_far_behind(make) -> None:
    front = make(lambda a, b: a * b).empty_front.update(candidates(("x1", 4.0), ("x1*x2", 1.0)))
    assert isinstance(front, Front)
    assert len(front) == 2
    found = candidates(("x1*x2", 1.0), ("x1 + x2", 1.5), ("x1 - x2", 1e3), ("sin(x1)", 4.5))
    assert [str(each.expression) for each in near(front, found)] == ["x1 + x2", "sin(x1)"]


def test_what_waits_beside_the_front_is_kept_on_the_disk(make, tmp_path) -> None:
    task = make(lambda a, b: a * b + 0.3 * b**3, noise=0.1)
    state = start(task, 0)
    for _ in range(4):
        state, _ = step(task, state, Budget())
    assert state.beside
    path = tmp_path / "kept.json"
    write_checkpoint(path, Checkpoint(state, state.front, "gp", "signature"))
    assert read_checkpoint(path).state.beside == state.beside
