"""Files that do not ship with symenum: found through SYMENUM_DATA, or asked for in words."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["VARIABLE", "MissingDataError", "data_file"]

VARIABLE = "SYMENUM_DATA"


class MissingDataError(FileNotFoundError):
    """A problem set needs files that are not there; the message says which, and where the public original is."""

    def __str__(self) -> str:
        return str(self.args[0])


def data_file(relative: str, needed_by: str, original: str) -> Path:
    """The path of a file or folder below $SYMENUM_DATA that exists."""
    root = os.environ.get(VARIABLE)
    if not root:
        raise MissingDataError(
            f"the problem set {needed_by} needs {relative}: set {VARIABLE} to the folder that holds it. "
            f"The public original: {original}"
        )
    path = Path(root) / relative
    if not path.exists():
        raise MissingDataError(
            f"the problem set {needed_by} needs {path}, which does not exist ({VARIABLE} is {root!r}). "
            f"The public original: {original}"
        )
    return path
