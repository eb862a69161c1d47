"""The pictures of a fit, described: the numbers are prepared here once, whoever draws them.

`symenum.display.svg` draws a figure for the report, which needs nothing else; `symenum.display.plots` draws it with
matplotlib. `Evidence` is what is needed of the data: a summary of all rows, and some of the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from symenum.display.rows import LawRow
from symenum.expressions import Expression, evaluate, variables

__all__ = [
    "COLOURS",
    "ColumnSummary",
    "Evidence",
    "Figure",
    "FittedModel",
    "LawOnRows",
    "Series",
    "evidence_of",
    "fit_figure",
    "front_figure",
    "front_points",
    "law_on_rows",
    "residual_figure",
]

Array = npt.NDArray[np.float64]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that differ for colour-blind eyes too (Okabe and Ito)."""
_DATA, _LAW = 0, 1  # of COLOURS: blue dots and a vermilion line
_MOST_ROWS = 1000  # more dots than that hide each other
_MOST_NUMBERS = 100_000  # a model with very many columns should not grow by its data
_CURVE = 300  # points of a law's line


@dataclass(frozen=True)
class Series:
    """Points (x, y) of a figure: dots unless `dots` is False, joined by "straight" lines or by "steps", or by none.

    `colour` is a place in COLOURS. `large` dots stand out.
    """

    label: str
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    dots: bool = True
    joined: str = ""
    colour: int = _DATA
    large: bool = False


