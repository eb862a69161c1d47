"""How a machine computes an operator on blocks of memory: calls that write where they are told.

At the sizes of a fit a call costs as much as its work, so the common operators have calls of their own here: NumPy's,
which cost the least, but torch's sine and cosine, which are several times as fast. All others, the user's among them,
go through the functions and derivatives of their record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.operators import ARITHMETIC, Operator, Role

__all__ = ["Array", "Call", "backward", "forward", "hands_on"]

Array = npt.NDArray[np.float64]
Call = tuple[Callable[..., object], tuple[Any, ...]]  # a function and its arguments, the memory for the result last

_BY_NUMPY = (*ARITHMETIC, Role.EXPONENTIAL, Role.LOGARITHM, Role.NEGATION, Role.ROOT, Role.MAGNITUDE)


def _sin(a: Tensor, out: Tensor) -> None:
    torch.sin(a, out=out)


def _cos(a: Tensor, out: Tensor) -> None:
    torch.cos(a, out=out)


def _general(operator: Operator, operands: Sequence[Tensor], out: Tensor) -> None:
    out.copy_(operator.function(*operands))


def _general_slope(operator: Operator, by: int, value: Tensor, operands: Sequence[Tensor], out: Tensor) -> None:
    slope = operator.partial(by, value, *operands)
    if isinstance(slope, Tensor):
        out.copy_(slope)
    else:
        out.fill_(slope)


def forward(operator: Operator, operands: Sequence[Array], value: Array) -> Call:
    """value = operator(*operands), all of them (nodes, rows)."""
    if operator.role in _BY_NUMPY and operator.numpy is not None:
        return operator.numpy, (*operands, value)
    tensors = [torch.from_numpy(operand) for operand in operands]
    out = torch.from_numpy(value)
    if operator.role is Role.SINE or operator.role is Role.COSINE:
        return _sin if operator.role is Role.SINE else _cos, (*tensors, out)
    return _general, (operator, tensors, out)


def hands_on(operator: Operator, by: int) -> bool:
    """Whether the slope of that operand is the slope of the node itself, so that there is nothing to compute."""
    return operator.role is Role.SUM or (operator.role is Role.DIFFERENCE and by == 0)


def backward(
    operator: Operator, by: int, slope: Array, value: Array, operands: Sequence[Array], out: Array
) -> list[Call]:
    """out = slope · ∂operator/∂operands[by], all of them (nodes, rows)."""
    a, b = operands[0], operands[-1]
    role = operator.role
    if role is Role.DIFFERENCE or role is Role.NEGATION:
        return [(np.negative, (slope, out))]
    if role is Role.PRODUCT:
        return [(np.multiply, (slope, operands[1 - by], out))]
    if role is Role.EXPONENTIAL:
        return [(np.multiply, (slope, value, out))]
    if role is Role.LOGARITHM or (role is Role.QUOTIENT and by == 0):
        return [(np.divide, (slope, b, out))]
    if role is Role.QUOTIENT:
        return [(np.multiply, (slope, value, out)), (np.divide, (out, b, out)), (np.negative, (out, out))]
    here = torch.from_numpy(out)
    calls: list[Call]
    if role is Role.SINE:
        calls = [(_cos, (torch.from_numpy(a), here))]
    elif role is Role.COSINE:
        calls = [(_sin, (torch.from_numpy(a), here)), (np.negative, (out, out))]
    else:
        tensors = [torch.from_numpy(operand) for operand in operands]
        calls = [(_general_slope, (operator, by, torch.from_numpy(value), tensors, here))]
    return [*calls, (np.multiply, (slope, out, out))]
