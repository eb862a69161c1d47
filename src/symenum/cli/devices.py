"""`symenum devices`: what this machine offers, and what a search will use."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import click

__all__ = ["devices_command"]

_GIB = 1 << 30


@click.command("devices")
def devices_command() -> None:
    """Show CPU cores, memory, torch and CUDA devices, and what "auto" picks."""
    for name, value in _facts():
        click.echo(f"{name + ':':12}{value}")


def _facts() -> Iterator[tuple[str, str]]:
    import torch

    from symenum.enumeration.threads import available_cores

    cores, all_cores = available_cores(), os.cpu_count() or 1
    usable = "" if cores == all_cores else f" of {all_cores}"
    yield "CPU", f"{cores}{usable} cores ({platform.processor() or platform.machine()})"
    yield "memory", _memory()
    yield "torch", torch.__version__
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        yield "CUDA", "none"
    for i in range(count):
        properties = torch.cuda.get_device_properties(i)
        yield f"cuda:{i}", f"{properties.name}, {properties.total_memory / _GIB:.1f} GiB"
    why = "this version searches on the CPU" if count else "no CUDA device"
    yield "auto", f"cpu ({why})"


def _memory() -> str:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    limit = _container_limit()
    if limit is not None and limit < total:
        return f"{limit / _GIB:.1f} GiB (limit of the container; the machine has {total / _GIB:.1f} GiB)"
    return f"{total / _GIB:.1f} GiB"


def _container_limit() -> int | None:
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
