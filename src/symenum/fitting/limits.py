"""A tanh so steep that the data do not know its slope is a step: sign(x) rather than tanh(9000*x).

The same holds of every operator whose traits say that it rises from -1 to 1 (`Operator.smooth_step`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Apply, Constant, Expression, apply, evaluate, fold, walk
from symenum.fitting.constants import free_constants
from symenum.fitting.refine import Refined, refine
from symenum.operators.traits import Role

__all__ = ["as_step"]


_FLAT = math.tanh(3.0)  # a value within half a percent of 1 lies beyond the slope
_BENT = 0.05  # part of the rows that may lie on the slope
_STEPS = 4  # from constants that fit already


def as_step(
    law: Refined,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    *,
    budget: Budget | None = None,
    seed: int = 0,
) -> Refined | None:
    """The law with sign in place of every steep smooth step, where it fits as well with its fewer constants; else None.

    As well: the loss may grow by the variance of one constant for each that it lost, the rule of `tidy` under noise.
    """
    if not any(isinstance(node, Apply) and node.operator.smooth_step for node in walk(law.expression)):
        return None
    with_steps = fold(law.expression, lambda node, operands: _stepped(node, operands, columns))
    if with_steps == law.expression:
        return None
    fixed = max(1, len(law.constants) - len(free_constants(with_steps)))  # the scale of what is inside, written or not
    (step,) = refine([with_steps], columns, y, weight, starts=0, steps=_STEPS, integers=False, budget=budget, seed=seed)
    allowed = law.loss * (1 + fixed / max(1, len(y) - len(law.constants)))
    return step if step.loss <= allowed else None


def _stepped(node: Expression, operands: tuple[Expression, ...], columns: Mapping[str, Tensor]) -> Expression:
    if not isinstance(node, Apply):
        return node
    if not node.operator.smooth_step:
        unchanged = all(new is old for new, old in zip(operands, node.operands, strict=True))
        return node if unchanged else Apply(node.operator, operands)
    inner = node.operands[0]
    bent = float((evaluate(node, columns).abs() < _FLAT).double().mean())
    steep = bent <= _BENT and len(free_constants(inner)) > 0  # without a constant it is as steep as the law says
    return _sign(operands[0]) if steep else Apply(node.operator, operands)


def _sign(inner: Expression) -> Expression:
    """The sign of it; a factor says nothing but its own sign."""
    if isinstance(inner, Apply) and inner.operator.role is Role.PRODUCT:
        for factor, other in (inner.operands, inner.operands[::-1]):
            if isinstance(factor, Constant) and factor.value != 0:
                return _sign(other) if factor.value > 0 else apply("neg", _sign(other))
    return apply("sign", inner)
