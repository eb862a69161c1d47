"""The test that a callable of the user's must pass to become an operator: it is tried on small tensors.

Knows nothing of operators but that they work element by element.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["probe", "slopes"]

Slope = Callable[..., Tensor]
_STEP = 6e-6  # about the cube root of the precision: where central differences are best


def probe(name: str, function: Callable[..., Tensor], arity: int, commutative: bool) -> None:
    """Refuse a callable that is not an element-by-element function of float64 tensors."""
    generator = torch.Generator().manual_seed(0)  # of no search: whether an operator is accepted must not be chance
    arguments = [torch.rand(3, 4, generator=generator, dtype=torch.float64) * 4 - 1 for _ in range(arity)]
    before = [argument.clone() for argument in arguments]
    what = f"function of operator {name!r}"
    try:
        result = function(*arguments)
    except Exception as error:
        raise ValueError(f"{what} failed on tensors of shape (3, 4): {type(error).__name__}: {error}") from error
    if not isinstance(result, Tensor):
        raise TypeError(f"{what} must return a torch tensor, not {type(result).__name__}")
    if result.shape != (3, 4):
        raise ValueError(
            f"{what} returned shape {tuple(result.shape)} for input of shape (3, 4): it must keep the shape"
        )
    if result.dtype != torch.float64:
        raise TypeError(f"{what} returned {result.dtype} for torch.float64 input: it must keep the type")
    if any(not torch.equal(a, b) for a, b in zip(arguments, before, strict=True)):
        raise ValueError(f"{what} changed its input in place: return a new tensor")
    alone = function(*(argument[1:2, 2:3].clone() for argument in arguments))
    if not torch.allclose(alone, result[1:2, 2:3], rtol=1e-12, atol=0, equal_nan=True):
        raise ValueError(f"{what} does not work element by element: a value depends on the other rows or columns")
    if not torch.allclose(function(*arguments), result, rtol=0, atol=0, equal_nan=True):
        raise ValueError(f"{what} gives different results for the same input")
    if not bool(torch.isfinite(result).any()):
        raise ValueError(f"{what} gave no finite value on inputs between -1 and 3")
    if commutative and not torch.allclose(function(*reversed(arguments)), result, rtol=1e-12, atol=0, equal_nan=True):
        raise ValueError(f"{what} is declared commutative, but f(a, b) and f(b, a) differ")


def slopes(function: Callable[..., Tensor], arity: int) -> tuple[Slope, ...] | None:
    """None where torch differentiates the function; else its derivatives by central differences, one for each operand.

    A function that leaves torch on its way (for NumPy, or detached) is as good an operator as any other.
    """
    arguments = [torch.full((2,), 0.7, dtype=torch.float64, requires_grad=True) for _ in range(arity)]
    try:
        function(*arguments)
    except RuntimeError:
        return tuple(_central(function, by) for by in range(arity))
    return None


def _central(function: Callable[..., Tensor], by: int) -> Slope:
    def slope(value: Tensor, *operands: Tensor) -> Tensor:
        step = _STEP * (1 + operands[by].abs())
        above, below = (
            function(*operands[:by], operands[by] + sign * step, *operands[by + 1 :]) for sign in (1.0, -1.0)
        )
        return (above - below) / (2 * step)

    return slope
