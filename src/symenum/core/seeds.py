"""Random numbers of a search: every use has a stream of its own, and all of them follow from one seed.

A stream is known by what it is for, so that one more draw in one place changes nothing elsewhere. What has to be the
same for all seeds (points on which functions are told apart) is drawn where it is used, with a number of its own.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch
from torch import Tensor

__all__ = ["some_rows", "stream", "torch_stream"]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose, the same for the same seed.

    >>> stream(3, "rows").integers(100) == stream(3, "rows").integers(100)
    np.True_
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def torch_stream(seed: int, purpose: str) -> torch.Generator:
    """The same for torch."""
    return torch.Generator().manual_seed(int(stream(seed, purpose).integers(1 << 63)))


def some_rows(rows: int, most: int, seed: int, purpose: str) -> Tensor:
    """The numbers (int64, ascending) of all rows, or of `most` of them drawn at random.

    Not the first ones, and not every so many: data may be sorted, or repeat with a period.
    """
    if rows <= most:
        return torch.arange(rows)
    return torch.from_numpy(np.sort(stream(seed, purpose).permutation(rows)[:most]))
