"""Laws of motion on the page: of second order, with inputs, coupled, and of trajectories that are damaged."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from studio.asking import Studio

from symenum import ODERegressor

QUICK = {"max_time": None, "max_iterations": 1, "random_state": 0, "operators": "arithmetic", "model_selection": "mdl"}
T = np.linspace(0, 10, 250)


def simulated(plots: dict, state: str) -> tuple[np.ndarray, np.ndarray]:
    line = next(one for one in plots["time"] if one["state"] == state)
    return np.array(line["measured"], dtype=float), np.array(line["simulated"], dtype=float)


def test_second_order_with_an_input(tmp_path) -> None:
    push = np.where(np.sin(0.7 * T) > 0, 1.0, -0.5)
    q = np.zeros_like(T)
    v = 1.0
    for i in range(1, len(T)):  # small steps of q'' = -2 q + u
        dt = (T[i] - T[i - 1]) / 50
        x = q[i - 1]
        for _ in range(50):
            v += dt * (-2 * x + push[i - 1])
            x += dt * v
        q[i] = x
    frame = pandas.DataFrame({"angle, left": q})
    inputs = pandas.DataFrame({"<b>push</b>": push})
    ODERegressor(**QUICK, order=2, run_dir=tmp_path / "run").fit(frame, T, inputs)
    studio = Studio(tmp_path)
    shown = studio.get("/api/runs/run").json()
    (state,) = shown["states"]
    assert [column["name"] for column in shown["columns"]][1].endswith("_dot")
    path, query = f"/api/runs/run/laws/{state['selected']}", f"state={state['name']}"
    assert studio.get(path, query=query).status == 200
    plots = studio.get(f"{path}/plots", query=query).json()
    assert [line["state"] for line in plots["time"]] == [state["name"]]
    assert plots["phase"]["y_state"] == f"{state['name']}_dot"
    measured, moved = simulated(plots, state["name"])
    assert np.isfinite(moved[0])
    assert len(measured) == len(moved) == len(T)


def test_laws_that_are_coupled_by_accelerations_move_too(tmp_path) -> None:
    X = np.column_stack([np.cos(T), np.sin(1.3 * T)])
    ODERegressor(**QUICK, order=2, coupled=True, run_dir=tmp_path / "run").fit(X, T)
    studio = Studio(tmp_path)
    for state in studio.get("/api/runs/run").json()["states"]:
        path, query = f"/api/runs/run/laws/{state['selected']}", f"state={state['name']}"
        assert studio.get(path, query=query).status == 200
        measured, moved = simulated(studio.get(f"{path}/plots", query=query).json(), state["name"])
        assert np.abs(measured - moved)[:20].max() < 0.1


def test_several_trajectories_show_the_longest(tmp_path) -> None:
    parts = [slice(0, 100), slice(100, 250)]
    X = np.column_stack([np.cos(2 * T), -2 * np.sin(2 * T)])
    ODERegressor(**QUICK, run_dir=tmp_path / "run").fit([X[part] for part in parts], [T[part] for part in parts])
    plots = Studio(tmp_path).get("/api/runs/run/laws/0/plots", query="state=x1").json()
    assert len(plots["time"][0]["t"]) == 150


def test_a_law_that_blows_up_ends_where_it_does(with_runs) -> None:
    front = with_runs.folder / "motion" / "front.json"
    document = json.loads(front.read_text())
    law = {"equation": "x1**3*1e6 + 5", "complexity": 5, "loss": 1.0, "score": 0.0, "reward": 0.5}
    document["fronts"][0].update(laws=[law], selected=0)
    front.write_text(json.dumps(document))
    plots = with_runs.get("/api/runs/motion/laws/0/plots", query="state=x1").json()
    assert plots["time"][0]["simulated"][-1] is None


@pytest.mark.parametrize("damage", ["missing", "no archive", "other arrays", "other states"])
def test_trajectories_that_are_missing_or_damaged_are_said(with_runs, damage) -> None:
    file = with_runs.folder / "motion" / "data.npz"
    if damage == "missing":
        file.unlink()
    elif damage == "no archive":
        file.write_bytes(b"no archive")
    else:
        times = np.zeros(30) if damage == "other arrays" else np.arange(30.0)
        np.savez(file, t0=times, X0=np.zeros((30, 5)), U0=np.zeros((30, 0)))
    answer = with_runs.get("/api/runs/motion/laws/0", query="state=x1")
    assert answer.status == 409
    assert "Traceback" not in answer.error


def test_arrays_that_would_fill_the_memory_are_refused(with_runs, monkeypatch) -> None:
    monkeypatch.setattr("symenum.studio.law_rows._MAX_BYTES", 100)
    for run, query in (("law", ""), ("motion", "state=x1")):
        answer = with_runs.get(f"/api/runs/{run}/laws/0", query=query)
        assert answer.status == 413
        assert "more than the studio reads" in answer.error
