"""The operators that a Triton kernel computes itself; all others go through torch, one by one.

An operator's code number stands in its record (`Operator.kernel`). Only operators have one whose value in a kernel is
the same to the last bit as torch's on the same GPU.
"""

from __future__ import annotations

from collections.abc import Iterable

import triton
import triton.language as tl

from symenum.operators import Operator

__all__ = ["apply_code", "finite_or_nan", "has_codes"]


def has_codes(operators: Iterable[Operator]) -> bool:
    """Whether kernels can compute all of these."""
    return all(operator.kernel is not None for operator in operators)


@triton.jit
def apply_code(code, a, b):
    """The values (float64) of the operator of that code, one for the whole program, on operands of one shape."""
    value = a
    if code == 1:
        value = a + b
    elif code == 2:
        value = a - b
    elif code == 3:
        value = a * b
    elif code == 4:
        value = a / b
    elif code == 5:
        value = -a
    elif code == 6:
        value = 1.0 / a
    elif code == 7:
        value = tl.sin(a)
    elif code == 8:
        value = tl.cos(a)
    elif code == 9:
        value = tl.exp(a)
    elif code == 10:
        value = tl.log(a)
    elif code == 11:
        value = tl.sqrt(a)
    elif code == 12:
        value = tl.abs(a)
    elif code == 13:
        value = a * a
    return value


@triton.jit
def finite_or_nan(value):
    """NaN for what is not finite (float64)."""
    return tl.where(tl.abs(value) <= 1.7976931348623157e308, value, float("nan"))
