"""What may stand on a front: the one policy, with a reason in words for each law that it keeps off.

It judges a law as it is printed, on the rows of the search and the region that they lie in. It is asked only of laws
that would enter a front. What it does not do: choose among laws that are fine (`symenum.selection`), or find the law
that a refused one stands for (`symenum.fitting.limits_of_laws`).

A law that equals the data up to rounding may have poles and fast waves: then the data have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from torch import Tensor

from symenum.core.target import Target
from symenum.expressions import Expression, variables
from symenum.sanity.constants import are_counted, are_of_a_size, rounding_error
from symenum.sanity.domains import is_defined
from symenum.sanity.intervals import Array
from symenum.sanity.region import Region
from symenum.sanity.resolution import is_resolved, waves_end
from symenum.sanity.shapes import Shape

__all__ = [
    "DISGUISED_LIMIT",
    "POLE",
    "REASONS",
    "SANITY",
    "TOO_MANY_CONSTANTS",
    "UNREADABLE_CONSTANT",
    "UNRESOLVED",
    "Policy",
]

SANITY = ("on", "allow_poles", "off")
"""How much of the policy holds: all, all but poles, nothing."""

UNRESOLVED = "a periodic function that the rows do not resolve"
POLE = "a pole, an overflow or an undefined point among the data"
DISGUISED_LIMIT = "a limit in disguise"
UNREADABLE_CONSTANT = "constants of absurd size, or giants that cancel"
TOO_MANY_CONSTANTS = "more fitted constants than the rows can tell"
REASONS = (UNRESOLVED, POLE, DISGUISED_LIMIT, UNREADABLE_CONSTANT, TOO_MANY_CONSTANTS)
"""All reasons for which a law is refused."""

# By definition: a law of measurements keeps nearly all digits of a double.
_MAX_ROUNDING_ERROR = 1e-7  # of the root mean square of y, that a law may lose by rounding: half of its digits


@dataclass(frozen=True)
class Policy:
    """`columns` (rows,) float64 by name and the target: the rows on which laws are judged. `sanity`: one of SANITY.

    `region`: where all rows lie, which may be more than those. `shape`: what the user knows of the law's behaviour.
    """

    columns: Mapping[str, Tensor]
    target: Target
    region: Region
    sanity: str = "on"
    shape: Shape | None = None
    _known: dict[tuple[Expression, bool], str | None] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        columns: Mapping[str, Tensor],
        target: Target,
        all_columns: Mapping[str, Tensor] | None = None,
        *,
        sanity: str,
        shape: Shape | None = None,
    ) -> Policy:
        """The policy for these rows. `all_columns`: of all rows, where these are a part of them."""
        whole = columns if all_columns is None else all_columns
        return Policy(columns, target, Region({name: column.numpy() for name, column in whole.items()}), sanity, shape)

    def reason(self, law: Expression, *, exact: bool = False) -> str | None:
        """Why the law is refused; None: it may stand on a front. `exact`: it equals the data up to rounding."""
        if self.sanity == "off":
            return self.breach(law)
        if (law, exact) not in self._known:
            self._known[law, exact] = self._reason(law, exact=exact)
        return self._known[law, exact] or self.breach(law)

    def breach(self, law: Expression) -> str | None:
        """What the law breaks of the shape that the user knows, at a quick look; None: nothing that was seen."""
        broken = [] if self.shape is None else self.shape.seen_broken(law)
        return f"not {', not '.join(broken)}" if broken else None

    def _reason(self, law: Expression, *, exact: bool) -> str | None:
        rows = self.target.rows
        if not are_counted(law, rows):
            return TOO_MANY_CONSTANTS
        if not variables(law):
            return None
        if not are_of_a_size(law, self._scales, self._y_scale):
            return UNREADABLE_CONSTANT
        if exact:
            return None
        if not is_resolved(law, self._arrays):
            return UNRESOLVED
        if rounding_error(law, self.columns) > _MAX_ROUNDING_ERROR * self._y_size:
            return UNREADABLE_CONSTANT
        if self.sanity == "allow_poles":
            return None
        if not waves_end(law, self.region):
            return UNRESOLVED
        if not is_defined(law, self.region, self._largest):
            return POLE
        return None

    @cached_property
    def _arrays(self) -> Mapping[str, Array]:
        return {name: column.numpy() for name, column in self.columns.items()}

    @cached_property
    def _scales(self) -> Mapping[str, float]:
        return {name: float(np.median(np.abs(column))) for name, column in self._arrays.items()}

    @cached_property
    def _y_scale(self) -> float:
        return float(self.target.y.abs().median())

    @cached_property
    def _y_size(self) -> float:
        return math.sqrt(self.target.mean_square)

    @cached_property
    def _largest(self) -> float:
        return float(self.target.y.abs().max()) or 1.0
