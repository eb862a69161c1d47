"""The runs of benchmarks/trust (killed, interrupted and fuzzed fits, damaged files, memory): a few of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TRUST = Path(__file__).parents[1] / "benchmarks" / "trust"

SHORT_RUNS = {
    "kill": ("kill", "--count", "2"),
    "kill motion": ("kill", "--motion", "--count", "1"),
    "motion": ("motion", "--count", "4", "--max-time", "0.2"),
    "fuzz": ("fuzz", "--count", "8", "--max-time", "0.2"),
    "files": ("files", "--count", "30"),
}
FULL_RUNS = {
    "kill": ("kill", "--count", "200"),
    "kill motion": ("kill", "--motion", "--count", "40"),
    "motion": ("motion", "--count", "500"),
    "interrupt": ("interrupt", "--count", "50"),
    "fuzz": ("fuzz", "--count", "2000"),
    "files": ("files", "--count", "20000"),
    "limits": ("limits", "--calls", "300"),
    "memory": ("memory", "--minutes", "0.5", "--limits", "400MB"),
}


def run(arguments: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, TRUST, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )  # in a folder of its own: `limits` writes a file
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SHORT_RUNS)
def test_a_few_runs_of_each_kind_end_well(name: str, tmp_path: Path) -> None:
    run(SHORT_RUNS[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL_RUNS)
def test_all_runs_of_each_kind_end_well(name: str, tmp_path: Path) -> None:
    run(FULL_RUNS[name], tmp_path)


def test_limits_are_measured_and_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Whether they hold is not asked here, where other tests may keep the machine busy."""
    command = [sys.executable, TRUST, "limits", "--largest", "1e4", "--busy"]
    for calls in ("1", "2"):
        done = subprocess.run([*command, "--calls", calls], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert f"{calls} calls: " in done.stdout, done.stdout + done.stderr
        assert "0 faults" in done.stdout
        assert len((tmp_path / "limits.jsonl").read_text().splitlines()) == int(calls)
