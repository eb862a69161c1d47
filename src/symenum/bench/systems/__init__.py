"""The systems that a benchmark can run, ours and its rivals, each behind a small adapter in a file of its own."""

from symenum.bench.systems.base import Found, Law, NotInstalledError, System
from symenum.bench.systems.registry import SYSTEMS, check_found, check_system, make_system, register_system

__all__ = [
    "SYSTEMS",
    "Found",
    "Law",
    "NotInstalledError",
    "System",
    "check_found",
    "check_system",
    "make_system",
    "register_system",
]
