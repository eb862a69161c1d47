"""One thread inside every operation, and the caller's setting afterwards."""

from __future__ import annotations

import numpy as np
import torch
from threadpoolctl import threadpool_info

from symenum.core.threads import single_threaded


def test_each_operation_has_one_thread_inside_and_the_callers_number_afterwards() -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, torch_before = threads(), torch.get_num_threads()
    with single_threaded():
        with single_threaded():
            assert float(np.dot(np.ones(3), np.ones(3))) == 3.0
        assert set(threads()) == {1}  # the inner one must not put back what the outer one needs
        assert torch.get_num_threads() == 1
    assert (threads(), torch.get_num_threads()) == (before, torch_before)
