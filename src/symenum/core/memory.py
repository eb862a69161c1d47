"""Memory: how many bytes a search may take, and how freed memory goes back to the operating system.

glibc keeps freed memory for later, about 200 MB in each search. Under a tight limit that is too much:
`large_blocks_returned` and `return_freed_memory` return it. With other C libraries both do nothing. What a pass needs
is counted in `engine.architecture`.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from pathlib import Path

__all__ = [
    "DEFAULT_MEMORY",
    "LAWS_REMEMBERED",
    "LEAST_MEMORY",
    "large_blocks_returned",
    "machine_memory",
    "memory_limit",
    "return_freed_memory",
]


DEFAULT_MEMORY = 4 << 30
"""Bytes that a search may take on a machine with at least 8 GiB: half of a common laptop's memory."""
LEAST_MEMORY = 400_000_000
"""Smallest limit in bytes that is accepted: what benchmarks/trust/memory.py measures for 30 columns or 1e6 rows."""
LAWS_REMEMBERED = 4096
"""Laws of which a function keeps what it has found: those that a search has at hand. With five times as many, Python's
collector of garbage held fits up by a second in a process that had made a thousand of them (benchmarks/trust fuzz)."""
_MACHINE_SHARE = 0.5  # part of the machine's memory for a search; the rest is for the data and other programs
_UNKNOWN_MACHINE = 8 << 30  # bytes that are assumed where the system does not tell: a common laptop
# Bytes of each unit in a text such as "2GB" (decimal) or "2GiB" (binary).
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
# Files with the memory limit of the container, in versions 2 and 1 of Linux's control groups.
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(max_memory: object = None) -> int:
    """Bytes that a search may take: a number of them, text such as "2GB", or None for what the machine allows.

    >>> memory_limit("1.5 GB")
    1500000000
    """
    if max_memory is None:
        return min(DEFAULT_MEMORY, max(LEAST_MEMORY, int(_MACHINE_SHARE * machine_memory())))
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


def machine_memory(limits: Sequence[Path] = _CGROUP_LIMITS) -> int:
    """Bytes of memory of the machine, or of the container if that has fewer; 8 GiB where the system does not tell.

    `limits`: files that hold a container's limit in bytes, or the word "max".
    """
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, OSError, ValueError):  # not on every system
        found = []
    for path in limits:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        found += [int(text)] if text.isdigit() else []  # "max" where there is no limit
    return min(found, default=_UNKNOWN_MACHINE)


_STATM = Path("/proc/self/statm")  # the sizes of this process in pages; the second is what it holds
# Options of mallopt in glibc's malloc.h, both in bytes: the size from which a block is mapped, and returned, by itself;
# and how much freed memory may stay at the end of a heap.
_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1
# Bytes: what glibc itself sets both options to, at most, in a process that uses large blocks (64-bit systems).
_USUAL_MMAP_THRESHOLD = 32 << 20
_USUAL_TRIM_THRESHOLD = 2 * _USUAL_MMAP_THRESHOLD  # glibc's own rule
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_TIGHT_LIMIT = 2 * 10**9  # bytes: below this limit the 200 MB that glibc keeps matter
_LARGE_BLOCK = 1 << 20  # bytes of a block that is returned when it is freed; to map smaller ones costs too much time


@contextmanager
def large_blocks_returned(max_memory: int) -> Iterator[None]:
    """Inside, if the limit (bytes) is below 2 GB, blocks of 1 MiB or more go back to the system when they are freed.

    Each thread has a heap of its own, and a block in use at the end of a heap keeps all that was freed below it. The
    setting holds for the whole process and costs a tenth of the speed.
    """
    setting = _function("mallopt") if max_memory < _TIGHT_LIMIT else None
    if setting is None:
        yield
        return
    setting(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
    try:
        yield
    finally:
        setting(_M_MMAP_THRESHOLD, _USUAL_MMAP_THRESHOLD)
        setting(_M_TRIM_THRESHOLD, _USUAL_TRIM_THRESHOLD)


def return_freed_memory(max_memory: int) -> None:
    """Return freed memory to the system, if the process holds more than half of the limit (bytes).

    glibc keeps freed memory for later; under a tight limit the next scan would need its own on top of that.
    """
    if _resident() > max_memory // 2 and (trim := _function("malloc_trim")) is not None:
        trim(0)


def _resident() -> int:
    """Bytes of memory that the process holds now; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):  # not Linux
        return 0


@cache
def _function(name: str) -> Callable[..., int] | None:
    """A function of glibc; None with another C library."""
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return found
