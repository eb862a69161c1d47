"""What a bench ran on: facts for the report."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from symenum.display.report import installed_version

__all__ = ["machine_facts", "package_versions"]

_PACKAGES = ("numpy", "scipy", "sympy", "torch")


def machine_facts() -> dict[str, Any]:
    """Processor, cores, memory, GPU, and how busy the machine is."""
    import torch

    from symenum.enumeration.threads import available_cores

    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    return {"cpu": _cpu(), "cores": available_cores(), "memory_gb": _memory(), "gpu": gpu, "load": load}


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Python, and the packages that are installed."""
    versions = {"Python": platform.python_version()}
    return versions | {name: installed_version(name) for name in dict.fromkeys([*_PACKAGES, *packages])}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int | str:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    except (AttributeError, OSError, ValueError):
        return "?"
