"""Y of several columns: one law for each, equal to those of fits on the columns alone."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import symenum
from symenum import PSERegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(1, 3, (40, 2))
Y = np.column_stack([X[:, 0] / X[:, 1], X[:, 0] * X[:, 1] + RANDOM.normal(0, 0.1, 40)])
QUICK = {"operators": "arithmetic", "layers": 2, "inputs": 4, "max_time": None, "max_iterations": 6, "random_state": 0}


@pytest.fixture(scope="module")
def model() -> PSERegressor:
    return PSERegressor(**QUICK).fit(X, Y)


def test_each_column_has_the_law_of_a_fit_of_its_own(model: PSERegressor) -> None:
    alone = [PSERegressor(**QUICK).fit(X, column) for column in Y.T]
    assert model.front_ == [one.front_ for one in alone]
    assert model.best_expression_ == [one.best_expression_ for one in alone]
    np.testing.assert_array_equal(model.predict(X), np.column_stack([one.predict(X) for one in alone]))
    assert model.nout_ == 2
    assert model.target_names_ == ("y1", "y2")
    assert model.n_iter_ == sum(one.n_iter_ for one in alone)


def test_methods_return_lists_as_in_pysr(model: PSERegressor) -> None:
    columns = model.estimators_
    assert model.sympy() == [one.sympy() for one in columns]
    assert model.latex(precision=2) == [one.latex(precision=2) for one in columns]
    assert model.export("c") == [one.export("c") for one in columns]
    assert [row["equation"] for row in model.get_best()] == [str(one.best_expression_) for one in columns]
    assert len(model.equations_) == len(model.uncertainties()) == 2
    assert str(model) == f"y1 =\n{columns[0]}\n\ny2 =\n{columns[1]}"


def test_an_index_may_be_one_for_all_or_one_for_each(model: PSERegressor) -> None:
    first, second = model.estimators_
    np.testing.assert_array_equal(model.predict(X, 0), np.column_stack([first.predict(X, 0), second.predict(X, 0)]))
    mixed = np.column_stack([first.predict(X, -1), second.predict(X, 0)])
    np.testing.assert_array_equal(model.predict(X, [-1, 0]), mixed)
    assert model.latex([0, -1]) == [first.latex(0), second.latex(-1)]
    with pytest.raises(ValueError, match="one row for each of the 2 targets"):
        model.predict(X, [0])


CALLS = {
    "save": lambda model, path: model.save(path),
    "report": lambda model, path: model.report(path),
    "score_expression": lambda model, path: model.score_expression("x1"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_for_one_target_says_what_to_call(model: PSERegressor, call, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"call estimators_\[i\]\."):
        call(model, tmp_path)


def test_names_of_a_frame_are_those_of_the_targets() -> None:
    table = pandas.DataFrame(Y, columns=["speed", "force"])
    model = PSERegressor(**{**QUICK, "max_iterations": 1}).fit(X, table, variable_names=["a", "b"])
    assert model.target_names_ == ("speed", "force")
    assert model.variable_names_ == ("a", "b")
    assert str(model).startswith("speed =\n")
    of_speed, of_force = model.latex_table()
    assert r"$\mathrm{speed} = " in of_speed
    assert r"$\mathrm{force} = " in of_force


def test_lists_of_lists_are_columns_too() -> None:
    assert PSERegressor(**{**QUICK, "max_iterations": 1}).fit(X.tolist(), Y.tolist()).nout_ == 2


def test_validation_rows_have_the_same_columns() -> None:
    model = PSERegressor(**{**QUICK, "max_iterations": 2}).fit(X, Y, validation=(X, Y))
    assert all("validation_loss" in table for table in model.equations_)
    with pytest.raises(ValueError, match="validation: y must have 2 columns"):
        PSERegressor(**QUICK).fit(X, Y, validation=(X, Y[:, 0]))


def test_a_model_goes_from_several_targets_to_one_and_back(model: PSERegressor) -> None:
    again = clone(model).set_params(max_iterations=1).fit(X, Y)
    again.fit(X, Y[:, 0])
    assert again.predict(X).shape == (40,)
    assert isinstance(again.best_expression_, type(model.best_expression_[0]))
    assert again.fit(X, Y).predict(X).shape == (40, 2)


def test_a_warm_start_goes_on_with_each_column() -> None:
    whole = PSERegressor(**{**QUICK, "max_iterations": 4}).fit(X, Y)
    model = PSERegressor(**{**QUICK, "max_iterations": 2}, warm_start=True).fit(X, Y)
    assert model.fit(X, Y).front_ == whole.front_


def test_a_checkpoint_is_refused_before_the_search(tmp_path) -> None:
    with pytest.raises(ValueError, match="checkpoint is for one target"):
        PSERegressor(**QUICK, checkpoint=tmp_path / "checkpoint.json").fit(X, Y)


def test_the_time_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PSERegressor(max_time=8.0, max_iterations=1).fit(X, Y)
    assert [one.max_time for one in model.estimators_] == [4.0, 4.0]
    assert model.max_time == 8.0


def test_stop_ends_all_columns() -> None:
    noise = RANDOM.normal(size=(40, 3))
    model = PSERegressor("arithmetic", max_time=60)
    threading.Timer(0.5, model.stop).start()
    model.fit(X, noise)
    assert model.interrupted_
    assert model.elapsed_ < 20
    assert model.predict(X).shape == (40, 3)


def test_it_can_be_pickled(model: PSERegressor) -> None:
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_r_squared_is_averaged(model: PSERegressor) -> None:
    each = [one.score(X, y) for one, y in zip(model.estimators_, Y.T, strict=True)]
    assert model.score(X, Y) == pytest.approx(np.mean(each))


@pytest.mark.parametrize("name", ["plot_front", "plot_fit", "plot_residuals"])
def test_plots_and_confidence_say_that_they_are_for_one_target(model: PSERegressor, name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} is for one target: give it model\.estimators_\[i\]"):
        getattr(symenum, name)(model)
    with pytest.raises(ValueError, match=r"confidence is for one target: call estimators_\[i\]\.confidence"):
        model.confidence()
