"""Settings that all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from browsers import chromium, why_not
from hypothesis import settings

from symenum.core.threads import torch_threads

# The machine is shared: a deadline would fail on someone else's load. CI draws the same examples every time.
settings.register_profile("symenum", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("symenum")

# A shell without job control (nohup, `make test &` in a script) starts background jobs with Ctrl-C ignored, and so do
# all processes that the tests start. Tests of Ctrl-C need Python's own handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


def pytest_report_header() -> str:
    """Whether the studio's page is tested in a browser."""
    reason = why_not()
    return f"browser tests: skipped, {reason}" if reason else f"browser tests: with {chromium()}"
