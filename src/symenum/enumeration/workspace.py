"""Memory for tiles, one piece per thread, used again and again: asking the system anew costs as much as a product."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

__all__ = ["tile_space"]

_own = threading.local()


def tile_space(rows: int, columns: int, dtype: torch.dtype, slot: int = 0) -> Tensor:
    """An uninitialised (rows, columns) tensor; this thread's next call with the same slot and type overwrites it."""
    last: dict[tuple[torch.dtype, int], Tensor] = _own.__dict__.setdefault("last", {})
    tile = last.get((dtype, slot))
    if tile is not None and tile.shape == (rows, columns):
        return tile
    spaces: dict[tuple[torch.dtype, int], Tensor] = _own.__dict__.setdefault("spaces", {})
    space = spaces.get((dtype, slot))
    if space is None or space.numel() < rows * columns:
        space = spaces[dtype, slot] = torch.empty(rows * columns, dtype=dtype)
    tile = last[dtype, slot] = space[: rows * columns].view(rows, columns)
    return tile
