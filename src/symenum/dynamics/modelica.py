"""Laws of motion as the text of a Modelica model, which OpenModelica, Dymola and others simulate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from symenum.expressions import Apply, Constant, Expression, Variable, fold, written
from symenum.expressions.parse import safe_names
from symenum.operators import Operator
from symenum.operators.traits import Role

__all__ = ["modelica_model"]

# The language has these functions of C's under its own names.
_FUNCTIONS = {
    **{name: name for name in ("sin", "cos", "exp", "log", "sqrt", "tanh", "cosh", "sinh")},
    "fabs": "abs",
    "symenum_sign": "sign",
}
_CONSTANTS = {"pi": repr(math.pi), "E": repr(math.e)}
_WORDS = (
    "algorithm and annotation assert block break class connect connector constant constrainedby der "
    "discrete each else elseif elsewhen encapsulated end enumeration equation expandable extends external "
    "false final flow for function if import impure in initial inner input loop model not operator or outer "
    "output package parameter partial protected public pure record redeclare replaceable return stream then "
    "time true type when while within Real Integer Motion abs sign sqrt sin cos tan asin acos atan sinh "
    "cosh tanh exp log"
)
_RESERVED = frozenset(_WORDS.split())


def modelica_model(laws: Mapping[str, Expression], names: Sequence[str], order: int, start: Mapping[str, float]) -> str:
    """The model `Motion`. `names`: states (for order 2 positions, then velocities), then inputs; `start` by name."""
    called = safe_names(names, _RESERVED, ascii_only=True)
    count = len(laws) * order
    lines = ["model Motion"]
    lines += [
        f"  Real {called[name]}(start = {_number(start.get(name, 0.0))}, fixed = true);" for name in names[:count]
    ]
    lines += [f"  input Real {called[name]};" for name in names[count:]]
    lines.append("equation")
    if order > 1:
        lines += [
            f"  der({called[q]}) = {called[velocity]};"
            for q, velocity in zip(names[: len(laws)], names[len(laws) : count], strict=True)
        ]
    moving = names[count - len(laws) : count]
    lines += [
        f"  der({called[name]}) = {_write(written(law), called)};"
        for name, law in zip(moving, laws.values(), strict=True)
    ]
    return "\n".join([*lines, "end Motion;"]) + "\n"


def _number(value: float) -> str:
    return repr(float(value))


def _write(law: Expression, called: Mapping[str, str]) -> str:
    """The law with a pair of brackets around each operation of two operands: precedence differs between languages."""

    def visit(node: Expression, operands: tuple[str, ...]) -> str:
        if isinstance(node, Variable):
            return called[node.name]
        if isinstance(node, Constant):
            code = _CONSTANTS.get(node.name or "") or _number(float(node.value))
            return f"({code})" if code.startswith("-") else code
        if node.operator.arity == 1:
            return _unary(node.operator, operands[0])
        sign = "^" if node.operator.role is Role.POWER else node.operator.sign
        if sign is None:
            raise _without_source(node.operator)
        return f"({operands[0]} {sign} {operands[1]})"

    text = fold(law, visit)
    whole = isinstance(law, Apply) and law.operator.arity == 2
    return text[1:-1] if whole else text


def _unary(operator: Operator, inside: str) -> str:
    if operator.sign is not None:
        return f"({operator.sign}{inside})"
    function = None if operator.source is None else _FUNCTIONS.get(operator.source.c)
    if function is None:
        raise _without_source(operator)
    return f"{function}({inside})"


def _without_source(operator: Operator) -> ValueError:
    return ValueError(
        f"operator {operator.name!r} has no counterpart in Modelica: export the system in another language"
    )
