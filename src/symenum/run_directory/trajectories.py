"""The trajectories of a search for laws of motion, in data.npz of its folder: arrays of numbers, nothing else."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from symenum.core.files import write_whole
from symenum.run_directory.layout import DATA

__all__ = ["Trajectory", "read_trajectories", "write_trajectories"]

Array = npt.NDArray[np.float64]

# What NumPy and zipfile raise for a file that is not, or no longer, what np.savez has written.
_DAMAGED = (OSError, ValueError, KeyError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Trajectory:
    """A stretch without gaps: t (points,), X (points, states) and U (points, inputs), float64.

    Where derivatives were measured, they are the last columns of U.
    """

    t: Array
    X: Array
    U: Array


def write_trajectories(folder: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write data.npz; OSError where the disk does not take it."""
    file = io.BytesIO()
    arrays = {f"{part}{i}": getattr(one, part) for i, one in enumerate(trajectories) for part in ("t", "X", "U")}
    np.savez(file, **arrays)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / DATA, file.getvalue())


def read_trajectories(folder: Path) -> list[Trajectory]:
    """What `write_trajectories` has written; ValueError for a file that is missing, damaged or another one."""
    try:
        with (folder / DATA).open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            count = len(arrays.files) // 3
            found = [Trajectory(arrays[f"t{i}"], arrays[f"X{i}"], arrays[f"U{i}"]) for i in range(count)]
    except FileNotFoundError as error:
        raise ValueError(f"'{DATA}' is missing: copy that file, too") from error
    except _DAMAGED as error:
        raise ValueError(f"'{DATA}' cannot be read ({error}): copy it again") from error
    if not all(map(_is_whole, found)):
        raise ValueError(f"'{DATA}' holds no trajectories: copy it again")
    if not found:
        raise ValueError(f"'{DATA}' holds no trajectory: copy it again")
    return found


def _is_whole(one: Trajectory) -> bool:
    """Whether arrays from a file have the shapes, the kind and the values of a trajectory."""
    arrays = (one.t, one.X, one.U)
    shapes = one.t.ndim == 1 and one.X.shape[:1] == one.U.shape[:1] == one.t.shape and one.X.ndim == one.U.ndim == 2
    if not shapes or any(array.dtype != np.float64 for array in arrays):
        return False
    return all(bool(np.isfinite(array).all()) for array in arrays) and bool((np.diff(one.t) > 0).all())
