"""How much memory there is, how much a pass will take, and the refusal of one that does not fit."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

from symenum.enumeration.layer import layer_sizes
from symenum.expressions import sample_points
from symenum.operators import Operator

__all__ = [
    "DEFAULT_MEMORY",
    "LEAST_MEMORY",
    "check_bank_fits",
    "check_mask_fits",
    "fits_memory",
    "machine_memory",
    "memory_limit",
]

DEFAULT_MEMORY = 4 << 30
LEAST_MEMORY = 400_000_000  # what tables of 30 columns or a million rows take at least, as measured

_MASK_COPIES = 6  # values at the random points, and temporaries of the comparison
_BANK_COPIES = 2  # as computed, and as ordered
_WORKSPACE = 128 << 20  # tiles and factors of a few threads
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


def fits_memory(inputs: int, operators: Sequence[Operator], layers: int, max_memory: int) -> bool:
    """Whether the sub-expressions of an architecture fit, before any data."""
    return all(_mask_memory(inputs, operators, depth) <= max_memory for depth in range(1, layers))


def check_mask_fits(inputs: int, operators: Sequence[Operator], layers: int, max_memory: int) -> None:
    """Refuse an architecture whose sub-expressions alone, without any data, do not fit."""
    if 64 * inputs > max_memory:
        raise ValueError(f"inputs = {inputs:,} slots alone need more than max_memory = {_gigabytes(max_memory)}")
    for depth in range(1, layers):  # one layer at a time: sizes square with each, and must not be computed in vain
        need = _mask_memory(inputs, operators, depth)
        if need > max_memory:
            size = layer_sizes(operators, inputs, depth)[-1]
            raise ValueError(
                f"layer {depth} of {layers} would have {size:,} sub-expressions and need {_gigabytes(need)}, more than "
                f"max_memory = {_gigabytes(max_memory)}: use fewer layers, inputs (now {inputs}) or operators "
                f"(now {len(operators)}), or raise max_memory"
            )


def check_bank_fits(columns: int, rows: int, max_memory: int) -> None:
    """Refuse data on which the bank does not fit."""
    need = columns * rows * 8 * _BANK_COPIES + _WORKSPACE
    if need > max_memory:
        raise ValueError(
            f"the bank of {columns:,} sub-expressions on {rows:,} rows would need {_gigabytes(need)}, more than "
            f"max_memory = {_gigabytes(max_memory)}: use mode='screen' or fewer rows, inputs, layers or operators, "
            "or raise max_memory"
        )


def _mask_memory(inputs: int, operators: Sequence[Operator], depth: int) -> int:
    """Bytes to tell the outputs of that layer apart."""
    points = sample_points(1).shape[0]
    return layer_sizes(operators, inputs, depth)[-1] * points * 8 * _MASK_COPIES + _WORKSPACE


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
