"""Pictures of a fitted PSERegressor: its front, its law among the data, and what the law leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from symenum.estimator.regressor import evidence_for
from symenum.expressions import Expression, to_text
from symenum.plots.canvas import ACCENT, DOTS, new_axes
from symenum.report import Fitted, front_points, make_fitted

if TYPE_CHECKING:
    from symenum.estimator import PSERegressor

__all__ = ["plot_fit", "plot_front", "plot_residuals"]

_DIGITS = 3
_LONG = 70  # characters of a title


def plot_front(model: PSERegressor, ax: Any = None) -> Any:
    """Loss against complexity, the chosen law marked; gives the axes.

    A loss that is zero up to rounding is drawn at the level of rounding.
    """
    check_is_fitted(model, "front_")
    front = model.front_
    points = front_points([entry.complexity for entry in front], [entry.loss for entry in front], front.floor)
    axes = new_axes(ax)
    axes.step([x for x, _ in points], [y for _, y in points], where="post", color=DOTS, alpha=0.4)
    axes.plot([x for x, _ in points], [y for _, y in points], "o", color=DOTS, label="laws")
    chosen = front[model.selected_index_]
    marked = [point for point in points if point[0] == chosen.complexity]
    axes.plot([x for x, _ in marked], [y for _, y in marked], "o", color=ACCENT, markersize=10, label="the chosen law")
    axes.set_yscale("log")
    axes.set(
        xlabel="complexity", ylabel="mean squared error" if model.loss == "mse" else "loss", title=_title(model, None)
    )
    axes.legend()
    return axes


def plot_fit(
    model: PSERegressor, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """A law of one variable as a line among the data, others as predicted against measured; gives the axes.

    Without X and y it shows the data of the fit, at most 1,000 rows of them; `index` picks a row of `equations_`.
    """
    fitted = _fitted(model, X, y, index)
    axes = new_axes(ax)
    if fitted.x is not None and fitted.curve is not None:
        name, x = fitted.x
        axes.plot(x, fitted.measured, ".", color=DOTS, alpha=0.6, label="data")
        axes.plot(*fitted.curve, color=ACCENT, label="the law")
        axes.set(xlabel=name, ylabel="y")
    else:
        ends = [fitted.measured.min(), fitted.measured.max()]
        axes.plot(fitted.measured, fitted.predicted, ".", color=DOTS, alpha=0.6, label="rows")
        axes.plot(ends, ends, color=ACCENT, label="predicted = measured")
        axes.set(xlabel="measured", ylabel="predicted")
    axes.set_title(_title(model, index))
    axes.legend()
    return axes


def plot_residuals(
    model: PSERegressor, X: object = None, y: object = None, *, index: int | None = None, ax: Any = None
) -> Any:
    """What a law leaves, measured minus predicted, against what it says; gives the axes."""
    fitted = _fitted(model, X, y, index)
    axes = new_axes(ax)
    axes.plot(fitted.predicted, fitted.residual, ".", color=DOTS, alpha=0.6)
    axes.axhline(0.0, color=ACCENT)
    axes.set(xlabel="predicted", ylabel="measured - predicted", title=_title(model, index))
    return axes


def _fitted(model: PSERegressor, X: object, y: object, index: int | None) -> Fitted:
    check_is_fitted(model, "front_")
    evidence = evidence_for(model, X, y)
    if evidence is None:
        raise ValueError("the data of the fit are not with this model: give X and y")
    return make_fitted(_law(model, index), evidence)


def _law(model: PSERegressor, index: int | None) -> Expression:
    model.get_best(index)  # refuses what is no row
    return model.best_expression_ if index is None else model.front_[index].expression


def _title(model: PSERegressor, index: int | None) -> str:
    text = f"y = {to_text(_law(model, index), _DIGITS)}"
    # A dollar sign would begin mathematics.
    return (text if len(text) <= _LONG else f"{text[: _LONG - 1]}…").replace("$", r"\$")
