"""A process that has fitted may be copied (fork), and the copy can fit too: torch's threads are not copied with it."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
import torch

from symenum import PSERegressor
from symenum.core.threads import torch_threads

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot copy a process")

PATIENCE = 60.0  # a copy that waits for threads does so forever


def in_a_copy(work) -> int:
    """The exit status of a copy of this process that does the work; killed, and -9, where it hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)  # not back into pytest
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 on warns of any fork with threads
def test_a_copy_of_a_process_that_has_fitted_finds_the_same_law() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 2))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 0])

    def law() -> str:
        model = PSERegressor("arithmetic", max_time=None, max_iterations=4, layers=2, inputs=4, random_state=0)
        return str(model.fit(X, y).front_[-1].expression)

    with torch_threads(2):
        torch.ones(1000, 1000).exp()  # large enough for torch to start its threads
    before = law()
    assert in_a_copy(lambda: law() == before) == 0