@dataclass(frozen=True)
class Figure:
    """Series on one pair of axes; with `log_y` the vertical one is logarithmic."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False


def front_figure(laws: Sequence[LawRow], selected: int, floor: float, loss_name: str) -> Figure:
    """Loss against complexity, the chosen law marked; losses up to `floor` are zero up to rounding."""
    drawn = front_points([law.complexity for law in laws], [law.loss for law in laws], floor)
    chosen = [point for point in drawn if point[0] == laws[selected].complexity]
    return Figure(
        "The front: accuracy against simplicity",
        "complexity",
        loss_name,
        (
            Series("laws", [x for x, _ in drawn], [y for _, y in drawn], joined="steps"),
            Series("the chosen law", [x for x, _ in chosen], [y for _, y in chosen], colour=_LAW, large=True),
        ),
        log_y=True,
    )


def fit_figure(fitted: LawOnRows, target: str) -> Figure:
    """A law of one variable as a line among the data; others as predicted against measured."""
    if fitted.x is not None and fitted.curve is not None:
        name, x = fitted.x
        grid, curve = fitted.curve
        series = (Series("data", x, fitted.measured), _line("the law", grid, curve))
        return Figure("The law and the data", name, target, series)
    ends = [float(fitted.measured.min()), float(fitted.measured.max())]
    series = (Series("rows", fitted.measured, fitted.predicted), _line("predicted = measured", ends, ends))
    return Figure("Predicted against measured", f"{target}, measured", f"{target}, predicted", series)


def residual_figure(fitted: LawOnRows, target: str) -> Figure:
    """What the law leaves, against what it says."""
    finite = fitted.predicted[np.isfinite(fitted.predicted)]
    ends = [float(finite.min()), float(finite.max())] if len(finite) else []
    series = (Series("rows", fitted.predicted, fitted.residual), _line("no difference", ends, [0.0] * len(ends)))
    return Figure("What the law leaves", f"{target}, predicted", "measured - predicted", series)


def _line(label: str, x: Sequence[float] | Array, y: Sequence[float] | Array) -> Series:
    return Series(label, x, y, dots=False, joined="straight", colour=_LAW)


def front_points(complexities: Sequence[int], losses: Sequence[float], floor: float) -> list[tuple[int, float]]:
    """Complexity and loss of each law for a logarithmic axis; a loss that is zero up to rounding is drawn at the floor.

    >>> front_points([1, 3], [0.5, 0.0], 1e-30)
    [(1, 0.5), (3, 1e-30)]
    """
    positive = [loss for loss in losses if loss > floor and math.isfinite(loss)]
    lowest = floor if floor > 0 else min(positive, default=1.0) / 10
    return [
        (complexity, max(loss, lowest))
        for complexity, loss in zip(complexities, losses, strict=True)
        if math.isfinite(loss)
    ]


@dataclass(frozen=True)
class LawOnRows:
    """A law on rows: measured, predicted and residual (measured - predicted), each (rows,).

    A law of one variable also has `x`, that variable's name and values, and `curve`, its values (points,) between them.
    `undefined` counts rows where the law has no finite value.
    """

    measured: Array
    predicted: Array
    residual: Array
    undefined: int
    x: tuple[str, Array] | None = None
    curve: tuple[Array, Array] | None = None


def law_on_rows(law: Expression, evidence: Evidence) -> LawOnRows:
    """The law on the rows that were kept."""
    columns = evidence.columns
    predicted: Array = evaluate(law, columns)
    undefined = int(np.count_nonzero(~np.isfinite(predicted)))
    with np.errstate(invalid="ignore", over="ignore"):  # where the law is infinite, so is what it leaves
        residual = evidence.y - predicted
    used = variables(law)
    if len(used) != 1:
        return LawOnRows(evidence.y, predicted, residual, undefined)
    (name,) = used
    x = columns[name]
    low, high = float(x.min()), float(x.max())
    grid = low + np.linspace(0.0, 1.0, _CURVE) * (high / 2 - low / 2) * 2
    flat = {one: np.full(_CURVE, values[0]) for one, values in columns.items()}
    return LawOnRows(evidence.y, predicted, residual, undefined, (name, x), (grid, evaluate(law, {**flat, name: grid})))


@dataclass(frozen=True)
class ColumnSummary:
    """A column in numbers; `name` is its name in laws, `column` that in the data."""

    name: str
    column: str
    least: float
    median: float
    most: float
    distinct: int


@dataclass(frozen=True)
class Evidence:
    """`rows` counts all; `variance` is the weighted one of all targets.

    X (kept, features) and y (kept,) are evenly spaced rows, all where they are few.
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
    ) -> Evidence:
        """The evidence of X (rows, features), y (rows,) and weights (rows,)."""
        most = max(1, min(_MOST_ROWS, _MOST_NUMBERS // (X.shape[1] + 1)))
        kept = np.unique(np.linspace(0, len(y) - 1, min(len(y), most)).round().astype(int))
        described = zip(X.T, names, columns, strict=True)
        return Evidence(
            len(y),
            _variance(y, weight),
            tuple(_summary(values, name, column) for values, name, column in described),
            _summary(y, target, target),
            X[kept].copy(),
            y[kept].copy(),
        )

    @property
    def columns(self) -> dict[str, Array]:
        """The kept rows as columns, by their names in laws."""
        return {one.name: np.ascontiguousarray(self.X[:, i]) for i, one in enumerate(self.variables)}


class FittedModel(Protocol):
    """A fitted PSERegressor, as far as its pictures need it."""

    front_: Any
    selected_index_: int
    best_expression_: Expression
    variable_names_: tuple[str, ...]
    loss: Any

    def get_best(self, index: int | None = None) -> Any: ...


def evidence_of(model: FittedModel, X: object, y: object) -> Evidence | None:
    """The evidence of the data given, or of those of the fit, if the model has them."""
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: give both, or none for the data of the fit")
    names = model.variable_names_
    columns = [str(name) for name in getattr(model, "feature_names_in_", names)]
    if X is not None:
        rows, target = validate_data(model, X, y, dtype=np.float64, y_numeric=True, reset=False)
        return Evidence.of(rows, np.asarray(target, dtype=np.float64), names, columns)
    training = getattr(model, "training_", None)
    if training is None:
        return None
    table: Array = np.column_stack([training.columns[name].numpy() for name in names])
    return Evidence.of(table, training.target.y.numpy(), names, columns, weight=training.target.weight.numpy())


def _variance(y: Array, weight: Array | None) -> float:
    with np.errstate(over="ignore"):  # infinite where squares are no doubles any more
        return float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))


def _summary(values: Array, name: str, column: str) -> ColumnSummary:
    ordered = np.sort(values)
    distinct = int(np.count_nonzero(np.diff(ordered))) + 1
    # One of the values, so that no sum of two can overflow.
    return ColumnSummary(
        name, column, float(ordered[0]), float(ordered[len(ordered) // 2]), float(ordered[-1]), distinct
    )
