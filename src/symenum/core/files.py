"""Files that are whole or not there, and the folder where numbers are kept between runs.

A file is written under another name, flushed to the disk, and renamed: a kill or a full disk never leaves half a file.

The cache holds numbers that depend on an architecture only, as plain .npy arrays of integers. It is never needed: a
file that is missing, damaged or of another version is computed again.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from platformdirs import user_cache_path

__all__ = ["cache_folder", "cached_numbers", "key_of", "write_whole"]

_HEADER = 128  # bytes of the header of a .npy file with one axis


def write_whole(path: Path, content: str | bytes) -> None:
    """The file with this content, or, if that fails at any moment, the file as it was before."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    # A name of this thread's own: another process or thread may write the same file at the same time.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """`SYMENUM_CACHE` where set, else the place that the operating system gives to caches."""
    if override := os.environ.get("SYMENUM_CACHE"):
        return Path(override)
    return user_cache_path("symenum", appauthor=False, opinion=False)


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
    _store(path, numbers)
    return numbers


def _read(path: Path) -> npt.NDArray[np.int64] | None:
    """The numbers of a file that is to the byte what `_store` would make of some numbers; None for any other.

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


def _store(path: Path, numbers: npt.NDArray[np.int64]) -> None:
    """Write the numbers; where that is not possible, one warning says so."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _header(len(numbers)) + numbers.astype("<i8").tobytes())
    except OSError as error:
        warnings.warn(
            f"could not store the duplicate mask in {path.parent} ({error}); it will be computed again next time. "
            "Set SYMENUM_CACHE to a folder that can be written.",
            stacklevel=2,
        )
