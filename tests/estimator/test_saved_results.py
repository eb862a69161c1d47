"""Results on the disk: a loaded model is the one that was saved, without a search, and other files are refused."""

from __future__ import annotations

import json
import warnings
from html import escape
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from symenum import PSERegressor, make_operator
from symenum.estimator import regressor

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0.5, 3, (40, 2))
Y = 2.5 * X[:, 0] / (X[:, 1] + 2) + 0.05 * RANDOM.normal(size=40)
FRAME = pandas.DataFrame(X, columns=["length (m)", "b"])
QUICK = {"operators": "arithmetic", "layers": 2, "inputs": 4, "max_time": None, "max_iterations": 4, "random_state": 0}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """PSERegressor.load, with a search that would fail: loading needs none."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a search")

    def load_without_search(path: Path) -> PSERegressor:
        monkeypatch.setattr(regressor, "run", refuse)
        return PSERegressor.load(path)

    return load_without_search


@pytest.mark.parametrize("table", [X, FRAME], ids=["array", "frame"])
def test_a_loaded_model_predicts_shows_and_exports_as_the_saved_one(table, tmp_path: Path, load) -> None:
    model = PSERegressor(**QUICK).fit(table, Y)
    model.save(tmp_path / "result")
    loaded = load(tmp_path / "result")
    for index in (None, *range(len(model.front_))):
        np.testing.assert_array_equal(loaded.predict(table, index), model.predict(table, index))
    assert str(loaded) == str(model)
    assert loaded.front_ == model.front_
    assert loaded.export("c") == model.export("c")
    assert loaded.latex_table() == model.latex_table()
    shown = ["complexity", "loss", "score", "reward", "equation"]
    pandas.testing.assert_frame_equal(loaded.equations_[shown], model.equations_[shown])
    for name in ("n_iter_", "scored_", "elapsed_", "stop_reason_", "interrupted_", "plan_", "variable_names_"):
        assert getattr(loaded, name) == getattr(model, name)
    kept = {name: value for name, value in loaded.get_params().items() if name != "operators"}
    assert kept == {name: value for name, value in model.get_params().items() if name in kept}
    assert getattr(loaded, "feature_names_in_", np.array([])).tolist() == (
        ["length (m)", "b"] if table is FRAME else []
    )


def test_the_rows_of_the_fit_are_not_in_the_result_and_can_be_given(tmp_path: Path) -> None:
    PSERegressor(**QUICK).fit(X, Y).save(tmp_path)
    loaded = PSERegressor.load(tmp_path / "model.json")
    with pytest.raises(ValueError, match="give X and y"):
        loaded.uncertainties()
    assert (loaded.uncertainties(X=X, y=Y)["standard_error"] > 0).all()
    loaded.report(tmp_path / "page.html", X, Y, errors=True)
    assert "Constants and their standard errors" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_checkpoint_is_loaded_with_its_rows_and_without_a_search(tmp_path: Path, load) -> None:
    path = tmp_path / "run" / "checkpoint.json"
    model = PSERegressor(**QUICK, checkpoint=path).fit(X, Y)
    for place in (path, path.parent):
        loaded = load(place)
        assert loaded.front_ == model.front_
        assert loaded.best_expression_ == model.best_expression_
        assert loaded.checkpoint is None
        pandas.testing.assert_frame_equal(loaded.uncertainties(), model.uncertainties())


def test_a_loaded_model_can_be_fitted_again(tmp_path: Path) -> None:
    model = PSERegressor(**QUICK).fit(X, Y)
    model.save(tmp_path)
    again = PSERegressor.load(tmp_path, warm_start=True, max_iterations=1).fit(X, Y)
    assert again.front_[-1].loss <= model.front_[-1].loss


def test_operators_and_losses_of_the_users_own_are_given_again(tmp_path: Path) -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    settings = {**QUICK, "operators": ["+", softplus]}
    model = PSERegressor(**settings, guesses=["softplus(x1)"]).fit(X, np.log1p(np.exp(X[:, 0])))
    model.save(tmp_path / "operator")
    with pytest.raises(ValueError, match=r"operators of your own \(add, softplus\): give them to load again"):
        PSERegressor.load(tmp_path / "operator")
    assert PSERegressor.load(tmp_path / "operator", operators=["+", softplus]).front_ == model.front_
    assert "softplus" in str(model.best_expression_)

    def largest(y, prediction):
        return np.abs(prediction - y).max()

    PSERegressor(**{**QUICK, "max_iterations": 1}, loss=largest).fit(X, Y).save(tmp_path / "loss")
    with pytest.raises(ValueError, match="loss was a function, which a file cannot hold: give it to load again"):
        PSERegressor.load(tmp_path / "loss")
    assert PSERegressor.load(tmp_path / "loss", loss=largest).loss is largest


def test_a_law_without_source_code_has_no_file_of_code(tmp_path: Path) -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    model = PSERegressor([softplus], max_iterations=2, guesses=["softplus(x1)"]).fit(X, np.log1p(np.exp(X[:, 0])))
    assert "softplus" in str(model.best_expression_)
    model.save(tmp_path)
    assert not (tmp_path / "law.py").exists()
    assert (tmp_path / "law.txt").exists()


def test_another_run_is_never_overwritten_unless_asked(tmp_path: Path) -> None:
    model = PSERegressor(**{**QUICK, "max_iterations": 1}).fit(X, Y)
    (tmp_path / "law.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds law\.txt already: name another folder, or give overwrite=True"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["law.txt"]
    model.save(tmp_path, overwrite=True)
    assert (tmp_path / "law.txt").read_text().startswith("y = ")


def test_a_model_without_a_fit_has_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        PSERegressor().save(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"front": []}, "damaged"),
        ({"settings": 3}, "damaged"),
        ({"settings": {"discount": "much"}}, "discount must be a number"),
        ({"settings": {"operators": 3}}, "its operators are no list of names"),
        ({"settings": {"complexity_of_constants": 10**400}}, "complexity_of_constants must be a whole number"),
        ({"run": {"elapsed": 1, "steps": "inf", "scored": 1, "plan": "", "floor": 0}}, "damaged"),
        ({"settings": {"operators": ["no such"]}}, "operators of your own"),
        ({"format": "else"}, "is not a model of symenum"),
    ],
)
def test_a_file_that_was_changed_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    PSERegressor(**{**QUICK, "max_iterations": 1}).fit(X, Y).save(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        PSERegressor.load(tmp_path)


def test_a_file_that_lacks_something_says_what(tmp_path: Path) -> None:
    PSERegressor(**{**QUICK, "max_iterations": 1}).fit(X, Y).save(tmp_path)
    path = tmp_path / "model.json"
    document = json.loads(path.read_text())
    del document["variables"]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is damaged: there is no 'variables' in it"):
        PSERegressor.load(tmp_path)


def test_laws_that_are_not_in_order_are_refused(tmp_path: Path) -> None:
    PSERegressor(**QUICK).fit(X, Y).save(tmp_path)
    path = tmp_path / "model.json"
    document = json.loads(path.read_text())
    assert len(document["front"]) > 1
    document["front"].reverse()
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="not in the order of their complexity"):
        PSERegressor.load(tmp_path)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no"):
        PSERegressor.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"holds no result of symenum: there is no model\.json"):
        PSERegressor.load(tmp_path)
    with pytest.raises(ValueError, match="has no parameter speed"):
        PSERegressor.load(tmp_path, speed=3)


@pytest.fixture(scope="module")
def sure() -> PSERegressor:
    rng = np.random.default_rng(3)
    x = pandas.DataFrame({"a": rng.uniform(0, 4, 60)})
    y = 2 * np.sin(x["a"]) + 0.05 * rng.standard_normal(60)
    return PSERegressor(max_time=None, max_iterations=3, random_state=0).fit(x, y)


def test_how_sure_the_choice_is_is_saved_with_the_law(sure: PSERegressor, tmp_path: Path) -> None:
    sure.save(tmp_path / "out")
    sentences = sure.confidence()
    assert (tmp_path / "out" / "law.txt").read_text(encoding="utf-8").splitlines()[1:] == sentences
    loaded = PSERegressor.load(tmp_path / "out")
    assert loaded.confidence() == sentences
    for model, name in ((sure, "one.html"), (loaded, "two.html")):
        model.report(tmp_path / name)
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert all(f"<p>{escape(sentence)}</p>" in page for sentence in sentences)
    loaded.save(tmp_path / "again")
    assert PSERegressor.load(tmp_path / "again").confidence() == sentences


def test_what_a_file_says_of_its_table_and_of_its_errors_is_saved_again(sure: PSERegressor, tmp_path: Path) -> None:
    sure.save(tmp_path / "first")
    document = json.loads((tmp_path / "first" / "model.json").read_text(encoding="utf-8"))
    told = {"source": "table.csv", "standard_errors": [{"constant": 2.5, "standard_error": "inf"}]}
    (tmp_path / "first" / "model.json").write_text(json.dumps(document | told), encoding="utf-8")
    loaded = PSERegressor.load(tmp_path / "first")
    loaded.save(tmp_path / "second")
    again = json.loads((tmp_path / "second" / "model.json").read_text(encoding="utf-8"))
    assert {name: again[name] for name in told} == told
    assert "2.5 ± inf" in (tmp_path / "second" / "law.txt").read_text(encoding="utf-8")
    loaded.fit(X, Y).save(tmp_path / "third")
    anew = json.loads((tmp_path / "third" / "model.json").read_text(encoding="utf-8"))
    assert anew["source"] == ""
    assert "standard_errors" not in anew


def test_a_file_without_the_sentences_is_read(sure: PSERegressor, tmp_path: Path) -> None:
    sure.save(tmp_path)
    document = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    del document["confidence"]
    (tmp_path / "model.json").write_text(json.dumps(document), encoding="utf-8")
    loaded = PSERegressor.load(tmp_path)
    with pytest.raises(ValueError, match=r"confidence\(\) needs the rows of the search"):
        loaded.confidence()
    loaded.report(tmp_path / "report.html")
    document["confidence"] = [1]
    (tmp_path / "model.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ValueError, match="confidence must be texts"):
        PSERegressor.load(tmp_path)


def test_a_loaded_model_says_why_it_has_no_alternatives_and_no_schedule(sure: PSERegressor, tmp_path: Path) -> None:
    sure.save(tmp_path)
    loaded = PSERegressor.load(tmp_path)
    with pytest.raises(ValueError, match="load the checkpoint"):
        loaded.alternatives_  # noqa: B018
    with pytest.raises(ValueError, match="load the checkpoint"):
        loaded.predict(pandas.DataFrame({"a": [1.0, 2.0]}), return_std=True)
    for name in ("schedule_", "refused_"):
        with pytest.raises(AttributeError, match=f"{name}.*was loaded from a file"):
            getattr(loaded, name)
        assert not hasattr(loaded, name)
        assert hasattr(sure, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(PSERegressor(), name)


def test_the_checkpoint_of_a_search_has_alternatives(sure: PSERegressor, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    model = clone(sure).set_params(checkpoint=path)
    model.fit(sure.training_.columns["a"].numpy()[:, None], sure.training_.target.y.numpy())
    assert len(PSERegressor.load(path).alternatives_) >= 1


def test_a_band_for_a_table_raises_no_warning(sure: PSERegressor) -> None:
    rows = np.array([[1.0], [2.0]])
    rows.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, std = sure.predict(pandas.DataFrame(rows, columns=["a"]), return_std=True)
    assert std.shape == (2,)
