"""How far laws are from what was measured: R² on test points, and the error beside that of the true form.

Test points are clean points of the range where the law is known, and rows that were held out where it is not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symenum.bench.jobs import Row
from symenum.bench.problems import Dataset
from symenum.bench.problems.engineering import EngineeringLaw, reference_error, root_mean_square
from symenum.bench.problems.problem import Array, law_values
from symenum.expressions import parse

__all__ = ["MAX_ERROR_RATIO", "r_squared", "with_error_ratios", "with_test_r2"]

MAX_ERROR_RATIO = 3.0
"""Of root mean square errors: a law whose error is at most so many times that of the fitted true form counts."""


def r_squared(values: Array, y: Array) -> float | None:
    """R² of values for y, (rows,) both; None where a value is not finite, or where all y are equal."""
    with np.errstate(all="ignore"):
        error = float(np.square(values - y).sum())
        spread = float(np.square(y - y.mean()).sum())
        return 1 - error / spread if np.isfinite(error) and spread > 0 else None


def with_test_r2(row: Row, problem: Dataset) -> Row:
    """The row with the R² of all its laws, or of its predictions, on the test points of its seed."""
    X, y = problem.test(row.job.seed)
    if not row.laws:
        return replace(row, r2=r_squared(np.asarray(row.predicted), y))
    values = tuple(r_squared(_values(law.text, problem, X), y) for law in row.laws)
    return replace(row, test_r2=values, r2=values[row.selected])


def with_error_ratios(row: Row, law: EngineeringLaw) -> Row:
    """The row with the errors of all its laws over that of the fitted true form; solved if the chosen one is small.

    Errors are root mean squares over clean test points. The ratio is None where a law is not defined on one of them.
    """
    X, clean = law.test(row.job.seed)
    found = [_values(one.text, law, X) for one in row.laws] or [np.asarray(row.predicted)]
    reference = reference_error(law, row.job.seed)
    ratios = [root_mean_square(values - clean) / reference for values in found]
    ratio = ratios[row.selected] if row.laws else ratios[0]
    kept = tuple(one if np.isfinite(one) else None for one in ratios) if row.laws else ()
    return replace(row, error_ratios=kept, judged=row.selected, solved=ratio <= MAX_ERROR_RATIO)


def _values(text: str, problem: Dataset, X: Array) -> Array:
    with np.errstate(all="ignore"):
        return law_values(parse(text), problem.variables, X)
