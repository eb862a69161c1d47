"""R² on test points, and errors beside that of the true form."""

from __future__ import annotations

import numpy as np
import pytest

from symenum.bench.jobs import Job, Row, row_from_json, row_to_json
from symenum.bench.judge.errors import MAX_ERROR_RATIO, r_squared, with_error_ratios, with_test_r2
from symenum.bench.problems.engineering import ENGINEERING
from symenum.bench.systems import Law
from symenum.estimator.formulas import fit_constants

PUMP = next(law for law in ENGINEERING if law.name == "Pump")


def row(*texts: str, selected: int = 0, **changes: object) -> Row:
    laws = tuple(Law(text, i, 1.0) for i, text in enumerate(texts))
    job = Job("engineering", "Pump", "symenum", 0)
    return Row(job, "v", 1.0, "done", seconds=1.0, laws=laws, selected=selected, **changes)  # type: ignore[arg-type]


def test_r_squared_of_the_mean_is_zero_and_of_what_is_undefined_none() -> None:
    y = np.array([1.0, 2.0, 3.0])
    assert r_squared(y, y) == 1.0
    assert r_squared(np.full(3, 2.0), y) == 0.0
    assert r_squared(np.array([1.0, np.nan, 3.0]), y) is None
    assert r_squared(y, np.ones(3)) is None


def test_all_laws_of_a_front_are_judged_on_the_test_points() -> None:
    judged = with_test_r2(row("27", "42 - 0.018*x1**2", "log(x1 - 100)"), PUMP)
    assert judged.test_r2[1] == pytest.approx(1.0)
    assert judged.test_r2[2] is None
    assert judged.r2 == judged.test_r2[0]
    assert judged.best_r2 == pytest.approx(1.0)
    assert row_from_json(row_to_json(judged)) == judged


def test_predictions_are_judged_where_there_is_no_law() -> None:
    _, y = PUMP.test(0)
    judged = with_test_r2(row(predicted=tuple(y), size=7), PUMP)
    assert (judged.r2, judged.complexity) == (1.0, 7)
    assert with_error_ratios(judged, PUMP).solved
    assert not with_error_ratios(row(predicted=tuple(y + 10)), PUMP).solved
    assert row_from_json(row_to_json(judged)) == judged


def test_the_true_form_fitted_to_the_rows_has_the_ratio_one() -> None:
    X, y = PUMP.sample(0)
    fitted = str(fit_constants(PUMP.text, X, y, start=PUMP.constants).expression)
    judged = with_error_ratios(row("27", fitted, "log(x1 - 100)", selected=1), PUMP)
    assert judged.error_ratio == pytest.approx(1.0, rel=1e-6)
    assert judged.solved
    assert judged.error_ratios[2] is None
    far = with_error_ratios(row("27", fitted, selected=0), PUMP)
    assert not far.solved
    assert far.error_ratio is not None
    assert far.error_ratio > MAX_ERROR_RATIO
    assert far.best_error_ratio == pytest.approx(1.0, rel=1e-6)
