"""The figures of a fit in matplotlib, on the caller's axes or on new ones. What they show is in `display.figures`.

matplotlib is optional: pip install 'symenum[plot]'.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from sklearn.utils.validation import check_is_fitted

from symenum.display.figures import (
    COLOURS,
    Figure,
    FittedModel,
    LawOnRows,
    Series,
    fit_figure,
    front_figure,
    law_on_rows,
    residual_figure,
    summarise_data,
)
from symenum.display.table import rows_of
from symenum.expressions import Expression, to_text

__all__ = ["draw", "new_axes", "new_panels", "plot_fit", "plot_front", "plot_residuals"]

_SIZE = (6.4, 4.0)  # inches, width and height: matplotlib's own width
_TITLE_DIGITS = 3  # significant digits of a constant in a title
_MAX_TITLE = 55  # characters: a title in matplotlib's 12 points is as wide as _SIZE at about 58


def plot_front(model: FittedModel, ax: Any = None) -> Any:
    """Draw loss against complexity, the chosen law marked; returns the axes.

    A loss that is zero up to rounding is drawn at the level of rounding.
    """
    check_is_fitted(model, "front_")
    loss_name = "mean squared error" if model.loss == "mse" else "loss"
    figure = front_figure(rows_of(model.front_), model.selected_index_, model.front_.floor, loss_name)
    return draw(replace(figure, title=_title(model, None)), ax)


def plot_fit(
    model: FittedModel, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """Draw a law of one variable as a line among the data, others as predicted against measured; returns the axes.

    X (rows, features) and y (rows,) are the data; without them it shows those of the fit, at most 1,000 rows of them.
    `index` picks a row of `equations_`.
    """
    return draw(replace(fit_figure(_on_rows(model, X, y, index), "y"), title=_title(model, index)), ax)


def plot_residuals(
    model: FittedModel, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """Draw the residuals of a law, measured minus predicted, against predicted values; returns the axes.

    X, y and `index` as in `plot_fit`.
    """
    return draw(replace(residual_figure(_on_rows(model, X, y, index), "y"), title=_title(model, index)), ax)


def draw(figure: Figure, ax: Any = None) -> Any:
    """Draw a figure on the caller's axes, or on those of a new figure of matplotlib; returns the axes."""
    axes = new_axes(ax)
    for series in figure.series:
        _draw_series(axes, series)
    if figure.log_y:
        axes.set_yscale("log")
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, title=figure.title)
    axes.legend()
    return axes


def _draw_series(axes: Any, series: Series) -> None:
    colour = COLOURS[series.colour]
    if series.joined:
        style = "steps-post" if series.joined == "steps" else "default"
        label, alpha = (None, 0.4) if series.dots else (series.label, 1.0)
        axes.plot(series.x, series.y, drawstyle=style, color=colour, alpha=alpha, label=label)
    if series.dots:
        # Dots on a line are few: opaque. Dots without a line are many and may hide each other: half transparent.
        opaque = series.large or bool(series.joined)
        size = {"markersize": 10} if series.large else {}
        alpha = 1.0 if opaque else 0.6
        axes.plot(series.x, series.y, "o" if opaque else ".", color=colour, alpha=alpha, label=series.label, **size)


def _on_rows(model: FittedModel, X: object, y: object, index: int | None) -> LawOnRows:
    check_is_fitted(model, "front_")
    data = summarise_data(model, X, y)
    if data is None:
        raise ValueError("the data of the fit are not with this model: give X and y")
    return law_on_rows(_law(model, index), data)


def _law(model: FittedModel, index: int | None) -> Expression:
    model.get_best(index)  # raises an error if there is no such row
    law: Expression = model.best_expression_ if index is None else model.front_[index].expression
    return law


def _title(model: FittedModel, index: int | None) -> str:
    text = f"y = {to_text(_law(model, index), _TITLE_DIGITS)}"
    # matplotlib reads what stands between dollar signs as mathematics.
    return (text if len(text) <= _MAX_TITLE else f"{text[: _MAX_TITLE - 1]}…").replace("$", r"\$")


def new_axes(ax: Any) -> Any:
    """The caller's axes, or those of a new figure."""
    return ax if ax is not None else new_panels(1, _SIZE[1])[0]


def new_panels(count: int, height: float) -> list[Any]:
    """Axes one below the other in a new figure of pyplot, which a notebook shows by itself; `height` in inches."""
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'symenum[plot]'")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(count, 1, sharex=True, squeeze=False, figsize=(_SIZE[0], height), layout="constrained")
    return list(axes[:, 0])
