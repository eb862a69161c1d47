"""`groups` of PSERegressor: one form, a table of constants by group; groups that cannot be are refused."""

from __future__ import annotations

import json
from pathlib import Path

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
    with pytest.raises(ValueError, match="which is no column"):
        fitted.predict(pandas.DataFrame({"t": [1.0]}))
    with pytest.raises(IndexError):
        fitted.predict(new, 99)


def test_the_form_is_an_expression_like_any_other(fitted: PSERegressor) -> None:
    assert fitted.constants_.columns[0] in fitted.latex() or fitted.constants_.columns[0][:1] in fitted.latex()
    assert {str(one) for one in fitted.sympy().free_symbols} == {"t", fitted.constants_.columns[0]}
    assert "def " in fitted.export("python")


def test_what_makes_no_sense_with_groups_is_refused(fitted: PSERegressor) -> None:
    for call in (fitted.uncertainties, lambda: fitted.score_expression("a*t")):
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
        (TABLE, {"groups": "sight"}, "names 'sight', which is no column .did you mean 'site'"),
        (TABLE.assign(site="north"), {}, "one group only"),
        (TABLE.assign(site=[*TABLE.site[:-1], "alone"]), {}, "the group 'alone' has 1 row, and at least 3"),
        (TABLE.assign(site=[*TABLE.site[:-1], None]), {}, "missing cells"),
        (TABLE, {"groups": 3}, "groups must be a column's name"),
        (TABLE, {"template": "f(t)"}, "template is not for groups"),
        (TABLE, {"select_k_features": 1}, "select_k_features is not for groups"),
        (TABLE, {"units": {"t": "s", "level": "m"}}, "no law of t .s. has the unit of the target, m"),
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


def test_a_result_with_groups_is_saved_loaded_and_reported(fitted: PSERegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    loaded = PSERegressor.load(tmp_path / "saved")
    assert loaded.predict(TABLE) == pytest.approx(fitted.predict(TABLE))
    assert loaded.constants_.equals(fitted.constants_)
    assert list(loaded.equations_["equation"]) == list(fitted.equations_["equation"])
    table = pandas.read_csv(tmp_path / "saved" / "constants.csv", index_col=0)
    assert table.to_numpy() == pytest.approx(fitted.constants_.to_numpy())
    assert "in constants.csv" in (tmp_path / "saved" / "law.py").read_text(encoding="utf-8")
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_text() == (tmp_path / "saved" / "model.json").read_text()
    fitted.report(tmp_path / "report.html")
    assert "site north: " in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_file_whose_groups_are_damaged_is_refused(fitted: PSERegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    file = tmp_path / "saved" / "model.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    for name, wrong in (("labels", None), ("laws", []), ("laws", [{}] * len(whole["front"])), ("column", 3)):
        file.write_text(json.dumps({**whole, "groups": {**whole["groups"], name: wrong}}), encoding="utf-8")
        with pytest.raises(ValueError, match="group"):
            PSERegressor.load(tmp_path / "saved")


def test_a_search_with_groups_goes_on_in_its_folder_as_if_it_had_not_ended(tmp_path: Path) -> None:
    noisy = Y + 0.05 * RNG.normal(size=len(Y))
    first = model(max_iterations=4, run_dir=tmp_path / "run").fit(TABLE, noisy)
    held = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"checkpoint.json", "checkpoint.group1.json", "model.json", "report.html", "constants.csv"} <= held
    resumed = PSERegressor.resume(tmp_path / "run", max_iterations=8)
    whole = model(max_iterations=8).fit(TABLE, noisy)
    assert resumed.n_iter_ == whole.n_iter_ > first.n_iter_
    assert list(resumed.equations_["equation"]) == list(whole.equations_["equation"])
    assert resumed.constants_.to_numpy() == pytest.approx(whole.constants_.to_numpy())
    assert list(resumed.constants_.index) == LABELS
    assert PSERegressor.load(tmp_path / "run" / "checkpoint.json").constants_.equals(resumed.constants_)


def test_a_checkpoint_with_groups_refuses_other_data_and_labels_that_no_file_can_hold(tmp_path: Path) -> None:
    model(max_iterations=1, checkpoint=tmp_path / "kept.json").fit(TABLE, Y)
    with pytest.raises(ValueError, match="not those of the checkpoint"):
        PSERegressor.resume(tmp_path / "kept.json", TABLE, Y + 1)
    dates = TABLE.assign(site=TABLE.site.map({name: pandas.Timestamp(2026, 1, i + 1) for i, name in enumerate(LABELS)}))
    with pytest.raises(ValueError, match="which a file cannot hold: use texts or numbers"):
        model(max_iterations=1, checkpoint=tmp_path / "other.json").fit(dates, Y)


def test_callbacks_hear_of_the_steps_of_all_groups() -> None:
    steps: list[int] = []
    found = model(max_iterations=2, callbacks=lambda report: steps.append(report.iteration)).fit(TABLE, Y + TABLE.t**3)
    assert steps == list(range(1, found.n_iter_ + 1))


def test_laws_of_groups_keep_their_units() -> None:
    table = pandas.DataFrame(
        {"m": RNG.uniform(1, 3, 60), "v": RNG.uniform(1, 3, 60), "run": np.repeat(["a", "b", "c"], 20)}
    )
    energy = pandas.Series(table.run.map({"a": 0.3, "b": 0.5, "c": 0.8}) * table.m * table.v**2, name="E")
    units = {"m": "kg", "v": "m/s", "E": "J"}
    found = model(groups="run", units=units, max_iterations=4).fit(table, energy)
    assert found.score(table, energy) == pytest.approx(1.0)
    assert sorted(found.constants_.iloc[:, 0]) == pytest.approx([0.3, 0.5, 0.8])
    assert "E [kg*m^2/s^2]" in found.unit_lines()[0] or "E [" in found.unit_lines()[0]
    with pytest.raises(ValueError, match="units"):
        model(groups="run", units={**units, "E": "K"}, max_iterations=4).fit(table, energy)


def test_laws_of_groups_keep_their_shape_in_every_group() -> None:
    found = model(shape={"t": "increasing"}, shape_box={"t": (0.5, 3)}, max_iterations=4).fit(
        TABLE, 2 * TABLE.t * TABLE.site.map(RATES)
    )
    assert set(found.equations_["shape"]) == {"proved"}
    assert found.shape_lines() == ["The shape is proved."]
    with pytest.warns(UserWarning, match="in all groups"):
        broken = model(shape={"t": "decreasing"}, max_iterations=2, max_complexity=6, required_variables=["t"]).fit(
            TABLE, 2 * TABLE.t * TABLE.site.map(RATES)
        )
    assert "broken" in broken.shape_lines()[0]
