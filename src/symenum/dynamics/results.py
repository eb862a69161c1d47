"""What the estimators of laws of motion and of fields share once they are fitted: laws by row, and how they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from sklearn.utils.validation import check_is_fitted

from symenum.dynamics.display import print_system, system_html, system_latex
from symenum.dynamics.selection import Judged
from symenum.dynamics.shared_parts import SharedPart
from symenum.expressions import Expression, to_sympy
from symenum.expressions.render import SHOWN_DIGITS
from symenum.front import Front

__all__ = ["LawsOfStates", "Rows"]

Rows = int | Sequence[int] | Mapping[str, int] | None
"""Rows of `equations_`: one for all states, one for each, or some by state; None: the chosen ones."""


class LawsOfStates:
    """One front for each state (or field), and the row of the chosen law of each."""

    fronts_: dict[str, Front]
    selected_: dict[str, int]
    judged_: tuple[Judged, ...]
    shared_parts_: tuple[SharedPart, ...]
    _what = "states"  # that laws are of, in messages

    @property
    def _kind(self) -> int:
        """The left sides of the laws, as `symenum.dynamics.display` takes it: an order, MAP or FIELD."""
        raise AttributeError(f"{type(self).__name__} does not say what its laws are of")

    def laws(self, index: Rows = None) -> dict[str, Expression]:
        """The laws of rows of `equations_`, by name; without `index` the chosen ones."""
        return self._laws(index)

    def sympy(self, index: Rows = None) -> dict[str, sympy.Expr]:
        """The laws as SymPy expressions, by name."""
        return {name: to_sympy(law) for name, law in self._laws(index).items()}

    def latex(self, index: Rows = None, precision: int = SHOWN_DIGITS) -> str:
        """The system in LaTeX (package amsmath)."""
        return system_latex(self._laws(index), self._kind, precision)

    def __str__(self) -> str:
        if not hasattr(self, "fronts_"):
            return repr(self)
        return print_system(self.fronts_, self.judged_, list(self.selected_.values()), self._kind, self.shared_parts_)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: the fronts; before a fit, scikit-learn's diagram of the parameters."""
        if not hasattr(self, "fronts_"):
            shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
            return shown
        table = system_html(self.fronts_, list(self.selected_.values()), self._kind)
        return {"text/plain": str(self), "text/html": table}

    def _laws(self, index: Rows) -> dict[str, Expression]:
        """The law of each state, by the rows of `index`."""
        check_is_fitted(self, "fronts_")
        if index is None:
            rows: Mapping[str, int] = self.selected_
        elif isinstance(index, Mapping):
            rows = {**self.selected_, **index}
        elif isinstance(index, (Sequence, np.ndarray)):
            if isinstance(index, str) or len(index) != len(self.fronts_):
                raise ValueError(
                    f"index must have one row for each of the {len(self.fronts_)} {self._what} "
                    f"({', '.join(self.fronts_)}), not {index!r}"
                )
            rows = dict(zip(self.fronts_, index, strict=True))
        else:
            rows = dict.fromkeys(self.fronts_, index)  # what is no row is refused below
        unknown = [str(name) for name in rows if name not in self.fronts_]
        if unknown:
            raise ValueError(f"index names {', '.join(unknown)}; {self._what} are {', '.join(self.fronts_)}")
        return {name: front[_row(rows[name], name, len(front))].expression for name, front in self.fronts_.items()}


def _row(given: object, name: str, count: int) -> int:
    """A row of the front of `name`, which has so many; from its end, if it is below 0."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
        raise TypeError(f"index must be a row number of equations_[{name!r}], 0 to {count - 1}, not {given!r}")
    if not -count <= given < count:
        raise IndexError(f"index: equations_[{name!r}] has the rows 0 to {count - 1}, and no row {given}")
    return int(given)
