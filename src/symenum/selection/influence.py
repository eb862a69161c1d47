"""Rows that decide the constants of a law nearly alone, and what is left of the evidence for a law without them.

A term such as 1e-30*exp(0.4*x) is next to nothing on all rows but the one of the largest x, whose residual it takes
away; on the next table it is wrong by powers of ten. The leverage of a row says how much the fitted value of a row
follows its own y, from 0 to 1. A law that needs such rows to be the most probable one has fitted them and no more:
the law that is chosen is the most probable one also on the other rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.target import Training
from symenum.expressions import Expression, Variable
from symenum.fitting.form_fit import derivatives
from symenum.fitting.free_constants import free_constants, with_leaves
from symenum.fitting.losses import Loss
from symenum.fitting.refine import refine
from symenum.selection.evidence import evidence

__all__ = ["leverage", "refitted", "settled", "settled_evidence", "slopes_by_constants", "with_named_constants"]

Array = npt.NDArray[np.float64]
T = TypeVar("T")

# Huber calls leverages above 0.2 risky and above 0.5 to be avoided ("Robust Statistics", 1981). With 0.3 and 0.4 the
# marked laws of 57 tables of development do as well without an absurd one among them; with 0.5 one of them passes.
_DECIDING = 0.3
_MOST = 0.2  # part of the rows that may be set aside: without more it would be another table
_MAX_ROWS = 2000  # with more, none decides alone; fits of sixty laws take a tenth of a second
_STEPS = 12  # of Levenberg-Marquardt, from constants that suit nearly the same rows, or nearly the same weights
_SINGULAR = 1e-7  # part of the largest singular value: derivatives below are no direction of their own


def with_named_constants(law: Expression) -> tuple[Expression, dict[str, float]]:
    """The law with a variable in the place of each fitted constant, and the constants by the names of these."""
    constants = {f"constant{i}_": value for i, value in enumerate(free_constants(law, integers=False))}
    return with_leaves(law, [Variable(name) for name in constants], integers=False), constants


def slopes_by_constants(
    form: Expression, constants: Mapping[str, float], columns: Mapping[str, Tensor]
) -> tuple[Array, Array]:
    """The values (points,), and the derivatives by the constants (k, points), zero where they are not finite."""
    shape = next(iter(columns.values())).shape
    filled = {name: torch.full(shape, value, dtype=torch.float64) for name, value in constants.items()}
    values, slopes = derivatives(form, list(constants), {**columns, **filled})
    finite = slopes.numpy()
    return values.numpy(), np.where(np.isfinite(finite), finite, 0.0)


def leverage(law: Expression, training: Training) -> Array:
    """How far the fitted value of each row follows its own y (rows,), from 0 to 1, at a minimum of least squares."""
    form, constants = with_named_constants(law)
    if not constants:
        return np.zeros(training.target.rows)
    slopes = (
        slopes_by_constants(form, constants, training.columns)[1].T * training.target.weight.sqrt().numpy()[:, None]
    )
    size = np.linalg.norm(slopes, axis=0)
    if not np.isfinite(size).all():
        return np.zeros(training.target.rows)
    basis, values, _ = np.linalg.svd(slopes / np.where(size > 0, size, 1.0), full_matrices=False)
    found: Array = (basis[:, values > _SINGULAR * values[0]] ** 2).sum(axis=1)
    return found


def settled_evidence(laws: Sequence[Expression], training: Training, floor: float, loss: Loss) -> tuple[float, ...]:
    """The `evidence` for each law, fitted to the rows that do not decide the best of them alone; see `settled`.

    Leverages are those of least squares: under any other loss all rows count.
    """
    found = evidence(laws, training, floor, loss)
    if not loss.is_squared:
        return found

    def best(weighed: tuple[float, ...]) -> tuple[Expression, Training]:
        return laws[max(range(len(laws)), key=lambda i: weighed[i])], training

    return settled(found, training, best, lambda rows: evidence(refitted(laws, rows), rows, floor, loss))


def refitted(
    laws: Sequence[Expression], rows: Training, weights: Tensor | None = None, budget: Budget = NO_LIMIT
) -> list[Expression]:
    """The laws with their constants at the minimum of least squares near by; weights (laws, rows), if not the rows'."""
    y, weights = rows.target.y, rows.target.weight if weights is None else weights
    results = refine(
        laws,
        rows.columns,
        y.expand_as(weights),
        weights,
        starts=0,
        steps=_STEPS,
        integers=False,
        near=True,
        budget=budget,
    )
    return [one.expression if one.loss < math.inf else law for one, law in zip(results, laws, strict=True)]


def settled(
    found: T, training: Training, best: Callable[[T], tuple[Expression, Training]], judge: Callable[[Training], T]
) -> T:
    """What `judge` finds on the rows that do not decide the constants of the best law; `found`: on all of them.

    `best`: the best law, and all rows with the weights that its constants were fitted by. If another law is the best
    one without the rows that decide the first, those that decide the other are set aside too, and so on, up to a fifth
    of all rows. `judge` fits the laws anew: a law that had to bend to a row that is set aside must not pay for it.
    """
    rows = training.target.rows
    kept = np.ones(rows, dtype=bool)
    while rows <= _MAX_ROWS:
        fewer = kept & (leverage(*best(found)) <= _DECIDING)
        if fewer.sum() == kept.sum() or fewer.sum() < (1 - _MOST) * rows:
            break
        kept = fewer
        found = judge(training.at(torch.from_numpy(np.flatnonzero(kept))))
    return found
