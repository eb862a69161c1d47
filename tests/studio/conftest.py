"""Folders of runs that were really searched, and studios on them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studio.asking import Studio

from symenum import ODERegressor, PSERegressor


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    folder = tmp_path / "runs"
    folder.mkdir()
    return Studio(folder)


def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.uniform(1, 3, (60, 2))
    return X, 2.5 * X[:, 0] ** 2 / X[:, 1] + random.normal(0, 0.01, 60)


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run for a law and one for laws of motion. Copy it before you change it."""
    folder = tmp_path_factory.mktemp("searched")
    settings = {"max_time": None, "max_iterations": 4, "random_state": 0}
    PSERegressor(**settings, run_dir=folder / "law").fit(*rows())
    t = np.linspace(0, 12, 300)
    X = np.column_stack([np.cos(2 * t), -2 * np.sin(2 * t)])
    X += np.random.default_rng(0).normal(0, 0.004, X.shape)
    quick = {**settings, "max_iterations": 1, "operators": "arithmetic"}
    ODERegressor(**quick, run_dir=folder / "motion").fit(X, t)
    return folder


@pytest.fixture
def with_runs(searched: Path, tmp_path: Path) -> Studio:
    """A studio on copies of both runs."""
    folder = tmp_path / "copies"
    shutil.copytree(searched, folder)
    return Studio(folder)


@pytest.fixture
def change_json() -> Callable[..., None]:
    """Changes entries of a JSON file."""

    def change(path: Path, **entries: Any) -> None:
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, **entries}))

    return change
