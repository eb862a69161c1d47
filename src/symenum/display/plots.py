"""Pictures in matplotlib, which is optional: pip install 'symenum[plot]'. They are drawn on given axes or new ones."""

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
    evidence_of,
    fit_figure,
    front_figure,
    law_on_rows,
    residual_figure,
)
from symenum.display.rows import rows_of
from symenum.expressions import Expression, to_text

__all__ = ["draw", "new_axes", "new_panels", "plot_fit", "plot_front", "plot_residuals"]

_DIGITS = 3  # of constants in a title
_LONG = 70  # characters of a title


def plot_front(model: FittedModel, ax: Any = None) -> Any:
    """Loss against complexity, the chosen law marked; gives the axes.

    A loss that is zero up to rounding is drawn at the level of rounding.
    """
    check_is_fitted(model, "front_")
    loss_name = "mean squared error" if model.loss == "mse" else "loss"
    figure = front_figure(rows_of(model.front_), model.selected_index_, model.front_.floor, loss_name)
    return draw(replace(figure, title=_title(model, None)), ax)


def plot_fit(
    model: FittedModel, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """A law of one variable as a line among the data, others as predicted against measured; gives the axes.

    Without X and y it shows the data of the fit, at most 1,000 rows of them; `index` picks a row of `equations_`.
    """
    return draw(replace(fit_figure(_on_rows(model, X, y, index), "y"), title=_title(model, index)), ax)


def plot_residuals(
    model: FittedModel, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """What a law leaves, measured minus predicted, against what it says; gives the axes."""
    return draw(replace(residual_figure(_on_rows(model, X, y, index), "y"), title=_title(model, index)), ax)


def draw(figure: Figure, ax: Any = None) -> Any:
    """A figure on the axes given, or on those of a new figure of matplotlib; gives the axes."""
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
        # Few dots with a line through them are drawn in full; many without one may hide each other.
        few = series.large or bool(series.joined)
        size = {"markersize": 10} if series.large else {}
        alpha = 1.0 if few else 0.6
        axes.plot(series.x, series.y, "o" if few else ".", color=colour, alpha=alpha, label=series.label, **size)


def _on_rows(model: FittedModel, X: object, y: object, index: int | None) -> LawOnRows:
    check_is_fitted(model, "front_")
    evidence = evidence_of(model, X, y)
    if evidence is None:
        raise ValueError("the data of the fit are not with this model: give X and y")
    return law_on_rows(_law(model, index), evidence)


def _law(model: FittedModel, index: int | None) -> Expression:
    model.get_best(index)  # refuses what is no row
    law: Expression = model.best_expression_ if index is None else model.front_[index].expression
    return law


def _title(model: FittedModel, index: int | None) -> str:
    text = f"y = {to_text(_law(model, index), _DIGITS)}"
    # A dollar sign would begin mathematics.
    return (text if len(text) <= _LONG else f"{text[: _LONG - 1]}…").replace("$", r"\$")


def new_axes(ax: Any) -> Any:
    """The axes that the caller has, or those of a new figure."""
    return ax if ax is not None else new_panels(1, 4.0)[0]


def new_panels(count: int, height: float) -> list[Any]:
    """Axes one below the other in a new figure of pyplot, which a notebook shows by itself."""
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'symenum[plot]'")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(count, 1, sharex=True, squeeze=False, figsize=(6.4, height), layout="constrained")
    return list(axes[:, 0])
