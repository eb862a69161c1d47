"""One SymPy process for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from symenum.bench.judge import Judge


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one
