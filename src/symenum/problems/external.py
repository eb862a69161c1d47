"""Where measured data lie that are not shipped: a folder named by the environment."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["data_file"]


def data_file(name: str) -> Path:
    """The path of a file in the folder $SYMENUM_DATA."""
    folder = os.environ.get("SYMENUM_DATA")
    if not folder:
        raise FileNotFoundError(f"{name} is not shipped: set SYMENUM_DATA to the folder that holds it")
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(f"{name} is not in the folder SYMENUM_DATA names, '{folder}'")
    return path
