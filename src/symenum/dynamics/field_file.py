"""A fitted PDERegressor on the disk: what its file holds, and whether the parts belong together.

Searches are not kept: those of fields take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from symenum.dynamics.field_terms import FieldNames
from symenum.dynamics.noise import Noise
from symenum.dynamics.saved_laws import LawsFile
from symenum.dynamics.selection import Judged
from symenum.front import Front

__all__ = ["FIELDS_FILE", "Coefficient", "SavedFields"]


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


FIELDS_FILE = LawsFile("symenum fields", "PDERegressor", SavedFields, _check)
"""How a fitted PDERegressor is written and read."""
