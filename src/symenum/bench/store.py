"""A folder of results: one file per run, written whole or not at all, so that an interrupted bench goes on.

    bench.json    what the results were made with: version, limits, machine, commands
    runs/*.json   one row each
    lock          the process that is writing

A folder holds results of one version of symenum and one set of limits; others are refused, and nothing is overwritten.
"""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from symenum.bench.jobs import Job, Row, row_from_json, row_to_json
from symenum.core.threads import available_cores
from symenum.display.report import installed_version
from symenum.expressions import natural_key

__all__ = ["Store", "StoreError", "machine_facts", "package_versions", "read_manifest", "read_rows"]

_MANIFEST = "bench.json"
_RUNS = "runs"
_LOCK = "lock"
_BROKEN = ".broken"
_PACKAGES = ("numpy", "scipy", "sympy", "torch")
FIXED = ("version", "max_time", "cores", "memory")
"""What must be the same for all runs of a folder."""


class StoreError(ValueError):
    """The folder cannot be used as it is; the message says why and what to do."""


@dataclass(frozen=True)
class Store:
    """The folder of a bench that is being run."""

    folder: Path

    def open(self, settings: Mapping[str, Any], command: str) -> list[str]:
        """Make the folder, or check that what is in it can be continued; gives back notes for the user."""
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"{self.folder} is a file: name a folder")
        (self.folder / _RUNS).mkdir(parents=True, exist_ok=True)
        path = self.folder / _MANIFEST
        commands: list[str] = []
        if path.exists():
            before = read_manifest(self.folder)
            different = [name for name in FIXED if before.get(name) != settings.get(name)]
            if different:
                what = ", ".join(f"{name} {before.get(name)} (now {settings.get(name)})" for name in different)
                raise StoreError(f"{self.folder} holds results with {what}: choose another folder with --out")
            commands = list(before.get("commands", ()))
        elif any((self.folder / _RUNS).iterdir()):
            raise StoreError(f"{self.folder} has runs but no {_MANIFEST}: choose another folder with --out")
        record = {**settings, "commands": list(dict.fromkeys([*commands, command]))}
        _write(path, json.dumps(record, indent=1, ensure_ascii=False))
        return self._aside()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others out while the bench runs; a lock that a dead process has left is taken over."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / _LOCK
        mine = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            owner = _owner(path)
            if owner is not None:
                raise StoreError(
                    f"{self.folder} is being written by process {owner}: wait for it, or choose another folder with "
                    f"--out. If there is no such bench any more, remove {path}"
                ) from None
            handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(mine)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def has(self, job: Job) -> bool:
        """Whether the job is done."""
        return self._path(job).exists()

    def keep(self, row: Row) -> None:
        """Write a row, whole or not at all."""
        _write(self._path(row.job), row_to_json(row))

    def _path(self, job: Job) -> Path:
        return self.folder / _RUNS / f"{job.key}.json"

    def _aside(self) -> list[str]:
        """Rows that cannot be read are put aside, to be run again."""
        notes = []
        for path in sorted((self.folder / _RUNS).glob("*.json")):
            if _row(path) is None:
                path.rename(path.with_suffix(_BROKEN))
                notes.append(f"{path.name} cannot be read: kept as {path.with_suffix(_BROKEN).name}, and run again")
        return notes


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder's results were made with."""
    path = folder / _MANIFEST
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{folder} holds no results of a bench: there is no {path}") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read ({error}): restore it, or choose another folder with --out") from error
    if not isinstance(record, dict):
        raise StoreError(f"{path} is not the description of a bench: choose another folder with --out")
    return record


def read_rows(folder: Path) -> tuple[dict[str, Any], list[Row], list[str]]:
    """The manifest, all rows in order, and the names of files that are no rows (half-written ones)."""
    manifest = read_manifest(folder)
    found = {path.name: _row(path) for path in sorted((folder / _RUNS).glob("*.json"))}
    rows = sorted((row for row in found.values() if row is not None), key=_order)
    return manifest, rows, [name for name, row in found.items() if row is None]


def _order(row: Row) -> tuple[object, ...]:
    """As people read them: Nguyen-2 before Nguyen-10, ourselves before rivals."""
    job = row.job
    return job.set, job.noise, natural_key(job.problem), not job.system.startswith("symenum"), job.system, job.seed


def _row(path: Path) -> Row | None:
    """The row of a file; None where it holds none, as a file that was cut off."""
    try:
        return row_from_json(path.read_text(encoding="utf-8"))
    except ValueError:
        return None


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _owner(path: Path) -> str | None:
    """The living owner of a lock, or None where it is dead or the lock says nothing."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        pid, host = int(record["pid"]), str(record["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if host != socket.gethostname():
        return f"{pid} on {host}"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return str(pid)
    return str(pid)


def machine_facts() -> dict[str, Any]:
    """Processor, cores, memory, GPU, and how busy the machine is."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    return {"cpu": _cpu(), "cores": available_cores(), "memory_gb": _memory_gb(), "gpu": gpu, "load": load}


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Python, and the packages that are installed."""
    versions = {"Python": platform.python_version()}
    return versions | {name: installed_version(name) for name in dict.fromkeys([*_PACKAGES, *packages])}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gb() -> int | str:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    except (AttributeError, OSError, ValueError):
        return "?"
