"""How a search went, and on what, in words."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

__all__ = ["installed_version", "run_facts"]


def run_facts(reason: str, seconds: float, steps: int, scored: int, plan: str) -> dict[str, str]:
    """What a report says of a run; versions, machine and date are those of now."""
    versions = [f"{package} {installed_version(package)}" for package in ("symenum", "torch")]
    return {
        "ended": reason,
        "time": f"{seconds:.1f} s",
        "steps": str(steps),
        "candidates that the network scored": f"{scored:.4g}",
        "network": plan,
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
        "machine": f"{platform.system()} {platform.machine()}",
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def installed_version(package: str) -> str:
    """The version of a package, in words where it is used from its source."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"
