"""The C library's allocator under a memory limit: what was freed goes back to the system, and is not kept for later."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

__all__ = ["hand_back", "kept_low"]

_STATM = Path("/proc/self/statm")
_TIGHT = 2 * 10**9  # below, the 200 MB or so that the allocator keeps for each search matter
_LARGE = 1 << 20  # bytes of a block that goes back as soon as it is free; smaller ones are made too often for that
# Of mallopt: which blocks are the system's own, and how much may lie free at the end of a heap; and what glibc makes of
# them by itself in a process that uses large blocks.
_BLOCKS, _FREE_AT_END = -3, -1
_USUAL_BLOCKS, _USUAL_FREE = 32 << 20, 64 << 20


@contextmanager
def kept_low(max_memory: int) -> Iterator[None]:
    """Give large blocks back as soon as they are freed, where the limit is tight.

    Threads have heaps of their own, and a block in use at the end of one keeps all that was freed below it. For the
    whole process, while it lasts: a tenth of the speed is what it costs.
    """
    setting = _function("mallopt") if max_memory < _TIGHT else None
    if setting is None:
        yield
        return
    setting(_BLOCKS, _LARGE)
    try:
        yield
    finally:
        setting(_BLOCKS, _USUAL_BLOCKS)
        setting(_FREE_AT_END, _USUAL_FREE)


def hand_back(max_memory: int) -> None:
    """Give freed memory back to the system, where the process holds more than half of what it may take.

    The allocator keeps what was freed for later; under a tight limit the next scan's needs would come on top of it.
    """
    if _resident() > max_memory // 2 and (trim := _function("malloc_trim")) is not None:
        trim(0)


def _resident() -> int:
    """Bytes that the process holds now; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):  # not Linux
        return 0


@cache
def _function(name: str) -> Callable[..., int] | None:
    """One of glibc's own; other libraries keep less, and have none."""
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return found
