"""A search on the disk: where it stands after its last whole step, as JSON; a file is written whole or not at all.

Data and settings of the search are not in it, only their signature: whoever drives the search keeps them. What a file
says never decides what is made of it: a field becomes the type that its dataclass declares, an expression is read by
our own parser, and everything else is refused. So a file from anywhere can hold wrong values, but no code.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from symenum.core.files import write_whole
from symenum.core.user_warnings import warn_user
from symenum.expressions import Apply, Constant, Expression, Variable, parse
from symenum.expressions.candidate import Candidate
from symenum.front import Front
from symenum.search.state import Batch, Record, Refusals, State, Turn, UnknownForms
from symenum.tokens import STATES
from symenum.version import __version__

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "MOTION_FORMAT",
    "Checkpoint",
    "CheckpointWriter",
    "ReadExpression",
    "document_of",
    "format_of",
    "packed",
    "packed_state",
    "read_checkpoint",
    "read_document",
    "restored",
    "restored_state",
    "unpacked",
    "write_checkpoint",
]

ReadExpression = Callable[[str], Expression]
"""Makes an expression of its text; `parse`, or one that knows the user's own operators and constants."""

FORMAT = "symenum checkpoint"
MOTION_FORMAT = "symenum motion checkpoint"
"""Of a search for laws of motion, which holds the states of several searches: see `symenum.dynamics.persistence`."""
# Whoever changes what a step draws at random, or the fields of a state, raises this number. A state knows the moves by
# their names: a new move does not shift those of an old checkpoint.
FORMAT_VERSION = 7
_WRITTEN_BY = {1: "0.1", 2: "0.1"}  # symenum's version by the format's, for formats that did not hold it
_MAX_INTERVAL = 1.0  # seconds between two writings where the front has not changed: the work that a crash may cost
_NODES = (Variable, Constant, Apply)


@dataclass(frozen=True)
class Checkpoint:
    """A search as it is written: its state after the last whole step, from where it goes on as if it had not ended.

    `front`: the best laws known; it may hold more than the state's, from a step that was cut short. `generator`: the
    name of the token generator. `signature`: of data and settings. `about`: plain values (JSON's) of whoever drives
    the search.
    """

    state: State
    front: Front
    generator: str
    signature: str
    about: Mapping[str, Any] = field(default_factory=dict)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint. Where that fails (OSError), the file stays as it was before."""
    write_whole(path, json.dumps(document_of(checkpoint), allow_nan=False))


def document_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint as plain values, which `restored` reads; also how a state goes to another process."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "symenum": __version__,
        "signature": checkpoint.signature,
        "about": dict(checkpoint.about),
        "state": packed_state(checkpoint.state),
        "front": packed(checkpoint.front),
        "token_generator": checkpoint.generator,
    }


def packed_state(state: State) -> dict[str, Any]:
    """The state of a search as plain values."""
    fields: dict[str, Any] = packed(replace(state, generator=None))
    return {**fields, "generator": packed(state.generator)}


def restored_state(data: Any, generator: str, read: ReadExpression = parse) -> State:
    """The state that `packed_state` made `data` of; `generator`: the name of the token generator."""
    if generator not in STATES:
        raise ValueError(f"the token generator {generator!r:.40} is not known: import the module that registers it")
    fields = dict(data)
    of_generator = unpacked(STATES[generator] | None, fields.pop("generator"), read, "generator")
    found = unpacked(_StateFields, fields, read, "state")
    _check(found, found.front)
    return State(**vars(found), generator=of_generator)


def format_of(path: Path) -> str | None:
    """`FORMAT` or `MOTION_FORMAT` where the file begins as such a checkpoint does, whole or not; OSError as `open`."""
    with path.open("rb") as file:
        beginning = file.read(64)
    return next((kind for kind in (FORMAT, MOTION_FORMAT) if f'"{kind}"'.encode() in beginning), None)


def read_checkpoint(path: Path, read: ReadExpression = parse) -> Checkpoint:
    """Read what `write_checkpoint` has written. Another file is refused with what is wrong with it (ValueError)."""
    return restored(path, read_document(path), read)


def read_document(path: Path, kind: str = FORMAT) -> dict[str, Any]:
    """The file's plain values. Checked so far: the kind of search (`FORMAT` or `MOTION_FORMAT`) and the version."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"the checkpoint '{path}' cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{path}' is no checkpoint of symenum, or a truncated one: {error}") from error
    written = document.get("format") if isinstance(document, dict) else None
    if written != kind and written in (FORMAT, MOTION_FORMAT):
        estimator = "ODERegressor" if written == MOTION_FORMAT else "PSERegressor"
        raise ValueError(f"the checkpoint '{path}' is one of {estimator}: go on with {estimator}.resume('{path}')")
    if written != kind:
        raise ValueError(f"'{path}' is no checkpoint of symenum")
    plain: dict[str, Any] = document
    found = document.get("version")
    if found != FORMAT_VERSION:
        known = _WRITTEN_BY.get(found) if isinstance(found, int) else None
        writer = known or document.get("symenum", "of an unknown version")
        raise ValueError(
            f"the checkpoint '{path}' was written by symenum {writer!s:.20} (version {found!r:.20} of the format), and "
            f"this is symenum {__version__}, which reads version {FORMAT_VERSION}: its search takes other steps. Go on "
            'with the symenum that wrote it; or start anew and give the laws under "front" in the file as guesses'
        )
    return plain


