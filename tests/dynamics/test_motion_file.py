"""Fitted laws of motion as a file: they come back whole; files that are damaged or of something else are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from dynamics.motions import motion, noisy, predator_and_prey

from symenum import ODERegressor, PDERegressor, PSERegressor, make_operator
from symenum.dynamics.derivatives import SmoothingSpline

T = np.linspace(0, 12, 200)
HUNT = predator_and_prey(T)
WITH_NAMES = pandas.DataFrame(noisy(HUNT, 0.02), columns=["prey", "fox count"])


def quick(**parameters: Any) -> ODERegressor:
    settings = {"operators": "arithmetic", "max_iterations": 1, "max_time": None, "random_state": 0}
    return ODERegressor(**{**settings, "model_selection": "mdl", **parameters})


@pytest.fixture(scope="module")
def hunt() -> ODERegressor:
    """Laws by fits to the trajectories, with a state whose name formulas cannot use and one that never moves."""
    data = WITH_NAMES.assign(still=3.0)[::2]
    return quick(model_selection="trajectories", guesses={"prey": ["a*prey"]}).fit(data, T[::2])


def came_back(model: ODERegressor, path: Path) -> ODERegressor:
    model.save(path)
    back = ODERegressor.load(path)
    assert str(back) == str(model)
    assert back.fronts_ == model.fronts_
    assert back.best_expressions_ == model.best_expressions_
    assert (back.selected_, back.judged_, back.noise_) == (model.selected_, model.judged_, model.noise_)
    assert (back.shared_parts_, back.stop_reason_) == (model.shared_parts_, model.stop_reason_)
    assert (back.elapsed_, back.n_iter_, back.scored_) == (model.elapsed_, model.n_iter_, model.scored_)
    for name, table in model.equations_.items():
        shown = [column for column in table if column != "lambda_format"]  # functions do not compare
        pandas.testing.assert_frame_equal(back.equations_[name][shown], table[shown])
    assert back.latex() == model.latex()
    return back


def test_laws_by_trajectories_come_back_whole(hunt: ODERegressor, tmp_path: Path) -> None:
    back = came_back(hunt, tmp_path / "laws.json")
    states = np.column_stack([HUNT, np.full(len(T), 3.0)])
    np.testing.assert_array_equal(back.predict(states), hunt.predict(states))
    np.testing.assert_array_equal(back.predict(states, index=0), hunt.predict(states, index=0))
    np.testing.assert_array_equal(*(one.simulate([10, 5, 3], T[:30], max_time=None) for one in (back, hunt)))
    assert back.constants_.equals(hunt.constants_)
    assert back.alternatives_.equals(hunt.alternatives_)
    assert len(back.constants_) > 2
    np.testing.assert_array_equal(back.trajectories_.motion, hunt.trajectories_.motion)
    assert [back.export(language) for language in ("c", "modelica")] == [hunt.export(one) for one in ("c", "modelica")]
    again = came_back(back, tmp_path / "again.json")
    assert again.fronts_ == hunt.fronts_
    assert (tmp_path / "again.json").read_text() == (tmp_path / "laws.json").read_text()


def test_second_order_with_inputs_and_validation_comes_back_whole(tmp_path: Path) -> None:
    u = np.sin(0.9 * T)
    X = noisy(motion(["-2*x1 - 0.3*x1_dot"], (1.0, 0.0), T, order=2), 0.002)
    model = quick(order=2, model_selection="validation").fit(X, T, u, validation=(X, T, u))
    back = came_back(model, tmp_path / "laws.json")
    assert "validation_loss" in back.equations_["x1"]
    np.testing.assert_array_equal(back.predict([[1.0, 2.0]], [0.5]), model.predict([[1.0, 2.0]], [0.5]))
    with pytest.raises(AttributeError, match="constants_ needs laws that fits to the trajectories"):
        _ = back.constants_


def test_a_map_comes_back_whole(tmp_path: Path) -> None:
    x = [0.3]
    for _ in range(60):
        x.append(3.7 * x[-1] * (1 - x[-1]))
    model = quick(step="map").fit(np.array(x))
    back = came_back(model, tmp_path / "laws.json")
    np.testing.assert_array_equal(back.simulate([0.3], np.arange(9)), model.simulate([0.3], np.arange(9)))


def test_what_a_file_cannot_hold_is_given_again(tmp_path: Path) -> None:
    path = tmp_path / "laws.json"
    square = make_operator("squared_here", lambda x: x * x)
    model = quick(operators=["+", "-", "*", square], derivative=SmoothingSpline(), verbose=False).fit(HUNT, T)
    model.save(path)
    with pytest.raises(ValueError, match=r"had operators of your own .* give them to load again"):
        ODERegressor.load(path)
    with pytest.raises(ValueError, match=r"SmoothingSpline.*, which the file cannot hold: give it to load again"):
        ODERegressor.load(path, operators=["+", "-", "*", square])
    back = ODERegressor.load(path, operators=["+", "-", "*", square], derivative="spline", max_time=3)
    np.testing.assert_array_equal(back.predict(HUNT), model.predict(HUNT))
    assert back.max_time == 3


def test_the_folder_of_a_run_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    model = quick(run_dir=folder).fit(HUNT, T)
    back = ODERegressor.load(folder)
    assert back.fronts_ == model.fronts_
    assert back.run_dir is None  # a further fit would not write into that run
    (folder / "motion.json").unlink()
    with pytest.raises(ValueError, match=r"holds a search without results: go on with ODERegressor\.resume"):
        ODERegressor.load(folder)


def test_a_loaded_model_has_no_trajectories_and_says_so(hunt: ODERegressor, tmp_path: Path) -> None:
    hunt.save(tmp_path / "laws.json")
    back = ODERegressor.load(tmp_path / "laws.json")
    for call in (lambda: back.report(tmp_path / "report.html"), back.trajectories_of_fit):
        with pytest.raises(ValueError, match="trajectories of the fit are not in the file"):
            call()
    assert back.fit(WITH_NAMES[:60].assign(still=3.0), T[:60]).trajectories_of_fit()[0][0].shape == (60, 3)


def test_parameters_that_are_none_or_decide_what_laws_are_cannot_change(hunt: ODERegressor, tmp_path: Path) -> None:
    hunt.save(tmp_path / "laws.json")
    with pytest.raises(ValueError, match="ODERegressor has no parameter speed"):
        ODERegressor.load(tmp_path / "laws.json", speed=3)
    with pytest.raises(ValueError, match="order cannot change when laws are loaded"):
        ODERegressor.load(tmp_path / "laws.json", order=2)


def set_at(*way: Any) -> Callable[[dict[str, Any]], None]:
    """Puts the last of `way` where the others lead to in a document."""

    def change(document: Any) -> None:
        for step in way[:-2]:
            document = document[step]
        document[way[-2]] = way[-1]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_at("format", "symenum fields"), "is no file of ODERegressor.save"),
        (set_at("version", 99), "has version 99 of the format"),
        (set_at("parameters", {}), "does not say how it was made"),
        (set_at("parameters", "evil", 1), "does not say how it was made"),
        (set_at("parameters", "order", 2), "not of the order that its parameters say"),
        (set_at("parameters", "step", "__import__('os')"), "step must be one of"),
        (set_at("found", {}), "is damaged"),
        (set_at("found", "fronts", []), "not one front, noise, size and reason for each state"),
        (set_at("found", "noise", []), None),
        (set_at("found", "size", ["nan"] * 3), "sizes of its states are not finite"),
        (set_at("found", "judged", 0, "selected", 999), "measures of its laws do not belong to its fronts"),
        (set_at("found", "judged", 0, "bits", [1.0]), "measures of its laws do not belong to its fronts"),
        (set_at("found", "fronts", 0, "entries", 0, "expression", "y"), "its laws hold y, which are no variables"),
        (set_at("found", "fronts", 0, "entries", 0, "expression", "__import__('os').abort()"), "is damaged"),
        (set_at("found", "choice", "moving", ["x1"]), "its fit to the trajectories is not one of its states"),
        (set_at("found", "choice", "errors", [[], []]), "not one error for each constant"),
        (set_at("found", "elapsed", "soon"), "found.elapsed is 'soon', not a number"),
    ],
)
def test_damaged_files_are_refused(
    hunt: ODERegressor, tmp_path: Path, change: Callable[[Any], None], message: str | None
) -> None:
    path = tmp_path / "laws.json"
    hunt.save(path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    if message is None:  # as of a map, whose errors are not measured
        assert ODERegressor.load(path).noise_ == {}
        return
    with pytest.raises(ValueError, match=message):
        ODERegressor.load(path)


def test_files_of_something_else_are_refused(hunt: ODERegressor, tmp_path: Path) -> None:
    path = tmp_path / "laws.json"
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        ODERegressor.load(path)
    with pytest.raises(ValueError, match="cannot be read"):
        ODERegressor.load(tmp_path)  # a folder with nothing in it
    hunt.save(path)
    whole = path.read_bytes()
    for text in (whole[: len(whole) // 2], b"", b"\xff\xfe", b"[1, 2]", b"[" * 100_000):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"is no file of ODERegressor\.save"):
            ODERegressor.load(path)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"is no file of PDERegressor\.save"):
        PDERegressor.load(path)
    with pytest.raises(ValueError, match="laws"):
        PSERegressor.load(path)
    quick(checkpoint=tmp_path / "checkpoint.json").fit(HUNT, T)
    with pytest.raises(ValueError, match=r"is no file of ODERegressor\.save"):
        ODERegressor.load(tmp_path / "checkpoint.json")
