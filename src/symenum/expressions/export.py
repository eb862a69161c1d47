"""Tree to what computes: source code in Python, NumPy and C that needs nothing of this package, and callable objects.

All numbers in source code are written as doubles, since `evaluate` computes with doubles: 1/3 in C is 0 otherwise, and
Python's whole numbers do not overflow. Variables keep their names where the language allows that; a comment says which
do not. What an operator is called in each language stands in its record. Nothing here runs the code that it writes.

The objects, a NumPy callable and a torch module with trainable constants, call the operators' own torch functions, so
they also work for operators of the user's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from symenum.expressions.evaluate import evaluate
from symenum.expressions.parse import (
    ATOM_PRECEDENCE,
    C_FUNCTIONS,
    C_RESERVED,
    PRECEDENCE,
    PREFIX_PRECEDENCE,
    PYTHON_RESERVED,
    check_names,
    safe_names,
)
from symenum.expressions.render import to_text
from symenum.expressions.tree import Apply, Constant, Expression, Variable, fold, variables, walk
from symenum.expressions.written import written
from symenum.operators import OPERATORS, Operator

__all__ = ["ExpressionFunction", "ExpressionModule", "to_c", "to_callable", "to_numpy_source", "to_python", "to_torch"]

Language = Literal["python", "numpy", "c"]
_POWER: Mapping[Language, str] = {"python": "math.pow", "numpy": "np.power", "c": "pow"}
# <math.h> has M_PI in POSIX only.
_CONSTANTS: Mapping[Language, Mapping[str, str]] = {
    "python": {"pi": "math.pi", "E": "math.e"},
    "numpy": {"pi": "np.pi", "E": "np.e"},
    "c": {"pi": repr(math.pi), "E": repr(math.e)},
}


def to_python(expression: Expression, names: Sequence[str], function_name: str = "f") -> str:
    """Source of a Python function of floats, one parameter for each of `names`, in that order; it needs `math` only.

    Where the expression has no finite value, the functions of `math` raise ValueError or OverflowError, and a division
    by zero raises ZeroDivisionError.

    >>> from symenum.expressions import parse
    >>> print(to_python(parse("sin(x1)/3 + x2**2"), ["x1", "x2"]))
    import math
    <BLANKLINE>
    <BLANKLINE>
    def f(x1, x2):
        # sin(x1)/3 + x2**2
        return math.sin(x1)/3.0 + x2**2.0
    <BLANKLINE>
    """
    listed, safe = _names(expression, names, function_name, "python")
    lines = ["import math", "", ""]
    for helper in _helpers(expression, "python"):
        lines += [helper, "", ""]
    lines.append(f"def {function_name}({', '.join(safe[name] for name in listed)}):")
    lines += [f"    # {note}" for note in _notes(expression, safe)]
    lines += [f"    return {_write(expression, 'python', safe)}", ""]
    return "\n".join(lines)


def to_numpy_source(expression: Expression, names: Sequence[str], function_name: str = "f") -> str:
    """Source of a Python function of NumPy arrays of one shape, one parameter for each of `names`, in that order.

    Where the expression has no finite value the result is NaN or inf, with NumPy's own warning.

    >>> from symenum.expressions import parse
    >>> print(to_numpy_source(parse("sin(x1)/3 + x2**2"), ["x1", "x2"]))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(x1, x2):
        # sin(x1)/3 + x2**2
        x1, x2 = np.asarray(x1, dtype=float), np.asarray(x2, dtype=float)
        return np.sin(x1)/3.0 + x2**2.0
    <BLANKLINE>
    """
    listed, safe = _names(expression, names, function_name, "numpy")
    lines = ["import numpy as np", "", "", f"def {function_name}({', '.join(safe[name] for name in listed)}):"]
    lines += [f"    # {note}" for note in _notes(expression, safe)]
    # Whole numbers would wrap around, and a Python float divided by zero is an error.
    used = [safe[name] for name in variables(expression)]
    result = _write(expression, "numpy", safe)
    if used:
        lines.append(f"    {', '.join(used)} = {', '.join(f'np.asarray({name}, dtype=float)' for name in used)}")
    elif listed:
        result = f"np.full(np.shape({safe[listed[0]]}), {result})"
    if isinstance(expression, Variable):
        result = f"{result}.copy()"
    return "\n".join([*lines, f"    return {result}", ""])


def to_c(expression: Expression, names: Sequence[str], function_name: str = "f") -> str:
    """Source of a C99 function of doubles, one parameter for each of `names`, in that order; it needs <math.h> only.

    >>> from symenum.expressions import parse
    >>> print(to_c(parse("sin(x1)/3 + x2**2"), ["x1", "x2"]))
    #include <math.h>
    <BLANKLINE>
    double f(double x1, double x2) {
        // sin(x1)/3 + x2**2
        return sin(x1)/3.0 + pow(x2, 2.0);
    }
    <BLANKLINE>
    """
    listed, safe = _names(expression, names, function_name, "c")
    lines = ["#include <math.h>", ""]
    for helper in _helpers(expression, "c"):
        lines += [helper, ""]
    parameters = ", ".join(f"double {safe[name]}" for name in listed) or "void"
    lines.append(f"double {function_name}({parameters}) {{")
    lines += [f"    // {note}" for note in _notes(expression, safe)]
    # Compilers would warn of a parameter that the law does not use.
    used = set(variables(expression))
    lines += [f"    (void){safe[name]};" for name in listed if name not in used]
    return "\n".join([*lines, f"    return {_write(expression, 'c', safe)};", "}", ""])


def _names(
    expression: Expression, names: Sequence[str], function_name: str, language: Language
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The names in order, and what each of them is called in the code."""
    listed = check_names(names, variables(expression))
    reserved = {_POWER[language], *(C_RESERVED if language == "c" else PYTHON_RESERVED)}
    for operator in OPERATORS.values():
        if operator.source is not None:
            reserved.add(getattr(operator.source, language))
    valid = isinstance(function_name, str) and function_name.isidentifier()
    if language == "c":
        valid = valid and function_name.isascii() and function_name not in C_FUNCTIONS
    if not valid or function_name in reserved:
        raise ValueError(
            f"function_name {function_name!r} cannot name a function in {language}: use an identifier that the "
            "language and its mathematical functions leave free, such as 'law'"
        )
    return listed, safe_names(listed, {*reserved, function_name}, ascii_only=language == "c")


