"""Checkpoints: a fit goes on as if it had not ended, and files that are not what they should be are refused."""

from __future__ import annotations

import errno
import json
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch

from symenum import PSERegressor, make_operator
from symenum.expressions import parse, variables
from symenum.fitting.losses import Huber
from symenum.operators import get_operators
from symenum.search import StepReport

RNG = np.random.default_rng(1)
X = RNG.uniform(0.5, 3, (40, 2))
Y = np.sin(3 * X[:, 0]) / (X[:, 1] + 2) + 0.05 * RNG.normal(size=40)


def quick(**parameters: Any) -> PSERegressor:
    given = {"operators": "arithmetic", "layers": 2, "inputs": 4, "top_k": 5, "constants": False, "random_state": 0}
    return PSERegressor(**{**given, "max_time": None, "max_iterations": 4, **parameters})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "checkpoint.json"


def not_worse(after: PSERegressor, before: PSERegressor) -> bool:
    """Whether every law of the front before has one that is as simple and as good."""
    return all(
        any(new.complexity <= old.complexity and new.loss <= old.loss for new in after.front_) for old in before.front_
    )


@pytest.mark.parametrize("generator", ["gp", "mcts", "random"])
def test_a_resumed_fit_equals_one_without_a_pause(path: Path, generator: str) -> None:
    whole = quick(max_iterations=6, token_generator=generator).fit(X, Y)
    part = quick(max_iterations=3, token_generator=generator, checkpoint=path).fit(X, Y)
    resumed = PSERegressor.resume(path, max_iterations=6)
    assert resumed.front_ == whole.front_
    assert (part.n_iter_, resumed.n_iter_) == (3, 6)
    assert resumed.elapsed_ > part.elapsed_
    assert resumed.get_params()["token_generator"] == generator


def test_a_step_cut_short_is_done_again_and_its_finds_stay(path: Path) -> None:
    def cut(report: StepReport) -> None:
        if report.iteration == 2:
            model.stop()

    model = quick(checkpoint=path, callbacks=[cut])
    model.fit(X, Y)
    assert model.interrupted_
    resumed = PSERegressor.resume(path, max_iterations=5)
    assert not resumed.interrupted_
    assert not_worse(resumed, model)
    assert resumed.front_ == quick(max_iterations=5).fit(X, Y).front_


def test_names_of_columns_and_weights_come_back(path: Path) -> None:
    frame = pandas.DataFrame(X, columns=["width", "height"])
    weight = np.linspace(1, 2, 40)
    quick(max_iterations=2, checkpoint=path).fit(frame, Y, sample_weight=weight)
    resumed = PSERegressor.resume(path, max_iterations=3)
    assert resumed.variable_names_ == ("width", "height")
    assert resumed.front_ == quick(max_iterations=3).fit(frame, Y, sample_weight=weight).front_


def test_own_operators_must_be_given_again(path: Path) -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    quick(operators=["+", "*", softplus], max_iterations=2, checkpoint=path).fit(X, Y)
    with pytest.raises(ValueError, match=r"^operators: .*softplus.*give them to resume again"):
        PSERegressor.resume(path)
    resumed = PSERegressor.resume(path, operators=["+", "*", softplus], max_iterations=3)
    assert resumed.n_iter_ == 3


def test_other_data_are_refused(path: Path) -> None:
    quick(max_iterations=1, checkpoint=path).fit(X, Y)
    with pytest.raises(ValueError, match=r"^X, y, sample_weight and errors are not those of the checkpoint"):
        PSERegressor.resume(path, X, Y + 1e-9)
    with pytest.raises(ValueError, match=r"^X, y, sample_weight and errors"):
        PSERegressor.resume(path, X, Y, np.linspace(1, 2, 40))


def test_what_decides_the_way_cannot_change(path: Path) -> None:
    quick(max_iterations=1, checkpoint=path).fit(X, Y)
    with pytest.raises(ValueError, match=r"^top_k cannot change when a search goes on: it was 5"):
        PSERegressor.resume(path, top_k=6)
    with pytest.raises(ValueError, match=r"^changes: PSERegressor has no parameter pace"):
        PSERegressor.resume(path, pace=6)


