"""The errors of samples: their size, and whether they grow with the state."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.dynamics.noise import measure_noise
from symenum.dynamics.trajectory import Piece

T = np.linspace(0, 10, 400)
MOTION = np.column_stack([5 * np.exp(-0.4 * T), 3 * np.sin(T)])


def piece(X: np.ndarray) -> Piece:
    return Piece(T, X, np.empty((len(T), 0)))


@pytest.mark.parametrize("level", [0.001, 0.02, 0.1])
def test_errors_that_grow_with_the_state_are_told_from_those_of_one_size(level: float) -> None:
    random = np.random.default_rng(3)
    growing = measure_noise([piece(MOTION * (1 + level * random.normal(size=MOTION.shape)))])
    even = measure_noise([piece(MOTION + level * random.normal(size=MOTION.shape))])
    for one in growing:
        assert one.grows > 0.9
        assert abs(one.level / level - 1) < 0.3
        assert f"{one}".endswith("% of its value")
    for i, one in enumerate(even):
        assert one.grows == 0
        assert np.all(np.abs(one.errors(MOTION[:, i]) / level - 1) < 0.3)


def test_all_pieces_count() -> None:
    noisy = MOTION + 0.05 * np.random.default_rng(0).normal(size=MOTION.shape)
    both = measure_noise(
        [Piece(T[:200], noisy[:200], np.empty((200, 0))), Piece(T[200:], noisy[200:], np.empty((200, 0)))]
    )
    assert abs(both[0].errors(MOTION[:, 0])[0] - 0.05) < 0.015


def test_data_without_noise_have_numerical_errors_only() -> None:
    for one in measure_noise([piece(MOTION)]):
        errors = one.errors(MOTION[:, 0])
        assert np.all(errors > 0)
        assert np.all(errors < 1e-4)
        assert one.numerical > 0.5


def test_a_state_that_never_moves_has_no_errors_that_are_not_finite() -> None:
    (one,) = measure_noise([piece(np.full((len(T), 1), 2.0))])
    assert np.isfinite(one.errors(np.full(5, 2.0))).all()
