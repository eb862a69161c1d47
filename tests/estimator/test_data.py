"""Every refusal of data names the argument that it is about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest
import scipy.sparse

from symenum import PSERegressor
from symenum.estimator.data import FitData

X = np.random.default_rng(0).uniform(1, 3, (20, 2))
Y = X[:, 0] * X[:, 1]
DATES = pandas.date_range("2020-01-01", periods=20)


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (X, ["a"] * 20, r"^y holds text"),
        (X, np.array([*Y[:-1], None], dtype=object), r"^y has NaN"),
        (X, np.where(np.arange(20) == 3, np.nan, Y), r"y contains NaN"),
        (X, np.array([*Y[:-1], np.nan], dtype=object), r"^y: Input contains NaN"),
        (np.where(np.arange(40).reshape(20, 2) == 3, np.inf, X), Y, r"X contains infinity"),
        (X[:1], Y[:1], r"^X: Found array with 1 sample"),
        (X, Y * 1e200, r"^y has a largest absolute value"),
        (X.astype(complex), Y, r"^X: Complex data"),
        (scipy.sparse.csr_matrix(X), Y, r"for X"),
        (pandas.DataFrame(X, columns=["a", "a"]), Y, r"^X has more than one column of the name 'a': rename them"),
        (X, Y[:-1], r"X|y"),
        (np.ma.masked_greater(X, 2), Y, r"^X has masked entries: remove those rows"),
        (X, np.ma.masked_greater(Y, 2), r"^y has masked entries"),
        (pandas.DataFrame({"when": DATES, "b": Y}), Y, r"^X has dates in column 'when': give numbers in a unit"),
        (pandas.DataFrame({"when": DATES.date, "b": Y}), Y, r"^X has dates in column 'when'"),
        (X, DATES, r"^y has dates: give numbers in a unit of your own"),
        (X, DATES - DATES[0], r"^y has dates"),
    ],
    ids=str,
)
def test_the_argument_is_named(data: object, target: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        PSERegressor(max_iterations=1).fit(data, target)


def test_a_mask_without_masked_entries_is_an_array() -> None:
    plain, masked = (
        PSERegressor(max_iterations=1, random_state=0).fit(data, Y) for data in (X, np.ma.masked_array(X, mask=False))
    )
    assert masked.best_expression_ == plain.best_expression_


def test_rows_that_do_not_fit_are_drawn_at_random_with_a_warning() -> None:
    weight = np.arange(1000.0) % 3
    data = FitData(np.arange(2000.0).reshape(1000, 2), np.arange(1000.0), weight, None)
    everything, whole, _ = data.weighted_rows(1 << 20, seed=0)
    assert (everything.shape, whole.rows) == ((666, 2), 666)
    with pytest.warns(UserWarning, match=r"X has 666 rows and 2 columns, .* works on 200 rows drawn at random"):
        table, target, _ = data.weighted_rows(200 * 48, seed=0)
    assert table.shape == (200, 2)
    np.testing.assert_array_equal(table[:, 0], 2 * target.y)
    assert float(target.weight.sum()) == pytest.approx(1)
    assert set((target.y % 3).tolist()) == {1.0, 2.0}


def test_a_table_of_which_no_sample_fits_is_refused_with_the_numbers() -> None:
    data = FitData(np.zeros((200, 1000)), np.arange(200.0), None, None)
    with pytest.raises(ValueError, match=r"1,000 columns, which take 0.00161 GB, .* not even 100 rows fit"):
        data.weighted_rows(100_000, seed=0)


def test_columns_of_the_table_are_contiguous_and_aligned() -> None:
    table, _, _ = FitData(np.arange(33.0).reshape(11, 3), np.arange(11.0), None, None).weighted_rows(1 << 20, seed=0)
    for i in range(3):
        assert table[:, i].is_contiguous()
        assert table[:, i].data_ptr() % 64 == 0
        assert table[:, i].tolist() == np.arange(33.0).reshape(11, 3)[:, i].tolist()


# Names for the columns of an array


def test_the_columns_of_an_array_have_the_names_that_are_given(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(1, 3, (30, 2))
    settings = {"operators": "arithmetic", "max_iterations": 20, "max_time": None, "random_state": 0}
    model = PSERegressor(**settings, required_variables=["mass"]).fit(
        X, X[:, 0] / X[:, 1], variable_names=["mass", "volume (m3)"]
    )
    assert model.variable_names_ == ("mass", "volume_m3")
    assert str(model.best_expression_) == "mass/volume_m3"
    np.testing.assert_allclose(model.predict(X), X[:, 0] / X[:, 1])
    assert not hasattr(model, "feature_names_in_")
    model.save(tmp_path)
    assert PSERegressor.load(tmp_path).variable_names_ == model.variable_names_


def test_a_checkpoint_keeps_the_names(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(1, 3, (30, 2))
    y = np.sin(X[:, 0]) / X[:, 1]
    settings = {"operators": "arithmetic", "max_time": None, "random_state": 0, "layers": 2, "inputs": 4}
    path = tmp_path / "checkpoint.json"
    PSERegressor(**settings, max_iterations=2, checkpoint=path).fit(X, y, variable_names=["mass", "volume"])
    whole = PSERegressor(**settings, max_iterations=4).fit(X, y, variable_names=["mass", "volume"])
    for data in ((), (X, y)):
        resumed = PSERegressor.resume(path, *data, max_iterations=4)
        assert resumed.variable_names_ == ("mass", "volume")
        assert resumed.front_ == whole.front_
    assert PSERegressor.load(path).variable_names_ == ("mass", "volume")


@pytest.mark.parametrize("names", ["ab", ["a"], ["a", "a"], ["a", 3], 5])
def test_names_that_do_not_fit_are_refused(names: object) -> None:
    with pytest.raises(ValueError, match="variable_names must be"):
        PSERegressor(max_iterations=1).fit([[1.0, 2.0], [2.0, 1.0], [4.0, 1.0]], [1.0, 3.0, 2.0], variable_names=names)


def test_a_frame_has_names_of_its_own() -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match="variable_names is for arrays"):
        PSERegressor(max_iterations=1).fit(frame, [1.0, 3.0, 2.0], variable_names=["b"])