def _edited(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _with_compression(path: Path, method: int) -> None:
    """Say another method of compression in the directory of a zip file, at its byte 10 of each entry."""
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 10] = method
        at = data.find(b"PK\x01\x02", at + 1)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_text(path.read_text()[:-40]), "truncated"),
        (lambda path: path.write_text("[" * 100_000), "no checkpoint"),
        (lambda path: path.write_bytes(b"\x80\x04\x95pickle"), "no checkpoint"),
        (lambda path: path.write_text('{"a": 1}'), "no checkpoint"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: _edited(path, version=99), "version 99 of the format"),
        (lambda path: _edited(path, version="1; import os"), "version"),
        (lambda path: _edited(path, state={}), "damaged"),
        (lambda path: _edited(path, token_generator="os.system"), "damaged"),
        (lambda path: _edited(path, about={"parameters": {"operators": ["+"], "callbacks": ["os.system"]}}), "damaged"),
        (lambda path: _edited(path, signature="0" * 64), "X, y, sample_weight and errors are not those"),
        (lambda path: next(path.parent.glob("*.npz")).write_bytes(b"PK\x03\x04no"), "cannot be read"),
        (lambda path: _with_compression(next(path.parent.glob("*.npz")), 99), "cannot be read"),
        (lambda path: next(path.parent.glob("*.npz")).unlink(), "give the data again"),
    ],
    ids=[
        "truncated",
        "deep",
        "pickle",
        "other JSON",
        "missing",
        "version",
        "version of text",
        "no state",
        "generator",
        "no parameters",
        "signature",
        "data damaged",
        "data of another compression",
        "data missing",
    ],
)
def test_a_spoilt_checkpoint_is_refused(path: Path, spoil: Any, message: str) -> None:
    quick(max_iterations=1, checkpoint=path).fit(X, Y)
    spoil(path)
    with pytest.raises(ValueError, match=message):
        PSERegressor.resume(path)


