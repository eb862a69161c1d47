"""Which expressions a set of operators allows, where coefficients are free.

Heads multiply by fitted numbers and add them whatever the set says: that is what coefficients are. Joining two parts
that both vary takes the operator itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from symenum.expressions import Apply, Constant, Expression, variables, walk
from symenum.operators import Operator

__all__ = ["Permitted"]

_SUMS = frozenset({"add", "sub", "semisub"})
_QUOTIENTS = frozenset({"div", "inv", "semidiv"})
_POWERS = frozenset({"pow", "sqrt"})


class Permitted:
    """A test for expressions: `allows` says whether the operators can write it."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        names = {operator.name for operator in operators}
        self._names = names
        self.sums = bool(names & _SUMS)
        self.products = "mul" in names
        self.quotients = bool(names & _QUOTIENTS)
        # exp(p·log(x)) is a power.
        self.powers = bool(names & _POWERS) or names >= {"exp", "log"}
        self._whole = self.powers or self.products or bool(names & {"pow2", "pow3"})

    def allows(self, expression: Expression) -> bool:
        """Whether every operator in it is of the set, or only scales or shifts by a constant."""
        return all(self.allows_node(node) for node in walk(expression) if isinstance(node, Apply))

    def allows_node(self, node: Apply) -> bool:
        """The same for one operator on whatever its operands are."""
        name = node.operator.name
        if not variables(node):
            return True  # a number, however it is written
        varying = [bool(variables(operand)) for operand in node.operands]
        if name in ("add", "sub"):
            return self.sums or not all(varying)
        if name == "mul":
            return self.products or not all(varying)
        if name == "div":
            return self.quotients or not varying[1]
        if name == "pow":
            exponent = node.operands[1]
            whole = isinstance(exponent, Constant) and float(exponent.value).is_integer()
            return "pow" in self._names if varying[1] else self._whole if whole else self.powers
        if name == "sqrt":
            return self.powers
        return name in ("neg", *self._names)
