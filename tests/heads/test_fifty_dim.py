"""Two of the paper's fifty-dimensional problems; the files stay outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from symenum import first_pass
from symenum.bench.judge import recovered
from symenum.bench.problems import Problem

FOLDER = Path(os.environ.get("SYMENUM_DATA", "")) / "fifty_dim"


@pytest.mark.skipif(
    "SYMENUM_DATA" not in os.environ or not FOLDER.is_dir(),
    reason="needs fifty_dim/ in the folder that SYMENUM_DATA names",
)
@pytest.mark.parametrize("number", [2, 16])
def test_a_law_of_twelve_among_fifty_variables_is_found(number):
    table = np.loadtxt(FOLDER / f"synthetic_50d_{number}.csv", delimiter=",")
    law = (FOLDER / f"synthetic_50d_{number}.txt").read_text(encoding="utf-8").strip().replace("x_", "x")
    problem = Problem("fifty", law, tuple(f"x{i + 1}" for i in range(50)), -1.0, 1.0, len(table))
    assert recovered(first_pass(table[:, :-1], table[:, -1])[0].expression, problem)
