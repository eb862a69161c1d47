"""Which devices a pass runs on: those that the user names, checked, or for "auto" a GPU if the pass is large enough."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import torch

__all__ = ["choose_devices", "gpu_fault"]


# Candidates times rows from which "auto" takes a GPU: two cores of a CPU need a tenth of a second for so many, and a
# GPU needs about that long to start. Chosen by trial: benchmarks/constants.py shows what half and twice of it do.
_MIN_GPU_WORK = 2_000_000_000
_MIN_CAPABILITY = (8, 0)  # CUDA compute capability of the first GPUs with TF32 tensor cores (Ampere)


def choose_devices(device: str | Sequence[str], work: int) -> tuple[torch.device, ...]:
    """The GPUs to use; an empty tuple means the CPU.

    `device`: "cpu", "auto", "cuda", "cuda:1", or a sequence of GPUs that share one pass. `work`: the number of
    candidates times rows, by which "auto" decides.
    """
    if isinstance(device, str):
        names = [device]
    elif isinstance(device, Sequence) and device and all(isinstance(name, str) for name in device):
        names = list(device)
    else:
        raise TypeError(f"device must be 'auto', 'cpu', 'cuda', 'cuda:0', or several of the last, not {device!r}")
    if names == ["cpu"]:
        return ()
    if names == ["auto"]:
        return (torch.device("cuda", 0),) if work >= _MIN_GPU_WORK and gpu_fault(0) is None else ()
    return tuple(_checked(name) for name in names)


def _checked(name: str) -> torch.device:
    kind, _, index = name.partition(":")
    if kind != "cuda" or (index and not index.isdecimal()):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0', 'cuda:1', …, not {name!r}")
    fault = gpu_fault(int(index or 0))
    if fault is not None:
        raise ValueError(f"device {name!r}: {fault}; use device='cpu' or 'auto'")
    return torch.device("cuda", int(index or 0))


def gpu_fault(index: int) -> str | None:
    """Why the GPU of that index cannot be used; None if it can."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return "torch sees no CUDA device (no GPU, or a driver that does not fit)"
    if index >= torch.cuda.device_count():
        return f"there are {torch.cuda.device_count()} CUDA devices, numbered from 0"
    if torch.cuda.get_device_capability(index) < _MIN_CAPABILITY:
        return f"{torch.cuda.get_device_name(index)} has no TF32 tensor cores (compute capability 8.0 or newer)"
    if importlib.util.find_spec("triton") is None:
        return "the package triton, which comes with torch for CUDA, is missing"
    return None
