"""Fitted laws of motion or of fields as one JSON file, with laws as text; nothing in it is ever run.

What the file of each estimator holds is a dataclass of its own, in `motion_file` and `field_file`. Searches are
not kept here: those of motion are in checkpoints (`persistence`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from symenum.estimator.persistence import json_parameters, own_operators, parameters_from_json, refuse_missing
from symenum.expressions import parse
from symenum.search.checkpoint import packed, unpacked
from symenum.version import __version__

__all__ = ["LawsFile"]

Saved = TypeVar("Saved")

_VERSION = 1
_NOT_STORED = ("random_state", "callbacks", "checkpoint", "run_dir")  # of the machine and the session of the fit


@dataclass(frozen=True)
class LawsFile(Generic[Saved]):
    """The file of an estimator: the text of its `format`, the estimator's name, and the dataclass that it holds.

    `check` raises ValueError where the parts of what was read do not belong together.
    """

    format: str
    estimator: str
    kind: type[Saved]
    check: Callable[[Saved], None]

    def text(self, parameters: Mapping[str, Any], saved: Saved) -> str:
        """The whole file."""
        stored = {name: value for name, value in json_parameters(parameters).items() if name not in _NOT_STORED}
        document = {
            "format": self.format,
            "version": _VERSION,
            "symenum": __version__,
            "parameters": stored,
            "found": packed(saved),
        }
        return json.dumps(document, allow_nan=False)

    def read(self, path: Path, changes: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], Saved]:
        """The parameters, with `changes`, of an estimator whose parameters have these names; and what it has found."""
        unknown = set(changes) - set(names)
        if unknown:
            raise ValueError(f"changes: {self.estimator} has no parameter {', '.join(sorted(unknown))}")
        try:
            document: Any = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"the file '{path}' cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"'{path}' is no file of {self.estimator}.save, or a truncated one: {error}") from error
        if not isinstance(document, dict) or document.get("format") != self.format:
            raise ValueError(f"'{path}' is no file of {self.estimator}.save")
        if document.get("version") != _VERSION:
            raise ValueError(
                f"'{path}' has version {document.get('version')!r:.20} of the format, and this is symenum "
                f"{__version__}, which reads version {_VERSION}"
            )
        stored = document.get("parameters")
        if (
            not isinstance(stored, dict)
            or not isinstance(stored.get("operators"), list)
            or not set(stored) <= set(names)
        ):
            raise ValueError(f"'{path}' is damaged: it does not say how it was made")
        parameters = {**parameters_from_json(stored), **changes}
        own = own_operators(path, stored, parameters, "load")
        refuse_missing(parameters, "the file", "load")
        try:
            saved = unpacked(self.kind, document["found"], partial(parse, operators=own), "found")
            self.check(saved)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ValueError(f"'{path}' is damaged: {error}") from error
        return parameters, saved
