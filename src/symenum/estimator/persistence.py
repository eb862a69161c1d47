"""A fit on the disk: what is written while it runs, where the next fit starts, and how a saved result is opened.

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
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import pandas

from symenum.core.files import write_whole
from symenum.core.memory import memory_limit
from symenum.core.target import Training
from symenum.core.user_warnings import warn_user
from symenum.estimator.data import FitData
from symenum.estimator.formulas import check_constants
from symenum.estimator.knowledge import complexity_weights
from symenum.estimator.parameters import PARAMETERS
from symenum.estimator.preparation import denoised
from symenum.estimator.saved_results import (
    CHECKPOINT,
    MODEL,
    Origin,
    Result,
    RunSummary,
    holds_laws_of_motion,
    read_result,
)
from symenum.estimator.table_labels import TableLabels, read_labels
from symenum.estimator.unit_text import FROM_NAMES
from symenum.expressions import Apply, Constant, Variable, parse, variables
from symenum.expressions.candidate import Candidate
from symenum.fitting.fit_under_loss import with_loss
from symenum.fitting.losses import make_loss
from symenum.fitting.recognise import count_fitted_constants
from symenum.front import Front
from symenum.operators import Operator, get_operators
from symenum.run_directory.layout import RunPlace
from symenum.search import Outcome, State, Task
from symenum.search.checkpoint import FORMAT, Checkpoint, CheckpointWriter, format_of, read_document, restored
from symenum.selection import DEFAULT_RULE, DISCOUNT, choose_law, rule_while_searching

__all__ = [
    "DAMAGED_ARRAYS",
    "LastRun",
    "OpenedCheckpoint",
    "SavedModel",
    "Start",
    "as_tuples",
    "checkpoint_path",
    "find_start",
    "json_parameters",
    "make_keeper",
    "make_room_for",
    "open_checkpoint",
    "open_saved",
    "own_operators",
    "parameters_from_json",
    "read_rows",
    "refuse_missing",
    "remove_other_data",
    "rows_file",
    "run_place",
    "signature_of",
]

_CHANGEABLE = frozenset(parameter.name for parameter in PARAMETERS.values() if not parameter.fixed)
_NOT_STORED = frozenset(parameter.name for parameter in PARAMETERS.values() if not parameter.stored)
_LATER_PARAMETERS = ("units", "dimensional_constants", "template", "shape", "shape_box", "groups")
_OPTIONAL_ARRAYS = ("weight", "y_error", "x_error")  # of FitData, in the file of the data where they are not None
_GIVE_AGAIN = "give the data again, PSERegressor.resume(path, X, y) in Python, or start anew"
# What NumPy and zipfile raise for a file that is not, or no longer, what np.savez has written; RuntimeError is for
# encryption and unknown compression.
DAMAGED_ARRAYS = (
    *(OSError, ValueError, KeyError, EOFError, MemoryError, RuntimeError, struct.error),
    *(zipfile.BadZipFile, zlib.error),
)
_NAME_DIGITS = 16  # hexadecimal digits of the signature in a file's name: 64 bits, no two alike by chance


class Estimator(Protocol):
    """PSERegressor, as far as the start of its fit reads it."""

    checkpoint: str | Path | None
    run_dir: str | Path | RunPlace | None
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
            remove_other_data(self.keeper.path, _data_file(self.keeper.path, self.signature).name)

    def last_iteration(self, max_iterations: int | None) -> int | None:
        """The number of the last step, counted from the first step of the state."""
        return None if max_iterations is None else max_iterations + self.done


def run_place(run_dir: str | Path | RunPlace | None) -> RunPlace | None:
    """The folder of a run from the parameter `run_dir`."""
    return run_dir if run_dir is None or isinstance(run_dir, RunPlace) else RunPlace(Path(run_dir))


def checkpoint_path(model: Estimator) -> Path | None:
    """The file of the checkpoint: the one that was named, or that of the folder of the run."""
    if model.checkpoint is not None:
        return Path(model.checkpoint)
    place = run_place(model.run_dir)
    return None if place is None else place.path / CHECKPOINT


def find_start(model: Estimator, task: Task, data: FitData, checkpoint: Checkpoint | None) -> Start:
    """Where a fit of `model` on these data starts: anew, at the last fit (`warm_start`), or at a checkpoint."""
    path = checkpoint_path(model)
    if path is None and not model.warm_start and checkpoint is None:
        return Start()
    parameters = model.get_params(deep=False)
    signature = signature_of(data, parameters)
    start = Start(signature=signature)
    if checkpoint is not None:
        if checkpoint.signature != signature:
            raise ValueError(
                "X, y, sample_weight and errors are not those of the checkpoint (or its settings were changed): give "
                "the data that the search began with, or start anew with fit"
            )
        start = replace(start, state=checkpoint.state, known=tuple(checkpoint.front))
    elif model.warm_start and hasattr(model, "front_"):
        start = replace(start, known=_still_allowed(task, model.front_))
        last: LastRun | None = getattr(model, "_last_run", None)  # a model that was loaded has none
        if last is not None and last.signature == signature and last.loss == model.loss:
            start = replace(start, state=last.state, done=last.state.iteration)
    if path is not None:
        start = replace(start, keeper=make_keeper(path, data, parameters, signature))
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
    floor = task.empty_front.floor
    return tuple(
        one
        for one in found
        if one.loss < float("inf") and task.policy.reason(one.expression, exact=one.loss <= floor) is None
    )


def signature_of(data: FitData, parameters: Mapping[str, Any]) -> str:
    """A hash of the data and of all settings that cannot change when a search goes on."""
    digest = hashlib.sha256()
    fixed = {name: value for name, value in json_parameters(parameters).items() if name not in _CHANGEABLE}
    for name in _LATER_PARAMETERS:  # a fit without them has the signature that it had before there were any
        if fixed.get(name) == PARAMETERS[name].default:
            fixed.pop(name, None)
    named = [] if data.names is None else [data.names]
    digest.update(json.dumps([fixed, data.columns, data.X.shape, *named], sort_keys=True, default=repr).encode())
    for array in (data.X, data.y, data.weight):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
    for array in (data.y_error, data.x_error):
        if array is not None:  # data without errors have the signature that they had before there were errors
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def make_keeper(
    path: Path, data: FitData, parameters: Mapping[str, Any], signature: str, more: Mapping[str, Any] | None = None
) -> CheckpointWriter:
    """Write the data and return the keeper of the checkpoint; `more`: what else the checkpoint says (JSON's values)."""
    file = _data_file(path, signature)
    about = {
        "parameters": json_parameters(parameters),
        "columns": None if data.columns is None else list(data.columns),
        "variable_names": None if data.names is None else list(data.names),
        "data": file.name,
        "target": data.target,
        **(more or {}),
    }
    make_room_for(path, file, FORMAT, lambda: _npz(data))
    return CheckpointWriter(path, str(parameters["token_generator"]), signature, about)


def make_room_for(path: Path, data: Path, kind: str, contents: Callable[[], bytes]) -> None:
    """Write the data of a search beside its checkpoint `path`, of that kind, where they are not there yet.

    An error says where `path` is a file of something else or in a folder that cannot be written. A full disk is a
    warning only: the search can go on without its data on the disk.
    """
    if path.exists():
        _refuse_other_file(path, kind)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(path)
        if not data.exists():
            write_whole(data, contents())
    except OSError as error:
        if not isinstance(error, (PermissionError, FileNotFoundError, NotADirectoryError, FileExistsError)):
            warn_user(
                f"checkpoint: the data could not be written to '{data}' ({error.strerror or error}): to go on from the "
                "checkpoint, give the data again",
                RuntimeWarning,
            )
        else:
            raise ValueError(
                f"checkpoint, run_dir: the folder '{path.parent}' cannot be written ({error.strerror or error}): "
                "name another"
            ) from error


def _refuse_other_file(path: Path, kind: str) -> None:
    """Raise an error unless `path` is a checkpoint of that kind or empty: no other file is overwritten."""
    if path.is_dir():
        raise ValueError(f"checkpoint must name a file, and '{path}' is a folder: '{path / 'checkpoint.json'}', say")
    if path.stat().st_size and format_of(path) != kind:
        what = kind.removeprefix("symenum ")
        raise ValueError(f"checkpoint: '{path}' is no {what} of symenum and is not overwritten: name another file")


def _remove_unfinished(path: Path) -> None:
    """Remove files that a process was writing when it was killed."""
    for found in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if found.suffix[1:].isdigit():
            found.unlink(missing_ok=True)


def remove_other_data(path: Path, name: str) -> None:
    """Remove the data of earlier fits with the same checkpoint, which no checkpoint names any more, but not `name`."""
    for found in path.parent.glob(f"{glob.escape(path.name)}.*.npz"):
        if found.name != name:
            found.unlink(missing_ok=True)


def _data_file(path: Path, signature: str) -> Path:
    return path.with_name(f"{path.name}.{signature[:_NAME_DIGITS]}.npz")


@dataclass(frozen=True)
class OpenedCheckpoint:
    """A checkpoint with what is needed to go on: the parameters of the estimator, and the data if they were read."""

    checkpoint: Checkpoint
    parameters: dict[str, Any]
    data: FitData | None
    names: tuple[str, ...] | None  # that the user had given to the columns of an array
    target: str = "y"

    def named_target(self) -> Any:
        """The target of the data as `fit` takes it: a Series where it has a name."""
        assert self.data is not None  # only asked where the data were read
        return self.data.y if self.target == "y" else pandas.Series(self.data.y, name=self.target)


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
    parameters = {"checkpoint": str(path), **parameters_from_json(stored), **changes}
    own = own_operators(path, stored, parameters)
    for name, value in json_parameters(parameters).items():
        if name not in _CHANGEABLE and name in changes and value != stored.get(name):
            raise ValueError(f"{name} cannot change when a search goes on: it was {stored.get(name)!r}; start anew")
    refuse_missing(parameters, "a checkpoint", "resume")
    named = check_constants(parameters.get("constants"), ()) or None
    checkpoint = restored(path, document, partial(parse, operators=own, constants=named))
    given_names = _names(path, checkpoint, "variable_names")
    data = replace(_read_data(path, checkpoint), names=given_names) if with_data else None
    if data is not None and given_names is not None and len(given_names) != data.X.shape[1]:
        raise ValueError(f"the checkpoint '{path}' is damaged: it has not as many variable_names as columns")
    target = checkpoint.about.get("target", "y")
    if not isinstance(target, str):
        raise ValueError(f"the checkpoint '{path}' is damaged: its target has no name")
    return OpenedCheckpoint(checkpoint, parameters, data, given_names, target)


def refuse_missing(parameters: Mapping[str, Any], holder: str, method: str) -> None:
    """Raise an error for a parameter that the file could not hold and that the caller has not given again."""
    for name, value in parameters.items():
        if isinstance(value, dict) and "not kept" in value:
            raise ValueError(f"{name} was a {value['not kept']}, which {holder} cannot hold: give it to {method} again")


def own_operators(
    path: Path, stored: Mapping[str, Any], parameters: Mapping[str, Any], method: str = "resume"
) -> Sequence[Operator]:
    """The user's own operators among `parameters`; they are code, so a file holds their names only."""
    try:
        records = get_operators(parameters["operators"])
    except (ValueError, TypeError) as error:
        names = ", ".join(map(str, stored.get("operators", ())))
        raise ValueError(
            f"operators: the search of '{path}' had operators of your own ({names}): "
            f"give them to {method} again ({error})"
        ) from error
    return [record for record in records if not record.built_in]


def json_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON can hold them; a value that it cannot hold becomes {"not kept": its type}."""
    stored = {name: value for name, value in parameters.items() if name not in _NOT_STORED}
    stored["operators"] = [operator.name for operator in get_operators(parameters["operators"])]
    return {name: _json_value(value) for name, value in stored.items()}


def parameters_from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `json_parameters`, as the estimator takes them."""
    return {name: as_tuples(value) for name, value in stored.items() if name not in _NOT_STORED}


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
    return is_dataclass(value) and all(isinstance(one, (int, float, str)) for one in vars(value).values())


def as_tuples(value: Any) -> Any:
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _npz(data: FitData) -> bytes:
    file = io.BytesIO()
    optional = {name: getattr(data, name) for name in _OPTIONAL_ARRAYS}
    np.savez(file, X=data.X, y=data.y, **{name: array for name, array in optional.items() if array is not None})
    return file.getvalue()


def _names(path: Path, checkpoint: Checkpoint, key: str) -> tuple[str, ...] | None:
    """The names that the checkpoint holds under a key, or None."""
    names = checkpoint.about.get(key)
    if names is not None and not (isinstance(names, list) and all(isinstance(one, str) for one in names)):
        raise ValueError(f"the checkpoint '{path}' is damaged: its {key.replace('_', ' ')} have no names")
    return None if names is None else tuple(names)


def _read_data(path: Path, checkpoint: Checkpoint) -> FitData:
    name, columns = checkpoint.about.get("data"), _names(path, checkpoint, "columns")
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise ValueError(f"the checkpoint '{path}' is damaged: it names no file with its data")
    return _read_arrays(path.with_name(name), columns)


def read_rows(path: Path, signature: str, columns: Sequence[str]) -> FitData:
    """The rows beside a checkpoint whose data and settings have this signature; `columns` are their names.

    The checkpoint itself is not read, so that whoever looks at a search again and again need not parse its state.
    ValueError where the rows are not there, damaged, or of other columns.
    """
    return _read_arrays(_data_file(path, signature), tuple(columns))


def rows_file(path: Path, signature: str) -> Path:
    """The file that `read_rows` reads."""
    return _data_file(path, signature)


def _read_arrays(file: Path, columns: tuple[str, ...] | None) -> FitData:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
            optional = {name: arrays[name] for name in _OPTIONAL_ARRAYS if name in arrays.files}
    except FileNotFoundError as error:
        raise ValueError(f"the data of the checkpoint, '{file}', are not there: {_GIVE_AGAIN}") from error
    except DAMAGED_ARRAYS as error:
        raise ValueError(f"the data of the checkpoint, '{file}', cannot be read ({error}): {_GIVE_AGAIN}") from error
    fine = X.ndim == 2 and all(one.dtype == np.float64 for one in (X, y, *optional.values()))
    if not fine or (columns is not None and len(columns) != X.shape[1]):
        raise ValueError(f"the data of the checkpoint, '{file}', are damaged: {_GIVE_AGAIN}")
    weight = optional.pop("weight", None)
    return FitData(X, y, weight, columns, **optional)


# A saved result, opened without a search


@dataclass(frozen=True)
class SavedModel:
    """All that a fitted estimator needs to predict, show and export: the laws, and which of them is chosen.

    `columns`: names of the columns of the table; None for an array. `training`: the rows of the fit, where they were
    saved too. `confidence`: sentences on how sure the choice is, where they were saved. `origin`: what else a file of
    results says.
    """

    parameters: dict[str, Any]
    front: Front
    selected: int
    names: tuple[str, ...]
    columns: tuple[str, ...] | None
    run: RunSummary
    stop_reason: str
    interrupted: bool
    training: Training | None = None
    target: str = "y"
    confidence: tuple[str, ...] | None = None
    origin: Origin = field(default_factory=Origin)
    groups: Mapping[str, Any] | None = None


def open_saved(path: Path, changes: Mapping[str, Any], names: Collection[str]) -> SavedModel:
    """Open a folder of results, its model.json, or a checkpoint, for an estimator whose parameters have these names.

    Of a folder, model.json is read; without one, the checkpoint that a search has left that was killed. `changes` are
    parameters that take other values than in the file.
    """
    file = path
    if path.is_dir():
        file = next((path / name for name in (MODEL, CHECKPOINT) if (path / name).exists()), path / MODEL)
        if holds_laws_of_motion(path):
            raise ValueError(
                f"the folder '{path}' is one of symenum fit-ode, whose laws are of motion: system.py in it has them as "
                "a function for an ODE solver, such as scipy.integrate.solve_ivp(system, (0, 10), start), and "
                f"ODERegressor.load('{path}') reads them in Python"
            )
        if not file.exists():
            raise ValueError(f"the folder '{path}' holds no result of symenum: there is no {MODEL} in it")
    if not file.exists():
        raise ValueError(f"there is no '{path}': name a folder of symenum fit --out, its {MODEL}, or a checkpoint")
    if format_of(file) is None:
        return _from_result(file, changes, names)
    return _from_checkpoint(file, changes, names)  # where it is one of motion, the reader says what to do


def _from_result(path: Path, changes: Mapping[str, Any], names: Collection[str]) -> SavedModel:
    stored = _stored_settings(path)
    left_out = _NOT_STORED - {"random_state"}
    parameters = {name: as_tuples(value) for name, value in stored.items() if name in names and name not in left_out}
    parameters |= changes
    own: Sequence[Operator] = ()
    if not isinstance(stored.get("operators", []), (list, str)):
        raise ValueError(f"'{path}' is damaged: its operators are no list of names")
    if "operators" in parameters:
        own = own_operators(path, stored, parameters, "load")
    refuse_missing(parameters, "a file", "load")
    result = read_result(path, [operator for operator in own if operator.form is None])
    run = result.run or RunSummary(0.0, 0, 0, "", 0.0)
    discount = parameters.get("discount", DISCOUNT)
    allowed = PARAMETERS["discount"].constraint
    if allowed is not None and not allowed.allows(discount):
        raise ValueError(f"'{path}' is damaged: discount must be {allowed.words}, not {discount!r:.40}")
    given = {**{name: row.default for name, row in PARAMETERS.items()}, **parameters}
    weights = complexity_weights(SimpleNamespace(**given), result.names)
    empty = Front((), run.floor, result.rows, float(discount), weights)
    entries = tuple(empty.weighed(Candidate(law.expression, law.loss)) for law in result.laws)
    if any(not later.complexity > earlier.complexity for earlier, later in pairwise(entries)):
        raise ValueError(f"'{path}' is damaged: its laws are not in the order of their complexity")
    if any(math.isnan(entry.loss) for entry in entries):
        raise ValueError(f"'{path}' is damaged: the loss of a law is no number")
    front = replace(empty, entries=entries)
    return SavedModel(
        parameters,
        front,
        result.selected,
        result.names,
        _columns(result),
        run,
        result.stop_reason,
        result.interrupted,
        target=result.target,
        confidence=result.confidence,
        origin=result.origin,
        groups=result.groups,
    )


def _stored_settings(path: Path) -> dict[str, Any]:
    """The settings of a model.json; {} where it has none that can be read, which `read_result` then says."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    settings = document.get("settings") if isinstance(document, dict) else None
    return settings if isinstance(settings, dict) else {}


def _columns(result: Result) -> tuple[str, ...] | None:
    named = tuple(column for column in result.columns if column is not None)
    return named if len(named) == len(result.columns) else None


def _from_checkpoint(path: Path, changes: Mapping[str, Any], names: Collection[str]) -> SavedModel:
    found = open_checkpoint(path, changes, names, with_data=True)
    state, front, data = found.checkpoint.state, found.checkpoint.front, found.data
    if not front or data is None:
        raise ValueError(f"the checkpoint '{path}' holds no law yet: go on with resume")
    groups = found.checkpoint.about.get("groups")
    if groups is not None:
        return _of_groups(path, found, groups)
    data = replace(data, units_in_names=found.parameters.get("units") == FROM_NAMES)
    table, target, _ = data.weighted_rows(memory_limit(found.parameters.get("max_memory")), state.seed)
    if found.parameters.get("denoise") is True:
        target = denoised(table, target)
    training = Training.of(table, data.variables, target)
    loss = make_loss(found.parameters.get("loss", "mse"), target, weighted=data.total_weight is not None)
    rule = rule_while_searching(found.parameters.get("model_selection", DEFAULT_RULE))  # held-out rows are not saved
    selected = choose_law(front.from_zero(), rule, None, training, loss)
    run = RunSummary(state.elapsed, state.iteration, state.scored, "", front.floor)
    parameters = {name: value for name, value in found.parameters.items() if name != "checkpoint"}
    labels = read_labels(path, len(data.variables))
    columns = data.columns if labels is None else labels.columns
    return SavedModel(
        parameters, front, selected, data.variables, columns, run, "as the checkpoint has it", True, training,
        target=found.target if labels is None else labels.target, origin=_origin(labels),
    )  # fmt: skip


def _origin(labels: TableLabels | None) -> Origin:
    return Origin() if labels is None else Origin(labels.source, None, labels.encoding)


def _of_groups(path: Path, found: OpenedCheckpoint, groups: Any) -> SavedModel:
    """The laws of groups in a checkpoint; those of the whole search are there once all groups were fitted."""
    state, front = found.checkpoint.state, found.checkpoint.front
    selected = found.checkpoint.about.get("selected")
    if not isinstance(groups, dict) or not isinstance(selected, int) or not 0 <= selected < len(front):
        raise ValueError(f"the checkpoint '{path}' is damaged: it does not say which groups there are")
    names = tuple(dict.fromkeys(name for entry in front for name in variables(entry.expression)))
    own = tuple(map(str, groups.get("names", ())))
    every = (*own, *(name for name in names if name not in own))
    run = RunSummary(state.elapsed, state.iteration, state.scored, "", front.floor)
    parameters = {name: value for name, value in found.parameters.items() if name != "checkpoint"}
    return SavedModel(
        parameters, front, selected, every, None, run, "as the checkpoint has it", True, target=found.target,
        origin=_origin(read_labels(path)), groups=groups,
    )  # fmt: skip
