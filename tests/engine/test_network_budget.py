"""A pass ends early, cleanly, when its budget is over; otherwise it gives the same result every time."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import count

import numpy as np
import pytest
import torch

from symenum import PSRN
from symenum.expressions import evaluate


@pytest.fixture(scope="module")
def wide():
    """koza on five inputs: a pass of seconds. The mask is made here, so that limits meet the scan."""
    net = PSRN(5, "koza", 3)
    assert net.sizes[-1] > 1_000_000_000
    return net


@pytest.fixture(scope="module")
def problem():
    generator = np.random.default_rng(0)
    values = generator.uniform(0.5, 3, (20, 5))
    return values, values[:, 0] * np.sin(values[:, 1]) - values[:, 2] / values[:, 3] + 0.1 * generator.normal(size=20)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    before = torch.get_num_threads()
    yield
    assert torch.get_num_threads() == before
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("symenum")]


def is_valid(shortlist, k):
    losses = [candidate.loss for candidate in shortlist]
    return (
        len(losses) <= k
        and np.isfinite(losses).all()
        and losses == sorted(losses)
        and len({candidate.expression for candidate in shortlist}) == len(losses)
    )


def after(calls):
    """A stop flag that is raised at the given call."""
    numbers = count(1)
    return lambda: next(numbers) >= calls


@pytest.mark.parametrize("limit", [1e-9, 0.05])
def test_time_limit_ends_a_pass_early(wide, problem, limit):
    found = wide.search(*problem, k=5, time_limit=limit)
    assert not found.complete
    assert found.scored < wide.sizes[-1]
    assert is_valid(found, 5)


@pytest.mark.parametrize("calls", [1, 2, 60])
def test_stop_flag_ends_a_pass_early(wide, problem, calls):
    found = wide.search(*problem, k=5, stop=after(calls))
    assert not found.complete
    assert found.scored < wide.sizes[-1]
    assert is_valid(found, 5)
    assert len(found) == (0 if calls == 1 else 5)


def test_losses_of_a_pass_that_ended_early_are_true(wide, problem):
    values, y = problem
    columns = {f"x{i + 1}": values[:, i] for i in range(5)}
    found = wide.search(values, y, k=5, stop=after(60))
    for candidate in found:
        assert candidate.loss == pytest.approx(np.mean((evaluate(candidate.expression, columns) - y) ** 2), rel=1e-9)


def test_event_is_a_stop_flag(wide, problem):
    event = threading.Event()
    event.set()
    assert not wide.search(*problem, stop=event.is_set).complete


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("calls", [1, 2])
def test_screening_ends_early_too(calls):
    values = np.random.default_rng(1).uniform(0.5, 3, (3_000, 2))
    found = PSRN(2, "arithmetic", 2).search(values, values[:, 0] + values[:, 1], k=3, stop=after(calls), threads=1)
    assert not found.complete
    assert is_valid(found, 3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("calls", [1, 7])
def test_exception_in_the_stop_flag_reaches_the_caller(wide, problem, error, threads, calls):
    numbers = count(1)

    def stop():
        if next(numbers) == calls:
            raise error("from the flag")
        return False

    with pytest.raises(error, match="from the flag"):
        wide.search(*problem, stop=stop, threads=threads)


def test_interrupt_of_the_waiting_thread_ends_the_others(wide, problem, monkeypatch):
    # Ctrl-C reaches the main thread, which is waiting for the first worker.
    join = threading.Thread.join
    interrupted = []

    def interrupt(thread, timeout=None):
        if thread.name.startswith("symenum") and not interrupted:
            interrupted.append(thread)
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupt)
    with pytest.raises(KeyboardInterrupt):
        wide.search(*problem, threads=2)


def test_net_works_again_after_an_interrupt(problem):
    def stop():
        raise KeyboardInterrupt

    net = PSRN(5, "koza", 2)
    expected = net.search(*problem)
    with pytest.raises(KeyboardInterrupt):
        net.search(*problem, stop=stop)
    assert net.search(*problem) == expected


def test_limits_that_are_not_reached_change_nothing(problem):
    net = PSRN(5, "koza", 2)
    plain = net.search(*problem)
    assert plain.complete
    assert plain.scored == net.sizes[-1]
    assert net.search(*problem, time_limit=1e6, stop=lambda: False) == plain
    assert net.search(*problem, time_limit=float("inf")) == plain


@pytest.mark.parametrize(
    ("inputs", "operators", "layers"),
    [(3, "koza", 3), (2, "semikoza", 3), (5, "koza", 2), (2, ["+", "pow", "neg", "sin"], 2), (1, "koza", 1)],
)
def test_result_does_not_depend_on_the_threads_or_the_run(problem, inputs, operators, layers):
    values, y = problem
    net = PSRN(inputs, operators, layers)
    first = net.search(values[:, :inputs], y, k=20, threads=1)
    assert is_valid(first, 20)
    assert net.search(values[:, :inputs], y, k=20, threads=2) == first
    assert net.search(values[:, :inputs], y, k=20, threads=2) == first
    assert net.search(values[:, :inputs], y, k=20) == first
    assert PSRN(inputs, operators, layers).search(values[:, :inputs], y, k=20, threads=3) == first


def test_result_with_ties_does_not_depend_on_the_threads():
    # Every loss is met by many candidates: small whole numbers, few rows.
    values = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])
    net = PSRN(2, "koza", 3)
    runs = [net.search(values, [3.0, 3.0, 6.0], k=30, threads=threads) for threads in (1, 2, 2, 2)]
    assert all(run == runs[0] for run in runs)


@pytest.mark.usefixtures("one_thread")
def test_screening_gives_the_same_result_every_time():
    generator = np.random.default_rng(2)
    values = generator.uniform(-2, 2, (2_500, 2))
    y = values[:, 0] * values[:, 1] + 0.1 * generator.normal(size=2_500)
    net = PSRN(2, "arithmetic", 2)
    assert net.search(values, y, threads=1) == net.search(values, y, threads=2)


@pytest.mark.usefixtures("one_thread")
def test_random_numbers_of_the_caller_are_left_alone(problem):
    values = np.repeat(problem[0], 200, axis=0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    PSRN(5, "arithmetic", 1).search(values, values[:, 0])
    assert torch.equal(torch.rand(3), expected)


def test_ctrl_c_ends_a_search_and_the_process_goes_on():
    script = """
import os, signal, threading, numpy as np
from symenum import PSRN
random = np.random.default_rng(0)
x, y = random.uniform(1, 2, (1500, 5)), random.normal(size=1500)
net = PSRN(5, "koza", 3)
net.sizes
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    net.search(x, y, mode="exact")
except KeyboardInterrupt:
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("symenum")]
    print("interrupted", left)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "interrupted []"), done.stderr
