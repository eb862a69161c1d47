"""The figures of a fit as plain values: which points and lines, on which axes. Nothing is drawn here.

`symenum.display.svg` draws a figure for the report page; `symenum.display.plots` draws it with matplotlib.
`DataSummary` holds what figures and report need of the data: a summary of all rows, and some of the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from symenum.display.table import LawRow
from symenum.expressions import Expression, evaluate, variables

__all__ = [
    "COLOURS",
    "EXACT",
    "ROOM_FOR_ZERO",
    "ColumnSummary",
    "DataSummary",
    "Figure",
    "FittedModel",
    "LawOnRows",
    "Series",
    "fit_figure",
    "front_figure",
    "law_on_rows",
    "residual_figure",
    "summarise_data",
]

Array = npt.NDArray[np.float64]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""
EXACT = "0 (exact)"
"""The label of the lower edge of a logarithmic axis, where zeros are drawn."""
ROOM_FOR_ZERO = 0.1
"""The part of a logarithmic axis, at least a decade, between its lower edge and the other values if there is a zero."""
_DATA_COLOUR, _LAW_COLOUR = 0, 1  # indices into COLOURS: blue dots, a vermilion line
_MAX_ROWS = 1000  # dots of a figure: more would hide each other in the 560 × 230 pixels of an SVG plot
_MAX_NUMBERS = 100_000  # of all columns together: 800 kB, whatever the number of columns
_CURVE_POINTS = 300  # points of a law's line: one for about two pixels of an SVG plot


@dataclass(frozen=True)
class Series:
    """Points (x, y) of a figure, drawn as dots unless `dots` is False.

    `joined`: how a line joins them, "straight" or "steps"; "" draws no line. `colour`: an index into COLOURS. `large`:
    whether the dots are larger than those of other series.
    """

    label: str
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    dots: bool = True
    joined: str = ""
    colour: int = _DATA_COLOUR
    large: bool = False


@dataclass(frozen=True)
class Figure:
    """Series on one pair of axes; with `log_y` the vertical one is logarithmic.

    A zero has no place on a logarithmic axis: it is drawn as a triangle at the lower edge, which is labelled EXACT.
    `whole_x`: the horizontal axis counts something, so that its ticks are whole numbers.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False
    whole_x: bool = False


def front_figure(laws: Sequence[LawRow], selected: int, loss_name: str) -> Figure:
    """Loss against complexity, the chosen law marked; losses that are not finite have no place.

    The axis of losses is logarithmic, unless some are negative.
    """
    negative = any(law.loss < 0 for law in laws)
    drawn = [(law.complexity, law.loss) for law in laws if math.isfinite(law.loss)]
    chosen = [point for point in drawn if point[0] == laws[selected].complexity]
    return Figure(
        "The front: accuracy against simplicity",
        "complexity",
        loss_name,
        (
            Series("laws", [x for x, _ in drawn], [y for _, y in drawn], joined="steps"),
            Series("the chosen law", [x for x, _ in chosen], [y for _, y in chosen], colour=_LAW_COLOUR, large=True),
        ),
        log_y=not negative,
        whole_x=True,
    )


def fit_figure(fitted: LawOnRows, target: str) -> Figure:
    """A law of one variable as a line among the data; a law of several as predicted against measured values."""
    if fitted.x is not None and fitted.curve is not None:
        name, x = fitted.x
        grid, curve = fitted.curve
        series = (Series("data", x, fitted.measured), _line("the law", grid, curve))
        return Figure("The law and the data", name, target, series)
    ends = [float(fitted.measured.min()), float(fitted.measured.max())]
    series = (Series("rows", fitted.measured, fitted.predicted), _line("predicted = measured", ends, ends))
    return Figure("Predicted against measured", f"{target}, measured", f"{target}, predicted", series)


def residual_figure(fitted: LawOnRows, target: str) -> Figure:
    """Residuals, measured minus predicted, against predicted values."""
    finite = fitted.predicted[np.isfinite(fitted.predicted)]
    ends = [float(finite.min()), float(finite.max())] if len(finite) else []
    series = (Series("rows", fitted.predicted, fitted.residual), _line("no difference", ends, [0.0] * len(ends)))
    return Figure("Residuals of the law", f"{target}, predicted", "measured - predicted", series)


def _line(label: str, x: Sequence[float] | Array, y: Sequence[float] | Array) -> Series:
    return Series(label, x, y, dots=False, joined="straight", colour=_LAW_COLOUR)


@dataclass(frozen=True)
class LawOnRows:
    """A law on rows: measured, predicted and residual (measured - predicted), each (rows,).

    A law of one variable also has `x`, the name and the values (rows,) of that variable, and `curve`, a grid (points,)
    over the range of these values and the law on it. `undefined`: the number of rows where the law is not finite.
    """

    measured: Array
    predicted: Array
    residual: Array
    undefined: int
    x: tuple[str, Array] | None = None
    curve: tuple[Array, Array] | None = None


