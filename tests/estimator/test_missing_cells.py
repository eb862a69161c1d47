"""Rows with missing cells are left out, filled in or refused, and a warning counts them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest

from symenum import PSERegressor
from symenum.estimator.missing_cells import MISSING_RULES, handle_missing
from symenum.estimator.parameters import PARAMETERS, OneOf

X = pandas.DataFrame({"a": [1.0, None, 3.0, 4.0], "b": [1.0, 2.0, 3.0, 10.0]})
Y = pandas.Series([1.0, 2.0, None, 4.0])


def test_the_rules_are_those_of_the_parameter() -> None:
    constraint = PARAMETERS["missing"].constraint
    assert isinstance(constraint, OneOf)
    assert constraint.choices == MISSING_RULES


@pytest.mark.parametrize("as_array", [False, True])
def test_rows_are_left_out_and_counted(as_array: bool) -> None:
    data = X.to_numpy() if as_array else X
    with pytest.warns(UserWarning, match="2 of 4 rows have missing cells: left out"):
        kept = handle_missing("drop", data, Y)
    assert np.asarray(kept.X).tolist() == [[1, 1], [4, 10]]
    assert np.asarray(kept.y).tolist() == [1, 4]
    assert np.asarray(kept.of("sample_weight", [1, 2, 3, 4])).tolist() == [1, 4]
    assert kept.of("y_error", 0.5) == 0.5
    with pytest.raises(ValueError, match="sample_weight must have 4 numbers"):
        kept.of("sample_weight", [1, 2])


def test_medians_are_filled_in_but_not_in_y() -> None:
    with pytest.warns(UserWarning, match="left out|filled in") as told:
        kept = handle_missing("impute", X, Y)
    assert [str(one.message) for one in told] == [
        "1 missing cells of X are filled in with the medians of their columns",
        "1 of 4 rows has a missing cell: left out",
    ]
    assert kept.X["a"].tolist() == [1, 3, 4]
    assert X["a"].isna().sum() == 1  # the caller's table is not changed


def test_auto_leaves_out_rows_of_a_table_and_refuses_them_in_an_array() -> None:
    with pytest.warns(UserWarning, match="left out"):
        assert len(handle_missing("auto", X, Y).y) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert handle_missing("auto", X.to_numpy(), Y).rows is None
        assert handle_missing("auto", X.dropna(), Y[X["a"].notna()].fillna(0)).rows is None


def test_what_is_no_table_is_left_to_the_checks_that_follow() -> None:
    for data in ("text", [[1, 2], [3]], None, 3):
        assert handle_missing("drop", data, [1.0, 2.0]).X is data


def test_a_table_that_is_empty_everywhere_is_refused() -> None:
    empty = pandas.DataFrame({"a": [None, None], "b": [1.0, 2.0]}, dtype=float)
    with pytest.raises(ValueError, match="every row has a missing cell"):
        handle_missing("drop", empty, [1.0, 2.0])
    with pytest.raises(ValueError, match="no value in the column a"):
        handle_missing("impute", empty, [1.0, 2.0])


def test_a_fit_warns_at_the_line_that_calls_it_and_uses_the_other_rows() -> None:
    random = np.random.default_rng(0)
    table = pandas.DataFrame({"a": random.uniform(1, 2, 20), "b": random.uniform(1, 2, 20)})
    y = table["a"] * table["b"]
    table.loc[3, "a"] = np.nan
    with pytest.warns(UserWarning, match="1 of 20 rows") as told:
        model = PSERegressor(max_iterations=10, random_state=0).fit(table, y, y_error=np.arange(1.0, 21.0))
    assert told[0].filename == __file__
    assert model.training_.target.rows == 19
    assert str(model.best_expression_) == "a*b"
    with pytest.raises(ValueError, match=r"X contains NaN: .*missing='drop'"):
        PSERegressor(max_iterations=1).fit(table.to_numpy(), y)
