"""Random numbers of a search follow from its seed, each purpose from a stream of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import torch

import symenum
from symenum.core.seeds import sample_rows, stream, torch_stream
from symenum.core.target import Target
from symenum.search.problem import Settings, make_task

# Points on which functions are compared, operators and plug-ins tried and workers timed: the same for all searches.
_PROBES = {"cluster/check.py", "engine/distinct.py", "expressions/algebra.py", "operators/probing.py", "plugins.py"}


def test_a_stream_follows_from_seed_and_purpose() -> None:
    first = stream(1, "a").integers(1 << 60)
    assert first == stream(1, "a").integers(1 << 60)
    assert len({first, stream(2, "a").integers(1 << 60), stream(1, "b").integers(1 << 60)}) == 3
    numbers = [torch.rand(3, generator=torch_stream(seed, "a")) for seed in (1, 1, 2)]
    assert torch.equal(numbers[0], numbers[1])
    assert not torch.equal(numbers[0], numbers[2])


def test_some_rows_are_different_ones_in_order() -> None:
    rows = sample_rows(1000, 100, 7, "rows")
    assert len(torch.unique(rows)) == 100
    assert torch.equal(rows, rows.sort().values)
    assert not torch.equal(rows, sample_rows(1000, 100, 8, "rows"))
    assert torch.equal(sample_rows(100, 100, 7, "rows"), torch.arange(100))


def test_the_rows_of_a_search_follow_from_its_seed() -> None:
    X = torch.rand(5000, 2, generator=torch_stream(0, "data"), dtype=torch.float64)
    target = Target(X[:, 0], torch.full((5000,), 1 / 5000, dtype=torch.float64))
    tasks = [make_task(["a", "b"], X, target, Settings(seed=seed)) for seed in (1, 1, 2)]
    assert torch.equal(tasks[0].data.scan_rows, tasks[1].data.scan_rows)
    assert not torch.equal(tasks[0].data.scan_rows, tasks[2].data.scan_rows)
    assert not torch.equal(tasks[0].working.y, tasks[2].working.y)


def test_no_module_of_the_search_has_a_fixed_seed() -> None:
    root = Path(symenum.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                fixed = bool(node.args) and isinstance(node.args[0], ast.Constant)
                if node.func.attr in ("manual_seed", "default_rng", "RandomState") and (fixed or not node.args):
                    found.add(name)
    outside = {name for name in found if not name.startswith("bench/")}
    assert outside <= _PROBES
