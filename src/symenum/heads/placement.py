"""Where a scan of pairs runs: on a GPU where one is there and the scan is worth it, else on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from symenum.enumeration.devices import choose_devices
from symenum.heads.best_pairs import Pairs

__all__ = ["scan_where_it_suits"]

_STARTED = 20  # a GPU that is in use, or was asked for, is worth it for scans so many times smaller


def scan_where_it_suits(
    scan: Callable[..., Pairs], *tensors: Tensor | None, work: int, device: str, head: str
) -> Pairs:
    """scan(*tensors), with the tensors moved where it is fastest; the result lies on the CPU.

    `device`: "cpu", or the name of a GPU or "auto" to let the size decide; `work`: the number of pairs times rows. A
    GPU without room is said, with the name of the head, and the CPU does it.
    """
    if device != "auto" or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        work *= _STARTED
    if device != "cpu" and choose_devices("auto", work):
        (there,) = choose_devices(device, work)[:1]
        try:
            return scan(*(None if tensor is None else tensor.to(there) for tensor in tensors)).cpu()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            warnings.warn(f"the GPU has no memory left for the head {head!r}: it runs on the CPU", stacklevel=2)
    return scan(*tensors)
