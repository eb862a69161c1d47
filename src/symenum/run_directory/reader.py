"""Reads the folder of a run: alive, finished, killed, copied from elsewhere, of another version, or with parts missing.

Nothing from a file is ever run, and laws stay text here: whoever shows them reads them with our own parser. What cannot
be read is said in `Run.message`, with what to do about it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any

from symenum.run_directory.layout import (
    EVENTS,
    FORMAT,
    FORMAT_VERSION,
    FRONT,
    FRONT_FORMAT,
    REQUEST,
    RUN,
    STOP,
)
from symenum.run_directory.lock import is_held
from symenum.version import __version__

__all__ = [
    "LawRecord",
    "MoveRecord",
    "Run",
    "RunReader",
    "Status",
    "TargetFront",
    "Variable",
    "ask_to_stop",
    "read_run",
    "sorted_runs",
]

# Bytes of a file beyond which it is not read, 64 MiB: a front of 10,000 laws takes 5 MB, a day of steps 25 MB.
_MAX_BYTES = 1 << 26
_NON_FINITE = ("inf", "-inf", "nan")  # as text, since JSON has no such numbers
_START_AGAIN = "start the search again, or copy the folder once more from where it is whole"


class Status(str, Enum):
    """What has become of a run."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    KILLED = "killed"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Variable:
    """A variable: its name in formulas, and that of its column in the table."""

    name: str
    column: str


@dataclass(frozen=True)
class LawRecord:
    """A law as front.json has it; `equation` is text for `symenum.expressions.parse`."""

    equation: str
    complexity: int
    loss: float
    score: float
    reward: float


@dataclass(frozen=True)
class TargetFront:
    """The laws of one target, and which of them is marked. `variance`: that of the target, where R² follows from it."""

    target: str
    laws: tuple[LawRecord, ...] = ()
    selected: int | None = None
    variance: float | None = None

    def r_squared(self, law: LawRecord) -> float | None:
        """The share of the variance that a law explains; None where the loss is no mean squared error."""
        if self.variance is None or not self.variance > 0:
            return None
        return 1 - law.loss / self.variance


@dataclass(frozen=True)
class MoveRecord:
    """What one move of the schedule has done: turns, seconds, and decades by which it has lowered the front."""

    move: str
    turns: int
    seconds: float
    gain: float


