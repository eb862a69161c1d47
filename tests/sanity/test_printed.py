"""What a search prints holds nothing absurd, by a check that shares no code with the policy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.bench.judge.plausibility import has_pole_in_box, has_unresolved_wave
from symenum.bench.problems.problem import DATA_FOLDER, with_noise
from symenum.bench.problems.random_laws import DEVELOPMENT, EVERY_OPERATOR

REAL_TABLES = Path(os.environ.get(DATA_FOLDER, "")) / "real_tables.json"


def absurd_laws(X: np.ndarray, y: np.ndarray, operators: object) -> list[str]:
    """The laws of a search of ten steps that have a pole in the box of the rows, or a wave that they do not resolve."""
    model = PSERegressor(operators, max_iterations=10, max_time=None, random_state=0).fit(X, y)
    columns = {f"x{i + 1}": np.ascontiguousarray(X[:, i]) for i in range(X.shape[1])}
    return [
        str(law.expression)
        for law in model.front_
        if has_pole_in_box(law.expression, columns, y) or has_unresolved_wave(law.expression, columns)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVELOPMENT.names()[:24])
def test_of_noisy_random_laws(name: str) -> None:
    X, y = DEVELOPMENT.law(name).sample()
    assert absurd_laws(X, with_noise(y, 0.1, "std", 0), EVERY_OPERATOR) == []


@pytest.mark.slow
@pytest.mark.skipif(not REAL_TABLES.is_file(), reason=f"needs real_tables.json in ${DATA_FOLDER}")
def test_of_real_tables() -> None:
    tables = json.loads(REAL_TABLES.read_text(encoding="utf-8"))
    found = {name: absurd_laws(np.array(one["X"], float), np.array(one["y"], float), "koza")
             for name, one in tables.items()}  # fmt: skip
    assert not any(found.values()), found
