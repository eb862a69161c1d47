"""`symenum devices`: what this machine offers, and what a search will use."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

import click

__all__ = ["devices_command"]

_GIB = 1 << 30  # bytes


@click.command("devices")
def devices_command() -> None:
    """Show CPU cores, memory, torch and CUDA devices, and what "auto" picks."""
    for name, value in _facts():
        click.echo(f"{name + ':':12}{value}")


def _facts() -> Iterator[tuple[str, str]]:
    import torch

    from symenum.core.devices import gpu_fault
    from symenum.core.memory import machine_memory, memory_limit
    from symenum.core.threads import available_cores

    cores, all_cores = available_cores(), os.cpu_count() or 1
    usable = "" if cores == all_cores else f" of {all_cores}"
    yield "CPU", f"{cores}{usable} cores ({platform.processor() or platform.machine()})"
    total, usual = machine_memory() / _GIB, memory_limit() / _GIB
    yield "memory", f"{total:.1f} GiB, of which a search takes up to {usual:.1f} GiB"
    yield "torch", torch.__version__
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        yield "CUDA", "none"
    for i in range(count):
        properties = torch.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{properties.name}, {properties.total_memory / _GIB:.1f} GiB"
    fault = gpu_fault(0)
    yield "auto", "cuda:0 for large passes, cpu for small ones" if fault is None else f"cpu ({fault})"
