"""Grids of fields: what is taken, in which forms, and what is refused in which words."""

from __future__ import annotations

import numpy as np
import pytest

from symenum import PDERegressor
from symenum.dynamics.field_data import check_rates, fields_by_name, like_given, make_field_data

T, X, Y = np.linspace(0, 1, 40), np.linspace(0, 5, 50), np.linspace(0, 3, 30)
U = np.sin(X - 2 * T[:, None])
V = np.cos(X + T[:, None])
LEAST = (11, 15)


def taken(u, t=T, *axes):
    return make_field_data(u, t, axes or (X,), LEAST[:1] + LEAST[1:] * max(1, len(axes)))


@pytest.mark.parametrize(
    ("u", "names"),
    [
        (U, ("u",)),
        ([U, V], ("u", "v")),
        ((U, V, U), ("u", "v", "w")),
        (np.stack([U, V], axis=-1), ("u", "v")),
        ({"prey": U, "hunter 1": V}, ("prey", "hunter_1")),
        (U.tolist(), ("u",)),
        ([U] * 4, ("u1", "u2", "u3", "u4")),
    ],
)
def test_fields_come_as_an_array_a_list_a_mapping_or_a_last_axis(u, names) -> None:
    data = taken(u)
    assert data.names == names
    assert data.values.shape == (len(names), 40, 50)
    assert np.array_equal(data.values[0], U)
    given_back = like_given(u, list(data.values))
    if isinstance(u, dict):
        assert list(given_back) == list(u)
    else:
        assert np.array_equal(np.asarray(given_back), np.asarray(u))


def test_a_step_stands_for_places_and_printed_places_are_even_enough() -> None:
    assert taken(U, 0.1, 0.25).steps == pytest.approx((0.1, 0.25))
    assert taken(U, np.round(T, 4), np.round(X, 3)).steps == pytest.approx((T[1], X[1]))


def test_two_dimensions() -> None:
    u = U[:, :, None] + Y
    assert taken(u, T, X, Y).shape == (40, 50, 30)
    assert taken(np.stack([u, -u], axis=-1), T, X, Y).names == ("u", "v")


def bent(places, at, by):
    places = places.copy()
    places[at] += by
    return places


@pytest.mark.parametrize(
    ("u", "t", "axes", "message"),
    [
        (
            U,
            T,
            (np.r_[X[:20], X[20:] + 0.3],),
            r"x must go in even steps, but the step from 1\.93\d+ to 2\.34\d+ \(pos",
        ),
        (U, np.geomspace(1, 2, 40), (X,), "t must go in even steps"),
        (U, T[::-1], (X,), "t must increase, but goes from 1 to 0.97"),
        (U, bent(T, 7, T[6] - T[7]), (X,), "t repeats 0.153846 at positions 6 and 7"),
        (U, bent(T, 7, np.nan), (X,), "t has a missing or infinite entry at position 7"),
        (U, T, (bent(X, 3, np.inf),), "x has a missing or infinite entry at position 3"),
        (U, T, (X[:-1],), r"x must have shape \(50,\), one entry for each of the 50 points of u along it, not \(49,\)"),
        (U, T[:, None], (X,), r"t must have shape \(40,\)"),
        (U, 0.0, (X,), "t as a step must be a number above zero, not 0"),
        (U, None, (X,), "t is missing: give the places along it"),
        (U, T, (None,), "x is missing"),
        (U[:1], T[:1], (X,), "u has 1 points along t, and at least 11 are needed"),
        (U[:, :9], T, (X[:9],), "u has 9 points along x, and at least 15 .* or a smaller max_order"),
        (U[0], T, (X,), r"u must have shape \(times, x\).* not \(50,\)"),
        (U[:, :, None] + Y, T, (X, Y[:-1]), r"y must have shape \(30,\)"),
        ({"u": U, "v": V[:-1]}, T, (X,), r"not \(40, 50\), \(39, 50\)"),
        ({}, T, (X,), "u holds no field"),
        (U[..., None][..., :0], T, (X,), "u holds no field: its last axis is empty"),
        (U * 1j, T, (X,), "u must be an array of real numbers: it holds complex ones"),
        (U, T + 0j, (X,), "t must be an array of real numbers: it holds complex ones"),
        (U * 1e200, T, (X,), r"u has a largest absolute value of 1e\+200 in u, whose square is out of range"),
        ([U, V * 1e-200], T, (X,), "u has a largest absolute value of 1e-200 in v, .* give v in another unit"),
        ([["a"] * 50] * 40, T, (X,), "u must be an array of real numbers"),
        (np.ma.masked_greater(U, 0.5), T, (X,), "u has masked entries"),
    ],
)
def test_what_is_no_regular_grid_is_refused_with_the_axis_and_the_place(u, t, axes, message) -> None:
    with pytest.raises(ValueError, match=message):
        taken(u, t, *axes)


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_units_of_axes_whose_derivatives_have_no_squares_are_refused(unit: float) -> None:
    check_rates(taken(U, T * 1e100, X * 1e-20), 4)
    for times, places, message in ((T * unit, X, "t: u changes by 2 along"), (T, X * unit, "x: u changes by 2 along")):
        with pytest.raises(ValueError, match=f"{message} .* are out of range: give {message[0]} in another unit"):
            check_rates(taken(U, times, places), 4)


def test_fields_are_found_by_their_names() -> None:
    ordered = fields_by_name({"b": 2, "a c": 1}, ("a_c", "b"))
    assert list(ordered) == ["a c", "b"]  # type: ignore[call-overload]
    given = {"p": 1, "q": 2}
    assert fields_by_name(given, ("u", "v")) is given  # the fit had no names
    for wrong in ({"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3}):
        with pytest.raises(ValueError, match=r"u must hold the fields a, b, not a"):
            fields_by_name(wrong, ("a", "b"))


def test_missing_values_are_refused_with_where_the_first_is() -> None:
    u = U.copy()
    u[3, 10] = np.nan
    u[20, 10] = -np.inf
    with pytest.raises(ValueError, match=r"u has 2 missing .* the first of v at t = 0\.0769231, x = 1\.02041: .* fill"):
        taken([U, u])


def test_the_estimator_refuses_in_the_same_words() -> None:
    model = PDERegressor(max_iterations=1, max_time=5)
    with pytest.raises(ValueError, match="t must increase"):
        model.fit(U, T[::-1], X)
    with pytest.raises(ValueError, match=r"for two axes of space call fit\(u, t, x, y\)"):
        model.fit(np.zeros((12, 20, 20, 2)), 0.1, 0.1)
    with pytest.raises(ValueError, match="u has 12 points along x, and at least 15"):
        model.fit(U[:, :12], T, X[:12])
    with pytest.raises(ValueError, match="u has a field called 'u_x', which is also the name of a derivative"):
        model.fit({"u_x": U, "u": V}, T, X)
