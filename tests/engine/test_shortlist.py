"""Which of a few candidates are one function: the quick look at neighbours agrees with the thorough one, or passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum.core.target import Target
from symenum.engine.distinct import representatives
from symenum.engine.shortlist import SAME_FUNCTION, Finds, Pool, _first_equals


def rows_with_copies(seed, count, points):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, points)) * 10.0 ** rng.integers(-6, 6, size=(count, 1))
    copies = rows[rng.integers(count, size=2 * count)]
    together = np.concatenate([rows, copies * (1 + 1e-15 * rng.normal(size=copies.shape))])
    return together[rng.permutation(len(together))]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("points", [1, 3, 32])
def test_the_first_of_equals_is_the_one_that_the_thorough_way_keeps(seed, points):
    rows = rows_with_copies(seed, 12, points)
    rank = torch.arange(len(rows))
    leader = representatives(torch.from_numpy(rows), rank, tolerance=SAME_FUNCTION)
    assert _first_equals(rows).tolist() == torch.nonzero(leader == rank).flatten().tolist()


def test_rows_that_share_their_first_value_only_are_left_to_the_thorough_way():
    rows = np.array([[1.0, 2.0], [1.0, 3.0], [5.0, 1.0], [1.0, 2.0]])
    assert _first_equals(rows) is None
    pool = Pool(4, Target(torch.zeros(2, dtype=torch.float64), torch.full((2,), 0.5, dtype=torch.float64)))
    number = torch.arange(4)
    pool.add(Finds(torch.tensor([3.0, 4.0, 5.0, 3.0], dtype=torch.float64), number, number, torch.from_numpy(rows)))
    assert pool.best().number.tolist() == [0, 1, 2]


def test_rows_that_are_hardly_equal_are_left_to_the_thorough_way():
    assert _first_equals(np.array([[1.0, 2.0], [1.0 + 2.4e-10, 2.0]])) is None
