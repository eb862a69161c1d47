"""Fitted constants written as the numbers that people write, inner ones too, where the data do not object."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.expressions import Expression
from symenum.fitting.refine import Refined, refine

__all__ = ["tidy"]


def tidy(
    expression: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    budget: Budget | None = None,
) -> Refined:
    """The expression with its constants fixed at nice numbers one after another, the others refitted each time.

    Arguments as in `refine`. A number is accepted where the loss gets no worse than rounding, or than the standard
    error of that constant, allows (the rule of `snap`). Terms whose coefficient is zero leave, and constants are
    folded (`simplify`). `errors` of fixed constants are 0.
    """
    return refine([expression], columns, y, weight, starts=0, budget=budget)[0]
