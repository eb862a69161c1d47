"""PSERegressor: what users rely on, in the words of the public contract."""

from __future__ import annotations

import pickle
import re
import sys
import typing
from pathlib import Path

import numpy as np
import pandas
import pytest
import sympy
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from symenum import PSERegressor, make_operator
from symenum.display.figures import summarise_data
from symenum.expressions import parse
from symenum.sanity import Policy
from symenum.selection.same_law import families

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (40, 2))
Y = 2 * X[:, 0] ** 2 / X[:, 1]


def quick(**parameters) -> PSERegressor:
    """A budget in steps: the same on every machine."""
    return PSERegressor(**{"max_time": None, "max_iterations": 3, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def fitted() -> PSERegressor:
    return quick().fit(X, Y)


@pytest.fixture(scope="module")
def noisy() -> PSERegressor:
    """A front of several laws."""
    return quick(max_iterations=2).fit(X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=40))


def test_the_law_comes_out(fitted: PSERegressor) -> None:
    assert str(fitted.best_expression_) == "2*x1**2/x2"
    assert "law" in fitted.stop_reason_
    assert not fitted.interrupted_
    assert fitted.n_iter_ <= 3
    assert fitted.score(X, Y) == 1.0


def test_equations_have_pysrs_columns(noisy: PSERegressor) -> None:
    table = noisy.equations_
    assert list(table.columns) == [
        "complexity", "loss", "score", "reward", "equation", "sympy_format", "lambda_format",
    ]  # fmt: skip
    assert len(table) > 1
    assert table["complexity"].is_monotonic_increasing
    assert table["loss"].is_monotonic_decreasing
    for i, row in table.iterrows():
        predicted = noisy.predict(X, index=i)
        np.testing.assert_allclose(row["lambda_format"](X), predicted, rtol=1e-12)
        assert str(parse(row["equation"])) == row["equation"]
        by_sympy = sympy.lambdify(sympy.symbols("x1 x2"), row["sympy_format"])(*X.T)
        np.testing.assert_allclose(np.broadcast_to(by_sympy, 40), predicted, rtol=1e-9)


def test_index_picks_another_row(noisy: PSERegressor) -> None:
    mean = noisy.predict(X, index=0)
    assert np.ptp(mean) == 0
    assert noisy.get_best(0)["complexity"] == 0
    assert noisy.get_best()["equation"] == str(noisy.best_expression_)
    assert noisy.latex(0) != noisy.latex()
    assert noisy.sympy(0).is_number
    np.testing.assert_array_equal(noisy.predict(X, index=-1), noisy.predict(X, index=len(noisy.equations_) - 1))


def test_a_wrong_index_is_refused(noisy: PSERegressor) -> None:
    with pytest.raises(IndexError, match="out of range"):
        noisy.predict(X, index=99)
    with pytest.raises(TypeError, match="row number"):
        noisy.predict(X, index="best")


def test_print_marks_the_chosen_row(noisy: PSERegressor) -> None:
    lines = str(noisy).splitlines()
    marked = [i for i, line in enumerate(lines[1:]) if line.startswith(">>>>")]
    assert marked == [noisy.selected_index_]
    assert str(PSERegressor(top_k=7)) == "PSERegressor(top_k=7)"


def test_model_selection_changes_the_choice_only(noisy: PSERegressor) -> None:
    accurate = clone(noisy).set_params(model_selection="accuracy").fit(X, np.sin(3 * X[:, 0]) * X[:, 1])
    assert accurate.selected_index_ == len(accurate.equations_) - 1


@pytest.mark.parametrize("language", ["python", "numpy", "c"])
def test_source_exports_are_text_that_holds_the_law(fitted: PSERegressor, language: str) -> None:
    source = fitted.export(language)
    assert isinstance(source, str)
    assert "x1" in source
    assert "x2" in source


def test_torch_export_agrees_with_predict(noisy: PSERegressor) -> None:
    module = noisy.export("torch")
    np.testing.assert_allclose(module(torch.tensor(X)).detach().numpy(), noisy.predict(X), rtol=1e-9)


def test_latex_and_its_table(noisy: PSERegressor) -> None:
    table = noisy.latex_table(precision=2)
    assert table.count("\\\\") >= len(noisy.equations_)
    assert noisy.latex_table(indices=[0], columns=["equation"]).count("$y = ") == 1


TYPED = """
from typing import assert_type
from symenum import PSERegressor
from symenum.expressions import ExpressionModule

class Mine(PSERegressor): ...

def check(model: Mine, language: str) -> None:
    assert_type(model.export("python"), str)
    assert_type(model.export("torch"), ExpressionModule)
    assert_type(model.export(language), str | ExpressionModule)
    assert_type(Mine.resume("run.json"), Mine)
    assert_type(model.fit([[1.0]], [1.0]), Mine)
"""


@pytest.mark.slow
def test_a_type_checker_knows_what_export_and_resume_give(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    (tmp_path / "typed.py").write_text(TYPED)
    out, _, status = api.run(
        ["--strict", "--python-version", "3.11", "--allow-subclassing-any", str(tmp_path / "typed.py")]
    )
    assert status == 0, out


def test_the_types_of_export_and_resume_are_stated() -> None:
    assert PSERegressor.resume.__annotations__["return"] == PSERegressor.fit.__annotations__["return"] == "Self"
    if sys.version_info >= (3, 11):
        stated = {one.__annotations__["return"] for one in typing.get_overloads(PSERegressor.export)}
        assert stated == {"str", "ExpressionModule", "str | ExpressionModule"}


def test_unknown_export_is_refused(fitted: PSERegressor) -> None:
    with pytest.raises(ValueError, match="language must be one of 'python'"):
        fitted.export("fortran")


def test_names_of_a_data_frame_are_kept() -> None:
    frame = pandas.DataFrame(X, columns=["mass", "length"])
    model = quick().fit(frame, Y)
    assert str(model.best_expression_) == "2*mass**2/length"
    assert list(model.feature_names_in_) == ["mass", "length"]
    np.testing.assert_allclose(model.predict(frame), Y, rtol=1e-12)
    assert list(frame.columns) == ["mass", "length"]


def test_columns_called_S_and_I_keep_their_names() -> None:
    frame = pandas.DataFrame(X, columns=["S", "I"])
    model = quick().fit(frame, Y)
    assert str(model.best_expression_) == "2*S**2/I"
    S, I = sympy.symbols("S I")  # noqa: E741
    assert model.sympy() == 2 * S**2 / I


def test_the_name_of_a_series_is_the_name_of_y_in_every_output(tmp_path: Path, capsys) -> None:
    model = quick(verbose=True).fit(X, pandas.Series(Y, name="flow_m_s"))
    assert model.target_name_ == "flow_m_s"
    assert r"\mathrm{flow}_{m\,s} = " in model.latex_table()
    assert "<th>flow_m_s</th>" in model._repr_mimebundle_()["text/html"]
    model.report(tmp_path / "report.html")
    assert "<h1>A law for flow_m_s</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert quick().fit(X, Y).target_name_ == "y"


def test_a_notebook_shows_the_front_and_before_a_fit_the_parameters(noisy: PSERegressor) -> None:
    shown = noisy._repr_mimebundle_()
    assert shown["text/plain"] == str(noisy)
    assert shown["text/html"].count("<tr") == len(noisy.equations_) + 1
    assert shown["text/html"].count("<tr class=chosen>") == 1
    assert "sk-" in PSERegressor()._repr_mimebundle_()["text/html"]  # scikit-learn's diagram


def test_the_law_has_the_same_digits_wherever_it_is_shown(tmp_path: Path) -> None:
    model = quick(guesses=["c*x1*x1 + (-d)"], max_iterations=1).fit(X, 1.23456789 * X[:, 0] ** 2 - 91.2345678)
    assert str(model).splitlines()[1 + model.selected_index_].endswith("1.2346*x1**2 - 91.235")
    assert model.latex() == r"1.2346 \cdot {x_{1}}^{2} - 91.235"
    assert model.latex() in model.latex_table()
    assert model.latex() in model.best_expression_._repr_latex_()
    model.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert model.latex() in page
    assert "<mn>1.2346</mn>" in page
    # What is there to compute with has all of them.
    assert str(model.best_expression_) == model.get_best()["equation"]
    found = [float(number) for number in re.findall(r"\d+\.\d+", str(model.best_expression_))]
    np.testing.assert_allclose(found, [1.23456789, 91.2345678], rtol=1e-9)


def test_names_that_are_no_variables_are_made_so() -> None:
    frame = pandas.DataFrame(X, columns=["sin", "distance (AU)"])
    model = quick().fit(frame, Y)
    assert model.variable_names_ == ("sin_", "distance_AU")
    assert str(model.best_expression_) == "2*sin_**2/distance_AU"
    np.testing.assert_allclose(model.predict(frame), Y, rtol=1e-12)


@pytest.mark.parametrize("name", ["E", "pi", "lambda", "exp", "x 1", "1", "ß", "_"])
def test_any_column_name_works(name: str) -> None:
    model = quick(max_iterations=1).fit(pandas.DataFrame({name: X[:, 0], "b": X[:, 1]}), X[:, 0] * X[:, 1])
    assert model.score(pandas.DataFrame({name: X[:, 0], "b": X[:, 1]}), X[:, 0] * X[:, 1]) == 1.0


def test_weights_of_zero_leave_rows_out() -> None:
    y = Y.copy()
    y[:5] = 1e3
    weight = np.ones(40)
    weight[:5] = 0
    model = quick().fit(X, y, sample_weight=weight)
    assert str(model.best_expression_) == "2*x1**2/x2"


def test_pickle_and_clone(noisy: PSERegressor) -> None:
    again = pickle.loads(pickle.dumps(noisy))
    np.testing.assert_array_equal(again.predict(X), noisy.predict(X))
    assert again.equations_["equation"].tolist() == noisy.equations_["equation"].tolist()
    assert clone(noisy).get_params() == noisy.get_params()
    assert not hasattr(clone(noisy), "front_")


def test_grid_search_and_cross_validation() -> None:
    assert cross_val_score(quick(max_iterations=12), X, Y, cv=3).min() > 0.999
    grid = GridSearchCV(quick(max_iterations=12), {"model_selection": ["best", "accuracy"]}, cv=2).fit(X, Y)
    assert grid.best_score_ > 0.999


def test_one_row_can_be_predicted(fitted: PSERegressor) -> None:
    assert fitted.predict(X[:1]).shape == (1,)


def test_predict_before_fit_says_so() -> None:
    with pytest.raises(NotFittedError):
        PSERegressor().predict(X)


def test_an_interrupted_fit_can_predict() -> None:
    def interrupt(report: object) -> None:
        raise KeyboardInterrupt

    model = quick(callbacks=[interrupt]).fit(X, np.sin(9 * X[:, 0]))
    assert model.interrupted_
    assert np.isfinite(model.predict(X)).all()


def test_a_constant_target_is_that_constant() -> None:
    model = quick().fit(X, np.full(40, 3.0))
    assert str(model.best_expression_) == "3"
    assert len(model.equations_) == 1


def test_own_operators_work() -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    y = np.log1p(np.exp(X[:, 0])) * X[:, 1]
    model = quick(operators=["+", "*", softplus], max_iterations=30).fit(X, y)
    assert "softplus(x1)" in str(model.best_expression_)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)


def test_verbose_prints_improvements(capsys: pytest.CaptureFixture[str]) -> None:
    quick(verbose=True).fit(X, Y)
    out = capsys.readouterr().out
    assert "step 1 (" in out
    assert "2*x1**2/x2" in out


def test_one_callback_may_stand_alone_and_stop_the_search() -> None:
    told: list[object] = []

    def stop(report: object) -> bool:
        told.append(report)
        return True

    model = quick(callbacks=stop, max_iterations=9).fit(X, np.sin(9 * X[:, 0]))
    assert len(told) == model.n_iter_ == 1
    assert model.stop_reason_ == "a callback asked to stop"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_time": -1}, "max_time must be a number above 0"),
        ({"max_time": float("nan")}, "max_time must be"),
        ({"max_iterations": 0}, "max_iterations must be a whole number"),
        ({"max_time": None, "max_iterations": None}, "would not end"),
        ({"max_time": None, "max_iterations": None, "callbacks": []}, "would not end"),
        ({"stop_loss": float("nan")}, "stop_loss must be"),
        ({"layers": 0}, "layers must be"),
        ({"inputs": 2.5}, "inputs must be"),
        ({"token_generator": "pg"}, "token_generator must be one of 'gp'"),
        ({"constants": 1}, "constants must be True or False"),
        ({"constant_range": (3, -3)}, "low < high"),
        ({"constant_range": 3}, "constant_range must be a pair"),
        ({"top_k": 0}, "top_k must be"),
        ({"discount": 1.5}, "discount must be"),
        ({"max_complexity": 0}, "max_complexity must be"),
        ({"model_selection": "bset"}, "model_selection must be one of"),
        ({"device": "cuda:99"}, "CUDA"),
        ({"device": "tpu"}, "device must be"),
        ({"operators": "kozza"}, "did you mean 'koza'"),
        ({"operators": ["+", "sni"]}, "did you mean 'sin'"),
        ({"callbacks": [3]}, "callbacks must be"),
    ],
)
def test_wrong_parameters_are_refused_in_fit(parameters: dict[str, object], message: str) -> None:
    model = quick(**parameters)  # never in __init__
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (X[:1], Y[:1], "minimum of 2"),
        (X[:0], Y[:0], "0 sample"),
        (X[:, :0], Y, "0 feature"),
        (X, Y[:-1], "X has 40 rows and y has 39 values"),
        (np.where(X > 2.9, np.nan, X), Y, "NaN"),
        (X, np.where(Y > 9, np.inf, Y), "infinity"),
        (np.array([["a", "b"]] * 40), Y, "X holds text"),
        (X, Y * 1e200, "out of range"),
    ],
)
def test_wrong_data_are_refused(data: np.ndarray, target: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick().fit(data, target)


def test_two_hundred_variables_are_searched() -> None:
    wide = np.random.default_rng(1).uniform(-1, 1, (300, 200))
    model = quick(max_iterations=30).fit(wide, wide[:, 3] * wide[:, 150] + wide[:, 7])
    assert str(model.best_expression_) in ("x8 + x4*x151", "x4*x151 + x8")


def test_the_report_is_one_page_of_the_fit_or_of_other_data(tmp_path: Path) -> None:
    frame = pandas.DataFrame(X, columns=["<i>mass", *[f"c{i}" for i in range(X.shape[1] - 1)]])
    model = quick().fit(frame, Y)
    model.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{len(Y)} rows" in page
    assert "&lt;i&gt;mass" in page
    assert "<i>" not in page
    model.report(str(tmp_path / "few.html"), frame[:5], Y[:5])
    assert "5 rows" in (tmp_path / "few.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="X and y belong together"):
        model.report(tmp_path / "x.html", frame)
    with pytest.raises(TypeError, match="path must be"):
        model.report(None)


def test_rows_of_weight_zero_are_not_in_the_summary_of_the_data() -> None:
    weight = np.ones(len(Y))
    weight[:10] = 0
    model = quick().fit(X, Y, sample_weight=weight)
    data = summarise_data(model, None, None)
    assert data is not None
    assert data.rows == len(Y) - 10
    np.testing.assert_array_equal(data.y, Y[10:])


# A budget counted in steps, not in seconds: with a clock, a second fit could end elsewhere than the first.
@parametrize_with_checks([quick(max_iterations=2)])
def test_it_keeps_the_conventions_of_scikit_learn(estimator, check) -> None:
    check(estimator)


def test_alternatives_hold_the_chosen_law_and_their_weights_sum_to_one(noisy: PSERegressor) -> None:
    table = noisy.alternatives_
    assert list(table.columns) == ["weight", "complexity", "loss", "equation", "sympy_format", "lambda_format"]
    assert str(noisy.best_expression_) in set(table["equation"])
    assert table["weight"].sum() == pytest.approx(1)
    assert table["weight"].is_monotonic_decreasing
    again = clone(noisy).fit(X[:20], X[:20, 0] ** 2)
    assert len(again.alternatives_) >= 1  # another fit has alternatives of its own
    assert str(again.best_expression_) in set(again.alternatives_["equation"])


def waves(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, (60, 1))
    return x, 2 * np.sin(x[:, 0]) + 0.5 * x[:, 0] + 0.05 * rng.standard_normal(60)


def rates(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    T = rng.uniform(280, 400, (40, 1))
    return T, 2e6 * np.exp(-5500 / T[:, 0]) * (1 + 0.05 * rng.standard_normal(40))


def pulls(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(1, 5, (60, 2))
    return x, 6.67 * x[:, 0] / x[:, 1] ** 2 * (1 + 0.02 * rng.standard_normal(60))


@pytest.mark.parametrize(("data", "seed"), [(waves, 3), (waves, 1), (rates, 1), (rates, 2), (pulls, 0), (pulls, 1)])
def test_the_marked_law_has_the_most_weight_of_all_that_may_stand(data, seed: int) -> None:
    x, y = data(seed)
    model = quick(max_iterations=12, random_state=seed).fit(x, y)
    table = model.alternatives_
    assert table["equation"][0] == str(model.best_expression_)
    assert model.equations_["equation"][model.selected_index_] == str(model.best_expression_)
    assert model.equations_["complexity"].is_monotonic_increasing
    assert model.equations_["loss"].is_monotonic_decreasing
    policy = Policy.of(model.training_.columns, model.training_.target, sanity="on")
    laws = [parse(text) for text in table["equation"]]
    assert [policy.reason(law) for law in laws] == [None] * len(laws)
    assert len(families(laws, model.training_)) == len(laws)  # none is named twice


def test_a_checkpoint_holds_the_law_that_was_marked(tmp_path: Path) -> None:
    x, y = waves(3)
    model = quick(max_iterations=12, checkpoint=tmp_path / "search.json").fit(x, y)
    loaded = PSERegressor.load(tmp_path / "search.json")
    assert str(loaded.best_expression_) == str(model.best_expression_) == "x1/2 + 2*sin(x1)"
    assert list(loaded.equations_["equation"]) == list(model.equations_["equation"])


@pytest.mark.parametrize("rule", ["best", "accuracy", "reward", "mdl"])
def test_other_rules_choose_from_the_front_of_the_search(rule: str) -> None:
    x, y = waves(3)
    model = quick(max_iterations=12, model_selection=rule).fit(x, y)
    assert model.selected_index_ == model.front_.select(rule)
    assert "x1/2 + 2*sin(x1)" not in set(model.equations_["equation"])


def test_a_band_comes_with_the_values(noisy: PSERegressor) -> None:
    values, std = noisy.predict(X, return_std=True)
    assert values == pytest.approx(noisy.predict(X))
    assert std.shape == values.shape
    assert (std >= 0).all()
    other, wide = noisy.predict(X, index=0, return_std=True)
    assert other == pytest.approx(noisy.predict(X, index=0))
    assert wide.mean() > std.mean()  # the simplest law misses most


def test_the_band_holds_the_true_values() -> None:
    inside = []
    new = np.linspace(0.6, 2.9, 300)[:, None]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.5, 3, (120, 1))
        model = quick(max_iterations=10).fit(x, 1.37 * x[:, 0] ** 2 + 0.61 + 0.05 * rng.standard_normal(120))
        values, std = model.predict(new, return_std=True)
        inside.append(np.mean(np.abs(values - 1.37 * new[:, 0] ** 2 - 0.61) <= 1.96 * std))
        assert std.max() < 0.05  # the noise itself would be no band
    assert np.mean(inside) > 0.85


def test_confidence_speaks_of_no_law_and_of_what_was_exhausted() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 1, (60, 2))
    lines = quick(max_iterations=3).fit(x, rng.standard_normal(60)).confidence()
    assert lines[0].startswith("No law here")
    assert lines[-1].startswith("Exhausted: no expression of up to 3 operators")
    exact = quick(max_iterations=3).fit(x, x[:, 0] + x[:, 1]).confidence()
    assert exact == ["It equals the data up to rounding."]


@pytest.mark.parametrize("rows", [2, 3])
def test_few_rows_have_alternatives_and_a_band(rows: int) -> None:
    model = quick(max_iterations=2).fit(X[:rows], X[:rows, 0])
    values, std = model.predict(X, return_std=True)
    assert values.shape == std.shape
    assert len(model.alternatives_) >= 1
    assert model.confidence()


def test_an_estimator_that_is_not_fitted_has_no_alternatives() -> None:
    with pytest.raises(NotFittedError):
        quick().alternatives_  # noqa: B018
    with pytest.raises(NotFittedError):
        quick().confidence()
