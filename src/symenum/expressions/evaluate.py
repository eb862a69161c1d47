"""Values of a tree on columns of data, in torch, with no protection: what is not finite stays so.

For one expression at a time, in the precision of the data. The engine computes the values of a whole layer at once
(`engine.bank`), and fits compute many expressions at once (`fitting.batch_evaluation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from symenum.expressions.tree import Apply, Constant, Expression, Variable, fold, variables

__all__ = ["evaluate"]


Array = npt.NDArray[Any]


@overload
def evaluate(expression: Expression, columns: Mapping[str, Tensor]) -> Tensor: ...


@overload
def evaluate(expression: Expression, columns: Mapping[str, Array]) -> Array: ...


def evaluate(expression: Expression, columns: Mapping[str, Any]) -> Any:
    """The values of the expression, one for each entry of the columns.

    `columns` holds an array or tensor for each variable (more do no harm); those in use have one shape, which is the
    shape of the result; the result is an array for arrays and a tensor, on the same device, for tensors, and never
    shares memory with a column. It is float32 if every column in use is, and float64 otherwise: whole numbers are
    promoted. With no columns, an expression without variables gives a 0-d float64 array.

    >>> import numpy as np
    >>> from symenum.expressions import parse
    >>> evaluate(parse("1/x + 1"), {"x": np.array([1, 2, 0])})
    array([2. , 1.5, inf])
    """
    names = variables(expression)
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(f"no column for {', '.join(missing)}; columns has {', '.join(map(str, columns)) or 'nothing'}")
    # Of a table of thousands of columns only those in use are looked at; a number has the shape of all of them.
    deciding = {name: columns[name] for name in names} if names else dict(columns)
    for name, column in deciding.items():
        if not isinstance(column, (np.ndarray, Tensor)):
            raise TypeError(f"column {name!r} must be a NumPy array or a torch tensor, not {type(column).__name__}")
    kinds = {isinstance(column, Tensor) for column in deciding.values()}
    if len(kinds) > 1:
        raise TypeError("columns mixes NumPy arrays and torch tensors: give one kind")
    shapes = {name: tuple(column.shape) for name, column in deciding.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"columns must have one shape, not {', '.join(f'{n}: {s}' for n, s in shapes.items())}")

    singles = [column.dtype in (torch.float32, np.dtype(np.float32)) for column in deciding.values()]
    dtype = torch.float32 if singles and all(singles) else torch.float64
    tensors = {name: _tensor(name, columns[name], dtype) for name in names}
    devices = {str(tensor.device) for tensor in tensors.values()}
    if len(devices) > 1:
        raise ValueError(f"columns must be on one device, not {', '.join(sorted(devices))}")
    sample = next((column for column in deciding.values() if isinstance(column, Tensor)), None)
    device = torch.device("cpu") if sample is None else sample.device

    result = _values(expression, tensors, next(iter(shapes.values()), ()), dtype, device).to(dtype)
    # A bare variable or constant is the caller's own column or one number repeated; an own operator may hand back its
    # input.
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    if not isinstance(expression, Apply) or result.untyped_storage().data_ptr() in storages:
        result = result.clone(memory_format=torch.contiguous_format)
    return result if kinds == {True} else result.numpy()


def _values(
    expression: Expression,
    tensors: Mapping[str, Tensor],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    def visit(node: Expression, operands: tuple[Tensor, ...]) -> Tensor:
        if isinstance(node, Variable):
            return tensors[node.name]
        if isinstance(node, Constant):
            # Expanded, not filled: operators may rely on operands of one shape, and this costs no memory.
            return torch.tensor(float(node.value), dtype=dtype, device=device).expand(shape)
        return node.operator.function(*operands)

    return fold(expression, visit)


def _tensor(name: str, column: Tensor | Array, dtype: torch.dtype) -> Tensor:
    if isinstance(column, Tensor):
        if column.is_complex():
            raise TypeError(f"column {name!r} must hold real numbers, not {column.dtype}")
        return column.to(dtype)
    if column.dtype.kind not in "fiub":
        raise TypeError(f"column {name!r} must hold real numbers, not {column.dtype}")
    array = np.asarray(column, dtype=np.float32 if dtype == torch.float32 else np.float64, order="C")
    # torch.from_numpy refuses negative strides (a reversed array of one entry counts as contiguous) and warns of
    # read-only memory.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)
