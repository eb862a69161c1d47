"""Heads work with thousands of small operations; `first_pass` runs them on one torch thread, and so do their tests."""

from __future__ import annotations

import pytest

from symenum.enumeration.threads import torch_threads


@pytest.fixture(autouse=True)
def _one_thread():
    with torch_threads(1):
        yield
