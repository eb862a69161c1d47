"""A folder of results: one file per run, written whole or not at all, so that an interrupted bench can go on.

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
from symenum.core.files import write_whole
from symenum.core.memory import machine_memory
from symenum.core.threads import available_cores
from symenum.display.report import installed_version
from symenum.expressions import natural_key

__all__ = ["Store", "StoreError", "machine_facts", "package_versions", "read_manifest", "read_rows"]

_MANIFEST = "bench.json"
_RUNS = "runs"
_LOCK = "lock"
_BROKEN = ".broken"
_PACKAGES = ("numpy", "scikit-learn", "scipy", "sympy", "torch")
_FIXED = ("version", "max_time", "cores", "memory")  # settings that all runs of a folder share


class StoreError(ValueError):
    """The folder cannot be used as it is; the message says why and what to do."""


@dataclass(frozen=True)
class Store:
    """The folder of a bench that is being run."""

    folder: Path

    def open(self, settings: Mapping[str, Any], command: str) -> list[str]:
        """Make the folder, or check that a bench with these settings can go on in it; gives back notes for the user."""
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"{self.folder} is a file: name a folder")
        (self.folder / _RUNS).mkdir(parents=True, exist_ok=True)
        path = self.folder / _MANIFEST
        commands: list[str] = []
        if path.exists():
            before = read_manifest(self.folder)
            different = [name for name in _FIXED if before.get(name) != settings.get(name)]
            if different:
                what = ", ".join(f"{name} {before.get(name)} (now {settings.get(name)})" for name in different)
                raise StoreError(f"{self.folder} holds results with {what}: choose another folder with --out")
            commands = list(before.get("commands", ()))
        elif any((self.folder / _RUNS).iterdir()):
            raise StoreError(f"{self.folder} has runs but no {_MANIFEST}: choose another folder with --out")
        record = {**settings, "commands": list(dict.fromkeys([*commands, command]))}
        write_whole(path, json.dumps(record, indent=1, ensure_ascii=False))
        return self._set_broken_rows_aside()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse other benches in this folder while one runs; the lock of a process that has ended is taken over."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / _LOCK
        own = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
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
            file.write(own)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def has(self, job: Job) -> bool:
        """Whether the job is done."""
        return self._path(job).exists()

    def keep(self, row: Row) -> None:
        """Write a row, whole or not at all."""
        write_whole(self._path(row.job), row_to_json(row))

    def _path(self, job: Job) -> Path:
        return self.folder / _RUNS / f"{job.key}.json"

    def _set_broken_rows_aside(self) -> list[str]:
        """Rename files of rows that cannot be read, so that their jobs run again; gives back a note on each."""
        notes = []
        for path in sorted((self.folder / _RUNS).glob("*.json")):
            if _row(path) is None:
                path.rename(path.with_suffix(_BROKEN))
                notes.append(f"{path.name} cannot be read: kept as {path.with_suffix(_BROKEN).name}, and run again")
        return notes


def read_manifest(folder: Path) -> dict[str, Any]:
    """The settings, machine and commands of the folder's results."""
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
    """The manifest, all rows in order, and the names of files that hold no row, such as half-written ones."""
    manifest = read_manifest(folder)
    found = {path.name: _row(path) for path in sorted((folder / _RUNS).glob("*.json"))}
    rows = sorted((row for row in found.values() if row is not None), key=_order)
    return manifest, rows, [name for name, row in found.items() if row is None]


def _order(row: Row) -> tuple[object, ...]:
    """The order of a report: Nguyen-2 before Nguyen-10, symenum before its rivals."""
    job = row.job
    return job.set, job.noise, natural_key(job.problem), not job.system.startswith("symenum"), job.system, job.seed


def _row(path: Path) -> Row | None:
    """The row of a file; None where the file holds none, for example because it was cut off."""
    try:
        return row_from_json(path.read_text(encoding="utf-8"))
    except ValueError:
        return None


def _owner(path: Path) -> str | None:
    """The process that holds a lock; None where it has ended, or the lock cannot be read."""
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
    """Processor, cores, memory (GiB), GPU, and the mean load of the last minute."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    memory = round(machine_memory() / 2**30)
    return {"cpu": _cpu(), "cores": available_cores(), "memory_gb": memory, "gpu": gpu, "load": load}


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python, of the packages that symenum needs, and of these packages."""
    versions = {"Python": platform.python_version()}
    return versions | {name: installed_version(name) for name in dict.fromkeys([*_PACKAGES, *packages])}


def _cpu() -> str:
    """The name of the processor, where the system gives one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
