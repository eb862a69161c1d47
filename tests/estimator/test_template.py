"""`template` of PSERegressor: laws that are known in part; templates that cannot be are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

from symenum import PSERegressor
from symenum.estimator.template_text import read_template
from symenum.operators import make_operator
from symenum.search import template_search

RNG = np.random.default_rng(0)
X = pandas.DataFrame(RNG.uniform(0.5, 3, (100, 3)), columns=["u", "v", "w"])
Y = pandas.Series(np.exp(-X.u) * (X.v + 2) + 0.5 * X.w**2, name="rate")
TEXT = "a*f(u)*g(v) + h(w)"


def model(**settings: object) -> PSERegressor:
    options = {"template": TEXT, "max_time": None, "max_iterations": 3, "random_state": 0, **settings}
    return PSERegressor(**{"operators": ["+", "*", "exp"], **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fitted() -> PSERegressor:
    return model().fit(X, Y)


def test_the_law_behind_a_template_is_found_exactly(fitted: PSERegressor) -> None:
    assert fitted.score(X, Y) == pytest.approx(1.0, abs=1e-12)
    fresh = pandas.DataFrame(RNG.uniform(0.2, 4, (50, 3)), columns=X.columns)
    assert fitted.predict(fresh) == pytest.approx(np.exp(-fresh.u) * (fresh.v + 2) + 0.5 * fresh.w**2, rel=1e-6)


def test_every_law_of_the_front_is_of_the_template(fitted: PSERegressor) -> None:
    def mixed(law: int, first: str, second: str) -> float:
        """The mixed difference, which is zero where both variables stand in different terms."""
        base = {"u": 1.0, "v": 1.2, "w": 1.4}
        corners = [{**base, first: a, second: b} for a in (1.0, 2.0) for b in (1.0, 2.0)]
        low, up, right, both = fitted.predict(pandas.DataFrame(corners)[["u", "v", "w"]], law)
        return float(both - up - right + low)

    for row in range(len(fitted.front_)):
        assert mixed(row, "u", "w") == pytest.approx(0, abs=1e-9)
        assert mixed(row, "v", "w") == pytest.approx(0, abs=1e-9)


def test_the_result_is_an_expression_like_any_other(fitted: PSERegressor, tmp_path: Path) -> None:
    assert {str(one) for one in fitted.sympy().free_symbols} == {"u", "v", "w"}
    assert "def " in fitted.export("python")
    assert fitted.latex()
    values = fitted.export("torch")
    assert values is not None
    fitted.save(tmp_path / "saved")
    assert PSERegressor.load(tmp_path / "saved").predict(X) == pytest.approx(fitted.predict(X))
    fitted.report(tmp_path / "report.html")
    assert "a*f(u)*g(v) + h(w)" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_search_that_goes_on_from_its_run_folder_equals_one_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_search, "_FIRST_WORK", 0.1)  # how good the laws are does not matter here
    monkeypatch.setattr(template_search, "_TRIED", 5)
    few, noisy = X[["u", "v"]].head(30), (np.exp(-X.u) + X.v + 0.05 * RNG.normal(size=len(Y))).head(30)
    settings = {"template": "f(u) + g(v)", "operators": ["+", "*", "exp"]}
    first = model(**settings, run_dir=tmp_path / "run", max_iterations=1).fit(few, noisy)
    assert first.n_iter_ == 1
    resumed = PSERegressor.resume(tmp_path / "run", max_iterations=2)
    whole = model(**settings, max_iterations=2).fit(few, noisy)
    assert [str(one.expression) for one in resumed.front_] == [str(one.expression) for one in whole.front_]


NAMES = ("x1", "x2", "x3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f() + x1", r"unknown function f\(\) without an argument"),
        ("x1(x2) + f(x3)", "'x1' as a function, and it is a variable"),
        ("g(x1) + f(x2)", "'g' as a function, and it is a named constant"),
        ("f(x1) + f(x2, x3)", "with 1 and with 2 arguments"),
        ("f*f(x1)", "'f' as a function and as a constant"),
        ("f(h(x1))", "unknown function 'h' inside 'f'"),
        ("f(a*x1)", "'a' in f.* is no variable"),
        ("f(2)", "depends on no variable"),
        ("a*x1 + b", "no unknown function"),
        ("f(x1", "not closed"),
        ("f(x1) + x9", "did you mean"),
        ("sinn(x1)", "did you mean 'sin'"),
        ("f(x1) +* 2", "cannot be read"),
        ("f(x1 +)", "cannot be read"),
        ("p(x1)+q(x1)+r(x1)+s(x1)+t(x1)+u(x1)+v(x1)", "7 unknown functions"),
        (3, "must be a text"),
    ],
)
def test_a_template_that_cannot_be_is_refused_with_what_to_do(text: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_template(text, NAMES, {"g": 9.81})


def test_known_functions_and_operators_of_ones_own_are_no_unknown_ones() -> None:
    import torch

    bump = make_operator("bump", lambda x: torch.exp(-(x**2)))
    template = read_template("bump(x1)*exp(f(x2 - x3, x1)) + c", NAMES, {}, [bump])
    assert template is not None
    assert template.functions == ("f",)
    assert template.arity("f") == 2
    assert template.constants == ("c",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"units": {"u": "m", "v": "m", "w": "m", "rate": "m"}}, "units does not go together with template"),
        ({"guesses": ["a*u"]}, "guesses does not go together"),
        ({"required_variables": ["u"]}, "required_variables does not go together"),
        ({"constants": False}, "constants=False does not go together"),
        ({"groups": "u"}, "template is not for groups"),
    ],
)
def test_what_does_not_go_together_with_a_template_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(**settings).fit(X, Y)


def test_a_variable_that_does_not_vary_is_refused() -> None:
    with pytest.raises(ValueError, match="template has w, which is the same in all rows"):
        model().fit(X.assign(w=1.0), Y)
