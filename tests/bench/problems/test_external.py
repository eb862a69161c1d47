"""Sets that need files from outside: which files, which problems, and data that follow the laws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from symenum.bench.judge import recovered
from symenum.bench.problems import MissingDataError, Problem, get_set
from symenum.bench.problems.external import STARTS, srbench_feynman, srbench_strogatz, strogatz
from symenum.expressions import variables

EXTERNAL = ("fifty_dim", "srbench", "srbench_130", "srbench_133", "srbench_feynman", "srbench_strogatz")


@pytest.mark.parametrize("name", EXTERNAL)
def test_without_its_files_a_set_says_what_it_needs_and_where_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    srbench_feynman.cache_clear()
    srbench_strogatz.cache_clear()
    monkeypatch.delenv("SYMENUM_DATA", raising=False)
    with pytest.raises(MissingDataError, match=r"set SYMENUM_DATA.*public original: .*https://"):
        get_set(name).problems()
    monkeypatch.setenv("SYMENUM_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"does not exist.*https://"):
        get_set(name).problems()


def test_counts_of_srbench_follow_from_the_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ["I.6.2a", "II.11.17", "I.26.2", "I.30.5", "test_10"]
    laws = ["theta*E", "theta + E", "asin(theta/E)", "asin(theta/E)", "acos(theta/E)"]
    two = [{"name": "theta", "low": 0.5, "high": 0.9}, {"name": "E", "low": 1.0, "high": 3.0}]
    folder = tmp_path / "srbench"
    folder.mkdir()
    records = [{"name": name, "formula": law, "variables": two} for name, law in zip(names, laws, strict=True)]
    (folder / "feynman.json").write_text(json.dumps(records), encoding="utf-8")
    (folder / "strogatz.json").write_text(
        json.dumps([{"name": "shearflow", "variables": ["x", "y"], "equations": ["cot(y)*cos(x)", "sin(x)"]}]),
        encoding="utf-8",
    )
    srbench_feynman.cache_clear()
    srbench_strogatz.cache_clear()
    monkeypatch.setenv("SYMENUM_DATA", str(tmp_path))
    try:
        counts = {name: len(get_set(name).problems()) for name in EXTERNAL[1:]}
        first = get_set("srbench").problem("I.6.2a")
    finally:
        srbench_feynman.cache_clear()
        srbench_strogatz.cache_clear()
    assert counts == {
        "srbench": 7,
        "srbench_133": 6,
        "srbench_130": 3,
        "srbench_feynman": 5,
        "srbench_strogatz": 2,
    }
    assert isinstance(first, Problem)
    assert variables(first.expression) == ("x1", "x2")  # E is a variable there, not Euler's number
    X, y = first.sample()
    assert X.shape == (10_000, 2)
    assert np.allclose(y, X[:, 0] * X[:, 1])


def test_trajectories_are_split_by_the_seed_and_follow_the_law() -> None:
    assert len(STARTS) == 7
    system = {"name": "lv", "variables": ["x", "y"], "equations": ["3*x - 2*x*y - x**2", "2*y - x*y - y**2"]}
    first, second = strogatz([system])
    assert (first.name, second.name) == ("lv1", "lv2")
    X, y = first.sample(0)
    test, _ = first.test(0)
    assert X.shape == (300, 2)
    assert test.shape == (100, 2)
    assert np.allclose(y, 3 * X[:, 0] - 2 * X[:, 0] * X[:, 1] - X[:, 0] ** 2)
    assert not np.array_equal(X, first.sample(1)[0])
    assert not {tuple(row) for row in X} & {tuple(row) for row in test}
    assert recovered(first.expression, first)
    assert not recovered(second.expression, first)
