"""The scans run on one torch thread, as they do in a search."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _as_in_a_search(one_thread: None) -> None:
    """See above."""
