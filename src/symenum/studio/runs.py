"""The runs of a folder: listed, looked at, started as processes of their own, stopped and resumed.

A search is a child process in a session of its own, so the end of the server does not end it. What the server must know
of it is in its folder: after a restart it is found there again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from symenum.core.files import write_whole
from symenum.run_directory import LOG, REQUEST, RUN, Run, RunReader, Status, ask_to_stop, sorted_runs
from symenum.studio.answers import RequestError
from symenum.studio.security import inside
from symenum.studio.snapshots import snapshot

__all__ = ["Runs"]

_FRESH = 0.4  # seconds for which a snapshot is handed out again: several tabs cost no more than one
_MAX_NAME = 60  # characters of a name that become a folder's name
_LOG_LINES = 8  # of the log in the message on a search that never began
_STARTING = 120.0  # seconds within which a search of an earlier server must have begun: torch may load from a slow disk
_MAX_RUNNING = 16  # searches at the same time: each wants whole cores, more would only wait for one another


@dataclass(frozen=True)
class _Seen:
    """A snapshot, when it was made (monotonic clock), and what its folder's files were then."""

    at: float
    shown: dict[str, Any]


class Runs:
    """The runs in one folder. Methods may be called from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._readers: dict[str, RunReader] = {}
        self._seen: dict[str, _Seen] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._earlier_start: dict[str, str] = {}  # when the search began that a child shall go on with
        self._guard = threading.RLock()

    def path(self, name: str) -> Path:
        """The folder of a run; RequestError where there is none of that name."""
        try:
            path = inside(self.folder, name)
        except (ValueError, OSError) as error:
            raise RequestError(404, f"There is no such run: {error}.") from error
        if name.startswith(".") or not path.is_dir():
            raise RequestError(404, f"There is no run {name[:60]!r} in this folder: look at the list of runs.")
        return path

    def all(self) -> list[Run]:
        """All runs, the newest first; RequestError where the folder cannot be read."""
        try:
            found = sorted_runs(self.folder)
        except OSError as error:
            raise RequestError(
                503, f"The folder '{self.folder}' cannot be read ({error.strerror or error}): change its rights."
            ) from error
        return [self.run(path.name) for path in found if not path.name.startswith(".")]

    def run(self, name: str) -> Run:
        """A run as it stands now."""
        path = self.path(name)
        links = _links(path)
        if links:
            return Run(path, Status.UNREADABLE, links)
        with self._guard:
            run = self._readers.setdefault(name, RunReader(path)).read()
            return self._with_child(name, run)

    def _with_child(self, name: str, run: Run) -> Run:
        """The run with what is known of its process, before it has begun to write."""
        child = self._children.get(name)
        starting = child is not None and child.poll() is None
        request = _read_request(run.folder)
        run = replace(run, details={"name": request.get("name"), **run.details})
        if starting and run.started and run.started == self._earlier_start.get(name):
            return replace(run, status=Status.WAITING, message="The search is about to go on.")
        if run.status is not Status.WAITING:
            return run
        run = replace(run, kind=str(request.get("kind", "law")), created=str(request.get("created", "")))
        if starting or (child is None and _is_young(run.folder / REQUEST)):
            return run
        return replace(run, status=Status.FAILED, message=f"The search did not begin. {_last_words(run.folder)}")

    def snapshot(self, name: str) -> dict[str, Any]:
        """What the page shows of a run."""
        with self._guard:
            now = time.monotonic()
            seen = self._seen.get(name)
            if seen is None or now - seen.at > _FRESH:
                shown = snapshot(self.run(name))
                shown["version"] = _version(self.path(name))
                seen = self._seen[name] = _Seen(time.monotonic(), shown)
            return seen.shown

    def start(self, request: Mapping[str, Any]) -> str:
        """Start a search in a new folder; returns its name."""
        with self._guard:
            self._refuse_too_many()
            folder = self._new_folder(str(request.get("name") or "run"))
            created = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
            write_whole(folder / REQUEST, json.dumps({**request, "created": created}))
            self._spawn(folder, ["symenum.studio.worker", str(folder)])
            return folder.name

    def stop(self, name: str) -> str:
        """Ask a search to end with what it has found; returns its status."""
        path = self.path(name)
        with self._guard:
            child = self._children.get(name)
            run = self.run(name)
            if run.status is Status.WAITING and child is not None and child.poll() is None:
                child.terminate()  # it has found nothing yet
                child.wait()
            elif run.status is Status.RUNNING:
                try:
                    ask_to_stop(path)
                except OSError as error:
                    raise RequestError(
                        503, f"The folder '{name}' cannot be written ({error.strerror or error}): change its rights."
                    ) from error
            self._seen.pop(name, None)
            return self.run(name).status.value

    def resume(self, name: str, max_time: float | None) -> str:
        """Go on with a search that has ended or was killed; returns its status."""
        path = self.path(name)
        with self._guard:
            run = self.run(name)
            if run.status in (Status.RUNNING, Status.WAITING):
                raise RequestError(409, "This search runs already: stop it first, or wait for its end.")
            if links := _links(path):
                raise RequestError(409, links)
            if run.kind == "motion":
                raise RequestError(
                    409, "A search for laws of motion cannot go on: start it again on the same table with more time."
                )
            if not (path / "checkpoint.json").is_file():
                raise RequestError(
                    409, "There is no checkpoint.json in this folder, so the search cannot go on: start it again."
                )
            self._refuse_too_many()
            limit = [] if max_time is None else ["--max-time", f"{max_time!r}"]
            self._earlier_start[name] = run.started
            self._spawn(path, ["symenum", "resume", str(path), *limit])
            self._seen.pop(name, None)
            return Status.WAITING.value

    def _spawn(self, folder: Path, arguments: list[str]) -> None:
        """Start a module of ours as a process that outlives the server; what it says goes to the log of the run."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with (folder / LOG).open("ab") as log:
            child = self._children[folder.name] = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        # Waits for its end, so that no dead process stays in the system's table, also if nobody asks for the run again.
        threading.Thread(target=child.wait, name=f"symenum studio {folder.name}", daemon=True).start()

    def _refuse_too_many(self) -> None:
        running = sum(child.poll() is None for child in self._children.values())
        if running >= _MAX_RUNNING:
            raise RequestError(429, f"{running} searches run already, as many as the studio starts: stop one of them.")

    def _new_folder(self, name: str) -> Path:
        """Make a folder for a run, named like it as far as file systems allow."""
        stem = re.sub(r"[^\w-]+", "-", name, flags=re.ASCII).strip("-_")[:_MAX_NAME] or "run"
        for number in range(1, 10_000):
            folder = self.folder / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            except OSError as error:
                raise RequestError(
                    503, f"The folder '{self.folder}' cannot be written ({error.strerror or error}): change its rights."
                ) from error
            return folder
        raise RequestError(503, f"There are 10,000 runs called {stem!r} in the folder: choose another name.")


def _links(folder: Path) -> str:
    """What to do about links in the folder of a run; "" where there are none. A link could lead out of the folder."""
    try:
        found = [entry.name for entry in os.scandir(folder) if entry.is_symlink()]
    except OSError as error:
        return f"The folder '{folder.name}' cannot be read ({error.strerror or error}): change its rights."
    return f"{found[0][:60]!r} is a link, which the studio does not follow: put the file itself there." if found else ""


def _read_request(folder: Path) -> dict[str, Any]:
    """What the studio was asked for; {} where it has not started the run."""
    try:
        document = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _is_young(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < _STARTING
    except OSError:
        return False


def _last_words(folder: Path) -> str:
    """The last lines of the log, which say why a search has not begun."""
    try:
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "It has left no log: start it again."
    return " ".join(line.strip() for line in lines[-_LOG_LINES:]) or "It has said nothing: start it again."


def _version(folder: Path) -> int:
    """A number that grows when the folder changes: milliseconds of the last change of what a snapshot is made of."""
    files = [folder / name for name in (RUN, REQUEST, "events.jsonl", "front.json", "model.json", "report.html")]
    return max((_changed(file) for file in files), default=0)


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0
