"""The names of a table in a file beside the checkpoint of its search, which holds numbers only.

`symenum fit` and the studio write it. A checkpoint that was made in Python has none: the names that it needs are in the
checkpoint itself.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from symenum.core.files import write_whole
from symenum.estimator.saved_results import Encoding

__all__ = ["TableLabels", "labels_path", "read_labels", "write_labels"]

_FORMAT = "symenum labels"
_VERSION = 1  # of this file, like FORMAT_VERSION of a checkpoint


@dataclass(frozen=True)
class TableLabels:
    """The name of the target, the names of the variables' columns in the file, the file that the table came from, and
    how its dates and texts became numbers.
    """

    target: str
    columns: tuple[str, ...]
    source: str
    encoding: Encoding = field(default_factory=Encoding)


def write_labels(checkpoint: Path, labels: TableLabels) -> None:
    """Write the labels beside the checkpoint; OSError where the folder cannot be written."""
    path = labels_path(checkpoint)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"format": _FORMAT, "version": _VERSION, **asdict(labels)}))


def read_labels(checkpoint: Path, variables: int | None = None) -> TableLabels | None:
    """The labels that `write_labels` has written, None where there are none; ValueError for any other file.

    `variables`: how many the checkpoint has; labels of another number of columns are refused.
    """
    path = labels_path(checkpoint)
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (_FORMAT, _VERSION):
        raise ValueError(f"'{path}' does not belong to a checkpoint of this symenum")
    target, columns, source = document.get("target"), document.get("columns"), document.get("source")
    named = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not isinstance(target, str) or not isinstance(source, str) or not named:
        raise ValueError(f"'{path}' is damaged: it names no target, columns and source")
    try:
        encoding = Encoding.read(document.get("encoding"))
    except ValueError as error:
        raise ValueError(f"'{path}' is damaged: {error}") from error
    if variables is not None and len(columns or ()) != variables:
        raise ValueError(f"'{checkpoint}' and the file of its labels, '{path}', do not belong together")
    return TableLabels(target, tuple(columns or ()), source, encoding)


def labels_path(checkpoint: Path) -> Path:
    """Where the labels of a checkpoint are."""
    return checkpoint.with_name(f"{checkpoint.stem}.labels.json")
