"""How a search went, and on what, in words."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import version

__all__ = ["run_facts"]


def run_facts(reason: str, seconds: float, steps: int, scored: int, plan: str) -> dict[str, str]:
    """What a report says of a run; versions, machine and date are those of now."""
    return {
        "ended": reason,
        "time": f"{seconds:.1f} s",
        "steps": str(steps),
        "candidates that the network scored": f"{scored:.4g}",
        "network": plan,
        "versions": ", ".join([f"Python {platform.python_version()}", *map(_versioned, ("symenum", "torch"))]),
        "machine": f"{platform.system()} {platform.machine()}",
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def _versioned(package: str) -> str:
    return f"{package} {version(package)}"
