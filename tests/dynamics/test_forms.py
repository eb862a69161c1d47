"""The weak form holds for every smooth motion, and its noise is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.dynamics.forms import WeakForm, half_width, make_grid
from symenum.dynamics.trajectory import make_pieces

T = np.linspace(0, 20, 800)


def form(X, t, order=1, half=15):
    return WeakForm(tuple(make_grid(piece) for piece in make_pieces(X, t)), half, order)


@pytest.mark.parametrize(("order", "right"), [(1, np.cos(T)), (2, -np.sin(T))])
def test_averages_of_the_derivative_need_no_derivative(order: int, right) -> None:
    weak = form(np.sin(T)[:, None] + 1000, T, order)
    np.testing.assert_allclose(weak.left_side(0), weak.average(right[:, None])[:, 0], atol=1e-8)


def test_pieces_do_not_mix() -> None:
    gap = np.concatenate([T[:300], T[400:]])
    weak = form(np.sin(gap)[:, None], gap)
    np.testing.assert_allclose(weak.left_side(0), weak.average(np.cos(gap)[:, None])[:, 0], atol=1e-8)
    assert weak.rows < form(np.sin(T)[:, None], T).rows


def test_uneven_samples_are_put_on_even_steps() -> None:
    t = np.sort(np.random.default_rng(0).uniform(0, 20, 800))
    weak = form(np.sin(t)[:, None], t)
    (grid,) = weak.grids
    np.testing.assert_allclose(weak.left_side(0), weak.average(np.cos(grid.t)[:, None])[:, 0], atol=1e-3)


def test_predicted_noise_is_the_noise() -> None:
    """For x' = -x written in a noisy x, over many draws."""
    random = np.random.default_rng(1)
    clean = np.exp(-T)[:, None]
    ratios = []
    for _ in range(20):
        weak = form(clean + 0.05 * random.normal(size=clean.shape), T)
        (grid,) = weak.grids
        left = weak.left_side(0) + weak.average(grid.X)[:, 0]
        ratios.append(np.mean(left**2) / np.mean(weak.noise_variance(0, {(0, 0): np.full(800, -1.0)})))
    assert np.mean(ratios) == pytest.approx(1, abs=0.25)


def test_windows_widen_with_noise_and_never_beyond_the_data() -> None:
    random = np.random.default_rng(0)
    narrow, wide = (
        half_width([make_grid(make_pieces(np.sin(3 * T)[:, None] + part * random.normal(size=(800, 1)), T)[0])])
        for part in (1e-4, 0.3)
    )
    assert narrow < wide
    few = make_grid(make_pieces(random.normal(size=(20, 1)), T[:20])[0])
    assert 2 * half_width([few]) < 20
