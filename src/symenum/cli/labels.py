"""What a table's columns are called, kept beside a checkpoint: the search itself knows numbers only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from symenum.cli.errors import InputError
from symenum.core.files import write_whole

__all__ = ["CHECKPOINT", "Labels", "read_labels", "write_labels"]

CHECKPOINT = "checkpoint.json"
"""The checkpoint in a folder of results."""
_FORMAT = "symenum labels"
_VERSION = 1


@dataclass(frozen=True)
class Labels:
    """The target's name, the names of the columns in the file, and where the table came from."""

    target: str
    columns: tuple[str, ...]
    source: str


def write_labels(checkpoint: Path, labels: Labels) -> None:
    """Beside the checkpoint; a folder that cannot be written is refused."""
    path = _path(checkpoint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"format": _FORMAT, "version": _VERSION, **asdict(labels)}))
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"--checkpoint: '{path}' cannot be written ({why}): name another one.") from error


def read_labels(checkpoint: Path) -> Labels:
    """What `write_labels` has written; refused if it is something else."""
    path = _path(checkpoint)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (_FORMAT, _VERSION):
        raise InputError(f"'{path}' does not belong to a checkpoint of this symenum.")
    target, columns, source = document.get("target"), document.get("columns"), document.get("source")
    named = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not isinstance(target, str) or not isinstance(source, str) or not named:
        raise InputError(f"'{path}' is damaged: it names no target, columns and source.")
    return Labels(target, tuple(columns or ()), source)


def _path(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.stem}.labels.json")
