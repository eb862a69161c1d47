"""Whether two trees are one function, decided by their values on fixed points in double precision.

`same_function` decides; `fingerprint` is a key for buckets, so that a collection need not be compared pair by pair.
Both see identities that no reordering shows: log(exp(x)) and x, sin(x)**2 + cos(x)**2 and 1. Numbers cannot prove an
identity: functions that agree to 1e-9 on all points count as one. The points never depend on the data or on any
global state.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from symenum.expressions.canonical import canonical
from symenum.expressions.tree import Constant, Expression, Variable, fold, natural_key, variables

__all__ = ["fingerprint", "same_function", "sample_points"]

_SEED = 20_240_229  # not the search's seed: whether two functions are equal must not depend on it
_RTOL = 1e-9
_MIN_FINITE = 4
_EPSILON = float(np.finfo(np.float64).eps)
# How many times its estimated rounding error a value may be off: the estimate is of first order.
_SLACK = 8.0

# Both signs, then inside and outside the unit interval: every operator of the table has values on many of the points.
# Most have both signs: sign and abs tell two functions apart only where their arguments change sign.
_DOMAINS = ((96, -3.0, 3.0), (24, 0.2, 1.0), (24, 1.0, 4.0))
_POINTS = sum(count for count, _, _ in _DOMAINS)
_LOW = np.concatenate([np.full(count, low) for count, low, _ in _DOMAINS])
_WIDTH = np.concatenate([np.full(count, high - low) for count, low, high in _DOMAINS])


def sample_points(inputs: int) -> Tensor:
    """The fixed points, float64 of shape (144, inputs): 96 uniform in (-3, 3), 24 in (0.2, 1), 24 in (1, 4).

    A coordinate's values do not depend on how many coordinates there are.
    """
    if isinstance(inputs, bool) or not isinstance(inputs, int) or inputs < 0:
        raise ValueError(f"inputs must be a whole number of at least 0, not {inputs!r}")
    uniform = np.random.default_rng(_SEED).random((inputs, _POINTS))
    return torch.from_numpy(np.ascontiguousarray((_LOW + _WIDTH * uniform).T))


def same_function(a: Expression, b: Expression) -> bool:
    """Whether both have the same values: finite on the same points, and there equal to 1e-9 or to rounding error.

    With fewer than 4 finite points the values say too little, and only equal canonical forms are the same.
    """
    if a == b:
        return True
    names = sorted({*variables(a), *variables(b)}, key=natural_key)
    columns = dict(zip(names, sample_points(len(names)).unbind(1), strict=True))
    value_a, error_a = _values(a, columns)
    value_b, error_b = _values(b, columns)
    finite = torch.isfinite(value_a)
    if not torch.equal(finite, torch.isfinite(value_b)):
        return False
    if int(finite.sum()) < _MIN_FINITE:
        return canonical(a) == canonical(b)
    scale = torch.maximum(value_a.abs(), value_b.abs())
    # Relative alone would tell (x + y) - y from x near x = 0; absolute alone would take 1e-12*x for 2e-12*x.
    tolerance = _RTOL * scale + _SLACK * (error_a + error_b)
    return bool(((value_a - value_b).abs() <= tolerance)[finite].all())


def fingerprint(expression: Expression, variables: Sequence[str] | None = None) -> bytes:
    """A key that equal functions nearly always share: the values on the points, to 6 significant digits.

    Nearly, because a value may lie at the edge of two roundings; different functions may share it too, so follow it
    with `same_function`. `variables` says which coordinate of the points each variable takes. Without it the
    coordinate follows from the name, and fingerprints of all expressions compare; never mix the two ways.
    """
    names = _variables(expression)
    if variables is None:
        columns = {name: _column(name) for name in names}
    else:
        missing = [name for name in names if name not in variables]
        if missing:
            raise ValueError(f"variables must name every variable of the expression: {', '.join(missing)} missing")
        columns = dict(zip(variables, sample_points(len(variables)).unbind(1), strict=True))
    values, errors = _values(expression, columns)
    # What is only rounding error counts as zero, and -0.0 as 0.0.
    values = torch.where(values.abs() <= _SLACK * errors, 0.0, values) + 0.0
    return " ".join([f"{value:.5e}" if abs(value) < np.inf else "-" for value in values.tolist()]).encode()


_variables = variables  # the function, under a name that the parameter of fingerprint does not hide


def _column(name: str) -> Tensor:
    uniform = np.random.default_rng([_SEED, zlib.crc32(name.encode())]).random(_POINTS)
    return torch.from_numpy(_LOW + _WIDTH * uniform)


def _values(expression: Expression, columns: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Values and first-order estimates of their rounding error, float64 of shape (64,) each.

    An operand's error is carried on by applying the operator to the operand moved by it. So each operator needs no
    derivative, and a difference of nearly equal numbers is known to be noise.
    """

    def visit(node: Expression, operands: tuple[tuple[Tensor, Tensor], ...]) -> tuple[Tensor, Tensor]:
        if isinstance(node, Variable):
            return columns[node.name], torch.zeros(_POINTS, dtype=torch.float64)
        if isinstance(node, Constant):
            full = torch.full((_POINTS,), float(node.value), dtype=torch.float64)
            return full, torch.zeros(_POINTS, dtype=torch.float64)
        arguments = [value for value, _ in operands]
        value = node.operator.function(*arguments)
        error = _EPSILON * value.abs()
        for i, (argument, moved) in enumerate(operands):
            if bool(moved.any()):
                neighbour = node.operator.function(*arguments[:i], argument + moved, *arguments[i + 1 :])
                error = error + (neighbour - value).abs()
        # Next to a pole or the end of a domain there is no estimate; none is the cautious choice.
        return value, torch.where(torch.isfinite(error), error, 0.0)

    return fold(expression, visit)
