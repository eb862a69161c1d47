"""A parameter that no row determines is replaced by the limit of the law for that parameter.

A fit may drive a parameter towards infinity, where the loss no longer depends on it. Its value then says nothing of the
data, and the law stands for its limit, which has one constant less. The limit is taken where it explains the data as
well as the law does.

One family of such parameters is known here: the steepness c of a smooth step s(c·f). A smooth step is any operator
whose traits say so (`Operator.smooth_step`: monotone, with a bounded range). As c grows, s(c·f) tends to one end of
that range where f < 0 and to the other where f > 0, which is middle + half width · sign(f). Only rows on the slope,
between the two ends, determine c.

Not for constants that are known badly but known (`uncertainty`), nor for those that may be zero (`snap`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Apply, Constant, Expression, apply, evaluate, fold, walk
from symenum.fitting.free_constants import free_constants
from symenum.fitting.refine import Refined, refine
from symenum.operators import OPERATORS, Operator
from symenum.operators.traits import Role

__all__ = ["limit_of_law"]

_STEP = next(operator for operator in OPERATORS.values() if operator.role is Role.STEP)  # sign: -1, 0 or 1
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_SLOPE = 3.0  # values within tanh(3) = 0.995 half widths of the middle of the range lie on the slope
_MAX_ON_SLOPE = 0.05  # part of the rows that may lie on the slope of a step whose steepness is not determined
_MAX_STEPS = 4  # of Levenberg–Marquardt for the limit, whose constants fit already


def limit_of_law(
    law: Refined,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    *,
    budget: Budget | None = None,
    seed: int = 0,
) -> Refined | None:
    """The limit of the law for infinite steepness of each step that no row determines; None where it fits worse.

    `columns`, y and weight: (rows,) float64, the weights summing to 1. The loss of the limit may be larger by the
    variance of one constant for each constant that the limit does not have (`Recognition.residual_growth`).
    """
    if not any(isinstance(node, Apply) and node.operator.smooth_step for node in walk(law.expression)):
        return None
    limit = fold(law.expression, lambda node, operands: _limit_of_node(node, operands, columns))
    if limit == law.expression:
        return None
    # At least one: the steepness is lost even where the limit holds as many numbers as the law.
    lost = max(1, len(law.constants) - len(free_constants(limit)))
    (fitted,) = refine(
        [limit], columns, y, weight, starts=0, steps=_MAX_STEPS, integers=False, budget=budget, seed=seed
    )
    allowed = law.loss * (1 + lost / max(1, len(y) - len(law.constants)))
    return fitted if fitted.loss <= allowed else None


def _limit_of_node(node: Expression, operands: tuple[Expression, ...], columns: Mapping[str, Tensor]) -> Expression:
    """The node on operands that are limits already; itself a limit where it is a step of undetermined steepness."""
    if not isinstance(node, Apply):
        return node
    if node.operator.smooth_step and _is_undetermined(node, columns):
        return limit_of_step(node.operator, operands[0])
    unchanged = all(new is old for new, old in zip(operands, node.operands, strict=True))
    return node if unchanged else Apply(node.operator, operands)


def _is_undetermined(step: Apply, columns: Mapping[str, Tensor]) -> bool:
    """Whether the argument holds a constant, and hardly any row lies on the slope, so that none determines it."""
    middle, half = _middle_and_half(step.operator)
    on_slope = ((evaluate(step, columns) - middle).abs() / half < math.tanh(_SLOPE)).double().mean()
    return float(on_slope) <= _MAX_ON_SLOPE and len(free_constants(step.operands[0])) > 0


def limit_of_step(operator: Operator, argument: Expression) -> Expression:
    """The limit of operator(c·argument) for c to infinity: middle + half width · sign(argument)."""
    middle, half = _middle_and_half(operator)
    falling = operator.traits.monotone < 0
    limit = _sign_of(argument, opposite=falling)
    if half != 1:
        limit = apply("mul", Constant(half), limit)
    return apply("add", limit, Constant(middle)) if middle else limit


def _middle_and_half(operator: Operator) -> tuple[float, float]:
    """The middle of the operator's range, and half the width of the range."""
    values = operator.traits.range
    assert values is not None  # a smooth step states its range
    return (values.low + values.high) / 2, (values.high - values.low) / 2


def _sign_of(argument: Expression, *, opposite: bool = False) -> Expression:
    """sign(argument), or -sign(argument); of a constant factor of the argument nothing but its sign is left."""
    if isinstance(argument, Apply) and argument.operator.role is Role.PRODUCT:
        for factor, other in (argument.operands, argument.operands[::-1]):
            if isinstance(factor, Constant) and factor.value != 0:
                return _sign_of(other, opposite=opposite != (factor.value < 0))
    sign = apply(_STEP, argument)
    return apply("neg", sign) if opposite else sign
