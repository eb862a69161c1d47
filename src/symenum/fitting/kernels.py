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

from symenum.operators import OPERATORS, Operator

__all__ = ["Array", "Call", "backward", "forward", "hands_on"]

Array = npt.NDArray[np.float64]
Call = tuple[Callable[..., object], tuple[Any, ...]]  # a function and its arguments, the memory for the result last

_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "exp": np.exp, "log": np.log}
_UFUNCS |= {"neg": np.negative, "sqrt": np.sqrt, "abs": np.absolute}


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


def _known(operator: Operator) -> bool:
    return OPERATORS.get(operator.name) is operator


def forward(operator: Operator, operands: Sequence[Array], value: Array) -> Call:
    """value = operator(*operands), all of them (nodes, rows)."""
    if _known(operator) and operator.name in _UFUNCS:
        return _UFUNCS[operator.name], (*operands, value)
    tensors = [torch.from_numpy(operand) for operand in operands]
    out = torch.from_numpy(value)
    if _known(operator) and operator.name in ("sin", "cos"):
        return _sin if operator.name == "sin" else _cos, (*tensors, out)
    return _general, (operator, tensors, out)


def hands_on(operator: Operator, by: int) -> bool:
    """Whether the slope of that operand is the slope of the node itself, so that there is nothing to compute."""
    return _known(operator) and (operator.name == "add" or (operator.name == "sub" and by == 0))


def backward(
    operator: Operator, by: int, slope: Array, value: Array, operands: Sequence[Array], out: Array
) -> list[Call]:
    """out = slope · ∂operator/∂operands[by], all of them (nodes, rows)."""
    a, b = operands[0], operands[-1]
    name = operator.name if _known(operator) else ""
    if name in ("sub", "neg"):
        return [(np.negative, (slope, out))]
    if name == "mul":
        return [(np.multiply, (slope, operands[1 - by], out))]
    if name == "exp":
        return [(np.multiply, (slope, value, out))]
    if name == "log" or (name == "div" and by == 0):
        return [(np.divide, (slope, b, out))]
    if name == "div":
        return [(np.multiply, (slope, value, out)), (np.divide, (out, b, out)), (np.negative, (out, out))]
    here = torch.from_numpy(out)
    calls: list[Call]
    if name == "sin":
        calls = [(_cos, (torch.from_numpy(a), here))]
    elif name == "cos":
        calls = [(_sin, (torch.from_numpy(a), here)), (np.negative, (out, out))]
    else:
        tensors = [torch.from_numpy(operand) for operand in operands]
        calls = [(_general_slope, (operator, by, torch.from_numpy(value), tensors, here))]
    return [*calls, (np.multiply, (slope, out, out))]
