"""Small systems are solved, and a bad one does not spoil the others."""

from __future__ import annotations

import numpy as np

from symenum.fitting.levenberg_marquardt import solve_positive


def test_all_systems_of_a_batch_are_solved() -> None:
    random = np.random.default_rng(0)
    A = random.normal(size=(50, 5, 5))
    A = A @ A.transpose(0, 2, 1) + np.eye(5)
    b = random.normal(size=(50, 5))
    x = solve_positive(A.transpose(1, 2, 0), b.T)
    np.testing.assert_allclose((A @ x.T[:, :, None])[:, :, 0], b, rtol=1e-10, atol=1e-10)


def test_one_with_nan_does_not_spoil_the_others_and_a_singular_one_is_still_solved() -> None:
    A = np.stack([np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan)], axis=-1)
    x = solve_positive(A, np.ones((2, 3)))
    assert x[:, 0].tolist() == [1.0, 1.0]
    assert x[:, 1].sum() == 1.0
    assert np.isnan(x[:, 2]).all()


def test_what_is_added_to_the_diagonal_is_as_if_it_had_been_there() -> None:
    random = np.random.default_rng(1)
    A, b, more = random.normal(size=(3, 3, 20)), random.normal(size=(3, 20)), random.uniform(0, 1, size=(3, 20))
    A = np.einsum("ijb,kjb->ikb", A, A)
    before = A.copy()
    x = solve_positive(A, b, more + 1)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_allclose(x, solve_positive(A + np.eye(3)[:, :, None] * (more + 1), b), rtol=1e-12)
