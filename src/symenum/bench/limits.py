"""A command in a process group of its own, with hard limits: it is killed when its time or its memory is over.

Nothing is asked of the command. Memory is the resident one of the process and all its children, looked at twenty times
a second where the system shows it (Linux); elsewhere the memory limit does nothing, and `watches_memory` says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Ending", "run_limited", "watches_memory"]

_LOOK_SECONDS = 0.05
_TAIL = 2000  # characters of what it said on stderr
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class Ending:
    """How a command ended, after how long, with how much memory at most (bytes), and its last words."""

    how: Literal["done", "crashed", "out of time", "out of memory", "stopped"]
    seconds: float
    peak: int
    words: str


def watches_memory() -> bool:
    """Whether the memory of processes can be seen here."""
    return (_PROC / "self" / "statm").exists()


def run_limited(
    command: Sequence[str],
    *,
    seconds: float,
    memory: int,
    environment: Mapping[str, str] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Ending:
    """Run the command to its end, or to that of its time (seconds) or memory (bytes), or until `stop()` is true."""
    begin = time.monotonic()
    peak = 0
    how: Literal["out of time", "out of memory", "stopped"] | None = None
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                used = _memory(process.pid)
                peak = max(peak, used)
                if used > memory:
                    how = "out of memory"
                elif time.monotonic() - begin > seconds:
                    how = "out of time"
                elif stop():
                    how = "stopped"
                if how is not None:
                    break
                time.sleep(_LOOK_SECONDS)
        finally:
            _kill(process)
        taken = time.monotonic() - begin
        words.seek(max(0, words.seek(0, os.SEEK_END) - _TAIL))
        said = words.read().decode(errors="replace").strip()
    return Ending(how or ("done" if process.returncode == 0 else "crashed"), taken, peak, said)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group, also what the command has left behind."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.poll()  # nothing is left of it
    else:
        process.kill()
    process.wait()


def _memory(pid: int) -> int:
    """Resident bytes of a process and all below it; 0 where they cannot be seen."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
        children = [
            int(child)
            for task in (_PROC / str(pid) / "task").iterdir()
            for child in (task / "children").read_text(encoding="ascii").split()
        ]
    except (OSError, IndexError, ValueError):  # it has just ended, or this is no Linux
        return 0
    return pages * _PAGE + sum(_memory(child) for child in children)