def _notes(expression: Expression, safe: Mapping[str, str]) -> Iterator[str]:
    """The law, and the variables that the code calls by another name; one line each, whatever is in a name."""
    yield to_text(written(expression))
    for name, called in safe.items():
        if called != name:
            yield f"{called} is the variable {name!a}, whose name is reserved or not allowed here"


def _helpers(expression: Expression, language: Literal["python", "c"]) -> list[str]:
    """The definitions of functions that the language lacks and the expression calls, each once."""
    found: dict[str, None] = {}

    def visit(node: Expression, operands: tuple[None, ...]) -> None:
        if isinstance(node, Apply) and node.operator.source is not None:
            source = node.operator.source
            found[source.c_helper if language == "c" else source.python_helper] = None

    fold(expression, visit)
    return [helper for helper in found if helper]


@dataclass(frozen=True)
class _Piece:
    """Code, how strongly its outermost operator binds, and whether a variable occurs in it."""

    code: str
    binds: int = ATOM_PRECEDENCE
    varies: bool = False

    def inside(self, needs: int) -> str:
        return self.code if self.binds >= needs else f"({self.code})"


def _write(expression: Expression, language: Language, safe: Mapping[str, str]) -> str:
    def visit(node: Expression, operands: tuple[_Piece, ...]) -> _Piece:
        if isinstance(node, Variable):
            return _Piece(safe[node.name], varies=True)
        if isinstance(node, Constant):
            code = _CONSTANTS[language].get(node.name or "") or repr(float(node.value))
            return _Piece(code, PREFIX_PRECEDENCE if code.startswith("-") else ATOM_PRECEDENCE)
        if node.operator.sign is None:
            call = _function(node.operator, language)
            return _Piece(f"{call}({operands[0].code})", varies=operands[0].varies)
        if node.operator.arity == 1:
            # -(-x), never --x, which is another operator in C.
            return _Piece(f"-{operands[0].inside(PREFIX_PRECEDENCE + 1)}", PREFIX_PRECEDENCE, operands[0].varies)
        return _infix(node, operands[0], operands[1], language)

    return fold(expression, visit).code


def _infix(node: Apply, left: _Piece, right: _Piece, language: Language) -> _Piece:
    name, sign, varies = node.operator.name, node.operator.sign, left.varies or right.varies
    if name == "pow":
        # Python's ** leaves the real numbers for (-2.0)**0.5; NumPy's arrays do not.
        exponent = node.operands[1]
        whole = isinstance(exponent, Constant) and float(exponent.value).is_integer()
        if language == "c" or not left.varies or (language == "python" and not whole):
            return _Piece(f"{_POWER[language]}({left.code}, {right.code})", varies=varies)
        return _Piece(
            f"{left.inside(PRECEDENCE['pow'] + 1)}**{right.inside(ATOM_PRECEDENCE)}", PRECEDENCE["pow"], varies
        )
    divisor = node.operands[1]
    if name == "div" and language == "numpy" and not varies and not (isinstance(divisor, Constant) and divisor.value):
        # A constant part may be 1/(1 - 1), and two Python floats are divided by Python, which raises an error.
        return _Piece(f"np.divide({left.code}, {right.code})")
    binds = PRECEDENCE[name]
    first = left.inside(binds)
    second = right.inside(binds + 1)
    if second.startswith("-"):
        second = f"({second})"
    spaced = f" {sign} " if binds == PRECEDENCE["add"] else sign
    return _Piece(f"{first}{spaced}{second}", binds, varies)


def _function(operator: Operator, language: Language) -> str:
    if operator.source is None:
        raise ValueError(
            f"operator {operator.name!r} is one of your own: it has no source code in {language}. "
            "Export the law as a callable or a torch module instead (to_callable, to_torch): they call your function"
        )
    name: str = getattr(operator.source, language)
    return name


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
