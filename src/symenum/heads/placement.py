"""Where a scan runs: on a GPU where one is there and the scan is worth it, else on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from symenum.enumeration.devices import choose_devices
from symenum.heads.best_pairs import Pairs

__all__ = ["run_where_it_suits", "scan_where_it_suits"]

CPU = torch.device("cpu")
_STARTED = 20  # a GPU that is in use, or was asked for, is worth it for scans so many times smaller

Result = TypeVar("Result")


def run_where_it_suits(run: Callable[[torch.device], Result], *, work: int, device: str, head: str) -> Result:
    """run(there), where it is fastest. A GPU without room is said, with the name of the head, and the CPU does it.

    `device`: "cpu", or the name of a GPU or "auto" to let the size decide; `work`: the number of candidates times rows.
    """
    if device != "auto" or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        work *= _STARTED
    if device != "cpu" and choose_devices("auto", work):
        try:
            return run(choose_devices(device, work)[0])
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            warnings.warn(f"the GPU has no memory left for the head {head!r}: it runs on the CPU", stacklevel=2)
    return run(CPU)


def scan_where_it_suits(
    scan: Callable[..., Pairs], *tensors: Tensor | None, work: int, device: str, head: str
) -> Pairs:
    """scan(*tensors), with the tensors moved where it is fastest; the result lies on the CPU."""

    def run(there: torch.device) -> Pairs:
        return scan(*(None if tensor is None else tensor.to(there) for tensor in tensors)).cpu()

    return run_where_it_suits(run, work=work, device=device, head=head)
