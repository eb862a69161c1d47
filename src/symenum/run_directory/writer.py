"""Writes the folder of a run while a search runs.

The search only hands over each report; a thread of its own writes the files a few times a second, so that a slow disk
does not slow the search. Where the disk refuses them, one warning says so and the search goes on.
"""

from __future__ import annotations

import json
import math
import os
import platform
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from symenum.core.files import write_whole
from symenum.core.user_warnings import warn_user
from symenum.display.progress import Report
from symenum.display.table import rows_of, selected_row
from symenum.run_directory.layout import EVENTS, FORMAT, FORMAT_VERSION, FRONT, FRONT_FORMAT, RUN, STOP, RunFacts
from symenum.run_directory.lock import RunLock
from symenum.version import __version__

__all__ = ["NoRunWriter", "RunWriter", "finite_or_none"]

# Seconds between two looks of the writing thread: twice as often as a page is told of news, and a stop that is asked
# for acts within it.
_INTERVAL = 0.25
_SECONDS_DIGITS = 4  # of times in events: a tenth of a millisecond, below which no step is


class NoRunWriter:
    """Writes nothing: for a search without a folder."""

    def __enter__(self) -> NoRunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, report: Any) -> None:
        return None

    def finish(self, *_: object, **__: object) -> None:
        return None


