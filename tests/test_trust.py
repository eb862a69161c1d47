"""The runs of benchmarks/trust, a few of each; the whole of them is slow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TRUST = Path(__file__).parents[1] / "benchmarks" / "trust"

FEW = {
    "kill": ("kill", "--count", "4"),
    "fuzz": ("fuzz", "--count", "15", "--max-time", "0.2"),
}
ALL = {
    "kill": ("kill", "--count", "200"),
    "interrupt": ("interrupt", "--count", "50"),
    "fuzz": ("fuzz", "--count", "2000"),
    "memory": ("memory", "--minutes", "0.5", "--limits", "400MB"),
}


def run(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, TRUST, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", FEW)
def test_a_few(name: str) -> None:
    run(FEW[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_all(name: str) -> None:
    run(ALL[name])
