"""Settings that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from symenum.core.threads import torch_threads

# The machine is shared: a deadline would fail on someone else's load. CI draws the same examples every time.
settings.register_profile("symenum", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("symenum")


@pytest.fixture(autouse=True, scope="session")
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache folder."""
    before = os.environ.get("SYMENUM_CACHE")
    os.environ["SYMENUM_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["SYMENUM_CACHE"]
    else:
        os.environ["SYMENUM_CACHE"] = before


@pytest.fixture
def one_thread() -> Iterator[None]:
    """On a shared machine torch's threads wait for each other, ten milliseconds at each small operation."""
    with torch_threads(1):
        yield
