"""Runs end when they should, for the reason they say, and keep what was found."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from symenum.search import StepReport, run


def hard(a, b):
    return np.sin(3 * a) / (b + np.exp(np.cos(a * b))) + np.tanh(a - b)


def test_a_law_ends_the_run(make) -> None:
    outcome = run(make(lambda a, b: a * a / b), 0)
    assert "law" in outcome.reason
    assert str(outcome.state.front[-1].expression) == "x1**2/x2"


def test_iterations_end_the_run(make) -> None:
    outcome = run(make(hard), 0, max_iterations=3)
    assert outcome.state.iteration == 3
    assert "3 iterations" in outcome.reason


def test_the_clock_ends_the_run_inside_a_step(make) -> None:
    begin = time.monotonic()
    outcome = run(make(hard), 0, max_time=1.0)
    assert "time limit" in outcome.reason
    assert time.monotonic() - begin < 6  # generous: the machine may be busy
    assert len(outcome.state.front) >= 1


def test_callbacks_see_every_step_and_can_end_the_run(make) -> None:
    reports: list[StepReport] = []

    def watch(report: StepReport) -> bool:
        reports.append(report)
        return report.iteration == 2

    outcome = run(make(hard), 0, max_time=100.0, callbacks=[watch])
    assert [report.iteration for report in reports] == [1, 2]
    assert "callback" in outcome.reason
    assert reports[-1].front == outcome.state.front
    assert 0 < reports[-1].time_left < 100
    assert reports[-1].elapsed >= reports[-1].seconds
    assert "layers" in reports[0].message


def test_ctrl_c_keeps_the_front(make) -> None:
    def interrupt(report: StepReport) -> None:
        if report.iteration == 2:
            raise KeyboardInterrupt

    outcome = run(make(hard), 0, callbacks=[interrupt])
    assert outcome.interrupted
    assert outcome.state.iteration == 2
    assert len(outcome.state.front) >= 2


def test_a_run_goes_on_from_a_state(make) -> None:
    first = run(make(hard), 0, max_iterations=2)
    second = run(make(hard), 0, max_iterations=4, state=first.state)
    whole = run(make(hard), 0, max_iterations=4)
    assert second.state.front == whole.state.front
    assert second.state.elapsed > first.state.elapsed


@pytest.mark.gpu
@pytest.mark.parametrize("seconds", [0.6, 2.0])
def test_a_process_ends_well_while_the_gpu_is_still_made_ready(seconds, tmp_path) -> None:
    code = (
        "import numpy as np\n"
        "from symenum import PSERegressor\n"
        "X = np.random.default_rng(0).uniform(1, 3, (200, 5))\n"
        "y = np.sin(3 * X[:, 0]) / (X[:, 1] + np.exp(np.cos(X[:, 2] * X[:, 3]))) + np.tanh(X[:, 4] - X[:, 1])\n"
        f"PSERegressor(device='cuda', max_time={seconds}).fit(X, y)\n"
    )
    compiled_anew = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=compiled_anew, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "terminate" not in ended.stderr
