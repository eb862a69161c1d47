"""Constants that no one would print: of absurd size, too many for the rows, or giants that cancel.

The size of a constant is judged against the sizes of the columns and of y, so that laws in any units pass: of columns
near 1e-30 a constant of 1e90 may be a product of three. Giants that cancel are seen by what is left of the digits of a
double: the rounding error of each operation is followed to the value of the law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from symenum.core.exactness import EPSILON
from symenum.expressions import Apply, Constant, Expression, Variable, fold, variables, walk
from symenum.fitting.recognise import count_fitted_constants

__all__ = ["are_counted", "are_of_a_size", "rounding_error"]

# By definition: far beyond what laws in any units need.
_DECADES = 15.0  # powers of ten that a constant may be away from 1, where all columns are near 1,
_DECADES_PER_DECADE = 4.0  # and how many more for each power of ten of the column, or y, that is furthest from 1
_MIN_ALLOWED = 2  # fitted constants that every law may have, however few the rows: those of a straight line
_ROWS_PER_CONSTANT = 3  # rows that each fitted constant needs: two tell it, and one tells that it holds


def are_of_a_size(law: Expression, scales: Mapping[str, float], y_scale: float) -> bool:
    """Whether no constant is absurdly large or small. `scales`: typical absolute values of columns; `y_scale`: of y."""
    sizes = [scales[name] for name in variables(law)] + [y_scale]
    furthest = max(abs(math.log10(size)) if size > 0 else 0.0 for size in sizes)
    most = _DECADES + _DECADES_PER_DECADE * furthest
    constants = [float(node.value) for node in walk(law) if isinstance(node, Constant) and node.name is None]
    return all(abs(math.log10(abs(value))) <= most for value in constants if value)


def are_counted(law: Expression, rows: int) -> bool:
    """Whether the rows can tell so many fitted constants."""
    return count_fitted_constants(law) <= max(_MIN_ALLOWED, rows // _ROWS_PER_CONSTANT)


def rounding_error(law: Expression, columns: Mapping[str, Tensor]) -> float:
    """The median over the rows of the error that rounding makes in the law's value, to first order.

    Columns (rows,) float64 by name. Rows where a slope has no value, as that of a square root at zero, do not count.
    """

    def visit(node: Expression, operands: tuple[tuple[Tensor, Tensor], ...]) -> tuple[Tensor, Tensor]:
        if isinstance(node, Variable):
            return columns[node.name], torch.zeros_like(columns[node.name])
        if isinstance(node, Constant):
            value = torch.full_like(sample, float(node.value))
            return value, torch.zeros_like(sample)
        assert isinstance(node, Apply)
        values = [value for value, _ in operands]
        value = node.operator.function(*values)
        error = EPSILON * value.abs()
        for by, (_, below) in enumerate(operands):
            slope = node.operator.partial(by, value, *values)
            moved = below * abs(slope) if isinstance(slope, float) else below * slope.abs()
            error = error + torch.where(below == 0, below, moved)
        return value, error

    sample = next(iter(columns.values()))
    _, error = fold(law, visit)
    known = error[torch.isfinite(error)].numpy()
    return float(np.median(known)) if len(known) else math.inf
