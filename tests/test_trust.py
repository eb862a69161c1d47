"""The runs of benchmarks/trust (killed, interrupted and fuzzed fits, memory): a few of each kind; all are slow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TRUST = Path(__file__).parents[1] / "benchmarks" / "trust"

SHORT_RUNS = {
    "kill": ("kill", "--count", "4"),
    "fuzz": ("fuzz", "--count", "15", "--max-time", "0.2"),
}
FULL_RUNS = {
    "kill": ("kill", "--count", "200"),
    "interrupt": ("interrupt", "--count", "50"),
    "fuzz": ("fuzz", "--count", "2000"),
    "memory": ("memory", "--minutes", "0.5", "--limits", "400MB"),
}


def run(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, TRUST, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SHORT_RUNS)
def test_a_few_runs_of_each_kind_end_well(name: str) -> None:
    run(SHORT_RUNS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL_RUNS)
def test_all_runs_of_each_kind_end_well(name: str) -> None:
    run(FULL_RUNS[name])
