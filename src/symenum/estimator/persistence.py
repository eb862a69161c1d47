"""A fit that can be stopped and resumed: what is written of it to the disk, and where the next fit starts.

The state of the search is written by `symenum.search.checkpoint`. Here parameters and data are added to it, so that the
path of a checkpoint alone is enough to go on. The data are in an npz file beside the checkpoint, written once; its name
holds the signature of data and settings, so that a checkpoint is never read with the data of another fit. Both files
are plain data, and nothing in them is ever run.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import math
import warnings
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from symenum.core.files import write_whole
from symenum.estimator.data import FitData
from symenum.estimator.parameters import PARAMETERS
from symenum.expressions import Apply, Constant, Variable, parse, variables
from symenum.expressions.candidate import Candidate
from symenum.fitting.fit_under_loss import with_loss
from symenum.fitting.recognise import count_fitted_constants
from symenum.operators import Operator, get_operators
from symenum.search import Outcome, State, Task
from symenum.search.checkpoint import Checkpoint, CheckpointWriter, read_document, restored

__all__ = ["LastRun", "OpenedCheckpoint", "Start", "find_start", "open_checkpoint"]

_CHANGEABLE = frozenset(parameter.name for parameter in PARAMETERS.values() if not parameter.fixed)
_NOT_STORED = frozenset(parameter.name for parameter in PARAMETERS.values() if not parameter.stored)
_GIVE_AGAIN = "give the data again, PSERegressor.resume(path, X, y) in Python, or start anew"
_NAME_DIGITS = 16  # hexadecimal digits of the signature in a file's name: 64 bits, no two alike by chance


class Estimator(Protocol):
    """PSERegressor, as far as the start of its fit reads it."""

    checkpoint: str | Path | None
    warm_start: bool
    loss: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


@dataclass(frozen=True)
class LastRun:
    """What a fit leaves for `warm_start`: its last whole state, the signature of data and settings, and the loss."""

    state: State
    signature: str | None
    loss: object  # the parameter itself: the signature cannot tell two callables apart


@dataclass(frozen=True)
class Start:
    """Where a fit starts.

    `state`: the state to go on from, or None. `known`: laws that an earlier fit has found. `keeper` writes checkpoints.
    `signature`: that of data and settings. `done`: steps of earlier fits, which an iteration limit does not count.
    """

    state: State | None = None
    known: tuple[Candidate, ...] = ()
    keeper: CheckpointWriter | None = None
    signature: str | None = None
    done: int = 0

    def write_last_checkpoint(self, outcome: Outcome) -> None:
        """Write the checkpoint of the end, and remove the data of earlier fits beside it."""
        if self.keeper is not None and self.signature is not None:
            self.keeper.write(outcome.whole, outcome.front)
            _remove_other_data(self.keeper.path, self.signature)

    def last_iteration(self, max_iterations: int | None) -> int | None:
        """The number of the last step, counted from the first step of the state."""
        return None if max_iterations is None else max_iterations + self.done


def find_start(model: Estimator, task: Task, data: FitData, checkpoint: Checkpoint | None) -> Start:
    """Where a fit of `model` on these data starts: anew, at the last fit (`warm_start`), or at a checkpoint."""
    if model.checkpoint is None and not model.warm_start and checkpoint is None:
        return Start()
    parameters = model.get_params(deep=False)
    signature = _signature(data, parameters)
    start = Start(signature=signature)
    if checkpoint is not None:
        if checkpoint.signature != signature:
            raise ValueError(
                "X, y and sample_weight are not those of the checkpoint (or its settings were changed): give the data "
                "that the search began with, or start anew with fit"
            )
        start = replace(start, state=checkpoint.state, known=tuple(checkpoint.front))
    elif model.warm_start and hasattr(model, "front_"):
        start = replace(start, known=_still_allowed(task, model.front_))
        last: LastRun = model._last_run  # type: ignore[attr-defined]
        if last.signature == signature and last.loss == model.loss:
            start = replace(start, state=last.state, done=last.state.iteration)
    if model.checkpoint is not None:
        start = replace(start, keeper=_make_keeper(Path(model.checkpoint), data, parameters, signature))
    return start


def _still_allowed(task: Task, front: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The laws of an earlier front that the task allows and that are finite on its data, with their losses there."""
    settings, target = task.settings, task.target
    usable = set(task.columns) - set(settings.forbidden)
    allowed = [
        entry.expression
        for entry in front
        if set(variables(entry.expression)) <= usable
        and task.allows(entry.expression)
        and (settings.constants or not count_fitted_constants(entry.expression))
    ]
    found = [with_loss(law, task.columns, target.y, target.weight, settings.loss) for law in allowed]
    return tuple(candidate for candidate in found if candidate.loss < float("inf"))


