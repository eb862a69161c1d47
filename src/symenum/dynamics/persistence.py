"""A search for laws of motion on the disk: what is written while it runs, and from where it goes on.

The file holds what each equation has come to, as plain data; the trajectories are in an npz file beside it, written
once, whose name holds the signature of data and settings. Nothing in the files is ever run. Checkpoints of one law
y = f(x) are those of `symenum.estimator.persistence`.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from symenum.core.files import write_whole
from symenum.dynamics.discover import Progress
from symenum.dynamics.system import Names
from symenum.dynamics.trajectory import Piece
from symenum.estimator.persistence import (
    DAMAGED_ARRAYS,
    as_tuples,
    json_parameters,
    make_room_for,
    own_operators,
    refuse_missing,
    remove_other_data,
    run_place,
)
from symenum.estimator.saved_results import CHECKPOINT
from symenum.expressions import Expression, parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search.checkpoint import (
    FORMAT_VERSION,
    MOTION_FORMAT,
    packed,
    packed_state,
    read_document,
    restored_state,
    unpacked,
)
from symenum.version import __version__

__all__ = ["MotionKeeper", "SavedMotion", "checkpoint_path", "open_motion_checkpoint", "signature_of"]

Array = npt.NDArray[np.float64]

_NAME_DIGITS = 16  # hexadecimal digits of the signature in a file's name: 64 bits, no two alike by chance
_LEAST_INTERVAL = 1.0  # seconds between two writings within one equation: the work that a crash may cost
_MOST_SHARE = 0.05  # of the time for writing: a file of many laws is written less often
_CHANGEABLE = ("max_time", "max_iterations", "system_complexity", "model_selection", "verbose", "device", "max_memory")
_NOT_STORED = ("random_state", "callbacks", "checkpoint", "run_dir")
_GIVE_AGAIN = "give them again, ODERegressor.resume(path, X, t) in Python, or start anew"
_ARRAYS = ("t", "X", "U")  # of a Piece


@dataclass(frozen=True)
class SavedMotion:
    """A search as it was written. `progress`: of each equation, None where it was not begun; `chosen`: the laws of the
    best system that fits to the trajectories had come to, or None.

    `pieces`: the trajectories, None where they were not asked for. `measured`: whether their last inputs are measured
    derivatives.
    """

    parameters: dict[str, Any]
    seed: int
    elapsed: float
    progress: tuple[Progress | None, ...]
    chosen: tuple[Expression, ...] | None
    signature: str
    names: Names
    measured: bool
    pieces: tuple[Piece, ...] | None


def checkpoint_path(checkpoint: str | Path | None, run_dir: Any) -> Path | None:
    """The file of the checkpoint: the one that was named, or that of the folder of the run."""
    if checkpoint is not None:
        return Path(checkpoint)
    place = run_place(run_dir)
    return None if place is None else place.path / CHECKPOINT


def signature_of(pieces: Sequence[Piece], names: Names, measured: bool, parameters: Mapping[str, Any]) -> str:
    """A hash of the trajectories and of all settings that cannot change when a search goes on."""
    stored = _stored(parameters)
    fixed = {name: value for name, value in stored.items() if name not in _CHANGEABLE}
    digest = hashlib.sha256(json.dumps([fixed, packed(names), measured], sort_keys=True, default=repr).encode())
    for piece in pieces:
        for name in _ARRAYS:
            array = getattr(piece, name)
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _stored(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in json_parameters(parameters).items() if name not in _NOT_STORED}


@dataclass
class MotionKeeper:
    """Writes the checkpoint while the equations are searched; where the disk refuses it, it warns once.

    `elapsed`: gives the seconds of the whole search so far.
    """

    path: Path
    about: Mapping[str, Any]
    generator: str
    seed: int
    progress: list[Progress | None]
    elapsed: Callable[[], float]
    chosen: tuple[Expression, ...] | None = None
    clock: Callable[[], float] = time.monotonic
    _written_at: float = field(default=float("-inf"))
    _took: float = 0.0
    _warned: bool = False

    @staticmethod
    def make(
        path: Path,
        pieces: Sequence[Piece],
        names: Names,
        measured: bool,
        parameters: Mapping[str, Any],
        seed: int,
        progress: Sequence[Progress | None],
        elapsed: Callable[[], float],
    ) -> MotionKeeper:
        """Write the trajectories, and return who writes the rest."""
        signature = signature_of(pieces, names, measured, parameters)
        file = _data_file(path, signature)
        about = {
            "parameters": _stored(parameters),
            "names": packed(names),
            "measured": measured,
            "signature": signature,
            "data": file.name,
            "pieces": len(pieces),
        }
        make_room_for(path, file, MOTION_FORMAT, lambda: _npz(pieces))
        return MotionKeeper(path, about, str(parameters["token_generator"]), seed, list(progress), elapsed)

    def of_equation(self, number: int) -> Callable[[Progress], None]:
        """What the search of one equation calls with each progress."""

        def keep(progress: Progress) -> None:
            before = self.progress[number]
            self.progress[number] = progress
            waited = self.clock() - self._written_at
            changed = before is None or before.front != progress.front
            if waited >= max(0.0 if changed else _LEAST_INTERVAL, self._took / _MOST_SHARE):
                self.write()

        return keep

    def keep_system(self, laws: tuple[Expression, ...]) -> None:
        """Take note of the best system that fits to the trajectories have come to."""
        self.chosen = laws
        if self.clock() - self._written_at >= max(_LEAST_INTERVAL, self._took / _MOST_SHARE):
            self.write()

    def write(self) -> None:
        """Write the checkpoint now."""
        begin = self.clock()
        document = {
            "format": MOTION_FORMAT,
            "version": FORMAT_VERSION,
            "symenum": __version__,
            "about": dict(self.about),
            "token_generator": self.generator,
            "seed": self.seed,
            "elapsed": self.elapsed(),
            "equations": [None if one is None else _packed_progress(one) for one in self.progress],
            "chosen": None if self.chosen is None else [str(law) for law in self.chosen],
        }
        try:
            write_whole(self.path, json.dumps(document, allow_nan=False))
        except OSError as error:
            if not self._warned:
                why = error.strerror or error
                warnings.warn(
                    f"checkpoint: '{self.path}' could not be written ({why}); the search goes on, and each later step "
                    "tries again",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True
        self._written_at = self.clock()
        self._took = self._written_at - begin

    def end(self) -> None:
        """Write the checkpoint of the end, and remove the data of earlier fits beside it."""
        self.write()
        remove_other_data(self.path, str(self.about["data"]))


def _packed_progress(progress: Progress) -> dict[str, Any]:
    return {
        "front": packed(progress.front),
        "forms": packed(progress.forms),
        "saturating": packed(progress.saturating),
        "judged": packed(progress.judged),
        "sums_done": progress.sums_done,
        "state": None if progress.state is None else packed_state(progress.state),
    }


def _restored_progress(data: Any, generator: str, read: Callable[[str], Expression]) -> Progress | None:
    if data is None:
        return None
    candidates = tuple[Candidate, ...]
    state = data["state"]
    return Progress(
        unpacked(Front, data["front"], read, "front"),
        unpacked(candidates, data["forms"], read, "forms"),
        unpacked(candidates, data["saturating"], read, "saturating"),
        unpacked(tuple[Expression, ...], data["judged"], read, "judged"),
        unpacked(bool, data["sums_done"], read, "sums_done"),
        None if state is None else restored_state(state, generator, read),
    )


def _data_file(path: Path, signature: str) -> Path:
    return path.with_name(f"{path.name}.{signature[:_NAME_DIGITS]}.npz")


def _npz(pieces: Sequence[Piece]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{f"{name}{i}": getattr(piece, name) for i, piece in enumerate(pieces) for name in _ARRAYS})
    return file.getvalue()


def open_motion_checkpoint(
    path: Path, changes: Mapping[str, Any], names: Collection[str], *, with_data: bool
) -> SavedMotion:
    """Read the checkpoint at `path` for an estimator whose parameters have these names.

    `changes` are parameters that take other values than before. `with_data`: read the trajectories, too.
    """
    document = read_document(path, MOTION_FORMAT)
    about: Any = document.get("about")
    stored = about.get("parameters") if isinstance(about, dict) else None
    if not isinstance(stored, dict) or not isinstance(stored.get("operators"), list) or not set(stored) <= set(names):
        raise ValueError(f"the checkpoint '{path}' is damaged: it does not say how it was made")
    known = {name: as_tuples(value) for name, value in stored.items() if name not in _NOT_STORED}
    parameters = {"checkpoint": str(path), **known, **changes}
    own = own_operators(path, stored, parameters)
    for name, value in _stored(parameters).items():
        if name not in _CHANGEABLE and name in changes and value != stored.get(name):
            raise ValueError(f"{name} cannot change when a search goes on: it was {stored.get(name)!r}; start anew")
    refuse_missing(parameters, "a checkpoint", "resume")
    read = partial(parse, operators=own)
    try:
        generator = unpacked(str, document["token_generator"], where="token_generator")
        progress = tuple(_restored_progress(one, generator, read) for one in document["equations"])
        chosen = None if document["chosen"] is None else tuple(read(str(law)) for law in document["chosen"])
        called = unpacked(Names, about["names"], where="names")
        measured = unpacked(bool, about["measured"], where="measured")
        signature = unpacked(str, about["signature"], where="signature")
        seed, elapsed = unpacked(int, document["seed"], where="seed"), float(document["elapsed"])
        count, data = unpacked(int, about["pieces"], where="pieces"), unpacked(str, about["data"], where="data")
        if len(progress) != len(called.states) or seed < 0 or not elapsed >= 0 or count < 1:
            raise ValueError("its equations, seed or time do not belong to a search")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"the checkpoint '{path}' is damaged: {error}") from error
    pieces = _read_pieces(path, data, count) if with_data else None
    return SavedMotion(parameters, seed, elapsed, progress, chosen, signature, called, measured, pieces)


def _read_pieces(path: Path, name: str, count: int) -> tuple[Piece, ...]:
    if Path(name).name != name or name in ("", ".", ".."):
        raise ValueError(f"the checkpoint '{path}' is damaged: it names no file with its data")
    file = path.with_name(name)
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            pieces = [Piece(*(arrays[f"{one}{i}"] for one in _ARRAYS)) for i in range(count)]
    except FileNotFoundError as error:
        raise ValueError(f"the trajectories of the checkpoint, '{file}', are not there: {_GIVE_AGAIN}") from error
    except DAMAGED_ARRAYS as error:
        raise ValueError(f"the trajectories of the checkpoint, '{file}', cannot be read: {_GIVE_AGAIN}") from error
    for piece in pieces:
        arrays_of = (piece.t, piece.X, piece.U)
        fine = all(one.dtype == np.float64 and len(one) == len(piece.t) for one in arrays_of)
        if (
            not fine
            or [one.ndim for one in arrays_of] != [1, 2, 2]
            or not all(np.isfinite(one).all() for one in arrays_of)
        ):
            raise ValueError(f"the trajectories of the checkpoint, '{file}', are damaged: {_GIVE_AGAIN}")
    return tuple(pieces)
