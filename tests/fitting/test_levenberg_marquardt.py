"""Starts side by side are fits of their own, and idle ones leave without a trace."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.enumeration.budget import Budget
from symenum.expressions import evaluate, parse
from symenum.fitting import levenberg_marquardt
from symenum.fitting.batch import Batch, Problem
from symenum.fitting.levenberg_marquardt import fit
from symenum.fitting.parameters import postfix
from symenum.fitting.program import compile_program

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["1.5*sin(1.2*x) + 0.3", "exp(0.7*x)*x - 0.5*y", "y/(x + 2.5)"]
COPIES = 4


def problem() -> Problem:
    """Data that no constants fit exactly, so that no start ends the others of its expression."""
    x = torch.linspace(0, 2, 30, dtype=torch.float64)
    columns = {"x": 0.5 + x, "y": 0.5 + x**3}
    expressions = [parse(text) for text in TEXTS]
    program = compile_program([postfix(expression) for expression in expressions], columns)
    root = np.full((len(TEXTS), 30), 30**-0.5)
    noise = 0.1 * np.random.default_rng(0).normal(size=root.shape)
    y = torch.stack([evaluate(expression, columns) for expression in expressions]).numpy() + noise
    return Problem(program, program.data, y * root, root, np.zeros(len(TEXTS)))


def points(given: Problem) -> np.ndarray:
    factors = np.exp(np.random.default_rng(1).uniform(-0.7, 0.7, (given.program.starts.shape[1], 3 * COPIES)))
    return np.repeat(given.program.starts.T, COPIES, axis=1) * factors


@pytest.mark.parametrize("compact", [0, 10**9])
def test_starts_side_by_side_end_where_each_ends_alone(compact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levenberg_marquardt, "_COMPACT", compact)
    given = problem()
    constants = points(given)
    together = fit(Batch(given, np.arange(3), COPIES), constants, steps=25, tolerance=1e-6, budget=Budget())
    for at, member in enumerate(np.repeat(np.arange(3), COPIES)):
        alone = fit(Batch(given, np.array([member])), constants[:, [at]], steps=25, tolerance=1e-6, budget=Budget())
        assert together.loss[at] == pytest.approx(alone.loss[0], rel=1e-6)
        assert together.converged[at] == alone.converged[0]
        np.testing.assert_allclose(together.constants[:, at], alone.constants[:, 0], rtol=1e-3, atol=1e-6)


def test_a_batch_without_its_idle_members_holds_all_that_work() -> None:
    given = problem()
    batch = Batch(given, np.arange(3), COPIES)
    working = np.zeros(3 * COPIES, dtype=bool)
    working[[1, 3, 2 * COPIES]] = True
    smaller, kept = batch.without_idle(working)
    assert set(np.flatnonzero(working)) <= set(kept.tolist())
    assert smaller.groups.tolist() == batch.groups[kept].tolist() == [0, 0, 2, 2]
    constants = points(given)
    losses = smaller.losses(constants[: smaller.width, kept])
    np.testing.assert_allclose(losses, batch.losses(constants)[kept], rtol=1e-12)