def _signature(data: FitData, parameters: Mapping[str, Any]) -> str:
    """A hash of the data and of all settings that cannot change when a search goes on."""
    digest = hashlib.sha256()
    fixed = {name: value for name, value in _json_parameters(parameters).items() if name not in _CHANGEABLE}
    digest.update(json.dumps([fixed, data.columns, data.X.shape], sort_keys=True, default=repr).encode())
    for array in (data.X, data.y, data.weight):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _make_keeper(path: Path, data: FitData, parameters: Mapping[str, Any], signature: str) -> CheckpointWriter:
    """Write the data and return the keeper of the checkpoint.

    An error says where `path` is a file of something else or in a folder that cannot be written. A full disk is a
    warning only: the search can go on without its data on the disk.
    """
    if path.exists():
        _refuse_other_file(path)
    file = _data_file(path, signature)
    about = {
        "parameters": _json_parameters(parameters),
        "columns": None if data.columns is None else list(data.columns),
        "data": file.name,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(path)
        if not file.exists():
            write_whole(file, _npz(data))
    except OSError as error:
        if not isinstance(error, (PermissionError, FileNotFoundError, NotADirectoryError, FileExistsError)):
            warnings.warn(
                f"checkpoint: the data could not be written to '{file}' ({error.strerror or error}): to go on from the "
                "checkpoint, give the data again",
                RuntimeWarning,
                stacklevel=4,
            )
        else:
            raise ValueError(
                f"checkpoint: the folder '{path.parent}' cannot be written ({error.strerror or error}): name another"
            ) from error
    return CheckpointWriter(path, str(parameters["token_generator"]), signature, about)


def _refuse_other_file(path: Path) -> None:
    """Raise an error unless `path` is a checkpoint of symenum or empty: no other file is overwritten."""
    if path.is_dir():
        raise ValueError(f"checkpoint must name a file, and '{path}' is a folder: '{path / 'checkpoint.json'}', say")
    with path.open("rb") as file:
        first_bytes = file.read(64)  # a checkpoint names its format at the beginning
    if first_bytes and b'"symenum checkpoint"' not in first_bytes:
        raise ValueError(f"checkpoint: '{path}' is no checkpoint of symenum and is not overwritten: name another file")


def _remove_unfinished(path: Path) -> None:
    """Remove files that a process was writing when it was killed."""
    for found in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if found.suffix[1:].isdigit():
            found.unlink(missing_ok=True)


def _remove_other_data(path: Path, signature: str) -> None:
    """Remove the data of earlier fits with the same checkpoint, which no checkpoint names any more."""
    for found in path.parent.glob(f"{glob.escape(path.name)}.*.npz"):
        if found.name != _data_file(path, signature).name:
            found.unlink(missing_ok=True)


def _data_file(path: Path, signature: str) -> Path:
    return path.with_name(f"{path.name}.{signature[:_NAME_DIGITS]}.npz")


@dataclass(frozen=True)
class OpenedCheckpoint:
    """A checkpoint with what is needed to go on: the parameters of the estimator, and the data if they were read."""

    checkpoint: Checkpoint
    parameters: dict[str, Any]
    data: FitData | None


def open_checkpoint(
    path: Path, changes: Mapping[str, Any], names: Collection[str], *, with_data: bool
) -> OpenedCheckpoint:
    """Read the checkpoint at `path` for an estimator whose parameters have these names.

    `changes` are parameters that take other values than before. `with_data`: read the data, too.
    """
    document = read_document(path)
    about = document.get("about")
    stored = about.get("parameters") if isinstance(about, dict) else None
    if not isinstance(stored, dict) or not isinstance(stored.get("operators"), list) or not set(stored) <= set(names):
        raise ValueError(f"the checkpoint '{path}' is damaged: it does not say how it was made")
    known = {name: _tuples(value) for name, value in stored.items() if name not in _NOT_STORED}
    parameters = {"checkpoint": str(path), **known, **changes}
    own = _own_operators(path, stored, parameters)
    for name, value in _json_parameters(parameters).items():
        if name not in _CHANGEABLE and name in changes and value != stored.get(name):
            raise ValueError(f"{name} cannot change when a search goes on: it was {stored.get(name)!r}; start anew")
    missing = [name for name, value in parameters.items() if isinstance(value, dict) and "not kept" in value]
    if missing:
        what = stored[missing[0]]["not kept"]
        raise ValueError(f"{missing[0]} was a {what}, which a checkpoint cannot hold: give it to resume again")
    constants = parameters.get("constants")
    named = constants if isinstance(constants, dict) else None
    checkpoint = restored(path, document, partial(parse, operators=own, constants=named))
    return OpenedCheckpoint(checkpoint, parameters, _read_data(path, checkpoint) if with_data else None)


def _own_operators(path: Path, stored: Mapping[str, Any], parameters: Mapping[str, Any]) -> Sequence[Operator]:
    """The user's own operators among `parameters`; they are code, so a checkpoint holds their names only."""
    try:
        records = get_operators(parameters["operators"])
    except (ValueError, TypeError) as error:
        names = ", ".join(map(str, stored["operators"]))
        raise ValueError(
            f"operators: the search of '{path}' had operators of your own ({names}): "
            f"give them to resume again ({error})"
        ) from error
    return [record for record in records if not record.built_in]


def _json_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON can hold them; a value that it cannot hold becomes {"not kept": its type}."""
    stored = {name: value for name, value in parameters.items() if name not in _NOT_STORED}
    stored["operators"] = [operator.name for operator in get_operators(parameters["operators"])]
    return {name: _json_value(value) for name, value in stored.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Operator):
        return value.name
    if isinstance(value, (Variable, Constant, Apply)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_json_value(item) for item in value), key=str)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _json_value(item) for name, item in value.items()}
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return {"not kept": repr(value) if _is_plain_record(value) else type(value).__name__}


def _is_plain_record(value: Any) -> bool:
    """Whether the text of a value identifies it, like Huber(0.1); the text of a callable differs between processes."""
    return is_dataclass(value) and all(isinstance(field, (int, float, str)) for field in vars(value).values())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _npz(data: FitData) -> bytes:
    file = io.BytesIO()
    if data.weight is None:
        np.savez(file, X=data.X, y=data.y)
    else:
        np.savez(file, X=data.X, y=data.y, weight=data.weight)
    return file.getvalue()


def _read_data(path: Path, checkpoint: Checkpoint) -> FitData:
    name, columns = checkpoint.about.get("data"), checkpoint.about.get("columns")
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise ValueError(f"the checkpoint '{path}' is damaged: it names no file with its data")
    if columns is not None and not (isinstance(columns, list) and all(isinstance(one, str) for one in columns)):
        raise ValueError(f"the checkpoint '{path}' is damaged: its columns have no names")
    file = path.with_name(name)
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
            weight = arrays["weight"] if "weight" in arrays.files else None
    except FileNotFoundError as error:
        raise ValueError(f"the data of the checkpoint, '{file}', are not there: {_GIVE_AGAIN}") from error
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise ValueError(f"the data of the checkpoint, '{file}', cannot be read ({error}): {_GIVE_AGAIN}") from error
    fine = X.ndim == 2 and all(one is None or one.dtype == np.float64 for one in (X, y, weight))
    if not fine or (columns is not None and len(columns) != X.shape[1]):
        raise ValueError(f"the data of the checkpoint, '{file}', are damaged: {_GIVE_AGAIN}")
    return FitData(X, y, weight, None if columns is None else tuple(columns))
