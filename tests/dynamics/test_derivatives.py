"""Derivatives: exact on polynomials, near the truth under noise, whatever the steps and the units."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.dynamics import DERIVATIVES, CentralDifferences, SavitzkyGolay, SmoothingSpline
from symenum.dynamics.derivatives import best_windows, even, local_fit, noise_level

RNG = np.random.default_rng(0)
EVEN = np.linspace(0, 6, 300)
UNEVEN = np.sort(RNG.uniform(0, 6, 300))
each_time = pytest.mark.parametrize("t", [EVEN, UNEVEN], ids=["even", "uneven"])


@each_time
def test_local_fits_are_exact_on_polynomials(t) -> None:
    fit = local_fit(t, np.column_stack([t**4, 3 * t]), 9)
    np.testing.assert_allclose(fit.values[:, 0], t**4, atol=1e-8)
    np.testing.assert_allclose(fit.first[:, 0], 4 * t**3, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.second[:, 0], 12 * t**2, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(fit.first[:, 1], 3, rtol=1e-6)


def test_local_fits_between_the_samples() -> None:
    at = np.linspace(1, 5, 50)
    np.testing.assert_allclose(
        local_fit(UNEVEN, np.sin(UNEVEN)[:, None], 11, at=at).values[:, 0], np.sin(at), atol=1e-6
    )


def many_uneven_times(clusters: bool) -> np.ndarray:
    """6,000 times, a tenth of which come within a billionth of the one before if there are `clusters`."""
    t = np.sort(np.random.default_rng(7).uniform(0, 60, 6000))
    if clusters:
        t[1::10] = t[0::10] + 1e-9
    return t


@pytest.mark.parametrize("clusters", [False, True])
def test_thousands_of_uneven_samples_have_the_fits_of_a_few(clusters: bool) -> None:
    t = many_uneven_times(clusters)
    X = np.column_stack([np.sin(t), np.cos(0.3 * t)]) + 0.01 * np.random.default_rng(8).normal(size=(6000, 2))
    whole, few = local_fit(t, X, 15), local_fit(t, X, 15, samples=np.arange(2000, 2400))
    np.testing.assert_allclose(whole.values[2000:2400], few.values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.first[2000:2400], few.first, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole.leverage[2000:2400], few.leverage, rtol=1e-9, atol=1e-9)


def test_a_window_is_chosen_by_a_part_of_many_uneven_samples() -> None:
    t = many_uneven_times(clusters=False)
    noise = np.random.default_rng(9).normal(size=(6000, 2)) * [1e-6, 0.3]
    clean = np.sin(8 * t)[:, None]
    quiet, loud = best_windows(t, clean + noise)
    assert quiet < loud
    narrow, chosen, wide = (
        np.mean((local_fit(t, clean + noise, int(window)).values[:, 1] - clean[:, 0]) ** 2) for window in (7, loud, 55)
    )
    assert chosen <= min(narrow, wide)


@each_time
@pytest.mark.parametrize("name", ["savitzky_golay", "spline"])
def test_noise_is_smoothed_out(t, name: str) -> None:
    X = np.column_stack([np.sin(2 * t), np.cos(t)])
    clean = np.column_stack([2 * np.cos(2 * t), -np.sin(t)])
    noisy = X + 0.02 * RNG.normal(size=X.shape)
    error = DERIVATIVES[name](t, noisy).first[20:-20] - clean[20:-20]
    crude = CentralDifferences()(t, noisy).first[20:-20] - clean[20:-20]
    assert np.sqrt((error**2).mean()) < 0.12
    assert np.sqrt((error**2).mean()) < 0.3 * np.sqrt((crude**2).mean())


@pytest.mark.parametrize("differentiate", [SavitzkyGolay(), SmoothingSpline(), CentralDifferences()])
def test_units_do_not_matter(differentiate) -> None:
    X = np.sin(EVEN)[:, None] + 0.01 * RNG.normal(size=(300, 1))
    plain = differentiate(EVEN, X).first
    np.testing.assert_allclose(differentiate(EVEN, 1e9 * X).first, 1e9 * plain, rtol=1e-4, atol=1e5)
    np.testing.assert_allclose(differentiate(1e-6 * EVEN, X).first, 1e6 * plain, rtol=1e-4, atol=1e2)


@each_time
def test_the_noise_level_is_estimated(t) -> None:
    X = np.column_stack([np.sin(t), 100 * np.cos(t)])
    level = noise_level(t, X + np.array([0.05, 2.0]) * RNG.normal(size=X.shape))
    np.testing.assert_allclose(level, [0.05, 2.0], rtol=0.25)
    assert noise_level(t, X)[0] < 1e-6


def test_more_noise_asks_for_a_wider_window() -> None:
    quiet, loud = (np.sin(3 * EVEN) + part * RNG.normal(size=300) for part in (1e-4, 0.2))
    of_quiet, of_loud = best_windows(EVEN, np.column_stack([quiet, loud]))
    assert of_quiet < of_loud


def test_even_steps_are_seen() -> None:
    assert even(EVEN)
    assert not even(UNEVEN)
