"""Files that are written whole or not at all, and a cache of integers between runs.

A file is written under another name, flushed to the disk, and renamed: a kill or a full disk never leaves half a file.

The cache holds one-dimensional int64 arrays as .npy files, each under a key made from all that the numbers depend on.
No result depends on it: a file that is missing or damaged is computed again.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

from symenum.core.user_warnings import warn_user

__all__ = ["cache_folder", "cached_numbers", "key_of", "write_whole"]

_HEADER_BYTES = 128  # of a .npy file (format 1.0) with one axis: NumPy pads headers to a multiple of 64
_ITEM_BYTES = 8  # of an int64


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8). If that fails at any moment, the file stays as it was before."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    # A name of this thread's own: another process or thread may write the same file at the same time.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error  # the name that the caller knows
        raise


def cache_folder() -> Path:
    """The folder named by $SYMENUM_CACHE, or without it the place that the operating system gives to caches."""
    if override := os.environ.get("SYMENUM_CACHE"):
        return Path(override)
    return user_cache_path("symenum", appauthor=False, opinion=False)


def key_of(*parts: object) -> str:
    """A file name, 32 hexadecimal digits, from everything that the numbers depend on."""
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
    """The numbers (int64) of a file that `_store` could have written, to the byte; None for any other file.

    Not by np.load, which trusts the header: a damaged one can make it ask for any amount of memory.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return None  # missing or unreadable: the caller computes it again
    count, extra = divmod(len(content) - _HEADER_BYTES, _ITEM_BYTES)
    if count < 0 or extra or content[:_HEADER_BYTES] != _header(count):
        return None
    import numpy as np  # late: the command line begins with this module, and `--help` need not wait

    return np.frombuffer(content, dtype="<i8", offset=_HEADER_BYTES).astype(np.int64)


def _header(count: int) -> bytes:
    import numpy as np

    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (count,)})
    return file.getvalue()


def _store(path: Path, numbers: npt.NDArray[np.int64]) -> None:
    """Write the numbers; where that is not possible, one warning says so."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _header(len(numbers)) + numbers.astype("<i8").tobytes())
    except OSError as error:
        warn_user(
            f"could not store the duplicate mask in {path.parent} ({error}); it will be computed again next time. "
            "Set SYMENUM_CACHE to a folder that can be written.",
        )
