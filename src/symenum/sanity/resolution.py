"""Periodic functions that the rows do not resolve: sine waves so fast that they are random numbers to a fit.

It is judged along the argument, whatever the number of columns: sin(g) is a curve over g, and the rows are points of
it. Rows with neighbouring values of g should be at most a third of a period apart, in three quarters of the gaps
between different values. (Nyquist asks for half a period; rows that are not evenly spread, and a frequency that is
fitted, need more.) So a few rows far out do not forbid a wave that all others show, and a column of whole numbers
forbids waves that are nearly in step with it.

Where an argument has a pole among the data, as in cos(1/sin(x)), the wave has no end of periods beside it: no rows
resolve it, whatever their gaps say.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symenum.core.exactness import EPSILON, EXACTNESS
from symenum.expressions import Apply, Expression, evaluate, variables, walk
from symenum.sanity.domains import is_defined
from symenum.sanity.intervals import Array
from symenum.sanity.region import Region

__all__ = ["is_resolved", "waves_end"]

# By definition, see above.
_MAX_GAP = 1 / 3  # of a period, between rows with neighbouring values of the argument,
_RESOLVED_GAPS = 0.75  # in this part of the gaps
_MAX_ROUNDING = 1e-3  # of a period: where an argument's own rounding error is larger, its sine is noise


def is_resolved(law: Expression, columns: Mapping[str, Array]) -> bool:
    """Whether the rows resolve every periodic function of the law; columns (rows,) float64 by name."""
    return all(_is_resolved(argument, period, columns) for argument, period in _waves(law).items())


def waves_end(law: Expression, region: Region) -> bool:
    """Whether the argument of every periodic function of the law is known to have no pole in the region."""
    for argument in _waves(law):
        names = variables(argument)
        if names:
            values = np.abs(evaluate(argument, {name: region.columns[name] for name in names}))
            if not is_defined(argument, region, float(values[np.isfinite(values)].max(initial=0.0)) or 1.0):
                return False
    return True


def _waves(law: Expression) -> dict[Expression, float]:
    """The arguments of the periodic functions of a law, each once, with the period."""
    return {
        node.operands[0]: node.operator.traits.period
        for node in walk(law)
        if isinstance(node, Apply) and node.operator.traits.period is not None
    }


def _is_resolved(argument: Expression, period: float, columns: Mapping[str, Array]) -> bool:
    names = variables(argument)
    if not names:
        return True
    values = np.sort(evaluate(argument, {name: columns[name] for name in names}))
    values = values[np.isfinite(values)]
    if not len(values):
        return False
    if EPSILON * float(np.median(np.abs(values))) > _MAX_ROUNDING * period:
        return False
    gaps = np.diff(values)
    gaps = gaps[gaps > EXACTNESS.remainder * period]  # rows with the same argument are one point of the curve
    return len(gaps) == 0 or float(np.mean(gaps <= _MAX_GAP * period)) >= _RESOLVED_GAPS