def restored(path: Path, document: Mapping[str, Any], read: ReadExpression = parse) -> Checkpoint:
    """The checkpoint that a document of `read_document` holds; `read` makes expressions of text."""
    try:
        name = document["token_generator"]
        state = restored_state(document["state"], name, read)
        front = unpacked(Front, document["front"], read, "front")
        about, signature = document["about"], document["signature"]
        if not isinstance(about, dict) or not isinstance(signature, str):
            raise ValueError("about or signature is not what it should be")
        _check(state, front)
        return Checkpoint(state, front, name, signature, about)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"the checkpoint '{path}' is damaged: {error}") from error


@dataclass(frozen=True)
class _StateFields:
    """The fields of a State but for `generator`, whose type depends on the token generator."""

    seed: int
    iteration: int
    front: Front
    scored: int
    passes: int
    elapsed: float
    slots: tuple[Expression, ...]
    reward: float
    runners_up: tuple[Candidate, ...]
    polished: tuple[Expression, ...]
    grown: tuple[Expression, ...]
    continued: tuple[Expression, ...]
    continuing: tuple[Expression, ...]
    parted: tuple[Expression, ...]
    parting: tuple[Expression, ...]
    head_slots: tuple[Expression, ...]
    records: tuple[Record, ...]
    history: tuple[Turn, ...]
    opening_work: float
    on_cpu: bool
    refused: tuple[Refusals, ...]
    scanning: Batch | None
    unknown_forms: tuple[UnknownForms, ...]


def _check(state: State | _StateFields, front: Front) -> None:
    """Refuse numbers that no search can have: negative counts, a negative loss by mistake, infinity, NaN."""
    if state.seed < 0 or state.iteration < 0 or not state.elapsed >= 0:
        raise ValueError("seed, iteration and time do not belong to a search")
    for one in (front, state.front):
        if not (0 < one.discount <= 1 and math.isfinite(one.floor) and one.rows >= 0):
            raise ValueError("the front holds a discount, a floor or a number of rows that no search has")
    lowest = -math.inf if front.zero < 0 else 0.0
    if any(not lowest <= entry.loss < math.inf for entry in (*front, *state.front, *state.runners_up)):
        raise ValueError("the front holds losses that are no losses")


class CheckpointWriter:
    """Writes checkpoints while a search runs. Where the disk refuses them, it warns once and the search goes on."""

    def __init__(
        self,
        path: Path,
        generator: str,
        signature: str,
        about: Mapping[str, Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._checkpoint: Callable[[State, Front], Checkpoint] = lambda state, front: Checkpoint(
            state, front, generator, signature, about
        )
        self._clock = clock
        self._written_front: Front | None = None
        self._written_at = 0.0
        self._warned = False

    def __call__(self, state: State, front: Front) -> None:
        """Called after each whole step: writes where the front has changed, or the last writing is a second ago."""
        if front != self._written_front or self._clock() - self._written_at >= _MAX_INTERVAL:
            self.write(state, front)

    def write(self, state: State, front: Front) -> None:
        """Write the checkpoint now; warn where that fails for the first time."""
        try:
            write_checkpoint(self.path, self._checkpoint(state, front))
        except OSError as error:
            if not self._warned:
                why = error.strerror or error
                warn_user(
                    f"checkpoint: '{self.path}' could not be written ({why}); the search goes on, and each later step "
                    "tries again",
                    RuntimeWarning,
                )
            self._warned = True
        else:
            self._written_front, self._written_at = front, self._clock()


# Frozen dataclasses of numbers, text and expressions to JSON's values, and back


def packed(value: object) -> Any:
    """The value as JSON's lists, dictionaries, text and numbers; expressions and non-finite numbers become text."""
    if isinstance(value, _NODES):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [packed(one) for one in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as data")


def unpacked(kind: Any, data: Any, read: ReadExpression = parse, where: str = "") -> Any:
    """The value of type `kind` that `packed` made `data` of; `read` makes expressions of text.

    ValueError says what is wrong with the data. `where`: the name of the value in such a message.
    """
    if kind == Expression:
        return read(_checked(str, data, where))
    if get_origin(kind) in (Union, types.UnionType):
        (other,) = [one for one in get_args(kind) if one is not type(None)]
        return None if data is None else unpacked(other, data, read, where)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), _checked(list, data, where), read, where)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, _checked(dict, data, where), read, where)
    if kind is float:
        return _number(data, where)
    if kind not in (bool, int, str):
        raise TypeError(f"{where} is a {kind}, and only numbers, text, expressions, tuples and dataclasses can be kept")
    return _checked(kind, data, where)


def _record(kind: type, data: dict[str, Any], read: ReadExpression, where: str) -> Any:
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if set(data) != set(names):
        raise ValueError(f"{where or kind.__name__} has the fields {sorted(data)}, not {sorted(names)}")
    return kind(**{name: unpacked(hints[name], data[name], read, f"{where}.{name}") for name in names})


def _tuple(kinds: tuple[Any, ...], data: list[Any], read: ReadExpression, where: str) -> tuple[Any, ...]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(unpacked(kinds[0], one, read, where) for one in data)
    if len(data) != len(kinds):
        raise ValueError(f"{where} has {len(data)} values, not {len(kinds)}")
    return tuple(unpacked(kind, one, read, where) for kind, one in zip(kinds, data, strict=True))


def _number(data: Any, where: str) -> float:
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        return float(data)
    if data in ("inf", "-inf", "nan"):
        return float(data)
    raise ValueError(f"{where} is {data!r:.60}, not a number")


def _checked(kind: type, data: Any, where: str) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{where} is {data!r:.60}, not of type {kind.__name__}")
    return data
