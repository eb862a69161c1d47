"""What goes over the wire: a document of plain values and some arrays, as bytes. Nothing in them is ever run.

A message is an npz file in memory: the document as JSON, compressed, and the arrays as NumPy writes them. Engines such
as Dask move bytes; they need not know symenum's classes, and a worker of another version can still say so.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from symenum.cluster.errors import ClusterError

__all__ = ["Message", "decode", "encode", "hash_of"]

Arrays = Mapping[str, npt.NDArray[Any]]

_DOCUMENT = "document"  # the name of the document among the arrays
_LEVEL = 1  # of compression, the fastest
_DIGITS = 32  # hexadecimal digits of a hash: 128 bits, no two alike by chance


@dataclass(frozen=True)
class Message:
    """Plain values (JSON's) and arrays of numbers by name."""

    document: Mapping[str, Any]
    arrays: Arrays = field(default_factory=dict)


def encode(message: Message) -> bytes:
    """The bytes of a message; numbers stay what they are, bit for bit."""
    text = zlib.compress(json.dumps(message.document).encode(), _LEVEL)
    file = io.BytesIO()
    arrays: dict[str, Any] = {_DOCUMENT: np.frombuffer(text, dtype=np.uint8), **message.arrays}
    np.savez(file, **arrays)
    return file.getvalue()


def decode(data: bytes) -> Message:
    """The message of `encode`; ClusterError for other bytes."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        document = json.loads(zlib.decompress(arrays.pop(_DOCUMENT).tobytes()))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ClusterError(
            f"a message of {len(data)} bytes cannot be read ({type(error).__name__}: {error})"
        ) from error
    if not isinstance(document, dict):
        raise ClusterError("a message has no document")
    return Message(document, arrays)


def hash_of(data: bytes) -> str:
    """A name for these bytes."""
    return hashlib.sha256(data).hexdigest()[:_DIGITS]
