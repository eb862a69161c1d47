"""Under a limit freed memory goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

from symenum.core import memory as allocator
from symenum.core.memory import hand_back, kept_low

glibc = pytest.mark.skipif(
    allocator._function("mallopt") is None or not allocator._STATM.exists(), reason="needs Linux with glibc"
)

# 100 blocks of 2 MB, all freed but the last, which keeps the end of the heap; what the process holds more than before.
BLOCKS = """
from symenum.enumeration.allocator import _resident, kept_low
del (bytearray(30 << 20))[:]  # so large a block, once freed, makes glibc keep blocks of that size
with kept_low({limit}):
    before = _resident()
    blocks = [bytearray(b"x") * (2 << 20) for _ in range(100)]
    blocks = blocks[-1:]
    print((_resident() - before) / 1e6)
"""


@glibc
def test_what_was_freed_goes_back_to_the_system() -> None:
    many = [bytes(2000) for _ in range(100_000)]
    above = bytes(2000)  # keeps the allocator from giving back the end of its heap by itself
    held = allocator._resident()
    del many
    hand_back(max_memory=1)
    assert held - allocator._resident() > 100_000_000
    assert len(above) == 2000


def test_far_below_the_limit_nothing_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(allocator, "_function", lambda name: {"malloc_trim": trimmed.append}[name])
    monkeypatch.setattr(allocator, "_resident", lambda: 10**9)
    hand_back(3 * 10**9)
    assert trimmed == []
    hand_back(10**9)
    assert trimmed == [0]


@glibc
@pytest.mark.parametrize(("limit", "least", "most"), [(4 * 10**8, 0, 20), (4 * 10**9, 150, 300)])
def test_under_a_tight_limit_large_blocks_go_back_at_once(limit: int, least: float, most: float) -> None:
    command = [sys.executable, "-c", BLOCKS.format(limit=limit)]
    held = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert least <= held <= most


def test_the_setting_is_undone_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_function", lambda name: lambda what, value: settings.append((what, value)))
    with pytest.raises(KeyboardInterrupt), kept_low(4 * 10**8):
        raise KeyboardInterrupt
    (what, tight), *later = settings
    assert dict(later)[what] > tight


def test_where_the_library_has_no_such_setting_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(allocator, "_function", asked.append)  # which gives None
    monkeypatch.setattr(allocator, "_resident", lambda: 10**9)
    with kept_low(4 * 10**8):
        hand_back(1)
    assert asked == ["mallopt", "malloc_trim"]
