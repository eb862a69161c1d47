"""Which devices a pass runs on, how many candidates a second it scores there, and what is raised when a device fails.

A device is one that the user names, checked, or for "auto" a GPU if the pass is large enough.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

__all__ = [
    "ANY_WORK",
    "DeviceLostError",
    "choose_devices",
    "device_failed",
    "gpu_fault",
    "lost_devices",
    "pass_rate",
    "urgent",
]

_URGENT = -1  # CUDA's priority of a stream: the lower, the more urgent; 0 is that of all others

ANY_WORK = 1 << 62
"""Work for which "auto" takes a GPU, if there is one."""


# Candidates times rows from which "auto" takes a GPU: two cores of a CPU need a tenth of a second for so many, and a
# GPU needs about that long to start. Chosen by trial: benchmarks/constants.py shows what half and twice of it do.
_MIN_GPU_WORK = 2_000_000_000
_MIN_CAPABILITY = (8, 0)  # CUDA compute capability of the first GPUs with TF32 tensor cores (Ampere)
# Candidates that a pass of three layers of koza on 32 rows, best 30, scores in a second.
# On one CPU thread, and on two: koza on 5 inputs, two cores of a Xeon at 2.8 GHz. More threads bring no more: on the 16
# cores of an H200's host it was 1.0e9, 1.7e9 on two, 1.7e9 on four and 1.2e9 on 16.
_CPU_RATES = (7e8, 1.2e9)
_CUDA_RATE = 4e12  # on one GPU, in batches of 16 sets with 9 or 10 inputs: `benchmarks/gpu.py --only many` on an H200


class DeviceLostError(RuntimeError):
    """A GPU failed or ran out of memory in the middle of the work. The same call with device="cpu" does not need it."""


def choose_devices(device: str | Sequence[str], work: int) -> tuple[torch.device, ...]:
    """The GPUs to use; an empty tuple means the CPU.

    `device`: "cpu", "auto", "cuda", "cuda:1", or a sequence of GPUs that share one pass. `work`: the number of
    candidates times rows, by which "auto" decides. DeviceLostError if a GPU was there before and is gone.
    """
    if isinstance(device, str):
        names = [device]
    elif isinstance(device, Sequence) and device and all(isinstance(name, str) for name in device):
        names = list(device)
    else:
        raise TypeError(f"device must be 'auto', 'cpu', 'cuda', 'cuda:0', or several of the last, not {device!r}")
    if names == ["cpu"]:
        return ()
    if torch.cuda.is_initialized() and not torch.cuda.is_available():  # type: ignore[no-untyped-call]
        raise DeviceLostError("the GPU that this process has used is gone; use device='cpu'")
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


def pass_rate(device: str | Sequence[str], threads: int) -> float:
    """Candidates that a large pass scores in a second on `device` (see `choose_devices`), or on so many CPU threads.

    From a table, not measured: plans that follow from it must be the same whatever else the machine does.
    """
    names = [device] if isinstance(device, str) else list(device)
    if names == ["cpu"] or (names == ["auto"] and gpu_fault(0) is not None):
        return _CPU_RATES[min(threads, len(_CPU_RATES)) - 1]
    return _CUDA_RATE * len(set(names))


@contextmanager
def urgent(devices: Sequence[torch.device]) -> Iterator[None]:
    """Inside, what this thread launches on the first device goes before what other threads have launched there.

    A GPU that is busy with a scan of seconds gives its next free multiprocessor to urgent work.
    """
    if not devices:
        yield
        return
    with torch.cuda.stream(torch.cuda.Stream(devices[0], priority=_URGENT)):  # type: ignore[no-untyped-call]
        yield


def device_failed(error: BaseException) -> bool:
    """Whether the error says that a GPU failed or has no memory left."""
    # torch's own types are not enough: AcceleratorError is newer than some of its versions, and Triton has none.
    return isinstance(error, torch.cuda.OutOfMemoryError) or (isinstance(error, RuntimeError) and "CUDA" in str(error))


@contextmanager
def lost_devices(devices: Sequence[torch.device]) -> Iterator[None]:
    """Inside, an error that says that a GPU failed is raised as DeviceLostError."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, DeviceLostError) or not devices or not device_failed(error):
            raise
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DeviceLostError(f"{devices[0]} failed in the middle of a pass ({said}); use device='cpu'") from error
