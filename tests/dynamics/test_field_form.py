"""Windows of space and time: derivatives of polynomials are averaged exactly, and noise comes out as it is foretold."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.dynamics.field_data import FieldData
from symenum.dynamics.field_form import FieldForm, best_smoothing, make_field_form, multi_indices
from symenum.dynamics.forms import window_weights


def plane(function, times=30, x=60, y=None):
    t, places = np.linspace(0, 1, times), [np.linspace(0, 2, x)] + ([] if y is None else [np.linspace(-1, 1, y)])
    values = function(*np.meshgrid(t, *places, indexing="ij"))
    return FieldData(("u",), np.asarray(values)[None], t, tuple(places))


def form(data, halves, noise=0.0, order=4):
    axes = len(data.axes)
    return FieldForm(
        data, halves, (4, *(8,) * axes), np.full(len(data.values), noise), tuple(multi_indices(axes, order))
    )


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5, 6])
def test_weights_give_the_average_of_a_derivative_of_any_polynomial_of_low_degree(order: int) -> None:
    u = np.arange(-14, 15) * 0.1
    still = window_weights(14, 0, 0.1, 10)
    for degree in range(order + 3):
        power = np.polynomial.Polynomial([0.0] * degree + [1.0])
        wanted = still @ power.deriv(order)(u) if order else still @ power(u)
        assert window_weights(14, order, 0.1, 10) @ power(u) == pytest.approx(wanted, abs=1e-7)


def test_the_derivative_by_time_and_by_space_of_a_polynomial() -> None:
    data = plane(lambda t, x: 3 * t * x**2 + x**3 - 5)
    made = form(data, (8, 12))
    by_time = form(plane(lambda t, x: 3 * x**2), (8, 12)).average_derivative(
        3 * plane(lambda t, x: x**2).values[0], (0,)
    )
    assert made.left_side(0) == pytest.approx(by_time)
    second = made.average_derivative(data.values[0], (2,))
    wanted = made.average_derivative(plane(lambda t, x: 6 * t + 6 * x).values[0], (0,))
    assert second == pytest.approx(wanted)


def test_mixed_derivatives_in_two_dimensions() -> None:
    data = plane(lambda t, x, y: t * x**2 * y, 20, 40, 40)
    made = form(data, (6, 8, 8), order=3)
    wanted = made.average_derivative(plane(lambda t, x, y: 2 * t * x, 20, 40, 40).values[0], (0, 0))
    assert made.average_derivative(data.values[0], (1, 1)) == pytest.approx(wanted)
    assert made.rows == len(wanted) == len(made.average(data.values[0].reshape(-1, 1)))


def test_the_variance_of_the_rows_is_that_of_many_draws_of_noise() -> None:
    random = np.random.default_rng(0)
    clean = plane(lambda t, x: 0 * x)
    slope = 1 + plane(lambda t, x: np.sin(x + t)).values[0]
    sigma, rows = 0.3, []
    for _ in range(400):
        noise = sigma * random.normal(size=clean.shape)
        made = form(FieldData(("u",), noise[None], clean.t, clean.axes), (8, 12), sigma)
        rows.append(
            made.left_side(0) - made.average_derivative(slope * noise, (0,)) - made.average_derivative(noise, (2,))
        )
    orders = made.orders
    told = made.noise_variance(0, {(0, orders.index((0,))): slope, (0, orders.index((2,))): np.ones(clean.shape)})
    assert np.var(rows, axis=0) == pytest.approx(told, rel=0.35)
    assert np.mean(np.var(rows, axis=0) / told) == pytest.approx(1, abs=0.03)


def test_windows_widen_with_noise_and_noise_is_measured() -> None:
    clean = plane(lambda t, x: np.sin(4 * x - 3 * t), 120, 160)
    random = np.random.default_rng(1)
    halves = []
    for part in (0.0, 0.05, 0.3):
        noisy = FieldData(("u",), clean.values + part * random.normal(size=clean.values.shape), clean.t, clean.axes)
        made = make_field_form(noisy, best_smoothing(noisy), 4)
        assert made.noise[0] == pytest.approx(part, rel=0.1, abs=1e-6)
        halves.append(made.halves)
    assert halves[0] == (8, 12)
    assert halves[0][1] < halves[1][1] <= halves[2][1]


def test_many_windows_are_thinned_out_and_short_grids_have_some() -> None:
    large = FieldData(("u",), np.zeros((1, 400, 1000)), np.arange(400.0), (np.arange(1000.0),))
    assert 3000 < form(large, (8, 12)).rows <= 6000
    short = FieldData(("u",), np.random.default_rng(0).normal(size=(1, 11, 15)), np.arange(11.0), (np.arange(15.0),))
    assert make_field_form(short, best_smoothing(short), 4).rows >= 4
