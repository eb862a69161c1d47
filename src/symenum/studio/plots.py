"""The values of the plots of a law, thinned to what a screen can show.

Which rows are shown depends on the data only, so that the plots of two laws can be laid over each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from symenum.core.exactness import overflow_allowed
from symenum.core.threads import single_threaded
from symenum.expressions import Expression, evaluate, variables
from symenum.studio.law_rows import LawRows
from symenum.studio.laws import ChosenLaw

__all__ = ["law_plots", "thinned"]

Array = npt.NDArray[np.float64]

_CURVE = 160  # points of the law along a slice: a plot is some 500 pixels wide
_GRID = 40  # points of the surface along each axis
_SLICES = 12  # columns with a slice, those along which the law changes most
_SLICE_ROWS = 500  # rows beside each slice
_MEDIAN_ROWS = 20_000  # rows from which medians are taken: more do not move a plot


def thinned(y: Array, most: int) -> npt.NDArray[np.int64]:
    """The numbers of at most `most` rows of y (rows,): evenly spaced, with the smallest and the largest value."""
    if len(y) <= most:
        return np.arange(len(y))
    even = np.linspace(0, len(y) - 1, max(most - 2, 1)).round().astype(np.int64)
    return np.unique([*even, int(y.argmin()), int(y.argmax())])[:most]


@overflow_allowed()
def law_plots(law: ChosenLaw, rows: LawRows, points: int, constants: Sequence[float] | None) -> dict[str, Any]:
    """Parity, residuals, the rows in their order, slices and a surface; for laws of motion the motion, too."""
    with single_threaded():
        expression = law.with_values(constants)
        shown = thinned(rows.y, points)
        y, predicted = rows.y[shown], rows.predicted(expression, shown)
        slices, surface = _sections(law, expression, rows, points)
        measured, computed = y.tolist(), predicted.tolist()
        return {
            "parity": {"y": measured, "predicted": computed},
            "residual": {"predicted": computed, "residual": (y - predicted).tolist()},
            "order": {"y": measured, "predicted": computed},
            "slices": slices,
            "surface": surface,
            "rows_shown": len(shown),
            "rows": len(rows.y),
            **rows.motion_plots(law.run, expression, points),
        }


def _sections(
    law: ChosenLaw, expression: Expression, rows: LawRows, points: int
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Slices along the columns of the law, the others at their medians, and a surface over the first two of them."""
    names = variables(expression)
    columns = {name: rows.columns[name] for name in names}
    middle = {name: float(np.median(column[:: 1 + len(column) // _MEDIAN_ROWS])) for name, column in columns.items()}
    ends = {name: (float(column.min()), float(column.max())) for name, column in columns.items()}
    curves = {name: _curve(expression, name, ends, middle) for name in names}
    order = sorted(names, key=lambda name: -_spread(curves[name][1]))[:_SLICES]
    seen = thinned(rows.y_at_points, min(points, _SLICE_ROWS))
    left = rows.y_at_points[seen].tolist()
    slices = [
        {
            "column": law.column(name),
            "x": curves[name][0].tolist(),
            "law": curves[name][1].tolist(),
            "rows_x": columns[name][seen].tolist(),
            "rows_y": left,
        }
        for name in order
    ]
    return slices, _surface(law, expression, order[:2], ends, middle) if len(order) > 1 else None


def _curve(
    law: Expression, name: str, ends: Mapping[str, tuple[float, float]], middle: Mapping[str, float]
) -> tuple[Array, Array]:
    grid = np.linspace(*ends[name], _CURVE)
    values = {other: np.full(_CURVE, value) for other, value in middle.items()}
    return grid, evaluate(law, {**values, name: grid})


def _spread(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max() - finite.min()) if len(finite) else 0.0


def _surface(
    law: ChosenLaw,
    expression: Expression,
    names: Sequence[str],
    ends: Mapping[str, tuple[float, float]],
    middle: Mapping[str, float],
) -> dict[str, Any]:
    """z (y, x) of the law over two of its columns."""
    across, up = names
    x, y = (np.linspace(*ends[name], _GRID) for name in names)
    columns = {name: np.full(_GRID * _GRID, value) for name, value in middle.items()}
    columns |= {across: np.tile(x, _GRID), up: np.repeat(y, _GRID)}
    z = evaluate(expression, columns).reshape(_GRID, _GRID)
    return {
        "x_column": law.column(across),
        "y_column": law.column(up),
        "x": x.tolist(),
        "y": y.tolist(),
        "z": z.tolist(),
    }
