"""Random numbers of a search: each purpose has a stream of its own, and all streams follow from one seed.

A stream is identified by its purpose, so that one more draw in one place changes nothing elsewhere. Numbers that must
be the same for all seeds (the points on which functions are compared) are drawn where they are used, by a fixed seed.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch
from torch import Tensor

__all__ = ["sample_rows", "stream", "torch_stream"]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """NumPy's random numbers for one purpose; the same for the same seed and purpose.

    >>> stream(3, "rows").integers(100) == stream(3, "rows").integers(100)
    np.True_
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def torch_stream(seed: int, purpose: str) -> torch.Generator:
    """As `stream`, for torch, on the CPU."""
    return torch.Generator().manual_seed(int(stream(seed, purpose).integers(1 << 63)))


def sample_rows(rows: int, max_rows: int, seed: int, purpose: str) -> Tensor:
    """The indices (int64, ascending, CPU) of all rows, or of `max_rows` of them drawn at random.

    Neither the first rows nor every n-th one would do: data may be sorted, or repeat with a period.
    """
    if rows <= max_rows:
        return torch.arange(rows)
    return torch.from_numpy(np.sort(stream(seed, purpose).permutation(rows)[:max_rows]))
