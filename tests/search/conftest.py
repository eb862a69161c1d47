"""Small tasks for the search's tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from symenum.core.target import check_target
from symenum.operators import get_operators
from symenum.search import Settings, Task, make_task


@pytest.fixture
def make() -> Callable[..., Task]:
    """A task for a function of the columns of X, uniform in (0.5, 3), with quick settings."""

    def made(
        law: Callable[..., np.ndarray], variables: int = 2, rows: int = 40, noise: float = 0.0, **settings
    ) -> Task:
        rng = np.random.default_rng(3)
        X = rng.uniform(0.5, 3, (rows, variables))
        y = law(*X.T) + noise * rng.normal(size=rows)
        target, _ = check_target(y, None, rows)
        quick = {"operators": get_operators("arithmetic"), "layers": 2, "inputs": 4, "top_k": 5, **settings}
        return make_task([f"x{i + 1}" for i in range(variables)], torch.tensor(X), target, Settings(**quick))

    return made
