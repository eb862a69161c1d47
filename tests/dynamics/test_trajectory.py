"""Trajectories are cut where they must be, and what is wrong with them is said in words."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from symenum.dynamics.trajectory import (
    MIN_POINTS,
    Piece,
    by_name,
    check_rates,
    column_names,
    make_map_pieces,
    make_pieces,
)

T = np.linspace(0, 1, 30)
X = np.column_stack([np.sin(T), np.cos(T)])


def test_a_whole_trajectory_is_one_piece() -> None:
    (piece,) = make_pieces(X, T)
    np.testing.assert_array_equal(piece.X, X)
    assert piece.U.shape == (30, 0)


def test_a_time_step_stands_for_even_times() -> None:
    (piece,) = make_pieces(X, 0.5)
    np.testing.assert_allclose(piece.t, np.arange(30) * 0.5)


def test_missing_stretches_and_pauses_are_gaps() -> None:
    holed = X.copy()
    holed[12:15, 0] = np.nan
    pieces = make_pieces(holed, T)
    assert [len(piece) for piece in pieces] == [12, 15]
    late = np.where(T > 0.5, T + 3, T)
    assert len(make_pieces(X, late)) == 2


def test_several_trajectories_stay_apart() -> None:
    pieces = make_pieces([X, X[:20]], [T, T[:20]], [T, T[:20]])
    assert [len(piece) for piece in pieces] == [30, 20]
    assert pieces[0].U.shape == (30, 1)
    assert len(make_pieces([X, X], 0.1)) == 2


def test_short_stretches_are_left_out_with_a_word() -> None:
    holed = X.copy()
    holed[5] = np.nan
    with pytest.warns(UserWarning, match="5 points"):
        (piece,) = make_pieces(holed, T)
    assert len(piece) == 24


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (T[::-1], "must increase"),
        (np.where(np.arange(30) == 7, T[6], T), r"repeats the time .* positions 6 and 7"),
        (T[:-1], "one time for each row"),
        (np.where(np.arange(30) == 3, np.nan, T), "position 3"),
        (-0.1, "above zero"),
        ("now", "array of numbers"),
    ],
)
def test_wrong_times_are_refused(times: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_pieces(X, times)


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {MIN_POINTS}"):
        make_pieces(X[:5], T[:5])


def test_wrong_states_and_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="no finite number in column 1"):
        make_pieces(np.column_stack([T, np.full(30, np.nan)]), T)
    with pytest.raises(ValueError, match="array of real numbers"):
        make_pieces([["a"] * 2] * 30, T)
    with pytest.raises(ValueError, match="u has 29 rows"):
        make_pieces(X, T, T[1:])
    with pytest.raises(ValueError, match="same states"):
        make_pieces([X, X[:, :1]], [T, T])
    with pytest.raises(ValueError, match="t must be a list of 2 arrays"):
        make_pieces([X, X], T)


def test_names_come_from_data_frames() -> None:
    frame = pandas.DataFrame(X, columns=["a", "b"])
    assert column_names(frame) == column_names([frame, frame]) == ["a", "b"]
    assert column_names(X) is None


def test_messages_name_the_column_of_a_table_and_the_trajectory_among_several() -> None:
    frame = pandas.DataFrame(X, columns=["a", "b"])
    for make, message in (
        (lambda: make_pieces(frame.assign(c="z"), T), r"X in column 'c' must be real numbers: could not convert"),
        (lambda: make_pieces(frame.assign(c=1j), T), r"X in column 'c' must be real numbers: it holds complex"),
        (lambda: make_pieces(frame.assign(c=np.nan), T), r"X has no finite number in column 'c': leave it out"),
        (lambda: make_pieces(frame.assign(c=1e200), T), r"X has a largest absolute value of 1e\+200 in column 'c',"),
        (lambda: make_pieces([X], [T[::-1]]), r"^t must increase"),
        (lambda: make_pieces([X, X], [T, T[::-1]]), r"^t of trajectory 1 must increase"),
        (lambda: make_pieces(X[:0], T[:0]), r"^X holds no points$"),
        (lambda: make_map_pieces([]), r"^X holds no points$"),
        (lambda: make_map_pieces([X[:, 0], X[:5, 0]]), r"not shapes \(30,\), \(5,\): write x\[:, None\]"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_columns_are_found_by_their_names() -> None:
    frame = pandas.DataFrame(X, columns=["a b", "c"])
    for columns in (["c", "a b"], ["c", "a_b"]):
        ordered = by_name("X", frame, columns)
        np.testing.assert_array_equal(ordered, X[:, ::-1])
        np.testing.assert_array_equal(by_name("x0", frame.iloc[3], columns), X[3, ::-1])
    first, second = by_name("X", [frame, frame[["c", "a b"]]], ["a b", "c"])
    np.testing.assert_array_equal(first, second)
    assert by_name("X", X, ["c", "a"]) is X
    column = frame["c"]
    assert by_name("u", column, ["c"]) is column  # its index counts rows and names nothing
    assert by_name("X", frame, ["x1", "x2"], named=False) is frame
    for wrong in (frame[["c"]], frame.assign(d=1.0), frame.rename(columns={"c": "d"})):
        with pytest.raises(ValueError, match="X must have the columns a_b, c, not "):
            by_name("X", wrong, ["a_b", "c"])


def test_complex_numbers_are_refused_by_name() -> None:
    for give, message in (
        (lambda: make_pieces(X + 1j, T), "X must be an array of real numbers: it holds complex ones"),
        (lambda: make_pieces(X, T + 1j), "t must be an array of numbers or a time step: it holds complex ones"),
        (lambda: make_pieces(X, T, T + 0j), "u must be an array of real numbers: it holds complex ones"),
        (lambda: make_map_pieces(np.ma.masked_array(X + 1j, X > 0.9)), "X must be .* it holds complex ones"),
        (lambda: make_pieces([X, X + 1j], [T, T]), "X of trajectory 1 must be .* it holds complex ones"),
    ):
        with pytest.raises(ValueError, match=message):
            give()


def test_values_whose_squares_are_no_doubles_are_refused_with_where_they_are() -> None:
    wrong = X.copy()
    wrong[7, 1] = -1e200
    for make in (make_pieces, make_map_pieces):
        with pytest.raises(ValueError, match=r"1e\+200 in column 1 \(the first is 0\).* leave out row 7"):
            make(wrong, T)
        with pytest.raises(ValueError, match=r"u has .* 1e-200 in column 0 .* give that column in another unit$"):
            make(X, T, np.full(30, 1e-200))
    assert len(make_pieces(X * [1e135, 1e-135], T)[0]) == 30
    assert len(make_pieces(X * [1, 0], T)[0]) == 30


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_times_in_whose_unit_rates_have_no_squares_are_refused(unit: float) -> None:
    no_inputs = np.empty((30, 0))
    with pytest.raises(ValueError, match=r"t: column 0 of X .* squares of such rates are out of range: give t in"):
        check_rates([Piece(T * unit, X, no_inputs)], 1)
    check_rates([Piece(T * unit, X * 0, no_inputs)], 1)
    check_rates([Piece(T * unit**0.6, X, no_inputs)], 1)
    with pytest.raises(ValueError, match="out of range"):
        check_rates([Piece(T * unit**0.6, X, no_inputs)], 2)


STATES = np.random.default_rng(0).normal(size=(50, 2))
DATES = pandas.date_range("2020-01-01", periods=50, freq="s")


@pytest.mark.parametrize(
    "times",
    [DATES, DATES.to_numpy(), pandas.Series(DATES), DATES.tz_localize("UTC"), list(DATES), DATES - DATES[0]],
    ids=["index", "array", "series", "with a zone", "list", "durations"],
)
def test_dates_are_refused_with_what_to_type(times: object) -> None:
    """As numbers they would be microseconds or nanoseconds, whatever the version of pandas has chosen."""
    with pytest.raises(ValueError, match=r"t has dates: give numbers .* pandas.Timedelta\('1D'\)"):
        make_pieces(STATES, times)


def test_a_column_of_dates_among_the_states_is_named() -> None:
    with pytest.raises(ValueError, match="X has dates in column 'when'"):
        make_pieces(pandas.DataFrame({"x": STATES[:, 0], "when": DATES}), 0.1)


def test_masked_entries_are_a_gap() -> None:
    mask = np.zeros((50, 2), dtype=bool)
    mask[20, 1] = True
    pieces = make_pieces(np.ma.masked_array(STATES, mask), np.arange(50.0))
    assert [len(piece) for piece in pieces] == [20, 29]
    with pytest.raises(ValueError, match="missing or infinite time at position 20"):
        make_pieces(STATES, np.ma.masked_array(np.arange(50.0), mask[:, 1]))