def test_data_with_objects_are_not_unpickled(path: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    quick(max_iterations=1, checkpoint=path).fit(X, Y)
    np.savez(next(path.parent.glob("*.npz")), X=np.array([[Bomb()]], dtype=object), y=Y)
    with pytest.raises(ValueError, match="cannot be read"):
        PSERegressor.resume(path)
    assert not (tmp_path / "exploded").exists()


def test_a_file_that_is_no_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    with pytest.raises(ValueError, match=r"^checkpoint: .* is no checkpoint of symenum and is not overwritten"):
        quick(checkpoint=thesis).fit(X, Y)
    assert thesis.read_text() == "years of work"
    with pytest.raises(ValueError, match="is a folder"):
        quick(checkpoint=tmp_path).fit(X, Y)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^checkpoint, run_dir: the folder .* cannot be written"):
        quick(checkpoint=tmp_path / "file" / "checkpoint.json").fit(X, Y)


def test_a_full_disk_costs_one_warning_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    whole = quick().fit(X, Y)  # also stores the engine's duplicates, which have a warning of their own
    quick(max_iterations=1, checkpoint=path).fit(X, Y)
    before = path.read_text()
    monkeypatch.setattr(os, "fsync", full)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = PSERegressor.resume(path, max_iterations=4)
    assert [str(one.message).split(" (")[1][:23] for one in told] == ["No space left on device"]
    assert model.front_ == whole.front_
    assert path.read_text() == before


def test_files_of_earlier_fits_do_not_pile_up(path: Path) -> None:
    for shift in (0.0, 1.0):
        quick(max_iterations=1, checkpoint=path).fit(X, Y + shift)
    (path.parent / f".{path.name}.123456").write_text("left by a process that was killed")
    PSERegressor.resume(path, max_iterations=2)
    assert len(list(path.parent.iterdir())) == 2


def test_warm_start_goes_on_and_never_gets_worse() -> None:
    model = quick(warm_start=True, max_iterations=3).fit(X, Y)
    first = quick(max_iterations=3).fit(X, Y)
    assert model.front_ == first.front_
    model.fit(X, Y)
    assert model.n_iter_ == 6
    assert model.front_ == quick(max_iterations=6).fit(X, Y).front_
    assert not_worse(model, first)


def test_warm_start_on_other_data_judges_the_old_laws_anew() -> None:
    law = 2 * X[:, 0] ** 2 / X[:, 1] + X[:, 1]
    model = quick(operators="koza", layers=3, constants=True, max_iterations=30, warm_start=True).fit(X, law)
    other = RNG.uniform(3, 4, (30, 2))
    model.set_params(max_iterations=1).fit(other, 2 * other[:, 0] ** 2 / other[:, 1] + other[:, 1])
    assert model.front_[-1].loss < 1e-20
    np.testing.assert_allclose(model.predict(X), law, rtol=1e-9)


def test_warm_start_keeps_to_new_constraints_and_judges_by_the_new_loss() -> None:
    model = quick(warm_start=True, max_iterations=2).fit(X, Y)
    assert any("x2" in variables(entry.expression) for entry in model.front_)
    model.set_params(forbidden_variables=["x2"], loss="mae", max_depth=2).fit(X, Y)
    for i, entry in enumerate(model.front_):
        assert "x2" not in variables(entry.expression)
        assert entry.expression.depth <= 2
        assert entry.loss == pytest.approx(np.abs(model.predict(X, index=i) - Y).mean())


def test_a_resumed_fit_chooses_its_law_on_rows_that_are_given_again(path: Path) -> None:
    quick(max_iterations=2, model_selection="validation", checkpoint=path).fit(X, Y, validation=(X[:9], Y[:9]))
    with pytest.raises(ValueError, match="needs rows to choose on"):
        PSERegressor.resume(path)
    resumed = PSERegressor.resume(path, validation=(X[:9], Y[:9]))
    assert resumed.equations_["validation_loss"][0] == pytest.approx(np.mean((resumed.predict(X[:9], 0) - Y[:9]) ** 2))


def test_a_fit_in_another_thread_ends_when_it_is_asked_to() -> None:
    begun = threading.Event()
    model = quick(max_iterations=10**6, callbacks=[lambda report: begun.set() or None])
    thread = threading.Thread(target=model.fit, args=(X, Y))
    thread.start()
    assert begun.wait(60)
    model.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert model.interrupted_
    assert np.isfinite(model.predict(X)).all()
    model.stop()  # nothing runs, and nothing happens


@pytest.mark.parametrize(("value", "message"), [(1, "checkpoint must be"), (b"x", "checkpoint must be")])
def test_a_path_must_be_one(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(checkpoint=value).fit(X, Y)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"loss": Huber(0.01)}, {"loss": Huber(5.0)}),
        ({"loss": lambda y, f: np.abs(y - f).max()}, {"loss": lambda y, f: np.abs(y - f).mean()}),
        ({"forbidden_variables": {"x1"}}, {"forbidden_variables": {"x2"}}),
        ({"constant_range": np.array([-1.0, 1.0])}, {"constant_range": np.array([-2.0, 2.0])}),
        ({"guesses": [parse("x1")]}, {"guesses": [parse("x2")]}),
    ],
    ids=["record", "callable", "set", "array", "expression"],
)
def test_warm_start_begins_anew_where_a_setting_has_changed(before: dict[str, Any], after: dict[str, Any]) -> None:
    model = quick(warm_start=True, max_iterations=2, **before).fit(X, Y)
    assert model.set_params(**after).fit(X, Y).n_iter_ == 2


def test_settings_that_are_no_plain_data_are_kept_where_text_can_hold_them(path: Path) -> None:
    told: dict[str, Any] = {"guesses": [parse("x1 + x2")], "forbidden_variables": set(), "loss": "mae"}
    told["variable_operators"] = {"x1": get_operators(["+", "*"])}
    quick(checkpoint=path, max_iterations=1, constant_range=np.array([-1.0, 1.0]), **told).fit(X, Y)
    assert PSERegressor.resume(path, max_iterations=2).n_iter_ == 2


def test_a_search_that_has_found_nothing_allowed_yet_can_go_on(path: Path) -> None:
    told: dict[str, Any] = {"max_depth": 1, "required_variables": ["x1", "x2"], "constants": True}
    with pytest.raises(ValueError, match="no law that was found"):
        quick(checkpoint=path, max_iterations=1, **told).fit(X, Y)
    with pytest.raises(ValueError, match="no law that was found"):
        PSERegressor.resume(path, max_iterations=2)


def test_a_fit_without_a_law_leaves_the_estimator_as_it_was() -> None:
    told: dict[str, Any] = {"max_depth": 1, "required_variables": ["x1", "x2"], "constants": True}
    model = quick(max_iterations=1, warm_start=True, **told)
    with pytest.raises(ValueError, match="no law that was found"):
        model.fit(X, Y)
    assert not hasattr(model, "front_")
    assert len(model.set_params(max_depth=None).fit(X, Y).front_) > 0
