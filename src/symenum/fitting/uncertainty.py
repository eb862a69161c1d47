"""How well the data determine the constants of an expression: standard errors, from the normal equations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from symenum.core.exactness import EXACTNESS
from symenum.expressions import Expression
from symenum.fitting.batch_program import Array, compile_program
from symenum.fitting.free_constants import postfix
from symenum.fitting.refine import Batch, Problem

__all__ = ["errors_of", "standard_errors"]


def standard_errors(
    expression: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    integers: bool = True,
) -> tuple[float, ...]:
    """The standard errors of the free constants, from left to right, at a minimum of the loss.

    Arguments as in `refine`. inf where the data do not determine the constant, or rows are no more than constants.
    """
    program = compile_program([postfix(expression, integers=integers)], columns)
    rows, size = len(y), int(program.count[0])
    if rows <= size or size == 0:
        return (np.inf,) * size
    root = np.full(rows, rows**-0.5) if weight is None else weight.sqrt().numpy()
    problem = Problem(program, program.data, (y.numpy() * root)[None], root[None], np.zeros(1))
    products, _ = Batch(problem, np.array([0])).products(program.starts.T)
    return tuple(errors_of(products[:size, :size], products[size, size] / (rows - size))[:, 0].tolist())


def errors_of(normal: Array, variance: Array) -> Array:
    """Standard errors (k, B) of the constants of B members.

    `normal` (k, k, B): JᵀJ, weighted. `variance` (B,): the weighted sum of squares over the number of spare rows. inf
    for a constant that does nothing, and for all constants of a member if some combination of them is not determined.
    """
    scale = np.sqrt(np.einsum("iib->ib", normal))
    used = scale > 0
    scale = np.where(used, scale, 1.0)
    scaled = normal / (scale[:, None] * scale)
    np.einsum("iib->ib", scaled)[...] = 1.0  # also of a constant that does nothing: its equation then touches no other
    finite = np.isfinite(scaled).all(axis=(0, 1))
    scaled[:, :, ~finite] = np.eye(len(scale))[:, :, None]
    values, vectors = np.linalg.eigh(scaled.transpose(2, 0, 1))
    determined = finite & (values[:, 0] > EXACTNESS.squares * values[:, -1])
    values[~determined] = 1.0
    errors = np.sqrt((vectors**2 / values[:, None]).sum(axis=2).T * variance) / scale
    return np.where(used & determined, errors, np.inf)
