"""Tree to objects that compute: a NumPy callable, and a torch module whose constants can be trained.

Both call the operators' own torch functions, so they also work for operators of the user's own; nothing is compiled
from text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from symenum.expressions.evaluate import evaluate
from symenum.expressions.names import check_names
from symenum.expressions.tree import Apply, Constant, Expression, Variable, variables, walk

__all__ = ["ExpressionFunction", "ExpressionModule", "to_callable", "to_torch"]


@dataclass(frozen=True)
class ExpressionFunction:
    """A function of a table, made by `to_callable`."""

    expression: Expression
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<function of ({', '.join(self.names)}): {self.expression}>"

    def __call__(self, X: npt.ArrayLike) -> npt.NDArray[np.floating[Any]]:
        """The values for the rows of X (rows, features), shape (rows,), float32 for float32 and float64 otherwise.

        The columns of a DataFrame that has all the names are found by name; otherwise the order of the columns counts.
        """
        columns = getattr(X, "columns", None)
        if columns is not None and set(self.names) <= set(columns):
            X = X[list(self.names)]  # type: ignore[call-overload, index]
        values = np.asarray(X)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(
                f"X must have shape (rows, {len(self.names)}), a column for each of {', '.join(self.names)}; "
                f"it has shape {values.shape}"
            )
        # Every column, not only those in use: an expression without variables takes the number of rows from them.
        return evaluate(self.expression, {name: values[:, i] for i, name in enumerate(self.names)})


def to_callable(expression: Expression, names: Sequence[str]) -> ExpressionFunction:
    """A NumPy function of arrays (rows, features) with the columns `names`; it can be pickled.

    >>> import numpy as np
    >>> from symenum.expressions import parse
    >>> function = to_callable(parse("x2 - x1"), ["x1", "x2"])
    >>> function
    <function of (x1, x2): x2 - x1>
    >>> function(np.array([[1.0, 5.0], [2.0, 2.0]]))
    array([4., 0.])
    """
    listed = check_names(names, variables(expression))
    if not listed:
        raise ValueError("names is empty: a function of a table needs at least one column")
    return ExpressionFunction(expression, listed)


class ExpressionModule(nn.Module):
    """A law as a torch module, made by `to_torch`: (rows, features) to (rows,).

    Its parameters `constants` are the floating-point constants in the order of the text, each occurrence one of its
    own; whole numbers, pi and E are part of the form and stay. `law()` is the expression with the present values.
    """

    def __init__(self, expression: Expression, names: tuple[str, ...]) -> None:
        super().__init__()
        self.expression = expression
        self.names = names
        # Operands before their operator: forward needs a stack and no recursion.
        self._nodes = tuple(walk(expression))
        values = [node.value for node in self._nodes if _is_free(node)]
        self.constants = nn.ParameterList([nn.Parameter(torch.tensor(value, dtype=torch.float64)) for value in values])

    def extra_repr(self) -> str:
        return f"({', '.join(self.names)}) -> {self.expression}"

    def forward(self, X: Tensor) -> Tensor:
        """The values for the rows of X (rows, features), shape (rows,), in the precision and on the device of X."""
        if X.ndim != 2 or X.shape[1] != len(self.names):
            raise ValueError(
                f"X must have shape (rows, {len(self.names)}), a column for each of {', '.join(self.names)}; "
                f"it has shape {tuple(X.shape)}"
            )
        if not X.is_floating_point():
            X = X.to(torch.float64)
        constants = iter(self.constants)
        stack: list[Tensor] = []
        for node in self._nodes:
            if isinstance(node, Variable):
                stack.append(X[:, self.names.index(node.name)])
            elif isinstance(node, Constant):
                value = next(constants) if _is_free(node) else torch.tensor(float(node.value), dtype=torch.float64)
                # Expanded: operators may rely on operands of one shape.
                stack.append(value.to(X).expand(len(X)))
            else:
                first = len(stack) - node.operator.arity
                stack[first:] = [node.operator.function(*stack[first:])]
        return stack.pop()

    def law(self) -> Expression:
        """The expression with the constants as they are now, for instance after training."""
        constants = iter(self.constants)
        stack: list[Expression] = []
        for node in self._nodes:
            if isinstance(node, Apply):
                first = len(stack) - node.operator.arity
                stack[first:] = [Apply(node.operator, tuple(stack[first:]))]
            else:
                stack.append(Constant(next(constants).item()) if _is_free(node) else node)
        return stack.pop()


def to_torch(expression: Expression, names: Sequence[str]) -> ExpressionModule:
    """A torch module of tensors (rows, features) with the columns `names`; its floating-point constants are parameters.

    >>> import torch
    >>> from symenum.expressions import parse
    >>> module = to_torch(parse("2.5*x1 + 1/2"), ["x1"])
    >>> module(torch.tensor([[1.0], [2.0]])).tolist()
    [3.0, 5.5]
    >>> [parameter.item() for parameter in module.parameters()]
    [2.5]
    """
    return ExpressionModule(expression, check_names(names, variables(expression)))


def _is_free(node: Expression) -> TypeGuard[Constant]:
    return isinstance(node, Constant) and node.name is None and isinstance(node.value, float)
