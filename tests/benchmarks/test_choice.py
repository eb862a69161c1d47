"""benchmarks/choice.py: what a rule chooses from a stored front, and what its tables count."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "choice.py"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    name = "choice_script"
    spec = importlib.util.spec_from_file_location(name, SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # its dataclasses look for their module there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def run_of(script: ModuleType, name: str, noise: float, law: str | None) -> Any:
    rng = np.random.default_rng(0)
    X, X_test = rng.uniform(0, 3, (100, 1)), rng.uniform(0, 3, (50, 1))
    y = 2.5 * X[:, 0] ** 2 + 0.1 * rng.standard_normal(100)
    rows = X.tolist(), y.tolist(), X_test.tolist(), (2.5 * X_test[:, 0] ** 2).tolist()
    front = ["7.5", "7.4*x1 - 3.7", "2.5*x1**2", "2.5*x1**2 + 0.01*sin(9.1*x1)"]
    return script.Run(name, noise, *rows, law, front, ["2.49*x1**2 + 0.01"])


def test_the_right_law_is_chosen_and_counted(script: ModuleType) -> None:
    one = script.Judged(run_of(script, "law 0.01", 0.01, "2.4*x1**2"))
    assert one.right == [False, False, True, False]
    assert script.RULES["evidence"](one) == 2
    assert script.RULES["accuracy"](one) == 3
    assert script.RULES["best on the front"](one) == 2
    for name, rule in script.RULES.items():
        line = script.rule_line(name, rule, [one], [0.01])
        assert ("1 of 1" in line) == (rule(one) == 2)
    inside, _, right = script.band_of(one)
    assert inside > 0.8
    assert right


def test_a_table_is_judged_by_its_held_out_rows(script: ModuleType) -> None:
    one = script.Judged(run_of(script, "table 0", 0.0, None))
    assert one.r2(2) == pytest.approx(1)
    assert 0 < one.line_r2 < 1
    assert script.rule_line("evidence", script.RULES["evidence"], [one], []).split()[1] == "0.000"


def test_runs_are_read_as_they_were_written(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run = run_of(script, "law 0.01", 0.01, "2.4*x1**2")
    path.write_text(json.dumps(asdict(run)) + "\n", encoding="utf-8")
    assert script.read_runs(path) == [run]
    assert script.read_runs(tmp_path / "none.jsonl") == []
