"""Systems of ODEBench as problems: what is read, and noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.systems_in_motion import write_systems

from symenum.bench.problems import MissingDataError, get_set


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYMENUM_DATA", str(write_systems(tmp_path)))
    return tmp_path


def test_a_system_has_laws_in_our_names_and_two_runs() -> None:
    problem = get_set("odebench").problem("odebench-3")
    assert [str(law) for law in problem.laws] == ["-x2 - x3", "x1 + 0.2*x2", "0.2 + x3*(x1 - 5.7)"]
    assert problem.variables == ("x1", "x2", "x3")
    t, X = problem.sample()
    assert t.shape == (64, 1)
    assert X.shape == (64, 3)
    assert problem.test()[1][0, 0] == 2.0


def test_noise_is_multiplicative_and_the_same_for_the_same_seed() -> None:
    problem = get_set("odebench").problem("odebench-1")
    _, clean = problem.noisy(0.0, 0)
    _, X = problem.noisy(0.05, 3)
    relative = X / clean - 1
    assert 0.03 < relative.std() < 0.07
    assert np.array_equal(problem.noisy(0.05, 3)[1], X)
    assert not np.array_equal(problem.noisy(0.05, 4)[1], X)
    with pytest.raises(ValueError, match="at least 0"):
        problem.noisy(-1.0, 0)


def test_a_file_that_is_no_list_of_systems_is_named(data: Path) -> None:
    (data / "odebench_odd.json").write_text('[{"id": 1}]', encoding="utf-8")
    # Another name, since a file that was read is kept.
    other = data / "other"
    other.mkdir()
    (data / "odebench_odd.json").rename(other / "odebench_odd.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMENUM_DATA", str(other))
        with pytest.raises(MissingDataError, match="no list of systems"):
            get_set("odebench").problems()
