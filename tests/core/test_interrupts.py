"""Ctrl-C: the first one ends a budget, the second one raises."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from symenum import ODERegressor, PSERegressor
from symenum.core.budget import Budget
from symenum.core.interrupts import ctrl_c_ends, ctrl_c_ignored, sigterm_as_ctrl_c

RNG = np.random.default_rng(2)
X = RNG.uniform(0.5, 3, (40, 2))
Y = np.sin(3 * X[:, 0]) / (X[:, 1] + 2) + 0.05 * RNG.normal(size=40)


def press(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def quick(callback) -> PSERegressor:
    return PSERegressor(
        "arithmetic", max_time=None, max_iterations=50, layers=2, inputs=4, random_state=0, callbacks=[callback]
    )


def test_the_first_ends_the_budget_and_the_second_raises() -> None:
    stopping = Budget()
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_ends(stopping):
        press()
        assert stopping.over()
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_nothing_is_changed() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def work() -> None:
        with ctrl_c_ends(Budget()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_handler_of_ones_own_is_kept() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        with ctrl_c_ends(Budget()):
            press(2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(came) == 2


def test_ctrl_c_ends_a_fit_with_its_front() -> None:
    model = quick(lambda report: press() if report.iteration == 2 else None).fit(X, Y)
    assert model.interrupted_
    assert model.stop_reason_ == "interrupted"
    assert model.n_iter_ == 2
    assert np.isfinite(model.predict(X)).all()


def test_a_second_ctrl_c_exits_and_what_was_found_is_kept() -> None:
    model = quick(lambda report: press(2) if report.iteration == 2 else None)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.interrupted_
    assert len(model.front_) >= 2
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("stage", ["sums of terms", "products of powers"])
def test_ctrl_c_ends_a_search_for_laws_of_motion(stage: str) -> None:
    t = np.linspace(0, 6, 120)
    states = np.stack([np.sin(t) + 0.1 * np.cos(7 * t), np.cos(t) ** 3], axis=1)
    told: list[str] = []

    def interrupt(report) -> None:
        told.append(report.stage)
        if told.count(stage) == 1 and report.stage == stage:
            press()

    model = ODERegressor(max_time=None, max_iterations=30, random_state=0, callbacks=[interrupt]).fit(states, t)
    assert model.interrupted_
    assert len(model.fronts_) == 2
    assert np.isfinite(model.predict(states)).all()


def test_sigint_from_outside_is_seen_inside_a_step() -> None:
    """Not only between steps: a timer sends it while the search computes."""
    begun = threading.Event()

    def send() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    model = PSERegressor(max_time=300, random_state=0, callbacks=[lambda report: begun.set()]).fit(X, Y)
    sender.join()
    assert model.interrupted_
    assert model.elapsed_ < 100  # generous: the machine may be busy


def test_sigterm_counts_as_ctrl_c_inside_and_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stopping = Budget()
    with sigterm_as_ctrl_c(), ctrl_c_ends(stopping):
        signal.raise_signal(signal.SIGTERM)
        assert stopping.over()
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_ends_a_command_that_a_shell_script_started_in_the_background() -> None:
    stopping = Budget()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a shell does for `command &` in a script
    try:
        with sigterm_as_ctrl_c(), ctrl_c_ends(stopping):
            signal.raise_signal(signal.SIGTERM)
            assert stopping.over()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_ignored_inside_and_raises_again_afterwards() -> None:
    with ctrl_c_ignored():
        press(2)
    with pytest.raises(KeyboardInterrupt):
        press()


@pytest.mark.parametrize("change", [sigterm_as_ctrl_c, ctrl_c_ignored])
def test_handlers_come_back_after_an_error_too(change) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    with pytest.raises(ValueError, match="inside"), change():
        raise ValueError("inside")
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize("change", [sigterm_as_ctrl_c, ctrl_c_ignored])
def test_another_thread_may_use_all_of_them_and_changes_nothing(change) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    seen: list[object] = []

    def work() -> None:
        with change():
            seen.extend(signal.getsignal(number) for number in numbers)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == before
