"""What is written in a checkpoint comes back equal, and nothing else comes out of a file."""

from __future__ import annotations

import json

import pytest

from symenum.core.budget import Budget
from symenum.engine import Candidate
from symenum.expressions import parse
from symenum.front import Front
from symenum.search import start, step
from symenum.search.checkpoint import Checkpoint, packed, read_checkpoint, unpacked, write_checkpoint
from symenum.tokens.generator import ScoredExpression
from symenum.tokens.genetic import GeneticState
from symenum.tokens.pool import Memory, Record
from symenum.tokens.tree_search import SetNode, TreeSearchState

X, XY, BIG = parse("x"), parse("0.1*x*y - 2.0"), parse("sin(1e-300*x)**-0.0 + 123456789012345678*pi")
MEMORY = Memory((Record(XY, 3, 0.5),), (X, BIG), (ScoredExpression(XY, 0.25),), float("-inf"), 4, 2)
EVIL = {"expression": "__import__('os').getcwd()", "loss": 1.0}
VALUES = {
    "front": Front((Candidate(X, 2.0), Candidate(XY, 1e-310)), 1e-30, 40, 0.99),
    "gp": GeneticState((X, XY), (BIG,), (X,), (), (), MEMORY),
    "mcts": TreeSearchState((X,), (XY,), (), (SetNode((X, XY), 3.0, 1.5),), ((), (X,)), MEMORY),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_is_packed_comes_back_equal(name: str) -> None:
    value = VALUES[name]
    assert unpacked(type(value), json.loads(json.dumps(packed(value), allow_nan=False))) == value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"entries": [], "floor": 0.0, "rows": 3}, "fields"),
        ({"entries": [], "floor": 0.0, "rows": 3, "discount": 1.0, "__class__": "os"}, "fields"),
        ({"entries": {}, "floor": 0.0, "rows": 3, "discount": 1.0}, "entries is {}, not of type list"),
        ({"entries": [], "floor": "0.0; x", "rows": 3, "discount": 1.0}, "floor is '0.0; x', not a number"),
        ({"entries": [], "floor": 0.0, "rows": True, "discount": 1.0}, "rows is True"),
        ({"entries": [EVIL], "floor": 0.0, "rows": 3, "discount": 1.0}, "cannot read"),
        ([], "not of type dict"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpacked(Front, data)


def test_objects_are_not_packed() -> None:
    with pytest.raises(TypeError, match="function"):
        packed((lambda: None,))


def test_runners_up_are_kept_on_the_disk(make, tmp_path) -> None:
    task = make(lambda a, b: a * b + 0.3 * b**3, noise=0.1)
    state = start(task, 0)
    for _ in range(20):
        state, _ = step(task, state, Budget())
    assert state.runners_up
    path = tmp_path / "kept.json"
    write_checkpoint(path, Checkpoint(state, state.front, "gp", "signature"))
    assert read_checkpoint(path).state.runners_up == state.runners_up


@pytest.mark.parametrize(
    ("field", "value"), [("discount", 1e308), ("discount", -0.5), ("discount", 0.0), ("floor", "nan"), ("rows", -1)]
)
def test_a_front_with_numbers_that_no_search_has_is_damaged(make, tmp_path, field: str, value: object) -> None:
    task = make(lambda a, b: a * b, noise=0.1)
    state = start(task, 0)
    path = tmp_path / "edited.json"
    write_checkpoint(path, Checkpoint(state, state.front, "gp", "signature"))
    document = json.loads(path.read_text())
    document["front"][field] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is damaged"):
        read_checkpoint(path)
