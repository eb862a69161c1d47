"""The folder where numbers that depend on an architecture only are kept between runs, and how they get there.

A cache is never needed: a file that is missing, damaged or of another version is computed again. Files are plain .npy
arrays of integers, written under another name first, so that a kill or a full disk never leaves half a file.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["cache_folder", "cached_numbers", "key_of"]

_HEADER = 128  # bytes of the header of a .npy file with one axis


def cache_folder() -> Path:
    """`SYMENUM_CACHE` where set, else the place that the operating system gives to caches."""
    if override := os.environ.get("SYMENUM_CACHE"):
        return Path(override)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "symenum"


def key_of(*parts: object) -> str:
    """A file name from everything that the numbers depend on."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:32]


def cached_numbers(
    key: str,
    compute: Callable[[], npt.NDArray[np.int64]],
    valid: Callable[[npt.NDArray[np.int64]], bool],
) -> npt.NDArray[np.int64]:
    """The numbers stored under `key` if they are `valid`, else computed and stored."""
    path = cache_folder() / f"{key}.npy"
    found = _read(path)
    if found is not None and valid(found):
        return found
    numbers = compute()
    _write(path, numbers)
    return numbers


def _read(path: Path) -> npt.NDArray[np.int64] | None:
    """The numbers of a file that is to the byte what `_write` would make of some numbers; None for any other.

    Not by np.load, which believes what a header says: a damaged one can ask it for any amount of memory.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return None  # missing or unreadable: the caller computes it again
    count = (len(content) - _HEADER) // 8
    if count < 0 or len(content) != _HEADER + 8 * count or content[:_HEADER] != _header(count):
        return None
    return np.frombuffer(content, dtype="<i8", offset=_HEADER).astype(np.int64)


def _header(count: int) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (count,)})
    return file.getvalue()


def _write(path: Path, numbers: npt.NDArray[np.int64]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, numbers.astype("<i8"), allow_pickle=False)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        warnings.warn(
            f"could not store the duplicate mask in {path.parent} ({error}); it will be computed again next time. "
            "Set SYMENUM_CACHE to a folder that can be written.",
            stacklevel=2,
        )
