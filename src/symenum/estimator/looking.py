"""A model to look at: while it searches, as a report, and as the numbers of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from symenum.core.files import write_whole
from symenum.front import rule_of
from symenum.report import Content, Evidence, LawRow, report_page, run_facts
from symenum.watch import Observer, for_estimator

if TYPE_CHECKING:
    from symenum.estimator.regressor import PSERegressor

__all__ = ["evidence_for", "watching", "write_report"]

Array = npt.NDArray[np.float64]


def watching(model: PSERegressor) -> Observer:
    """The observer that suits `verbose` and the place."""
    return for_estimator(lambda _: "y", rule_of(model.model_selection), model.max_time, verbose=model.verbose)


def evidence_for(model: PSERegressor, X: object, y: object) -> Evidence | None:
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


def write_report(path: object, model: PSERegressor, X: object, y: object) -> None:
    """The report of a fitted model, as one HTML file."""
    if not isinstance(path, (str, Path)):
        raise TypeError(f"path must be the name of a file, such as 'report.html', not {type(path).__name__}")
    front = model.front_
    laws = [
        LawRow(entry.expression, entry.complexity, entry.loss, score)
        for entry, score in zip(front, front.scores(), strict=True)
    ]
    content = Content(
        "y",
        laws,
        model.selected_index_,
        evidence_for(model, X, y),
        front.floor,
        run_facts(model.stop_reason_, model.elapsed_, model.n_iter_, model.scored_, model.plan_),
        model.get_params(deep=False),
        squared=model.loss == "mse",
    )
    write_whole(Path(path), report_page(content))
