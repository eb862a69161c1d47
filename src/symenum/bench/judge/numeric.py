"""The numeric verdict: do two expressions agree on fresh points, inside and outside of the training range?

In doubles first. Where these differ by more than rounding may explain, or one of them has overflowed, the point is
judged in extended precision: a difference of nearly equal numbers costs no law its recovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mpmath
import numpy as np

from symenum.bench.problems.problem import Array, Case, law_values
from symenum.expressions import Apply, Constant, Expression, Variable, fold, simplify, variables

__all__ = ["agree", "constant_apart", "extended_value", "recovered", "rounded", "undefined"]

_RELATIVE = 1e-9  # agreement of two laws; rounding in a few dozen operations stays far below, a wrong constant above
_ABSOLUTE = 1e-12  # times the median of |y|
_MOST_EXTENDED = 60  # points; more than that, and it is no rounding
_FEWEST = 20  # points on which a law must be defined to be judged

_EXTENDED_DIGITS = 60  # enough for a difference that loses 40 of them
_NAMED = {"pi": lambda: +mpmath.pi, "E": lambda: +mpmath.e}


@dataclass(frozen=True)
class _Points:
    X: Array
    y: Array


def _points(case: Case, seed: int) -> _Points:
    """Fresh points of the training range and of one twice as wide, those where the law is defined.

    What is positive in the data stays so: a length below zero is nothing that a law of lengths can be asked.
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
    if len(points.y) < _FEWEST:
        raise ValueError(f"{case.name}: the law is defined on {len(points.y)} of the fresh points, too few to judge")
    y = law_values(law, case.variables, points.X)
    scale = float(np.median(np.abs(y)))
    apart = np.abs(law_values(found, case.variables, points.X) - y)
    doubtful = np.flatnonzero(~(apart <= _RELATIVE * np.abs(y) + _ABSOLUTE * scale))
    if len(doubtful) > _MOST_EXTENDED and not _cancels(found, law, case, points.X[doubtful]):
        return False
    chosen = doubtful[:: max(1, len(doubtful) // _MOST_EXTENDED)]
    return all(_extended_agree(found, law, case, points.X[i], scale) for i in chosen)


def recovered(found: Expression, case: Case, seed: int = 0) -> bool:
    """Whether an expression is the law of the case by numbers alone."""
    return agree(found, case.expression, case, seed)


def undefined(found: Expression, case: Case, seed: int = 0) -> bool:
    """Whether an expression has no value (a root of a negative number) on a fresh point where the law has one."""
    if set(variables(found)) - set(case.variables):
        return True
    return bool(np.isnan(law_values(found, case.variables, _points(case, seed).X)).any())


def constant_apart(found: Expression, law: Expression, case: Case, seed: int = 0) -> bool:
    """SRBench's rule in numbers: found - law is one constant on all points, or found/law is one other than zero."""
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
    if np.abs(offset - np.median(offset)).max() <= _RELATIVE * scale + 8 * np.finfo(float).eps * np.abs(y).max():
        return True
    factor = float(np.median(values / y)) if (y != 0).all() else float(np.dot(values, y) / np.dot(y, y))
    if not np.isfinite(factor) or abs(factor) < np.finfo(float).tiny:
        return False
    return bool((np.abs(values - factor * y) <= _RELATIVE * np.abs(factor * y) + _ABSOLUTE * abs(factor) * scale).all())


def _cancels(found: Expression, law: Expression, case: Case, X: Array) -> bool:
    """Whether the first few doubtful points agree in extended precision after all."""
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
            return _NAMED[node.name]() if node.name else mpmath.mpf(repr(node.value))
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
    """The expression with its decimal numbers rounded; those that become whole are whole, and 0·f falls out.

    Whole numbers, fractions of them and pi stay as they are: they are meant exactly.

    >>> from symenum.expressions import parse
    >>> print(rounded(parse("1.0004*x**2.0001 + 0.0002*y + 2/3"), 3))
    x**2 + 2/3
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if isinstance(node, Apply):
            return Apply(node.operator, operands)
        if not isinstance(node, Constant) or node.name is not None or isinstance(node.value, int):
            return node
        value = round(node.value, decimals)
        return Constant(int(value)) if value.is_integer() and abs(value) < 1e15 else Constant(value)

    return simplify(fold(expression, visit))
