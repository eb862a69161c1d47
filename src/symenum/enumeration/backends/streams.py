"""Kernels that need not wait for each other, side by side: one's last blocks leave room for the next one's first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["SideStreams"]


class SideStreams:
    """`count` streams beside the current one; on the CPU, where Triton's interpreter runs, one after another.

    Nothing may be allocated inside: memory belongs to the stream that it was allocated on.
    """

    def __init__(self, device: torch.device, count: int) -> None:
        on_gpu = device.type == "cuda"
        self._streams = [torch.cuda.Stream(device) for _ in range(count if on_gpu else 0)]  # type: ignore[no-untyped-call]
        self._busy: list[torch.cuda.Stream] = []

    @contextmanager
    def one(self, place: int) -> Iterator[None]:
        """Inside, launches go to the stream of that place, and wait for what was launched before, outside."""
        if not self._streams:
            yield
            return
        stream = self._streams[place]
        stream.wait_stream(torch.cuda.current_stream())
        self._busy.append(stream)
        with torch.cuda.stream(stream):
            yield

    def join(self) -> None:
        """Let the current stream wait for all that was launched on them."""
        for stream in self._busy:
            torch.cuda.current_stream().wait_stream(stream)
        self._busy.clear()
