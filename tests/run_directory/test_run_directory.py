"""The folder of a run: what a search writes, and what a reader makes of it at any moment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symenum import ODERegressor, PSERegressor
from symenum.expressions import parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.run_directory import (
    FolderIsBusyError,
    RunFacts,
    RunLock,
    RunReader,
    RunWriter,
    Status,
    ask_to_stop,
    is_held,
    read_run,
    sorted_runs,
)
from symenum.run_directory.trajectories import Trajectory, read_trajectories, write_trajectories

FACTS = RunFacts(
    kind="law",
    targets=("y",),
    variables=(("x1", "width <b>"),),
    rows=10,
    settings={"max_time": 5.0},
    variances=(4.0,),
    max_time=5.0,
)


@dataclass(frozen=True)
class Report:
    """A step, as far as a writer reads it."""

    front: Front
    iteration: int = 1
    stage: str = "affine"
    seconds: float = 0.25
    elapsed: float = 1.0
    time_left: float | None = 4.0
    scored: int = 1000
    rate: float = 1e6
    gain: float = 0.5
    message: str = "plan"
    errors: dict[str, str] = field(default_factory=dict)


def front_of(*laws: tuple[str, float]) -> Front:
    return Front((), 0.0, 10, 0.99).update([Candidate(parse(text), loss) for text, loss in laws])


def writer(folder: Path, facts: RunFacts = FACTS, stop=lambda: None) -> RunWriter:
    return RunWriter(folder, facts, "accuracy", stop)


def test_what_is_written_is_what_is_read(tmp_path) -> None:
    with writer(tmp_path / "run") as told:
        told(Report(front_of(("x1", 2.0), ("x1*x1", 1.0))))
        told(Report(front_of(("x1", 2.0), ("x1*x1", 1.0)), iteration=2, elapsed=1.5))
        told.finish(front_of(("x1", 2.0)), 0, reason="done", interrupted=False, elapsed=1.75, refused={"pole": 3})
    run = read_run(tmp_path / "run")
    assert (run.status, run.message, run.rows) == (Status.FINISHED, "", 10)
    assert [(one.name, one.column) for one in run.variables] == [("x1", "width <b>")]
    (front,) = run.fronts
    assert [law.equation for law in front.laws] == ["x1"]
    assert front.r_squared(front.laws[0]) == 0.5
    assert (run.iteration, run.elapsed, run.scored, run.move) == (2, 1.75, 1000, "affine")
    (move,) = run.schedule
    assert (move.move, move.turns, move.seconds, move.gain) == ("affine", 2, 0.5, 1.0)
    assert run.ending["refused"] == {"pole": 3}


def test_numbers_that_json_lacks_survive(tmp_path) -> None:
    with writer(tmp_path) as told:
        told(Report(front_of(("x1", float("inf")), ("0", 1.0)), gain=float("inf"), rate=float("nan"), time_left=None))
        told.finish(front_of(("0", 0.0)), 0, reason="", interrupted=True, elapsed=1.0)
    assert read_run(tmp_path).status is Status.STOPPED
    for line in (tmp_path / "events.jsonl").read_text().splitlines():
        assert "NaN" not in line
        assert "Infinity" not in line


def test_a_run_is_running_while_its_process_lives_and_killed_afterwards(tmp_path) -> None:
    with writer(tmp_path) as told:
        told(Report(front_of(("x1", 2.0))))
        assert read_run(tmp_path).status is Status.RUNNING
        shutil.copytree(tmp_path, tmp_path.parent / "copy")
        copied = read_run(tmp_path.parent / "copy")
        told.finish(front_of(("x1", 2.0)), 0, reason="done", interrupted=False, elapsed=1.0)
    assert copied.status is Status.KILLED
    assert "resume" in copied.message


def test_a_search_that_fails_says_why(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError), writer(tmp_path):
        raise ZeroDivisionError("by zero")
    run = read_run(tmp_path)
    assert run.status is Status.FAILED
    assert "ZeroDivisionError: by zero" in run.message
    assert "test_run_directory.py" in run.ending["traceback"]


def test_whoever_asks_to_stop_is_heard_once(tmp_path) -> None:
    heard: list[int] = []
    with writer(tmp_path, stop=lambda: heard.append(1)) as told:
        ask_to_stop(tmp_path)
        while not heard:
            continue
        told.finish(front_of(("x1", 2.0)), 0, reason="asked", interrupted=True, elapsed=1.0)
    assert heard == [1]
    assert not (tmp_path / "stop").exists()


def test_two_searches_do_not_write_to_one_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("symenum.run_directory.lock._WAIT", 0.0)
    with writer(tmp_path) as told:
        with pytest.raises(FolderIsBusyError, match="name another folder"), writer(tmp_path):
            pass
        told.finish(front_of(("x1", 2.0)), 0, reason="", interrupted=False, elapsed=1.0)


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ValueError, match=r"run_dir: the folder .* cannot be written"),
        writer(tmp_path / "file" / "run"),
    ):
        pass


def test_a_disk_that_refuses_costs_a_warning_and_not_the_search(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    told = writer(tmp_path).__enter__()
    monkeypatch.setattr("symenum.run_directory.writer.write_whole", full)
    told(Report(front_of(("x1", 2.0))))
    told.finish(front_of(("x1", 2.0)), 0, reason="done", interrupted=False, elapsed=1.0)
    with pytest.warns(RuntimeWarning, match="No space left"):
        told.__exit__(None, None, None)


def test_a_search_that_goes_on_keeps_its_steps_and_its_day(tmp_path) -> None:
    with writer(tmp_path) as told:
        told(Report(front_of(("x1", 2.0))))
        told.finish(front_of(("x1", 2.0)), 0, reason="done", interrupted=False, elapsed=1.0)
    created = read_run(tmp_path).created
    further = RunFacts(**{**vars(FACTS), "elapsed_before": 1.0})
    with writer(tmp_path, further) as told:
        told(Report(front_of(("x1", 1.0)), iteration=2, elapsed=2.0))
        told.finish(front_of(("x1", 1.0)), 0, reason="done", interrupted=False, elapsed=2.5)
    run = read_run(tmp_path)
    assert (run.created, run.elapsed, run.max_time) == (created, 2.5, 6.0)
    assert run.schedule[0].turns == 2


def test_a_new_search_in_the_folder_forgets_the_old_one(tmp_path) -> None:
    reader = RunReader(tmp_path)
    for iteration in (5, 1):
        with writer(tmp_path) as told:
            for i in range(iteration):
                told(Report(front_of(("x1", 2.0)), iteration=i + 1))
            told.finish(front_of(("x1", 2.0)), 0, reason="done", interrupted=False, elapsed=1.0)
        assert reader.read().iteration == iteration
        assert reader.read().schedule[0].turns == iteration


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(cut=st.integers(0, 2000), name=st.sampled_from(["run.json", "front.json", "events.jsonl"]))
def test_a_file_cut_anywhere_is_read_or_refused_in_words(tmp_path_factory, finished, cut, name) -> None:
    folder = tmp_path_factory.mktemp("cut")
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:cut])
    run = read_run(folder)
    assert run.status in (Status.FINISHED, Status.KILLED, Status.UNREADABLE)
    assert run.message or run.status is Status.FINISHED


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    with writer(folder) as told:
        told(Report(front_of(("x1", 2.0))))
        told.finish(front_of(("x1", 2.0)), 0, reason="done", interrupted=False, elapsed=1.0)
    return folder


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("run.json", {"version": 2}, "open it with the symenum that wrote it"),
        ("front.json", {"version": 2}, "open it with the symenum that wrote it"),
        ("run.json", {"targets": "y"}, "it has no targets"),
        ("run.json", {"targets": [3]}, "damaged"),
        ("run.json", {"targets": [{"name": 3}]}, "damaged"),
        ("run.json", {"variables": [{"name": "x1"}]}, "damaged"),
        ("run.json", {"format": "other"}, "no file of symenum"),
        ("front.json", {"fronts": [{"target": "y", "selected": 9, "laws": []}]}, "damaged"),
        ("front.json", {"fronts": [{"target": "y", "selected": None, "laws": [{"equation": 1}]}]}, "damaged"),
        ("front.json", {"fronts": 1}, "damaged"),
        ("front.json", {"number": "many"}, "damaged"),
    ],
)
def test_a_file_with_other_contents_is_refused_in_words(finished, tmp_path, name, change, said) -> None:
    shutil.copytree(finished, tmp_path / "run")
    path = tmp_path / "run" / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    run = read_run(tmp_path / "run")
    assert run.status is Status.UNREADABLE
    assert said in run.message


def test_lines_that_are_damaged_are_left_out_and_counted(finished, tmp_path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    with (tmp_path / "run" / "events.jsonl").open("a") as file:
        file.write('{"event": \n[]\n{"event": "step", "move": "half')
    run = read_run(tmp_path / "run")
    assert run.status is Status.FINISHED
    assert "2 lines" in run.message


def test_folders_of_runs_are_found_the_newest_first(finished, tmp_path) -> None:
    for i, name in enumerate(("old", "new")):
        shutil.copytree(finished, tmp_path / name)
        os.utime(tmp_path / name / "run.json", (i + 1, i + 1))
    (tmp_path / "photos").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "old")
    assert [path.name for path in sorted_runs(tmp_path)] == ["new", "old"]


HOLD = """
import sys, time
from pathlib import Path
from symenum.run_directory import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_the_lock_goes_with_its_process_however_it_ends(tmp_path) -> None:
    assert not is_held(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        child.kill()
    assert not is_held(tmp_path)


def test_a_lock_that_is_held_is_seen_by_others(tmp_path) -> None:
    lock = RunLock(tmp_path)
    lock.acquire()
    assert is_held(tmp_path)
    lock.release()
    assert not is_held(tmp_path)


# Trajectories


def test_trajectories_survive(tmp_path) -> None:
    random = np.random.default_rng(0)
    given_ = [Trajectory(np.arange(n, dtype=float), random.normal(size=(n, 2)), np.empty((n, 0))) for n in (5, 8)]
    write_trajectories(tmp_path, given_)
    for one, other in zip(given_, read_trajectories(tmp_path), strict=True):
        assert all(np.array_equal(getattr(one, part), getattr(other, part)) for part in "tXU")


@pytest.mark.parametrize("content", [b"", b"PK", bytes(100)])
def test_trajectories_that_are_damaged_are_refused(tmp_path, content) -> None:
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(ValueError, match="copy it again"):
        read_trajectories(tmp_path)
    with pytest.raises(ValueError, match="is missing"):
        read_trajectories(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"a": np.zeros(1)},
        {"t0": np.arange(3.0), "X0": np.zeros((2, 1)), "U0": np.zeros((3, 0))},
        {"t0": np.zeros(3), "X0": np.zeros((3, 1)), "U0": np.zeros((3, 0))},
        {"t0": np.arange(3.0), "X0": np.full((3, 1), np.nan), "U0": np.zeros((3, 0))},
        {"t0": np.arange(3), "X0": np.zeros((3, 1)), "U0": np.zeros((3, 0))},
    ],
)
def test_other_arrays_are_no_trajectories(tmp_path, arrays) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match="copy it again"):
        read_trajectories(tmp_path)