class RunWriter:
    """Opened around a search and called with the report of each step.

    `rule` marks the law of a front while the search runs. `stop` is called once when somebody asks the search to end.
    A search that ends without `finish` has failed.
    """

    def __init__(self, folder: Path, facts: RunFacts, rule: str, stop: Callable[[], object]) -> None:
        self._folder = folder
        self._facts = facts
        self._rule = rule
        self._stop = stop
        self._lock = RunLock(folder)
        self._guard = threading.Lock()  # of `_lines` and `_fronts`, which the search fills and the thread empties
        self._lines: list[str] = []
        self._fronts: dict[str, Any] = {}
        self._changed = False
        self._number = 0
        self._elapsed = facts.elapsed_before
        self._ended = False
        self._closing = threading.Event()
        self._refused: OSError | None = None
        self._thread = threading.Thread(target=self._watch, name="symenum run writer", daemon=True)

    def __enter__(self) -> RunWriter:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            (self._folder / STOP).unlink(missing_ok=True)
            going_on = (self._folder / EVENTS).exists() and self._facts.elapsed_before > 0
            if not going_on:
                for name in (EVENTS, FRONT):
                    (self._folder / name).unlink(missing_ok=True)
            write_whole(self._folder / RUN, self._run_json(going_on))
        except OSError as error:
            self._lock.release()
            raise ValueError(
                f"run_dir: the folder '{self._folder}' cannot be written ({error.strerror or error}): name another"
            ) from error
        self._say("start", max_time=self._facts.max_time, elapsed_before=self._facts.elapsed_before)
        self._write()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._thread.join()
        if not self._ended:
            reason = "the search ended before its result" if error is None else f"{type(error).__name__}: {error}"
            text = "" if error is None else "".join(traceback.format_exception(error))
            self._say("end", status="failed", reason=reason, elapsed=self._elapsed, traceback=text)
        self._write()
        try:
            (self._folder / STOP).unlink(missing_ok=True)
        except OSError as failure:
            self._refused = self._refused or failure
        self._lock.release()
        if self._refused is not None:
            why = self._refused.strerror or self._refused
            warn_user(
                f"run_dir: the folder '{self._folder}' could not be written ({why}), so a part of this run is missing "
                "there",
                RuntimeWarning,
            )

    def __call__(self, report: Report) -> None:
        """Take note of a step; nothing is written here."""
        state = getattr(report, "state", None)
        target = self._facts.targets[0] if state is None else str(state)
        step = {
            "iteration": report.iteration,
            "move": report.stage,
            "seconds": _rounded(getattr(report, "seconds", None)),
            "elapsed": _rounded(report.elapsed),
            "time_left": _rounded(report.time_left),
            "scored": report.scored,
            "rate": _rounded(report.rate),
            "gain": finite_or_none(getattr(report, "gain", None)),
            "plan": report.message,
            "errors": dict(getattr(report, "errors", None) or {}),
            "target": target,
        }
        self._elapsed = report.elapsed
        self._say("step", **step)
        self._show(target, report.front)

    def finish(
        self,
        fronts: Any,
        selected: Any,
        *,
        reason: str,
        interrupted: bool,
        elapsed: float,
        error: BaseException | None = None,
        **told: Any,
    ) -> None:
        """Say how the search ended, with its last front and the row that is chosen, or both by target.

        `told` are further plain values for the line of the end.
        """
        if not isinstance(fronts, Mapping):
            fronts, selected = {self._facts.targets[0]: fronts}, {self._facts.targets[0]: selected}
        for target, front in fronts.items():
            self._show(target, front, selected[target])
        status = "failed" if error is not None else "stopped" if interrupted else "finished"
        text = "" if error is None else "".join(traceback.format_exception(error))
        self._say("end", status=status, reason=reason, elapsed=_rounded(elapsed), traceback=text, **told)
        self._ended = True

    def _show(self, target: str, front: Any, selected: int | None = None) -> None:
        with self._guard:
            if (front, selected) != self._fronts.get(target):
                self._fronts[target] = (front, selected)
                self._changed = True

    def _say(self, event: str, **values: Any) -> None:
        line = json.dumps({"event": event, "time": _now(), **values}, allow_nan=False)
        with self._guard:
            self._lines.append(line)

    def _watch(self) -> None:
        """What the thread does: write what is new, and look whether somebody asks to stop."""
        asked = False
        while not self._closing.wait(_INTERVAL):
            if not asked and (self._folder / STOP).exists():
                asked = True
                self._stop()
            self._write()

    def _write(self) -> None:
        """Append the new lines; write the front where it has changed. The first error is kept for the end."""
        with self._guard:
            lines, self._lines = self._lines, []
            fronts, changed, self._changed = dict(self._fronts), self._changed, False
        try:
            if changed:  # before the events: who reads an end also reads its front
                self._number += 1
                write_whole(self._folder / FRONT, self._front_json(fronts))
            if lines:
                with (self._folder / EVENTS).open("a", encoding="utf-8") as file:
                    file.write("".join(f"{line}\n" for line in lines))
        except OSError as error:
            self._refused = self._refused or error

    def _run_json(self, going_on: bool) -> str:
        facts, now = self._facts, _now()
        created = _created(self._folder / RUN) if going_on else None
        document = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "symenum": __version__,
            "kind": facts.kind,
            "created": created or now,
            "started": now,
            "process": {"host": platform.node(), "pid": os.getpid()},
            "source": facts.source,
            "targets": [
                {"name": name, "variance": finite_or_none(variance)}
                for name, variance in zip(facts.targets, facts.variances or [None] * len(facts.targets), strict=True)
            ],
            "variables": [{"name": name, "column": column} for name, column in facts.variables],
            "rows": facts.rows,
            "data_hash": facts.data_hash,
            "settings": dict(facts.settings),
            **facts.details,
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"

    def _front_json(self, fronts: Mapping[str, tuple[Any, int | None]]) -> str:
        shown = []
        for target in self._facts.targets:
            if target not in fronts:
                continue
            front, selected = fronts[target]
            shown.append(
                {
                    "target": target,
                    "selected": selected_row(front, self._rule) if selected is None else selected,
                    "laws": _laws(rows_of(front)),
                }
            )
        document = {"format": FRONT_FORMAT, "version": FORMAT_VERSION, "number": self._number, "fronts": shown}
        return json.dumps(document, allow_nan=False)


def _laws(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        {
            "equation": str(row.expression),
            "complexity": row.complexity,
            "loss": _number(row.loss),
            "score": _number(row.score),
            "reward": _number(row.reward),
        }
        for row in rows
    ]


def _created(path: Path) -> str | None:
    """When a run began that now goes on; None where its run.json cannot be read."""
    try:
        created = json.loads(path.read_text(encoding="utf-8")).get("created")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return created if isinstance(created, str) else None


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _number(value: float) -> float | str:
    """As model.json holds it: JSON has no infinity, and the score of a perfect fit is infinite."""
    return value if math.isfinite(value) else repr(value)


def finite_or_none(value: float | None) -> float | None:
    """The number as an event holds it: JSON has neither infinity nor NaN."""
    return None if value is None or not math.isfinite(value) else float(value)


def _rounded(value: float | None) -> float | None:
    finite = finite_or_none(value)
    return None if finite is None else round(finite, _SECONDS_DIGITS)
