"""Heads work with thousands of small operations; `first_pass` runs them on one torch thread, and so do their tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _as_in_first_pass(one_thread):
    """See above."""