# The estimators


def test_a_fit_leaves_a_whole_run_and_goes_on_from_it(tmp_path) -> None:
    random = np.random.default_rng(0)
    X = random.uniform(1, 3, (30, 2))
    y = X[:, 0] ** 2 / X[:, 1] + random.normal(0, 0.01, 30)
    quick = {"max_time": None, "random_state": 0}
    model = PSERegressor(**quick, max_iterations=2, run_dir=tmp_path / "run").fit(X, y)
    run = read_run(tmp_path / "run")
    (front,) = run.fronts
    assert run.status is Status.FINISHED
    assert [parse(law.equation) for law in front.laws] == [entry.expression for entry in model.front_]
    assert front.selected == model.selected_index_
    assert {"model.json", "front.csv", "report.html", "checkpoint.json"} <= {
        p.name for p in (tmp_path / "run").iterdir()
    }
    with pytest.raises(ValueError, match="holds a run already"):
        PSERegressor(**quick, max_iterations=2, run_dir=tmp_path / "run").fit(X, y)
    further = PSERegressor.resume(tmp_path / "run", max_iterations=4)
    assert further.n_iter_ == 4
    assert read_run(tmp_path / "run").iteration == 4


def test_a_run_directory_does_not_change_what_is_found(tmp_path) -> None:
    X = np.random.default_rng(1).uniform(1, 3, (30, 2))
    y = np.sin(X[:, 0]) * X[:, 1]
    quick = {"max_time": None, "max_iterations": 3, "random_state": 0}
    with_one = PSERegressor(**quick, run_dir=tmp_path / "run").fit(X, y)
    assert with_one.front_ == PSERegressor(**quick).fit(X, y).front_


def test_laws_of_motion_leave_a_whole_run(tmp_path) -> None:
    t = np.linspace(0, 12, 200)
    X = np.column_stack([np.cos(2 * t), -2 * np.sin(2 * t)])
    quick = {"max_time": None, "max_iterations": 1, "random_state": 0, "operators": "arithmetic"}
    model = ODERegressor(**quick, run_dir=tmp_path / "run").fit(X, t)
    run = read_run(tmp_path / "run")
    assert (run.kind, run.targets, run.status) == ("motion", ("x1", "x2"), Status.FINISHED)
    for front in run.fronts:
        laws = [parse(law.equation) for law in front.laws]
        assert laws == [entry.expression for entry in model.fronts_[front.target]]
        assert front.selected == model.selected_[front.target]
    assert {"laws.txt", "fronts.csv", "system.py", "system.tex", "motion.json"} <= {
        p.name for p in (tmp_path / "run").iterdir()
    }
    (piece,) = read_trajectories(tmp_path / "run")
    assert np.array_equal(piece.X, X)
    with pytest.raises(ValueError, match="holds a run already"):
        ODERegressor(**quick, run_dir=tmp_path / "run").fit(X, t)
