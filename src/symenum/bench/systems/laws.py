"""What a rival prints, as laws of ours."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from symenum.bench.systems.base import Law
from symenum.expressions import Expression, to_text
from symenum.problems.problem import Array, law_values

__all__ = ["as_laws", "variable_names"]


def variable_names(count: int) -> tuple[str, ...]:
    """x1, x2, …: what adapters call the columns."""
    return tuple(f"x{i + 1}" for i in range(count))


def as_laws(expressions: Iterable[Expression], X: Array, y: Array) -> tuple[Law, ...]:
    """Laws from simple to accurate, with the loss that the expression itself has on the data.

    A rival's own loss is not taken: protected operators and single precision would make it another function's.
    """
    names = variable_names(X.shape[1])
    laws = []
    for expression in dict.fromkeys(expressions):
        with np.errstate(all="ignore"):
            loss = float(np.mean(np.square(law_values(expression, names, X) - y)))
        laws.append(Law(to_text(expression), expression.complexity, loss if np.isfinite(loss) else float("inf")))
    return tuple(sorted(laws, key=lambda law: (-law.loss, law.complexity)))
