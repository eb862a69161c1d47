"""Memory: how much a search may take, and how what was freed goes back to the system."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from pathlib import Path

__all__ = ["DEFAULT_MEMORY", "LEAST_MEMORY", "hand_back", "kept_low", "machine_memory", "memory_limit"]


# --------------------------------------------------------------------------------------------------------------------
# How much memory there is, how much a pass will take, and the refusal of one that does not fit.


DEFAULT_MEMORY = 4 << 30
LEAST_MEMORY = 400_000_000  # what tables of 30 columns or a million rows take at least, as measured
_OF_THE_MACHINE = 0.5  # the rest is for the data, and for others
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
# Limits of the container that we are in, by the two versions of Linux's control groups.
_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(max_memory: object = None) -> int:
    """Bytes that a search may take: a number of them, text such as "2GB", or None for what the machine allows.

    >>> memory_limit("1.5 GB")
    1500000000
    """
    if max_memory is None:
        return min(DEFAULT_MEMORY, max(LEAST_MEMORY, int(_OF_THE_MACHINE * machine_memory())))
    size = None
    if isinstance(max_memory, Integral) and not isinstance(max_memory, bool):
        size = int(max_memory)
    elif isinstance(max_memory, str) and (match := _SIZE.fullmatch(max_memory)):
        size = int(float(match[1]) * _UNITS[(match[2] or "").lower()])
    if size is None:
        raise ValueError(f"max_memory must be a number of bytes, text such as '2GB', or None, not {max_memory!r}")
    if size < LEAST_MEMORY:
        raise ValueError(f"max_memory must be at least {LEAST_MEMORY // 10**6}MB, not {max_memory!r}")
    return size


def machine_memory(groups: Sequence[Path] = _GROUPS) -> int:
    """Bytes of the machine, or of the container where that has fewer; 8 GiB where nobody knows."""
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, OSError, ValueError):  # not on every system
        found = []
    for path in groups:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        found += [int(text)] if text.isdigit() else []  # "max" where there is no limit
    return min(found, default=8 << 30)


# --------------------------------------------------------------------------------------------------------------------
# The C library's allocator under a memory limit: what was freed goes back to the system, and is not kept for later.


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