@dataclass(frozen=True)
class Run:
    """A run as its folder tells it. Times in seconds; `created` and `started` are ISO 8601, UTC.

    `message` says what is wrong or missing and what to do; "" where nothing is. `number` grows with each change of the
    front. `ending` is the line of the end: reason, refused laws, confidence, alternatives.
    """

    folder: Path
    status: Status
    message: str = ""
    kind: str = "law"
    created: str = ""
    started: str = ""
    source: str = ""
    data_hash: str = ""
    rows: int = 0
    variables: tuple[Variable, ...] = ()
    fronts: tuple[TargetFront, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    elapsed: float = 0.0
    max_time: float | None = None
    iteration: int = 0
    move: str = ""
    scored: int = 0
    rate: float = 0.0
    plan: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    schedule: tuple[MoveRecord, ...] = ()
    ending: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0

    @property
    def targets(self) -> tuple[str, ...]:
        """The name of y, or those of the states."""
        return tuple(front.target for front in self.fronts)


def read_run(folder: Path) -> Run:
    """The run in a folder, as it stands now."""
    return RunReader(folder).read()


def sorted_runs(parent: Path) -> list[Path]:
    """The folders in `parent` that hold a run or what was to become one, the newest first. Links are not followed."""
    found = []
    for path in parent.iterdir():
        if path.is_symlink() or not path.is_dir():
            continue
        marks = [path / name for name in (RUN, REQUEST, "model.json", "checkpoint.json", "laws.txt")]
        times = [mark.stat().st_mtime for mark in marks if mark.is_file()]
        if times:
            found.append((min(times), path))
    return [path for _, path in sorted(found, reverse=True)]


def ask_to_stop(folder: Path) -> None:
    """Ask the search that writes to this folder to end with what it has found. OSError where it cannot be asked."""
    (folder / STOP).touch()


class _UnreadableError(Exception):
    """A file cannot be read; the text says why and what to do."""


class RunReader:
    """Reads a run again and again: of the events only the lines that are new."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._forget()

    def _forget(self) -> None:
        self._offset = 0
        self._start: Mapping[str, Any] = {}
        self._step: Mapping[str, Any] = {}
        self._end: Mapping[str, Any] | None = None
        self._moves: dict[str, MoveRecord] = {}

    def read(self) -> Run:
        """The run as it stands now."""
        alive = is_held(self.folder)  # first: a search that ends meanwhile has said so in what is read below
        try:
            document = self._run_document()
            if document is None:
                return Run(self.folder, Status.WAITING, "The search is about to begin.")
            return self._run(document, alive)
        except _UnreadableError as error:
            return Run(self.folder, Status.UNREADABLE, str(error))

    def _run_document(self) -> dict[str, Any] | None:
        """run.json; None where the studio has made the folder and its search has not begun yet."""
        if not (self.folder / RUN).exists():
            if (self.folder / REQUEST).exists():
                return None
            raise _UnreadableError(self._why_no_run())
        document = _read_json(self.folder / RUN, FORMAT)
        for name, kind in (("targets", list), ("variables", list), ("settings", dict), ("kind", str), ("rows", int)):
            if not isinstance(document.get(name), kind):
                raise _UnreadableError(f"'{RUN}' is damaged: it has no {name}; {_START_AGAIN}.")
        return document

    def _why_no_run(self) -> str:
        if not self.folder.is_dir():
            return f"There is no folder '{self.folder.name}'."
        if any((self.folder / name).exists() for name in ("model.json", "checkpoint.json")):
            return (
                f"There is no '{RUN}' here: an earlier symenum wrote this folder, or the file was not copied. The laws "
                f"are in model.json (PSERegressor.load opens it); 'symenum resume {self.folder.name}' goes on with "
                "the search and writes the file."
            )
        return f"There is no '{RUN}' here, so it is no run of this symenum: {_START_AGAIN}."

    def _run(self, document: Mapping[str, Any], alive: bool) -> Run:
        missing = self._read_events()
        names = [_field(one, "name", str) for one in document["targets"]]
        variances = [one.get("variance") for one in document["targets"]]
        number, fronts, problem = self._fronts(dict(zip(names, variances, strict=True)))
        status, message = self._status(alive)
        known = {*("format", "version", "symenum", "kind", "created", "started", "process", "source", "targets")}
        known |= {"variables", "rows", "data_hash", "settings"}
        run = Run(
            self.folder,
            status,
            " ".join(part for part in (message, missing, problem) if part),
            kind="motion" if document["kind"] == "motion" else "law",
            created=str(document.get("created", "")),
            started=str(document.get("started", "")),
            source=str(document.get("source", "")),
            data_hash=str(document.get("data_hash", "")),
            rows=document["rows"],
            variables=tuple(
                Variable(_field(one, "name", str), _field(one, "column", str)) for one in document["variables"]
            ),
            fronts=fronts,
            settings=document["settings"],
            details={name: value for name, value in document.items() if name not in known},
            number=number,
        )
        return self._with_progress(run)

    def _with_progress(self, run: Run) -> Run:
        step, end = self._step, self._end or {}
        before = _plain_number(self._start.get("elapsed_before"), 0.0)
        elapsed = max(before, _plain_number(step.get("elapsed"), 0.0), _plain_number(end.get("elapsed"), 0.0))
        if run.status is Status.RUNNING:
            elapsed = max(elapsed, before + _seconds_since(self._start.get("time")))
        limit = self._start.get("max_time")
        return replace(
            run,
            elapsed=elapsed,
            max_time=before + _plain_number(limit, 0.0) if isinstance(limit, (int, float)) else None,
            iteration=int(_plain_number(step.get("iteration"), 0)),
            move=str(step.get("move") or ""),
            scored=int(_plain_number(step.get("scored"), 0)),
            rate=_plain_number(step.get("rate"), 0.0),
            plan=str(step.get("plan") or ""),
            errors=step["errors"] if isinstance(step.get("errors"), dict) else {},
            schedule=tuple(self._moves.values()),
            ending=end,
        )

    def _status(self, alive: bool) -> tuple[Status, str]:
        if self._end is not None:
            told = str(self._end.get("status"))
            known = {one.value: one for one in (Status.FINISHED, Status.STOPPED, Status.FAILED)}
            status = known.get(told, Status.FAILED)
            reason = str(self._end.get("reason", ""))
            return status, f"The search failed: {reason}." if status is Status.FAILED else ""
        if alive:
            return Status.RUNNING, ""
        return Status.KILLED, (
            "The process of this search is gone, or the folder was copied while it ran. What it had found is here; "
            "'resume' goes on from the last step."
        )

    def _read_events(self) -> str:
        """Take in the new lines; returns what is missing, in words."""
        path = self.folder / EVENTS
        try:
            size = path.stat().st_size
            if size < self._offset:  # a new search in the same folder
                self._forget()
            if size - self._offset > _MAX_BYTES:
                self._offset = size - _MAX_BYTES
            with path.open("rb") as file:
                file.seek(self._offset)
                whole = file.read(_MAX_BYTES)
        except FileNotFoundError:
            self._forget()
            return f"'{EVENTS}' is missing, so nothing is known of the steps: copy it, too."
        except OSError as error:
            raise _UnreadableError(
                f"'{EVENTS}' cannot be read ({error.strerror or error}): change its rights."
            ) from error
        whole = whole[: whole.rfind(b"\n") + 1]  # a line may be half written
        self._offset += len(whole)
        damaged = sum(not self._take(line) for line in whole.splitlines())
        return f"{damaged} lines of '{EVENTS}' are damaged and were left out." if damaged else ""

    def _take(self, line: bytes) -> bool:
        """Whether the line is an event."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return False
        kind = event.get("event") if isinstance(event, dict) else None
        if kind == "start":
            self._start, self._end = event, None
        elif kind == "step":
            self._step = event
            name = str(event.get("move", ""))
            old = self._moves.get(name, MoveRecord(name, 0, 0.0, 0.0))
            seconds, gain = (_plain_number(event.get(key), 0.0) for key in ("seconds", "gain"))
            self._moves[name] = MoveRecord(name, old.turns + 1, old.seconds + seconds, old.gain + gain)
        elif kind == "end":
            self._end = event
        return isinstance(kind, str)

    def _fronts(self, variances: Mapping[str, Any]) -> tuple[int, tuple[TargetFront, ...], str]:
        """The number of the front, the laws of each target, and what is missing, in words."""
        empty = {name: TargetFront(name, variance=_variance(one)) for name, one in variances.items()}
        if not (self.folder / FRONT).exists():
            missing = "" if not self._step else f"'{FRONT}' is missing, so there are no laws to show: copy it, too."
            return 0, tuple(empty.values()), missing
        document = _read_json(self.folder / FRONT, FRONT_FORMAT)
        try:
            for entry in document["fronts"]:
                front = _target_front(entry)
                if front.target in empty:
                    empty[front.target] = replace(front, variance=empty[front.target].variance)
            number = int(document["number"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _UnreadableError(f"'{FRONT}' is damaged ({error}): {_START_AGAIN}.") from error
        return number, tuple(empty.values()), ""


def _target_front(entry: Mapping[str, Any]) -> TargetFront:
    laws = tuple(
        LawRecord(
            _field(law, "equation", str),
            _field(law, "complexity", int),
            _law_number(law["loss"]),
            _law_number(law["score"]),
            _law_number(law["reward"]),
        )
        for law in entry["laws"]
    )
    selected = entry["selected"]
    if selected is not None and not 0 <= int(selected) < len(laws):
        raise ValueError(f"law {selected} of {len(laws)} is marked")
    return TargetFront(_field(entry, "target", str), laws, None if selected is None else int(selected))


def _read_json(path: Path, wanted: str) -> dict[str, Any]:
    """The document of a file of our own; _UnreadableError for any other."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _UnreadableError(f"'{path.name}' is larger than any that symenum writes, and is not read.")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _UnreadableError(
            f"'{path.name}' cannot be read ({error.strerror or error}): change its rights."
        ) from error
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(f"'{path.name}' is damaged or cut off: {_START_AGAIN}.") from error
    if not isinstance(document, dict) or document.get("format") != wanted:
        raise _UnreadableError(f"'{path.name}' is no file of symenum: {_START_AGAIN}.")
    if document.get("version") != FORMAT_VERSION:
        raise _UnreadableError(
            f"'{path.name}' has version {document.get('version')!r:.20} of the format (symenum "
            f"{document.get('symenum', 'unknown')!s:.20}), and this is symenum {__version__}, which reads version "
            f"{FORMAT_VERSION}: open it with the symenum that wrote it, or start the search again."
        )
    return document


def _field(entry: Any, name: str, kind: type) -> Any:
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _UnreadableError(f"A file of this run is damaged: {name!r} is {value!r:.40}; {_START_AGAIN}.")
    return value


def _law_number(value: Any) -> float:
    if value in _NON_FINITE or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return float(value)
    raise ValueError(f"{value!r:.40} is no number")


def _plain_number(value: Any, default: float) -> float:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fine else default


def _variance(value: Any) -> float | None:
    number = _plain_number(value, -1.0)
    return number if number >= 0 else None


def _seconds_since(time: Any) -> float:
    try:
        began = datetime.fromisoformat(str(time))
        return max(0.0, (datetime.now(timezone.utc) - began).total_seconds())
    except (ValueError, TypeError):  # TypeError: a time without its zone
        return 0.0
