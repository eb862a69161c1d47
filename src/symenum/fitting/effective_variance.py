"""Errors of measurement: chi-square, and constants fitted where the inputs have errors too.

An error σx of an input moves the law's value by about |∂f/∂x|·σx. So a row counts by its effective variance, σy² plus
the sum of (∂f/∂x·σx)² over the inputs (Orear, American Journal of Physics 50, 1982). The slopes depend on the law, so
the search itself weighs rows by 1/σy² alone, and the laws that it has found are then fitted to the least chi-square.
For a straight line this is total least squares (Deming's regression).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.optimize
import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Expression, evaluate
from symenum.fitting.batch_program import Array
from symenum.fitting.form_fit import derivatives
from symenum.fitting.free_constants import free_constants, with_constants

__all__ = ["MeasurementErrors", "chi_square", "fit_effective_variance"]

_MAX_STEPS = 30  # of the fit; from the constants of the search ten are enough in most cases
_FAR = 1e100  # in units of the error: a residual where the law has no value; its square is still finite
_MIN_GAIN = 1e-9  # part of chi-square: a fit that gains less is rounding


@dataclass(frozen=True)
class MeasurementErrors:
    """Standard errors (rows,), float64: of y, and of inputs by their names in laws. Inputs without a name are exact."""

    y: Tensor
    x: Mapping[str, Tensor] = field(default_factory=dict)

    def effective(self, law: Expression, columns: Mapping[str, Tensor]) -> Tensor:
        """The effective errors (rows,) of y at a law; inf or NaN where its slope is not finite."""
        names = list(self.x)
        if not names:
            return self.y
        _, slopes = derivatives(law, names, columns)
        moved = torch.stack([self.x[name] for name in names]) * slopes
        return torch.sqrt(self.y.square() + moved.square().sum(dim=0))


def chi_square(law: Expression, columns: Mapping[str, Tensor], y: Tensor, errors: MeasurementErrors) -> float:
    """The sum over rows of ((y - law)/effective error)²; inf where it is not finite. y is (rows,) float64."""
    values: Tensor = evaluate(law, columns)
    total = float(((y - values) / errors.effective(law, columns)).square().sum())
    return total if total < float("inf") else float("inf")


def fit_effective_variance(
    laws: Sequence[Expression],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    errors: MeasurementErrors,
    *,
    budget: Budget | None = None,
) -> list[Expression]:
    """The laws with the constants of least chi-square near those that they have; none becomes worse.

    Whole numbers stay, and so does a law without other numbers. `columns`, y and weight are (rows,) float64; the
    weights are 1/σy² times those of the user. The slopes change with the constants: with weights that stay while the
    constants are fitted, a straight line would be too flat by the part that the errors have in the spread of x.
    """
    budget = Budget() if budget is None else budget
    own = weight * errors.y.square()  # the weights of the user
    roots = (own / own.mean()).sqrt().numpy()
    return [law if budget.over() else _fitted(law, columns, y, roots, errors, budget) for law in laws]


def _fitted(
    law: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    roots: Array,
    errors: MeasurementErrors,
    budget: Budget,
) -> Expression:
    start = free_constants(law, integers=False)
    if not start or not errors.x:
        return law

    def residuals(constants: Array) -> Array:
        changed = with_constants(law, constants.tolist(), integers=False)
        values: Tensor = evaluate(changed, columns)
        part = roots * ((y - values) / errors.effective(changed, columns)).numpy()
        # Once the time is over every other point is as bad as one without values: the method ends.
        usable = np.isfinite(part).all() and not budget.over()
        return np.clip(part, -_FAR, _FAR) if usable else np.full(len(part), _FAR)

    with np.errstate(all="ignore"):
        first = residuals(np.array(start))
        if bool((np.abs(first) >= _FAR).any()):
            return law
        ended = scipy.optimize.least_squares(residuals, start, x_scale="jac", max_nfev=_MAX_STEPS)
    better = 2 * ended.cost < float(np.square(first).sum()) * (1 - _MIN_GAIN)
    return with_constants(law, ended.x.tolist(), integers=False) if better else law
