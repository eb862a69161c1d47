"""The numeric verdict: do two expressions agree on fresh points, inside and outside of the training range?

The points are compared in doubles first. Where the two differ by more than the tolerance, or one of them has
overflowed, the point is compared in 60 digits: so a law that subtracts nearly equal numbers is still recovered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mpmath
import numpy as np

from symenum.bench.problems.problem import Array, Case, law_values
from symenum.expressions import Apply, Constant, Expression, Variable, fold, simplify, variables

__all__ = ["agree", "constant_apart", "extended_value", "recovered", "rounded", "rounded_constant", "undefined"]

# Two values agree within _RELATIVE·|y| + _ABSOLUTE·median|y|.
_RELATIVE = 1e-9  # rounding in a few dozen operations is about 1e-14; a constant wrong in its seventh digit is above
_ABSOLUTE = 1e-12  # for values of y near zero
_MAX_EXTENDED_POINTS = 60  # points compared in extended precision, spread over all that differ: bounds the time
_MIN_POINTS = 20  # fresh points on which a law must be defined to be judged; where fewer are, the problem is at fault
_EXTENDED_DIGITS = 60  # after a cancellation of 40 digits there are still 20, more than doubles have
_MAX_WHOLE = 1e15  # largest whole number that is written without a decimal point: doubles hold it exactly
_NAMED_CONSTANTS = {"pi": lambda: +mpmath.pi, "E": lambda: +mpmath.e}


@dataclass(frozen=True)
class _Points:
    X: Array
    y: Array


def _points(case: Case, seed: int) -> _Points:
    """Fresh points of the training range and of a range twice as wide, without those where the law is not defined.

    A variable that is positive in the training range is positive on all points: no law is asked for negative lengths.
    """
    inside, outside = case.test(seed), case.fresh(seed)
    X, y = np.concatenate([inside[0], outside[0]]), np.concatenate([inside[1], outside[1]])
    signed = inside[0].min(axis=0) < 0
    defined = np.isfinite(y) & ((X > 0) | signed).all(axis=1)
    return _Points(X[defined], y[defined])


def agree(found: Expression, law: Expression, case: Case, seed: int = 0) -> bool:
    """Whether `found` equals `law` to 1e-9 on all fresh points of the case, and is defined on all of them."""
    if set(variables(found)) - set(case.variables):
        return False
    points = _points(case, seed)
    if len(points.y) < _MIN_POINTS:
        raise ValueError(f"{case.name}: the law is defined on {len(points.y)} of the fresh points, too few to judge")
    y = law_values(law, case.variables, points.X)
    scale = float(np.median(np.abs(y)))
    apart = np.abs(law_values(found, case.variables, points.X) - y)
    doubtful = np.flatnonzero(~(apart <= _RELATIVE * np.abs(y) + _ABSOLUTE * scale))
    if len(doubtful) > _MAX_EXTENDED_POINTS and not _agree_at_first(found, law, case, points.X[doubtful]):
        return False
    chosen = doubtful[:: max(1, len(doubtful) // _MAX_EXTENDED_POINTS)]
    return all(_extended_agree(found, law, case, points.X[i], scale) for i in chosen)


def recovered(found: Expression, case: Case, seed: int = 0) -> bool:
    """Whether an expression is the law of the case by the numeric verdict alone."""
    return agree(found, case.expression, case, seed)


def undefined(found: Expression, case: Case, seed: int = 0) -> bool:
    """Whether an expression has no value (a root of a negative number) on a fresh point where the law has one."""
    if set(variables(found)) - set(case.variables):
        return True
    return bool(np.isnan(law_values(found, case.variables, _points(case, seed).X)).any())


def constant_apart(found: Expression, law: Expression, case: Case, seed: int = 0) -> bool:
    """SRBench's rule on fresh points: found - law is one constant, or found/law is one constant other than zero."""
    if set(variables(found)) - set(case.variables):
        return False
    points = _points(case, seed)
    y = law_values(law, case.variables, points.X)
    values = law_values(found, case.variables, points.X)
    defined = np.isfinite(y)
    if not np.isfinite(values[defined]).all():
        return False
    y, values = y[defined], values[defined]
    scale = max(float(np.median(np.abs(y))), float(np.median(np.abs(values))))
    offset = values - y
    rounding = 8 * np.finfo(float).eps * np.abs(y).max()  # a few roundings of the largest value
    if np.abs(offset - np.median(offset)).max() <= _RELATIVE * scale + rounding:
        return True
    factor = float(np.median(values / y)) if (y != 0).all() else float(np.dot(values, y) / np.dot(y, y))
    if not np.isfinite(factor) or abs(factor) < np.finfo(float).tiny:
        return False
    return bool((np.abs(values - factor * y) <= _RELATIVE * np.abs(factor * y) + _ABSOLUTE * abs(factor) * scale).all())


def _agree_at_first(found: Expression, law: Expression, case: Case, X: Array) -> bool:
    """Whether the first three rows of X (rows, variables) agree in extended precision: a quick way to say no."""
    return all(_extended_agree(found, law, case, row, 1.0) for row in X[:3])


def _extended_agree(found: Expression, law: Expression, case: Case, row: Array, scale: float) -> bool:
    point = {name: float(value) for name, value in zip(case.variables, row, strict=True)}
    a, b = extended_value(found, point), extended_value(law, point)
    if a is None or b is None:
        return False
    with mpmath.workdps(_EXTENDED_DIGITS):
        return bool(abs(a - b) <= _RELATIVE * abs(b) + _ABSOLUTE * scale)


def extended_value(expression: Expression, point: Mapping[str, float]) -> mpmath.mpf | None:
    """The value to 60 digits; None where it is not a finite real number, or an operator has no extended form.

    A decimal constant is taken as it is printed: 0.1 is one tenth, not the nearest double.
    """

    def visit(node: Expression, operands: tuple[object, ...]) -> object:
        if isinstance(node, Variable):
            return mpmath.mpf(point[node.name])
        if isinstance(node, Constant):
            return _NAMED_CONSTANTS[node.name]() if node.name else mpmath.mpf(repr(node.value))
        if node.operator.mpmath is None:
            raise ValueError(f"{node.operator.name} has no extended form")
        value = getattr(mpmath, node.operator.mpmath)(*operands)
        if isinstance(value, mpmath.mpc):  # real numbers only, on the way too: sqrt(x)**2 has no value at -1
            raise ValueError(f"{node.operator.name} leaves the real numbers")
        return value

    with mpmath.workdps(_EXTENDED_DIGITS):
        try:
            value = fold(expression, visit)
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        return value if mpmath.isfinite(value) else None


def rounded(expression: Expression, decimals: int) -> Expression:
    """The expression with its decimal constants rounded to so many decimals, and simplified: 0·f is no term.

    Whole numbers, fractions of them and pi are exact and stay as they are.

    >>> from symenum.expressions import parse
    >>> print(rounded(parse("1.0004*x**2.0001 + 0.0002*y + 2/3"), 3))
    x**2 + 2/3
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Apply):
            return Apply(node.operator, operands)
        if not isinstance(node, Constant) or node.name is not None or isinstance(node.value, int):
            return node
        return rounded_constant(node.value, decimals)

    return simplify(fold(expression, visit))


def rounded_constant(value: float, decimals: int) -> Constant:
    """The number rounded to so many decimals; a whole number where it becomes one."""
    value = round(value, decimals)
    return Constant(int(value) if value.is_integer() and abs(value) < _MAX_WHOLE else value)
