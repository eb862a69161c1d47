"""Whether the process that writes a run is alive: it holds a lock on a file, which its end removes, however it ends.

A process number would not tell: it may belong to another program by now, or to another machine. A copy of a folder is
not locked, so that a run copied while it was alive reads as one that was killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import BinaryIO

from symenum.run_directory.layout import EVENTS, LOCK

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["FolderIsBusyError", "RunLock", "is_held"]

_WAIT = 2.0  # seconds for which a lock is tried: whoever asks whether it is held has it for microseconds
_PAUSE = 0.02  # seconds between two tries
# Where the file system has no locks: a search that has written nothing for so many seconds has ended. A step takes a
# few seconds, and the writer looks at its files several times a second.
_SILENCE = 120.0


class FolderIsBusyError(ValueError):
    """Another search writes to the folder."""


class RunLock:
    """The lock of a folder, held from `acquire` to `release` or to the end of the process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._file: BinaryIO | None = None

    def acquire(self) -> None:
        """Take the lock; FolderIsBusyError where another search holds it."""
        file = self._path.open("ab")
        give_up = time.monotonic() + _WAIT
        while not _try_where_locks_exist(file):
            if time.monotonic() > give_up:
                file.close()
                raise FolderIsBusyError(
                    f"another search writes to the folder '{self._path.parent}': name another folder, or end that one"
                )
            time.sleep(_PAUSE)
        self._file = file

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._file is not None:
            self._file.close()  # which removes the lock
            self._file = None


def _try_where_locks_exist(file: BinaryIO) -> bool:
    """Whether the lock could be taken; a file system without locks refuses nobody."""
    try:
        return _try(file)
    except OSError:
        return True


def is_held(folder: Path) -> bool:
    """Whether a process that is alive writes to the folder."""
    try:
        with (folder / LOCK).open("rb") as file:
            return not _try_shared(file)
    except FileNotFoundError:
        return False
    except OSError:  # no right to read the file, or a file system without locks
        return _written_lately(folder)


def _written_lately(folder: Path) -> bool:
    try:
        return time.time() - (folder / EVENTS).stat().st_mtime < _SILENCE
    except OSError:
        return False


if sys.platform == "win32":

    def _try(file: BinaryIO) -> bool:
        """Whether the lock could be taken."""
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _try_shared(file: BinaryIO) -> bool:
        """Whether nobody holds the lock; it is given back with the file."""
        return _try(file)

else:

    def _try(file: BinaryIO) -> bool:
        """Whether the lock could be taken."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _try_shared(file: BinaryIO) -> bool:
        """Whether nobody holds the lock; it is given back with the file. Two who ask do not disturb each other."""
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