def law_on_rows(law: Expression, data: DataSummary) -> LawOnRows:
    """The law on the rows that the summary holds."""
    columns = data.columns
    predicted: Array = evaluate(law, columns)
    undefined = int(np.count_nonzero(~np.isfinite(predicted)))
    with np.errstate(invalid="ignore", over="ignore"):  # where the law is infinite, so is its residual
        residual = data.y - predicted
    used = variables(law)
    if len(used) != 1:
        return LawOnRows(data.y, predicted, residual, undefined)
    (name,) = used
    x = columns[name]
    low, high = float(x.min()), float(x.max())
    grid = low + np.linspace(0.0, 1.0, _CURVE_POINTS) * (high / 2 - low / 2) * 2  # halves: high - low may overflow
    # `evaluate` wants all columns; the law uses no other.
    others = {other: np.full(_CURVE_POINTS, values[0]) for other, values in columns.items()}
    curve = evaluate(law, {**others, name: grid})
    return LawOnRows(data.y, predicted, residual, undefined, (name, x), (grid, curve))


@dataclass(frozen=True)
class ColumnSummary:
    """A column in numbers; `name` is its name in laws, `column` its name in the data.

    `distinct`: the number of different values.
    """

    name: str
    column: str
    minimum: float
    median: float
    maximum: float
    distinct: int


@dataclass(frozen=True)
class DataSummary:
    """The data of a fit: numbers for all rows, and at most 1,000 rows to draw.

    `rows` is the number of all rows, `variance` the weighted variance of y over all of them. X (drawn, features) and y
    (drawn,) are evenly spaced rows, or all of them where there are few.
    """

    rows: int
    variance: float
    variables: tuple[ColumnSummary, ...]
    target: ColumnSummary
    X: Array
    y: Array

    @staticmethod
    def of(
        X: Array, y: Array, names: Sequence[str], columns: Sequence[str], target: str = "y", weight: Array | None = None
    ) -> DataSummary:
        """The summary of X (rows, features), y (rows,) and weights (rows,), all float64.

        `names` are the names of the features in laws, `columns` those in the data.
        """
        max_rows = max(1, min(_MAX_ROWS, _MAX_NUMBERS // (X.shape[1] + 1)))
        drawn = np.unique(np.linspace(0, len(y) - 1, min(len(y), max_rows)).round().astype(int))
        described = zip(X.T, names, columns, strict=True)
        return DataSummary(
            len(y),
            _variance(y, weight),
            tuple(_summary(values, name, column) for values, name, column in described),
            _summary(y, target, target),
            X[drawn].copy(),
            y[drawn].copy(),
        )

    @property
    def columns(self) -> dict[str, Array]:
        """The rows to draw as columns (drawn,), by their names in laws."""
        return {variable.name: np.ascontiguousarray(self.X[:, i]) for i, variable in enumerate(self.variables)}


class FittedModel(Protocol):
    """A fitted PSERegressor, as far as its figures need it."""

    front_: Any
    selected_index_: int
    best_expression_: Expression
    variable_names_: tuple[str, ...]
    target_name_: str
    loss: Any

    def get_best(self, index: int | None = None) -> Any: ...


def summarise_data(model: FittedModel, X: object, y: object) -> DataSummary | None:
    """The summary of X (rows, features) and y (rows,); without them, of the data of the fit, if the model has them."""
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: give both, or none for the data of the fit")
    names = model.variable_names_
    columns = [str(name) for name in getattr(model, "feature_names_in_", names)]
    if X is not None:
        rows, target = validate_data(model, X, y, dtype=np.float64, y_numeric=True, reset=False)
        return DataSummary.of(rows, np.asarray(target, dtype=np.float64), names, columns, model.target_name_)
    training = getattr(model, "training_", None)
    if training is None:
        return None
    table: Array = np.column_stack([training.columns[name].numpy() for name in names])
    target, weight = training.target.y.numpy(), training.target.weight.numpy()
    return DataSummary.of(table, target, names, columns, model.target_name_, weight)


def _variance(y: Array, weight: Array | None) -> float:
    with np.errstate(over="ignore"):  # infinite where a square exceeds the range of a double
        return float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))


def _summary(values: Array, name: str, column: str) -> ColumnSummary:
    ordered = np.sort(values)
    distinct = int(np.count_nonzero(np.diff(ordered))) + 1
    median = ordered[len(ordered) // 2]  # one of the values: the mean of two could overflow
    return ColumnSummary(name, column, float(ordered[0]), float(median), float(ordered[-1]), distinct)
