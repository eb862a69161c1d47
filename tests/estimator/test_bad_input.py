"""Data that no law can be found in get a clear message or a sane law, and never a crash."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest

from symenum import PSERegressor

ROWS = 40
X = np.random.default_rng(0).uniform(1, 3, (ROWS, 2))
Y = X[:, 0] * X[:, 1]


def fitted(data: object, y: object, iterations: int = 4, **arguments: object) -> PSERegressor:
    return PSERegressor(max_iterations=iterations, max_time=20, random_state=0).fit(data, y, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("y_error", "message"),
    [
        (0, "y_error must be finite and above 0.* row 0 .* has 0"),
        (-1.0, "row 0 .* has -1"),
        (np.nan, "has nan"),
        (np.inf, "has inf"),
        (np.where(np.arange(ROWS) == 3, 0.0, 1.0), "row 3 .* has 0"),
        (np.ones(5), r"y_error must be one number, or 40, one for each row, not of shape \(5,\)"),
        (np.ones((ROWS, 2)), r"not of shape \(40, 2\)"),
        ("a", "y_error must hold real numbers"),
        (10.0 ** np.linspace(-200, 200, ROWS), "y_error gives row 0 .* nearly all of the weight"),
    ],
)
def test_errors_of_y_that_are_none_are_refused(y_error: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(X, Y, y_error=y_error)


@pytest.mark.parametrize(
    ("x_error", "message"),
    [
        (np.ones(3), r"x_error must have shape \(2,\), one for each column, or \(40, 2\)"),
        (np.ones((5, 2)), "column 0 of x_error must be one number, or 40"),
        ({"z": 1.0}, "x_error names 'z', and X has no such column: it has x1, x2"),
        ({"x1": -1.0}, r"x_error\['x1'\] must be finite and not below 0"),
        ({"x1": np.nan}, "has nan"),
        ({"x2": np.ones(7)}, "one for each row"),
        ("a", "x_error must have shape"),
    ],
)
def test_errors_of_inputs_that_are_none_are_refused(x_error: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(X, Y, y_error=0.1, x_error=x_error)


def test_errors_of_inputs_need_those_of_y_and_least_squares() -> None:
    with pytest.raises(ValueError, match="x_error needs y_error too"):
        fitted(X, Y, x_error={"x1": 0.1})
    with pytest.raises(ValueError, match="x_error is for loss='mse' only, not for 'huber'"):
        PSERegressor(loss="huber", max_iterations=1).fit(X, Y, y_error=1.0, x_error={"x1": 0.1})


def test_a_table_of_text_is_refused_with_the_names_of_the_columns() -> None:
    text = pandas.DataFrame({"a": ["u", "v"] * 20, "b": X[:, 0], "c": ["w"] * ROWS})
    with pytest.raises(ValueError, match=r"no numbers: 'a', 'c'\. .*get_dummies"):
        fitted(text, Y)


def test_a_table_of_constants_gives_the_mean() -> None:
    model = fitted(np.ones((ROWS, 3)), Y)
    assert model.predict(np.ones((2, 3))) == pytest.approx([Y.mean()] * 2, rel=0.05)


def test_two_rows_give_a_law_that_is_no_worse_than_their_mean() -> None:
    model = fitted(X[:2], Y[:2])
    assert np.isfinite(model.predict(X)).all()
    assert np.square(model.predict(X[:2]) - Y[:2]).mean() <= Y[:2].var() * 1.001


def test_a_thousand_columns_end_in_time() -> None:
    wide = np.random.default_rng(1).normal(size=(60, 1000))
    model = PSERegressor(max_time=5, random_state=0).fit(wide, 3 * wide[:, 7])
    assert np.isfinite(model.predict(wide)).all()
    assert model.elapsed_ < 15


@pytest.mark.parametrize("text", ["sum", "product"])
def test_columns_on_scales_of_1e_30_and_1e30_stand_beside_each_other(text: str) -> None:
    scaled = X * np.array([1e-30, 1e30])
    y = 3e30 * scaled[:, 0] + 1e-30 * scaled[:, 1] if text == "sum" else scaled[:, 0] * scaled[:, 1]
    model = fitted(scaled, y, iterations=10)
    assert model.predict(scaled) == pytest.approx(y, rel=1e-6)


def test_duplicate_columns_and_rows_change_nothing() -> None:
    assert str(fitted(np.column_stack([X, X]), Y, iterations=10).best_expression_) == "x1*x2"
    model = fitted(np.repeat(X, 5, axis=0), np.repeat(Y, 5), iterations=10)
    assert str(model.best_expression_) == "x1*x2"


def test_an_outlier_whose_square_is_no_number_is_named() -> None:
    with pytest.raises(ValueError, match=r"1e\+300.*leave out row 5 \(the first is 0\) if it is an outlier"):
        fitted(X, np.where(np.arange(ROWS) == 5, 1e300, Y))


def test_an_outlier_that_every_law_would_follow_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"y has 1e\+20 in row 5 .*laws will follow this row alone") as told:
        fitted(X, np.where(np.arange(ROWS) == 5, 1e20, Y), iterations=1)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fitted(X, np.exp(10 * X[:, 0]), iterations=1)


@pytest.mark.parametrize("weight", [np.where(np.arange(ROWS) == 5, 1e300, 1.0), 10.0 ** np.linspace(-150, 150, ROWS)])
def test_weights_that_leave_one_row_are_refused(weight: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"sample_weight gives row \d+ .* make the weights less unequal"):
        fitted(X, Y, sample_weight=weight)


def test_skewed_weights_give_the_law() -> None:
    model = fitted(X, Y, iterations=10, sample_weight=10.0 ** np.linspace(-8, 8, ROWS))
    assert str(model.best_expression_) == "x1*x2"


def test_errors_weigh_the_rows_and_fill_the_table() -> None:
    error = np.where(np.arange(ROWS) % 2, 0.01, 1.0)
    y = Y + error * np.random.default_rng(2).standard_normal(ROWS)
    by_error = fitted(X, y, iterations=6, y_error=error)
    by_weight = fitted(X, y, iterations=6, sample_weight=1 / error**2)
    assert by_error.equations_["loss"].tolist() == pytest.approx(by_weight.equations_["loss"].tolist(), rel=1e-6)
    assert "chi_square" not in by_weight.equations_.columns
    law = by_error.equations_.iloc[by_error.selected_index_]
    residual = (y - by_error.predict(X)) / error
    assert law["loss"] == pytest.approx(np.average((residual * error) ** 2, weights=1 / error**2), rel=1e-9)
    assert law["chi_square"] == pytest.approx(np.square(residual).sum(), rel=1e-9)
    assert law["reduced_chi_square"] >= law["chi_square"] / ROWS


def test_a_search_with_errors_goes_on_from_its_checkpoint(tmp_path: object) -> None:
    path = f"{tmp_path}/search.json"
    error = {"x1": 0.1}
    arguments = {"max_time": None, "random_state": 0}
    y = Y + 0.1 * np.random.default_rng(3).standard_normal(ROWS)
    whole = PSERegressor(max_iterations=4, **arguments).fit(X, y, y_error=0.1, x_error=error)  # type: ignore[arg-type]
    PSERegressor(max_iterations=2, checkpoint=path, **arguments).fit(X, y, y_error=0.1, x_error=error)  # type: ignore[arg-type]
    resumed = PSERegressor.resume(path, max_iterations=4)
    assert resumed.equations_["chi_square"].tolist() == whole.equations_["chi_square"].tolist()
    with pytest.raises(ValueError, match="not those of the checkpoint"):
        PSERegressor.resume(path, X, y, y_error=0.2, x_error=error, max_iterations=4)


@pytest.mark.parametrize(
    ("data", "y", "message"),
    [
        (X, Y[:20], "X has 40 rows and y has 20 values: each row needs a value of y"),
        (X, ["a"] * ROWS, "y holds text \\('a'\\): give numbers"),
        (X, np.where(np.arange(ROWS) == 3, np.inf, Y), "y contains infinity .*: remove those rows"),
    ],
)
def test_messages_about_rows_and_cells_are_ours(data: object, y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(data, y)


def test_files_that_cannot_be_written_are_named_as_they_were_given() -> None:
    model = fitted(X, Y)
    with pytest.raises(OSError, match=r"'/proc/report\.html'"):
        model.report("/proc/report.html")


def test_rows_to_predict_with_missing_values_get_no_other_estimator_recommended() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (20, 2))
    model = PSERegressor("arithmetic", max_iterations=1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"Input X contains NaN: leave those rows out, or fill them in$"):
        model.predict(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="sample_weight must be a number for each row"):
        model.fit(X, X[:, 0], sample_weight="balanced")
    with pytest.raises(FileExistsError, match="is a file: name a folder"):
        model.save(__file__)


def test_a_column_of_0_and_1_is_not_squared() -> None:
    random = np.random.default_rng(0)
    table = pandas.DataFrame(
        {"mass": random.uniform(1, 3, 60), "day": random.uniform(0, 30, 60), "red": random.integers(0, 2, 60)}
    )
    model = fitted(table, table.mass**2 + 0.05 * table.day + 2 * table.red + 3, 40)
    assert str(model.best_expression_) == "mass**2 + 0.05*day + 2*red + 3"
