"""A search for laws of motion on the disk: nothing is lost, and what goes on ends as if it had never stopped."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from dynamics.motions import motion, noisy

from symenum import ODERegressor, PSERegressor
from symenum.dynamics.discover import SystemReport

T = np.linspace(0, 8, 80)
SWING = noisy(motion(["x2", "-2*sin(x1)"], (2.0, 0.0), T), 0.05)


def slow_search(path: Path | None = None, steps: int = 4, **parameters) -> ODERegressor:
    """A search that noise does not end at its sums of terms, by a count of steps alone."""
    settings = {"operators": ["+", "-", "*", "sin"], "max_iterations": steps, "max_time": None, "random_state": 0}
    more = {"layers": 2, "inputs": 3, "top_k": 5, "model_selection": "mdl", "guesses": None}
    return ODERegressor(**{**settings, **more, **parameters}, checkpoint=path)


ROUGH = np.column_stack([np.cumsum(np.sign(np.sin(37 * np.arange(80.0) ** 1.1))), np.sqrt(np.arange(80.0))])


@pytest.fixture(scope="module")
def whole() -> ODERegressor:
    return slow_search(constants=False).fit(ROUGH, T)


def test_a_search_that_goes_on_ends_as_one_without_a_pause(tmp_path: Path, whole: ODERegressor) -> None:
    path = tmp_path / "checkpoint.json"
    slow_search(path, 2, constants=False).fit(ROUGH, T)
    resumed = ODERegressor.resume(path, max_iterations=4)
    assert resumed.fronts_ == whole.fronts_
    assert resumed.n_iter_ == whole.n_iter_ == 8
    assert resumed.elapsed_ > 0


def test_a_checkpoint_does_not_change_what_is_found(tmp_path: Path, whole: ODERegressor) -> None:
    assert slow_search(tmp_path / "one.json", constants=False).fit(ROUGH, T).fronts_ == whole.fronts_


def test_a_search_that_was_ended_by_the_user_goes_on(tmp_path: Path, whole: ODERegressor) -> None:
    path = tmp_path / "checkpoint.json"

    def after_three(report: SystemReport) -> bool:
        return report.iteration == 3 and report.state == "x1"

    slow_search(path, constants=False, callbacks=after_three).fit(ROUGH, T)
    assert ODERegressor.resume(path).fronts_ == whole.fronts_


def test_laws_by_trajectories_are_those_of_one_search(tmp_path: Path) -> None:
    X = noisy(motion(["0.8*x1 - 0.16*x1**2"], (0.5,), T), 0.02)
    settings = {"operators": "arithmetic", "max_iterations": 1, "max_time": None, "random_state": 0}
    path = tmp_path / "checkpoint.json"
    model = ODERegressor(**settings, checkpoint=path).fit(X, T)
    resumed = ODERegressor.resume(path, X, T)
    assert resumed.trajectories_.laws == model.trajectories_.laws
    assert resumed.stop_reason_ == model.stop_reason_


def test_a_killed_search_is_taken_up_again(tmp_path: Path, whole: ODERegressor) -> None:
    path = tmp_path / "checkpoint.json"
    child = os.fork()
    if child == 0:
        try:

            def wait(report: SystemReport) -> None:
                if report.iteration == 2:
                    (tmp_path / "ready").touch()
                    time.sleep(60)

            slow_search(path, constants=False, callbacks=wait).fit(ROUGH, T)
        finally:
            os._exit(1)
    end = time.monotonic() + 60
    while not (tmp_path / "ready").exists() and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert ODERegressor.resume(path).fronts_ == whole.fronts_


def test_the_folder_of_a_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    slow_search(None, 1, constants=False, run_dir=folder).fit(ROUGH, T)
    assert (folder / "checkpoint.json").exists()
    assert "Laws of motion" in (folder / "report.html").read_text()
    resumed = ODERegressor.resume(folder, max_iterations=2)
    assert resumed.n_iter_ == 4
    with pytest.raises(ValueError, match=r"holds a run already.*ODERegressor.resume"):
        slow_search(None, 1, constants=False, run_dir=folder).fit(ROUGH, T)


def test_other_data_other_settings_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    slow_search(path, 1, constants=False).fit(ROUGH, T)
    with pytest.raises(ValueError, match="X, t, u and x_dot are not those of the checkpoint"):
        ODERegressor.resume(path, ROUGH + 1, T)
    with pytest.raises(ValueError, match="top_k cannot change when a search goes on: it was 5"):
        ODERegressor.resume(path, top_k=7)
    with pytest.raises(ValueError, match="ODERegressor has no parameter no_such"):
        ODERegressor.resume(path, no_such=1)
    with pytest.raises(ValueError, match=r"is one of ODERegressor: go on with ODERegressor.resume"):
        PSERegressor.resume(path)
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(ValueError, match="is no motion checkpoint of symenum and is not overwritten"):
        slow_search(other, 1).fit(ROUGH, T)
    for file in tmp_path.glob("*.npz"):
        file.unlink()
    with pytest.raises(ValueError, match=r"trajectories of the checkpoint.*are not there: give them again"):
        ODERegressor.resume(path)
    assert ODERegressor.resume(path, ROUGH, T).n_iter_ == 2


@pytest.mark.parametrize(
    "harm",
    [
        lambda document: document.pop("equations"),
        lambda document: document["equations"].pop(),
        lambda document: document["equations"][0].update(front={"entries": []}),
        lambda document: document["equations"][0]["state"].update(iteration=-1),
        lambda document: document["about"].update(names={"states": "x"}),
        lambda document: document.update(token_generator="nobody"),
        lambda document: document.update(elapsed="soon"),
        lambda document: document["about"].update(data="../elsewhere.npz"),
    ],
)
def test_a_damaged_checkpoint_is_refused_in_words(tmp_path: Path, harm, searched_once: Path) -> None:
    document = json.loads(searched_once.read_text())
    harm(document)
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is damaged"):
        ODERegressor.resume(path)


@pytest.fixture(scope="module")
def searched_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("once") / "checkpoint.json"
    slow_search(path, 1, constants=False).fit(ROUGH, T)
    return path
