"""A parameter that no row determines is replaced by the limit of the law for that parameter.

A fit may drive a parameter towards infinity or zero, where the loss no longer depends on it. Its value then says
nothing of the data, and the law stands for its limit, which has one constant less. The limit is taken where it explains
the data as well as the law does.

Four families of such parameters are known here. The first is the steepness c of a smooth step s(c·f). A smooth step is
any operator whose traits say so (`Operator.smooth_step`: monotone, with a bounded range). As c grows, s(c·f) tends to
one end of that range where f < 0 and to the other where f > 0, which is middle + half width · sign(f). Only rows on the
slope, between the two ends, determine c.

The second is the scale c of a tiny argument: 3e6*sin(1e-7*x) is 0.3*x. As c falls, f(c·g) tends to the first terms of
its series at zero, f(0) + f'(0)·c·g, or f(0) + f''(0)/2·(c·g)² where the slope is zero; and g**c tends to 1.

The third is a giant exponent: (1 - 5e-8*x)**5.7e7 is exp(-2.85*x). As n grows, (a + g)**n with a small g tends to
aⁿ·exp(n·g/a).

The fourth is an offset that takes a function to where it is an exponential: 5.6e-7*cosh(x + 15) is 0.92*exp(x). As the
argument u grows, f(u) tends to k·exp(u) or k·exp(-u), and the factor before f and the offset in it are one number.

Not for constants that are known badly but known (`uncertainty`), nor for those that may be zero (`snap`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from symenum.core.budget import Budget
from symenum.expressions import Apply, Constant, Expression, apply, evaluate, fold, simplify, variables, walk
from symenum.expressions.algebra import as_sum
from symenum.fitting.free_constants import free_constants
from symenum.fitting.refine import Refined, refine
from symenum.operators import OPERATORS, Operator
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["limit_of_law", "limit_of_tiny_arguments"]

_STEP = next(operator for operator in OPERATORS.values() if operator.role is Role.STEP)  # sign: -1, 0 or 1
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_SLOPE = 3.0  # values within tanh(3) = 0.995 half widths of the middle of the range lie on the slope
_MAX_ON_SLOPE = 0.05  # part of the rows that may lie on the slope of a step whose steepness is not determined
_TINY = 1e-3  # largest argument, by definition: sin(u) differs from u by 2e-7 of it
_STEP_SIZE = 1e-4  # of the differences that give a second derivative
_PLAIN = (Role.IDENTITY, Role.NEGATION, Role.MAGNITUDE)  # functions that are their own series, or have none
_FAR = 7.0  # smallest argument where a function may be an exponential: cosh differs by 1e-6 of exp/2 there
_SAME = 1e-6  # largest difference of logarithms of one number, by definition
_LARGEST_OFFSET = 600.0  # in an exponential: exp of more is near to the end of the doubles
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
    return _fitted_limit(law, limit, columns, y, weight, budget, seed)


def limit_of_tiny_arguments(
    law: Refined,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    exponentials: bool = True,
) -> Refined | None:
    """The law with the series of its functions in place of those whose argument is tiny on all rows.

    None where no argument is tiny, or where the rows tell the difference. `exponentials`: whether a giant power, or a
    function far from zero, may become one. Other arguments as in `limit_of_law`.
    """

    def limit_of_node(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        exponential = None
        if exponentials:
            exponential = _exponential_of_power(node, operands, columns) or _exponential_far_out(
                node, operands, columns
            )
        return exponential or _series_of_node(node, operands, columns)

    limit = fold(law.expression, limit_of_node)
    # Twice: numbers inside a sum that has become a product are folded the second time.
    return _fitted_limit(law, simplify(simplify(limit)), columns, y, weight, budget, seed)


def _fitted_limit(
    law: Refined,
    limit: Expression,
    columns: Mapping[str, Tensor],
    y: Tensor,
    weight: Tensor,
    budget: Budget | None,
    seed: int,
) -> Refined | None:
    """The limit with its constants fitted; None where it is the law itself, or explains the data worse."""
    if limit == law.expression or simplify(limit) == simplify(law.expression):
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


def _series_of_node(node: Expression, operands: tuple[Expression, ...], columns: Mapping[str, Tensor]) -> Expression:
    """The node on operands that are limits already; itself a series where its argument is tiny on all rows."""
    if not isinstance(node, Apply):
        return node
    result = Apply(node.operator, operands)
    if not variables(result):
        return result
    if node.operator.role is Role.POWER and isinstance(node.operands[1], Constant):
        logarithm = evaluate(node.operands[0], columns).log() * float(node.operands[1].value)
        return Constant(1) if _is_tiny(logarithm) else result
    series = node.operator.entire and node.operator.arity == 1 and node.operator.role not in (*_PLAIN, Role.STEP)
    if series and _is_tiny(evaluate(node.operands[0], columns)):
        return _first_terms(node.operator, operands[0])
    return result


def _exponential_of_power(
    node: Expression, operands: tuple[Expression, ...], columns: Mapping[str, Tensor]
) -> Expression | None:
    """exp(n·g/a + n·log(a)) for a power (a + g)**n whose g is tiny beside a on all rows; None for anything else.

    Powers that are tiny changes of 1 themselves are left to the series.
    """
    if not isinstance(node, Apply) or node.operator.role is not Role.POWER or not variables(node):
        return None
    exponent, base = node.operands[1], operands[0]
    if not isinstance(exponent, Constant) or not isinstance(base, Apply) or base.operator.role not in ADDITIVE:
        return None
    terms = as_sum(simplify(base))
    start, power = float(terms.number), float(exponent.value)
    change = replace(terms, number=0).close()
    if start <= 0 or not variables(change) or not _is_tiny(evaluate(change, columns) / start):
        return None
    offset = power * math.log(start)
    if abs(offset) > _LARGEST_OFFSET or _is_tiny(evaluate(node, columns).log()):
        return None
    argument = apply("mul", Constant(power / start), change)
    return apply("exp", argument if offset == 0 else apply("add", argument, Constant(offset)))


def _exponential_far_out(
    node: Expression, operands: tuple[Expression, ...], columns: Mapping[str, Tensor]
) -> Expression | None:
    """k·exp(±u), its numbers in front, for a function f(u) that is no more than that on all rows; None for others."""
    if not isinstance(node, Apply) or node.operator.role is not Role.FUNCTION or node.operator.arity != 1:
        return None
    argument, values = evaluate(node.operands[0], columns), evaluate(node, columns)
    if not variables(node) or not bool((argument.abs() >= _FAR).all()) or not bool((values != 0).all()):
        return None
    for sign in (1.0, -1.0):
        logarithm = values.abs().log() - sign * argument  # of k, where f(u) is k·exp(±u)
        change = argument - argument.mean()
        if not _is_close(logarithm) or _is_close(change) or not _is_close(values.sign()):
            continue
        terms = as_sum(simplify(operands[0]))
        offset = sign * float(terms.number) + float(logarithm.median())
        if abs(offset) > _LARGEST_OFFSET:
            return None
        exponent = replace(terms, number=0).close()
        exponential = apply("exp", exponent if sign > 0 else apply("neg", exponent))
        return apply("mul", Constant(float(values[0].sign()) * math.exp(offset)), exponential)
    return None


def _is_close(values: Tensor) -> bool:
    """Whether all values are one, up to a millionth."""
    return bool((values - values.median()).abs().max() <= _SAME)


def _is_tiny(values: Tensor) -> bool:
    """Whether all values are so near to zero that a function differs from its first terms by less than a millionth."""
    return bool((values.abs() <= _TINY).all())


def _first_terms(operator: Operator, argument: Expression) -> Expression:
    """f(0) + f'(0)·u for the argument u, or f(0) + f''(0)/2·u² where f'(0) is zero."""
    zero, step = torch.zeros(1, dtype=torch.float64), torch.full((1,), _STEP_SIZE, dtype=torch.float64)
    start = operator.function(zero)
    slope = float(operator.partial(0, start, zero))
    term, factor = argument, slope
    if slope == 0:
        # Two steps of 1e-4 give a second derivative to eight digits, of which the first four are taken.
        factor = round(float((operator.function(step) + operator.function(-step) - 2 * start) / step.square()) / 2, 4)
        term = apply("mul", argument, argument)
    series = term if factor == 1 else apply("mul", Constant(factor), term)
    return series if float(start) == 0 else apply("add", series, Constant(float(start)))


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
