"""A search on the disk: where it stands after its last whole step, as JSON; written whole or not at all.

What the search was asked (data and settings) is known here by a signature only; whoever drives the search keeps those.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from symenum.core.files import write_whole
from symenum.enumeration.shortlist import Candidate
from symenum.expressions import parse
from symenum.front import Front
from symenum.heads.registry import HEADS
from symenum.search.records import Read, packed, unpacked
from symenum.search.state import State
from symenum.tokens import STATES
from symenum.version import __version__

__all__ = ["Checkpoint", "Keeper", "read_checkpoint", "read_document", "restored", "write_checkpoint"]

FORMAT = "symenum checkpoint"
# A checkpoint counts steps, and what the n-th step does belongs to the version of the search: whoever changes the order
# of the stages, what a step draws at random, or the fields of a state, raises this number.
FORMAT_VERSION = 3
_WRITTEN_BY = {1: "0.1", 2: "0.1"}  # symenum's version for formats that did not hold it
_SECONDS = 1.0  # between two writings where the front has not changed


@dataclass(frozen=True)
class Checkpoint:
    """`state`: after the last whole step, from where a search goes on as if it had not ended.

    `front`: the best that is known; it may hold more than the state's, from a step that was cut short. `signature`: of
    data and settings. `about`: plain values of whoever drives the search.
    """

    state: State
    front: Front
    generator: str
    signature: str
    about: Mapping[str, Any] = field(default_factory=dict)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """The file, or, if that fails (OSError), the file as it was before."""
    state = replace(checkpoint.state, generator=None)
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "symenum": __version__,
        "heads": list(HEADS),
        "signature": checkpoint.signature,
        "about": dict(checkpoint.about),
        "state": {**packed(state), "generator": packed(checkpoint.state.generator)},
        "front": packed(checkpoint.front),
        "token_generator": checkpoint.generator,
    }
    write_whole(path, json.dumps(document, allow_nan=False))


def read_checkpoint(path: Path, read: Read = parse) -> Checkpoint:
    """What `write_checkpoint` has written; a file that is not one is refused with what is wrong (ValueError)."""
    return restored(path, read_document(path), read)


def read_document(path: Path) -> dict[str, Any]:
    """The file's plain values, so far checked that it is a checkpoint of this version."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"the checkpoint '{path}' cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{path}' is no checkpoint of symenum, or a truncated one: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"'{path}' is no checkpoint of symenum")
    found = document.get("version")
    if found != FORMAT_VERSION:
        known = _WRITTEN_BY.get(found) if isinstance(found, int) else None
        writer = known or document.get("symenum", "of an unknown version")
        raise ValueError(
            f"the checkpoint '{path}' was written by symenum {writer!s:.20} (version {found!r:.20} of the format), and "
            f"this is symenum {__version__}, which reads version {FORMAT_VERSION}: its search takes other steps. Go on "
            'with the symenum that wrote it; or start anew and give the laws under "front" in the file as guesses'
        )
    if document.get("heads") != list(HEADS):
        raise ValueError(
            f"the checkpoint '{path}' counts its steps with the registered heads {document.get('heads')!r:.200}, and "
            f"now there are {list(HEADS)!r}: import the modules that registered them, and no others"
        )
    return document


def restored(path: Path, document: Mapping[str, Any], read: Read = parse) -> Checkpoint:
    """The checkpoint of a document; `read` makes expressions of text."""
    try:
        name = document["token_generator"]
        if name not in STATES:
            raise ValueError(f"the token generator {name!r:.40} is not known: import the module that registers it")
        kept = document["state"]
        begun = unpacked(STATES[name] | None, kept["generator"], read, "generator")
        state = unpacked(_Kept, {key: kept[key] for key in kept if key != "generator"}, read, "state")
        front = unpacked(Front, document["front"], read, "front")
        about, signature = document["about"], document["signature"]
        if not isinstance(about, dict) or not isinstance(signature, str):
            raise ValueError("about or signature is not what it should be")
        _check(state, front)
        return Checkpoint(State(**vars(state), generator=begun), front, name, signature, about)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"the checkpoint '{path}' is damaged: {error}") from error


@dataclass(frozen=True)
class _Kept:
    """A State but for the generator's part, whose type depends on the generator."""

    seed: int
    iteration: int
    front: Front
    scored: int
    elapsed: float
    beside: tuple[Candidate, ...]


def _check(state: _Kept, front: Front) -> None:
    """Refuse numbers that no search can have come to."""
    if state.seed < 0 or state.iteration < 0 or not state.elapsed >= 0:
        raise ValueError("seed, iteration and time do not belong to a search")
    if any(not 0 <= entry.loss < float("inf") for entry in (*front, *state.front, *state.beside)):
        raise ValueError("the front holds losses that are no losses")


class Keeper:
    """Writes checkpoints while a search runs. A disk that does not take them costs a warning, not the search."""

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
        self._written: Front | None = None
        self._when = 0.0
        self._warned = False

    def __call__(self, state: State, front: Front) -> None:
        """After a whole step: written where the front has changed, or once in a while."""
        if front != self._written or self._clock() - self._when >= _SECONDS:
            self.write(state, front)

    def write(self, state: State, front: Front) -> None:
        try:
            write_checkpoint(self.path, self._checkpoint(state, front))
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
        else:
            self._written, self._when = front, self._clock()
