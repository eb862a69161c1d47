"""A fitted model as a report and as the numbers of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from symenum.report import Content, Evidence, LawRow, report_page, run_facts

if TYPE_CHECKING:
    from symenum.estimator.regressor import PSERegressor

__all__ = ["evidence_for", "make_evidence", "write_report"]

Array = npt.NDArray[np.float64]


def make_evidence(model: PSERegressor, X: Array, y: Array, weight: Array | None = None) -> Evidence:
    """The evidence of checked data (rows, features), (rows,) and (rows,), under the names that the model gives."""
    names = model.variable_names_
    columns = [str(name) for name in getattr(model, "feature_names_in_", names)]
    return Evidence.of(X, y, names, columns, weight=weight)


def evidence_for(model: PSERegressor, X: object, y: object) -> Evidence | None:
    """The evidence of the data given, or of those of the fit, if the model has kept them."""
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: give both, or none for the data of the fit")
    if X is None:
        return getattr(model, "evidence_", None)
    rows, target = validate_data(model, X, y, dtype=np.float64, y_numeric=True, reset=False)
    return make_evidence(model, rows, np.asarray(target, dtype=np.float64))


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
    )
    Path(path).write_text(report_page(content), encoding="utf-8")
