"""`shape` of PSERegressor: laws that break it stay off the front, the others are marked; nonsense is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.estimator.shape_text import read_shape
from symenum.sanity.shapes import Bounded, Limit, Mirrored, Point, Sloped, Swapped

RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 3, (60, 2))
Y = np.tanh(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=60)
NAMES = ("x1", "x2")


def model(**settings: object) -> PSERegressor:
    return PSERegressor(max_time=None, max_iterations=8, random_state=0, **settings)


def requirement(text: object, key: str = "f"):  # type: ignore[no-untyped-def]
    shape = read_shape({key: text}, None, NAMES, "y", {name: X[:, i] for i, name in enumerate(NAMES)})
    assert shape is not None
    return shape.requirements[0]


def test_no_law_of_the_front_breaks_the_shape_and_each_is_marked() -> None:
    shape = {"x1": "increasing", "x2": "increasing", "y": "positive"}
    fitted = model(shape=shape, shape_box={"x1": (0.1, 5), "x2": (0.1, 5)}).fit(X, Y)
    assert all(mark == "proved" or mark.startswith("not proved") for mark in fitted.equations_["shape"])
    assert "proved" in set(fitted.equations_["shape"])
    grid = np.stack(np.meshgrid(np.linspace(0.1, 5, 40), np.linspace(0.1, 5, 40), indexing="ij"), axis=-1)
    for row, mark in enumerate(fitted.equations_["shape"]):
        if mark == "proved":
            values = fitted.predict(grid.reshape(-1, 2), row).reshape(40, 40)
            assert (np.diff(values, axis=0) >= -1e-9).all()
            assert (np.diff(values, axis=1) >= -1e-9).all()
            assert (values > 0).all()
    assert fitted.shape_lines() == ["The shape is proved."]


def test_no_law_of_the_front_bends_where_the_shape_is_linear() -> None:
    fitted = model(shape={"x1": "linear", "x2": ["convex", "concave"]}).fit(X, Y)
    line = np.linspace(-4, 9, 27)
    for other in (0.3, 2.0):
        for columns in ((line, np.full(27, other)), (np.full(27, other), line)):
            for row, mark in enumerate(fitted.equations_["shape"]):
                assert mark == "proved"
                bends = np.diff(fitted.predict(np.stack(columns, axis=1), row), n=2)
                assert np.abs(bends).max() < 1e-9


def test_laws_that_break_it_are_counted_among_the_refused() -> None:
    fitted = model(shape={"x1": "decreasing"}).fit(X, Y)
    assert any("decreasing in x1" in reason for reason in fitted.refused_)
    assert set(fitted.equations_["shape"]) == {"proved"}


def test_where_no_law_can_keep_it_the_best_that_nearly_do_are_kept_and_marked() -> None:
    with pytest.warns(UserWarning, match="no law that was found keeps the shape"):
        fitted = model(shape=["f(0, 0) = 7", "f -> 1 for x1 -> inf"]).fit(X, Y)
    assert len(fitted.front_)
    assert all(mark.startswith("broken") for mark in fitted.equations_["shape"])
    assert fitted.shape_lines()[0].startswith("The shape of ")


def test_without_a_shape_there_is_no_mark() -> None:
    fitted = model().fit(X, Y)
    assert "shape" not in fitted.equations_.columns
    assert fitted.shape_lines() == []


def test_conditions_are_read_as_people_write_them() -> None:
    assert requirement("f(0, 1) = 2") == Point("f(0, 1) = 2", (("x1", 0.0), ("x2", 1.0)), 2.0)
    assert requirement("f(x1=0)=0") == Point("f(x1=0)=0", (("x1", 0.0),), 0.0)
    assert requirement("f -> -inf for x2 -> -inf").value == -np.inf
    assert isinstance(requirement("f -> 1 for x1 -> inf"), Limit)
    assert isinstance(requirement("f(x1, x2) = f(x2, x1)"), Swapped)
    odd = requirement("f(-x1) = -f(x1)")
    assert isinstance(odd, Mirrored)
    assert (odd.names, odd.sign) == (("x1",), -1)
    assert isinstance(requirement("convex", "x1"), Sloped)
    assert requirement((0, None), "y") == Bounded("y from 0 to inf", 0.0, np.inf)
    both = read_shape({"x1": "increasing, concave"}, None, NAMES, "y", {"x1": X[:, 0], "x2": X[:, 1]})
    assert both is not None
    assert len(both.requirements) == 2


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ({"x3": "increasing"}, "names 'x3', which is no variable"),
        ({"x1": "rising"}, "must be increasing, decreasing"),
        ({"y": "large"}, "must be positive, negative"),
        ({"y": (1, 0)}, "low < high"),
        (["f(0) = 0"], "give a value for each of x1, x2"),
        (["f(x9=0) = 0"], "'x9' is no variable"),
        (["f(x1, x2) = f(x1, x1)"], "do not hold the same variables"),
        (["f(x1) = f(x1)"], "says nothing"),
        (["g(0) = 1"], "cannot be read"),
        (["f(x1=a) = 1"], "a value is no number"),
        ([3], "a condition is a text"),
        ("increasing", "must be a mapping"),
        ({}, "shape is empty"),
    ],
)
def test_what_cannot_be_read_is_refused(shape: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        model(shape=shape).fit(X, Y)


@pytest.mark.parametrize("box", [{"x9": (0, 1)}, {"x1": (1, 0)}, {"x1": 3}, 3])
def test_a_box_that_is_none_is_refused(box: object) -> None:
    with pytest.raises(ValueError, match="shape_box"):
        model(shape={"x1": "increasing"}, shape_box=box).fit(X, Y)
    with pytest.raises(ValueError, match="shape_box needs a shape"):
        model(shape_box={"x1": (0, 1)}).fit(X, Y)


def test_a_search_with_a_shape_goes_on_from_its_checkpoint_as_if_it_had_not_ended(tmp_path: Path) -> None:
    shape = {"x1": ["increasing", "concave"], "y": (0, None)}
    whole = model(shape=shape).set_params(max_iterations=14).fit(X, Y)
    model(shape=shape, checkpoint=tmp_path / "run.json").fit(X, Y)
    resumed = PSERegressor.resume(tmp_path / "run.json", max_iterations=14)
    assert [str(one.expression) for one in resumed.front_] == [str(one.expression) for one in whole.front_]
    assert list(resumed.equations_["shape"]) == list(whole.equations_["shape"])


def test_the_report_says_whether_the_shape_is_proved(tmp_path: Path) -> None:
    model(shape={"x1": "increasing"}).fit(X, Y).report(tmp_path / "report.html")
    assert "The shape is proved." in (tmp_path / "report.html").read_text(encoding="utf-8")
