"""Small systems are solved as LAPACK solves them, and a bad one does not spoil the others."""

from __future__ import annotations

import numpy as np

from symenum.fitting.small_systems import solve_positive


def test_all_systems_of_a_batch_are_solved() -> None:
    random = np.random.default_rng(0)
    A = random.normal(size=(50, 5, 5))
    A = A @ A.transpose(0, 2, 1) + np.eye(5)
    b = random.normal(size=(50, 5))
    np.testing.assert_allclose((A @ solve_positive(A, b)[:, :, None])[:, :, 0], b, rtol=1e-10, atol=1e-10)


def test_a_singular_system_and_one_with_nan_give_nan_and_the_others_are_solved() -> None:
    A = np.stack([np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan)])
    x = solve_positive(A, np.ones((3, 2)))
    assert x[0].tolist() == [1.0, 1.0]
    assert np.isnan(x[1:]).all()
