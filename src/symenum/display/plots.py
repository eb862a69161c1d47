"""The figures of a fit in matplotlib, on the caller's axes or on new ones. What they show is in `display.figures`.

matplotlib is optional: pip install 'symenum[plot]'.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from symenum.display.figures import (
    COLOURS,
    EXACT,
    ROOM_FOR_ZERO,
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
from symenum.display.table import rows_of, short_text
from symenum.expressions import Expression

__all__ = ["draw", "new_axes", "new_panels", "plot_fit", "plot_front", "plot_residuals"]

_SIZE = (6.4, 4.0)  # inches, width and height: matplotlib's own width
_TITLE_FONT = 10.0  # points: small enough for most laws on one line, as large as the labels of the axes
_CHARACTER = 0.6  # mean width of a character as a part of the font's size; those of DejaVu Sans, bold ones included
_POINTS_PER_INCH = 72  # by the definition of the point, which fonts are measured in
_TITLE_LINES = 3  # lines of a title; a law that needs more is cut


def plot_front(model: FittedModel, ax: Any = None) -> Any:
    """Draw loss against complexity, the chosen law marked; returns the axes.

    A loss of exactly zero is drawn as a triangle at the lower edge.
    """
    _check_one_target(model, "plot_front")
    loss_name = "mean squared error" if model.loss == "mse" else "loss"
    figure = front_figure(rows_of(model.front_), model.selected_index_, loss_name)
    return draw(replace(figure, title=_title(model, None)), ax)


def plot_fit(
    model: FittedModel, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """Draw a law of one variable as a line among the data, others as predicted against measured; returns the axes.

    X (rows, features) and y (rows,) are the data; without them it shows those of the fit, at most 1,000 rows of them.
    `index` picks a row of `equations_`.
    """
    _check_one_target(model, "plot_fit")
    figure = fit_figure(_on_rows(model, X, y, index), model.target_name_)
    return draw(replace(figure, title=_title(model, index)), ax)


def plot_residuals(
    model: FittedModel, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """Draw the residuals of a law, measured minus predicted, against predicted values; returns the axes.

    X, y and `index` as in `plot_fit`.
    """
    _check_one_target(model, "plot_residuals")
    return draw(
        replace(residual_figure(_on_rows(model, X, y, index), model.target_name_), title=_title(model, index)), ax
    )


def _check_one_target(model: FittedModel, name: str) -> None:
    check_is_fitted(model, "front_")
    if getattr(model, "estimators_", None) is not None:
        raise ValueError(f"{name} is for one target: give it model.estimators_[i], the model of column i of y")


def draw(figure: Figure, ax: Any = None) -> Any:
    """Draw a figure on the caller's axes, or on those of a new figure of matplotlib; returns the axes."""
    axes = new_axes(ax)
    edge, lowest = _edge_for_zeros(figure)
    for series in figure.series:
        _draw_series(axes, series, edge)
    if figure.log_y:
        axes.set_yscale("log")
    if edge is not None and lowest is not None:
        _label_edge(axes, edge, lowest)
    if figure.whole_x:
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set(xlabel=_plain(figure.x_label), ylabel=_plain(figure.y_label))
    width = axes.get_position().width * axes.figure.get_size_inches()[0] * _POINTS_PER_INCH
    axes.set_title(_plain(_broken(figure.title, int(width / (_CHARACTER * _TITLE_FONT)))), fontsize=_TITLE_FONT)
    axes.legend()
    return axes


def _edge_for_zeros(figure: Figure) -> tuple[float, float] | tuple[None, None]:
    """The value at the lower edge of a logarithmic axis, where zeros are drawn, and the power of ten below the others.

    None where there is no zero.
    """
    values = [float(y) for series in figure.series for y in series.y if y >= 0]
    if not figure.log_y or all(values):
        return None, None
    decades = [math.log10(value) for value in values if 0 < value < math.inf] or [0.0]
    low, high = math.floor(min(decades)), math.ceil(max(decades))
    return max(10.0 ** (low - max(1.0, ROOM_FOR_ZERO * (high - low))), sys.float_info.min), 10.0**low


def _label_edge(axes: Any, edge: float, lowest: float) -> None:
    """Let the axis begin at the edge for zeros, and label it so; it has no number below `lowest`."""
    from matplotlib.ticker import FuncFormatter

    least = 0.99 * lowest  # a tick at a power of ten may be off by rounding
    axes.set_ylim(bottom=edge)
    powers = axes.yaxis.get_major_formatter()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: powers(value, place) if value >= least else ""))
    axes.text(0.01, 0.01, EXACT, transform=axes.transAxes, ha="left", va="bottom")


def _draw_series(axes: Any, series: Series, edge: float | None) -> None:
    """Draw the line and the dots of a series; `edge`: the value at which zeros are drawn, as triangles."""
    colour = COLOURS[series.colour]
    y = np.asarray(series.y, dtype=float)
    zero = (y == 0) & (edge is not None)
    if series.joined:
        style = "steps-post" if series.joined == "steps" else "default"
        label, alpha = (None, 0.4) if series.dots else (series.label, 1.0)
        axes.plot(series.x, np.where(zero, edge or 0.0, y), drawstyle=style, color=colour, alpha=alpha, label=label)
    if series.dots:
        # Dots on a line are few: opaque. Dots without a line are many and may hide each other: half transparent.
        opaque = series.large or bool(series.joined)
        size = {"markersize": 10} if series.large else {}
        alpha = 1.0 if opaque else 0.6
        dots = np.where(zero, np.nan, y)
        axes.plot(series.x, dots, "o" if opaque else ".", color=colour, alpha=alpha, label=series.label, **size)
    if series.dots and zero.any():
        # Not clipped: the triangles stand on the lower edge itself.
        x = np.asarray(series.x, dtype=float)[zero]
        axes.plot(x, np.full(len(x), edge), "v", color=colour, clip_on=False, zorder=3, **size)


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
    return f"{model.target_name_} = {short_text(_law(model, index))}"


def _broken(text: str, longest: int) -> str:
    """The text on at most three lines of so many characters, broken before a sign where that can be; then cut."""
    lines: list[str] = []
    for part in re.split(r" (?=[+-] )", text):
        if lines and len(lines[-1]) + 1 + len(part) <= longest:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    if len(lines) > _TITLE_LINES:
        lines = [*lines[: _TITLE_LINES - 1], f"{lines[_TITLE_LINES - 1]} …"]
    return "\n".join(line if len(line) <= longest else f"{line[: longest - 1]}…" for line in lines)


def _plain(text: str) -> str:
    """Text that matplotlib shows as it is; it reads what stands between dollar signs as mathematics."""
    return text.replace("$", r"\$")


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
