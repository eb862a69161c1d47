"""A fitted PDERegressor on the disk: one JSON file with laws as text; nothing in it is ever run.

Searches are not kept: those of fields take seconds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from symenum.core.files import write_whole
from symenum.dynamics.field_terms import FieldNames
from symenum.dynamics.noise import Noise
from symenum.dynamics.selection import Judged
from symenum.estimator.persistence import json_parameters, own_operators, parameters_from_json, refuse_missing
from symenum.expressions import parse
from symenum.front import Front
from symenum.search.checkpoint import packed, unpacked
from symenum.version import __version__

__all__ = ["Coefficient", "SavedFields", "read_fields", "write_fields"]

_FORMAT, _VERSION = "symenum fields", 1


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of the law of a field, as it was fitted, with its standard error."""

    field: str
    term: str
    value: float
    error: float


@dataclass(frozen=True)
class SavedFields:
    """What a fit has found. In the order of the fields: `fronts`, `judged`, `noise`, `reasons`; `windows`: by axis."""

    names: FieldNames
    fronts: tuple[Front, ...]
    judged: tuple[Judged, ...]
    noise: tuple[Noise, ...]
    reasons: tuple[str, ...]
    windows: tuple[int, ...]
    constants: tuple[Coefficient, ...]
    elapsed: float
    steps: int
    scored: int
    interrupted: bool


def write_fields(path: Path, parameters: Mapping[str, Any], saved: SavedFields) -> None:
    """Write the file: whole, or not at all."""
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "symenum": __version__,
        "parameters": json_parameters(parameters),
        "found": packed(saved),
    }
    write_whole(path, json.dumps(document, allow_nan=False))


def read_fields(path: Path, changes: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], SavedFields]:
    """The parameters, with `changes`, of an estimator whose parameters have these names; and what it has found."""
    unknown = set(changes) - set(names)
    if unknown:
        raise ValueError(f"changes: PDERegressor has no parameter {', '.join(sorted(unknown))}")
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"the file '{path}' cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{path}' is no file of PDERegressor.save, or a truncated one: {error}") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ValueError(f"'{path}' is no file of PDERegressor.save")
    if document.get("version") != _VERSION:
        raise ValueError(
            f"'{path}' has version {document.get('version')!r:.20} of the format, and this is symenum {__version__}, "
            f"which reads version {_VERSION}"
        )
    stored = document.get("parameters")
    if not isinstance(stored, dict) or not isinstance(stored.get("operators"), list) or not set(stored) <= set(names):
        raise ValueError(f"'{path}' is damaged: it does not say how it was made")
    parameters = {**parameters_from_json(stored), **changes}
    own = own_operators(path, stored, parameters, "load")
    refuse_missing(parameters, "the file", "load")
    try:
        saved = unpacked(SavedFields, document["found"], partial(parse, operators=own), "found")
        _check(saved)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"'{path}' is damaged: {error}") from error
    return parameters, saved


def _check(saved: SavedFields) -> None:
    """Raise an error where the parts do not belong together."""
    count = len(saved.names.fields)
    parts = (saved.fronts, saved.judged, saved.noise, saved.reasons)
    if count == 0 or any(len(part) != count for part in parts) or len(saved.windows) != 1 + len(saved.names.axes):
        raise ValueError("it has not one front, noise and reason for each field, or not one window for each axis")
    for front, judged in zip(saved.fronts, saved.judged, strict=True):
        measures = (judged.heldout, judged.chi_square, judged.bits, judged.indistinguishable)
        if not 0 <= judged.selected < len(front) or any(len(one) != len(front) for one in measures):
            raise ValueError("the measures of its laws do not belong to its fronts")
