"""`groups` of PSERegressor: one form, a table of constants by group; groups that cannot be are refused."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn.base import clone

from symenum import PSERegressor

RNG = np.random.default_rng(0)
LABELS = ["north", "east", "south", "west"]
RATES = dict(zip(LABELS, (0.5, 0.8, 1.1, 1.4), strict=True))
TABLE = pandas.DataFrame({"t": RNG.uniform(0.1, 3, 80), "site": np.repeat(LABELS, 20)})
Y = pandas.Series(2 * np.exp(-TABLE.site.map(RATES) * TABLE.t) + TABLE.t, name="level")


def model(**settings: object) -> PSERegressor:
    options = {"groups": "site", "max_time": None, "max_iterations": 30, "random_state": 0, **settings}
    return PSERegressor(["+", "*", "exp"], **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fitted() -> PSERegressor:
    return model().fit(TABLE, Y)


def test_one_form_is_found_with_a_constant_of_each_group(fitted: PSERegressor) -> None:
    assert fitted.constants_.shape[1] == 1
    assert list(fitted.constants_.index) == LABELS
    assert fitted.constants_.index.name == "site"
    assert sorted(np.abs(fitted.constants_.iloc[:, 0])) == pytest.approx(sorted(RATES.values()), rel=1e-6)
    assert fitted.constants_.columns[0] in str(fitted.best_expression_)
    assert fitted.equations_["group_constants"].iloc[fitted.selected_index_] == fitted.constants_.columns[0]
    assert fitted.score(TABLE, Y) == pytest.approx(1.0)
    assert str(fitted.best_expression_) in str(fitted)


def test_it_predicts_for_rows_of_known_groups_in_any_order(fitted: PSERegressor) -> None:
    new = pandas.DataFrame({"site": ["west", "north"], "t": [1.0, 1.0]})
    assert fitted.predict(new) == pytest.approx([2 * np.exp(-1.4) + 1, 2 * np.exp(-0.5) + 1])
    with pytest.raises(ValueError, match="the group 'centre', which was not in the fit"):
        fitted.predict(pandas.DataFrame({"t": [1.0], "site": ["centre"]}))
    with pytest.raises(ValueError, match="no column of X"):
        fitted.predict(pandas.DataFrame({"t": [1.0]}))
    with pytest.raises(IndexError):
        fitted.predict(new, 99)


def test_the_form_is_an_expression_like_any_other(fitted: PSERegressor) -> None:
    assert fitted.constants_.columns[0] in fitted.latex() or fitted.constants_.columns[0][:1] in fitted.latex()
    assert {str(one) for one in fitted.sympy().free_symbols} == {"t", fitted.constants_.columns[0]}
    assert "def " in fitted.export("python")


def test_what_makes_no_sense_with_groups_is_refused(fitted: PSERegressor) -> None:
    for call in (fitted.uncertainties, lambda: fitted.save("x"), lambda: fitted.report("x")):
        with pytest.raises(ValueError, match="not for a model with groups"):
            call()
    with pytest.raises(ValueError, match="alternatives_ is not for"):
        _ = fitted.alternatives_
    with pytest.raises(ValueError, match="return_std"):
        fitted.predict(TABLE, return_std=True)
    assert fitted.confidence() == []


def test_the_same_seed_gives_the_same_form(fitted: PSERegressor) -> None:
    again = clone(fitted).fit(TABLE, Y)
    assert str(again.best_expression_) == str(fitted.best_expression_)
    assert again.constants_.equals(fitted.constants_)


def test_groups_may_be_numbers_in_an_array() -> None:
    X = np.column_stack([TABLE.t, TABLE.site.map({name: at for at, name in enumerate(LABELS)})])
    found = model(groups="x2").fit(X, Y)
    assert found.score(X, Y) == pytest.approx(1.0)
    assert list(found.constants_.index) == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("table", "settings", "why"),
    [
        (TABLE, {"groups": "sight"}, "names 'sight', which is no column of X.*did you mean 'site'"),
        (TABLE.assign(site="north"), {}, "one group only"),
        (TABLE.assign(site=[*TABLE.site[:-1], "alone"]), {}, "the group 'alone' has 1 row, and at least 3"),
        (TABLE.assign(site=[*TABLE.site[:-1], None]), {}, "missing cells"),
        (TABLE, {"groups": 3}, "groups must be a column's name"),
        (TABLE, {"checkpoint": "file.json"}, "checkpoint is not for groups"),
        (TABLE, {"units": {"t": "s", "level": "m"}}, "units is not for groups"),
    ],
)
def test_groups_that_cannot_be_are_refused(table: pandas.DataFrame, settings: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        model(**settings).fit(table, Y)


def test_ten_thousand_groups_are_refused() -> None:
    many = pandas.DataFrame({"t": RNG.uniform(0, 1, 30_000), "site": np.repeat(np.arange(10_000), 3)})
    with pytest.raises(ValueError, match="10,000 groups, and at most 500"):
        model().fit(many, many.t)
    with pytest.raises(ValueError, match="groups is for one target"):
        model().fit(TABLE, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="not for groups yet"):
        model().fit(TABLE, Y, validation=(TABLE, Y))
