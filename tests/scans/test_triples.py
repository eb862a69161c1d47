"""The triples found are those that least squares over all triples finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from symenum.core.budget import Budget
from symenum.scans.projection import orthonormal
from symenum.scans.triples import Triples, best_triples

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = 30


def data(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows V (count, n), a target on three of them and noise, and a background of two rows."""
    random = np.random.default_rng(seed)
    V = random.normal(size=(count, ROWS))
    t = 2 * V[1] - V[4] + 0.5 * V[5] + 0.3 * random.normal(size=ROWS) + 1
    return V, t, np.stack([np.ones(ROWS), random.normal(size=ROWS)])


def residual(t: np.ndarray, *rows: np.ndarray) -> float:
    A = np.stack(rows, axis=1)
    return float(np.linalg.norm(t - A @ np.linalg.lstsq(A, t, rcond=None)[0]) / np.linalg.norm(t))


def scan(V: np.ndarray, t: np.ndarray, beside: np.ndarray, thirds: np.ndarray | None = None, **options) -> Triples:  # type: ignore[no-untyped-def]
    others = None if thirds is None else torch.from_numpy(thirds)
    background = orthonormal(torch.from_numpy(beside))
    settings = {"width": 1000, "budget": Budget()} | options
    return best_triples(torch.from_numpy(V), torch.from_numpy(t), background, others, **settings)


@pytest.mark.parametrize("seed", range(3))
def test_all_triples_have_the_residuals_of_least_squares(seed: int) -> None:
    V, t, beside = data(seed, 8)
    found = scan(V, t, beside)
    sets = [(int(third), *pair) for third, pair in zip(found.third, found.pair.tolist(), strict=True)]
    assert sorted(sets) == list(itertools.combinations(range(8), 3))
    for three, left in zip(sets, found.residual.tolist(), strict=True):
        assert left == pytest.approx(residual(t, *beside, *V[list(three)]), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_third_rows_of_another_set_stand_beside_all_pairs(seed: int) -> None:
    V, t, beside = data(seed, 6)
    H = np.random.default_rng(seed + 10).normal(size=(4, ROWS))
    found = scan(V, t, beside, H)
    assert len(found) == 4 * 15
    for third, (i, j), left in zip(found.third.tolist(), found.pair.tolist(), found.residual.tolist(), strict=True):
        assert left == pytest.approx(residual(t, *beside, H[third], V[i], V[j]), rel=1e-9)


def test_of_each_third_row_the_best_few_come_back() -> None:
    V, t, beside = data(0, 10)
    few, whole = scan(V, t, beside, width=2), scan(V, t, beside)
    for third in range(8):
        best = whole.residual[whole.third == third].sort().values[:2]
        torch.testing.assert_close(few.residual[few.third == third], best)
    least = int(few.residual.argmin())
    assert {int(few.third[least]), *few.pair[least].tolist()} == {1, 4, 5}


def test_budget_and_work_end_the_scan() -> None:
    V, t, beside = data(0, 10)
    over = Budget()
    over.end()
    assert len(scan(V, t, beside, budget=over)) == 0
    first = scan(V, t, beside, work=0)
    assert set(first.third.tolist()) == {0}
    assert len(scan(V[:2], t, beside)) == 0
