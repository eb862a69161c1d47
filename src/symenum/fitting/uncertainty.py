"""How well the data determine the constants of an expression."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Expression
from symenum.fitting.levenberg_marquardt import Batch, Problem
from symenum.fitting.parameters import postfix
from symenum.fitting.program import Array, compile_program

__all__ = ["errors_of", "standard_errors"]


def standard_errors(
    expression: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    integers: bool = True,
) -> tuple[float, ...]:
    """The standard errors of the free constants at a minimum of the loss, from left to right, as `refine` takes them.

    inf where the data do not determine the constant, or have no more rows than there are constants.
    """
    program = compile_program([postfix(expression, integers=integers)], columns)
    rows, size = len(y), int(program.count[0])
    if rows <= size or size == 0:
        return (np.inf,) * size
    root = np.full(rows, rows**-0.5) if weight is None else weight.sqrt().numpy()
    problem = Problem(program, program.data, (y.numpy() * root)[None], root[None], np.zeros(1))
    products = Batch(problem, np.array([0])).products(program.starts.T)[:, :, 0]
    return tuple(errors_of(products[:size, :size], products[size, size] / (rows - size)).tolist())


def errors_of(normal: Array, variance: float) -> Array:
    """Standard errors (k,) from JᵀJ (k, k), weighted, and the weighted sum of squares over the degrees of freedom."""
    undetermined = np.full(len(normal), np.inf)
    scale = np.sqrt(np.diag(normal))
    used = scale > 0
    if not np.isfinite(normal).all() or not used.any():
        return undetermined
    within = np.ix_(used, used)
    values, vectors = np.linalg.eigh(normal[within] / np.outer(scale, scale)[within])
    if values[0] > EXACTNESS.squares * values[-1]:
        undetermined[used] = np.sqrt((vectors**2 / values).sum(axis=1) * variance) / scale[used]
    return undetermined
