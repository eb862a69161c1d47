"""The memory limit comes from text, the machine or the container; under a tight one freed memory goes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from symenum.core import memory
from symenum.core.memory import (
    DEFAULT_MEMORY,
    LEAST_MEMORY,
    large_blocks_returned,
    machine_memory,
    memory_limit,
    return_freed_memory,
)

glibc = pytest.mark.skipif(
    memory._function("mallopt") is None or not memory._STATM.exists(), reason="needs Linux with glibc"
)

# 100 blocks of 2 MB, all freed but the last, which keeps the end of the heap; what the process holds more than before.
BLOCKS = """
from symenum.core.memory import _resident, large_blocks_returned
del (bytearray(30 << 20))[:]  # so large a block, once freed, makes glibc keep blocks of that size
with large_blocks_returned({limit}):
    before = _resident()
    blocks = [bytearray(b"x") * (2 << 20) for _ in range(100)]
    blocks = blocks[-1:]
    print((_resident() - before) / 1e6)
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 gb", 15 * 10**8), ("512MiB", 512 << 20), ("600000000", 6 * 10**8), (10**9, 10**9)],
)
def test_sizes_are_read(text: object, size: int) -> None:
    assert memory_limit(text) == size


@pytest.mark.parametrize("value", ["", "2 apples", "-1GB", 2.5e9, True, [], 10, "1kB", "__import__('os')"])
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^max_memory must be"):
        memory_limit(value)


def test_the_machine_decides_where_nobody_does() -> None:
    assert LEAST_MEMORY <= memory_limit(None) <= DEFAULT_MEMORY


def test_a_container_has_less_than_the_machine(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    missing = tmp_path / "missing"
    limit.write_text("max\n")
    whole = machine_memory([limit, missing])
    limit.write_text("1000000000\n")
    assert machine_memory([limit, missing]) == min(whole, 10**9)


@glibc
def test_what_was_freed_goes_back_to_the_system() -> None:
    many = [bytes(2000) for _ in range(100_000)]
    above = bytes(2000)  # keeps the allocator from giving back the end of its heap by itself
    held = memory._resident()
    del many
    return_freed_memory(max_memory=1)
    assert held - memory._resident() > 100_000_000
    assert len(above) == 2000


def test_far_below_the_limit_nothing_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(memory, "_function", lambda name: {"malloc_trim": trimmed.append}[name])
    monkeypatch.setattr(memory, "_resident", lambda: 10**9)
    return_freed_memory(3 * 10**9)
    assert trimmed == []
    return_freed_memory(10**9)
    assert trimmed == [0]


@glibc
@pytest.mark.parametrize(("limit", "least", "most"), [(4 * 10**8, 0, 20), (4 * 10**9, 150, 300)])
def test_under_a_tight_limit_large_blocks_go_back_at_once(limit: int, least: float, most: float) -> None:
    command = [sys.executable, "-c", BLOCKS.format(limit=limit)]
    held = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert least <= held <= most


def test_the_setting_is_undone_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[tuple[int, int]] = []
    monkeypatch.setattr(memory, "_function", lambda name: lambda what, value: settings.append((what, value)))
    with pytest.raises(KeyboardInterrupt), large_blocks_returned(4 * 10**8):
        raise KeyboardInterrupt
    (what, tight), *later = settings
    assert dict(later)[what] > tight


def test_where_the_library_has_no_such_setting_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(memory, "_function", asked.append)  # which gives None
    monkeypatch.setattr(memory, "_resident", lambda: 10**9)
    with large_blocks_returned(4 * 10**8):
        return_freed_memory(1)
    assert asked == ["mallopt", "malloc_trim"]
