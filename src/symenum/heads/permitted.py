"""Which expressions a set of operators allows, where coefficients are free.

Heads multiply by fitted numbers and add them whatever the set says: that is what coefficients are. Joining two parts
that both vary takes the operator itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from symenum.expressions import Apply, Constant, Expression, variables, walk
from symenum.operators import ADDITIVE, Abilities, Operator, Role

__all__ = ["Permitted"]


class Permitted:
    """A test for expressions: `allows` says whether the operators can write it."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        self._operators = frozenset(operators)
        able = Abilities(tuple(self._operators))
        self.sums, self.products, self.quotients = able.sums, able.products, able.quotients
        self.powers, self._whole = able.powers, able.whole_powers
        self._varying_powers = Role.POWER in able.roles

    def allows(self, expression: Expression) -> bool:
        """Whether every operator in it is of the set, or only scales or shifts by a constant."""
        return all(self.allows_node(node) for node in walk(expression) if isinstance(node, Apply))

    def allows_node(self, node: Apply) -> bool:
        """The same for one operator on whatever its operands are."""
        role = node.operator.role
        if not variables(node):
            return True  # a number, however it is written
        varying = [bool(variables(operand)) for operand in node.operands]
        if role in ADDITIVE:
            return self.sums or not all(varying)
        if role is Role.PRODUCT:
            return self.products or not all(varying)
        if role is Role.QUOTIENT:
            return self.quotients or not varying[1]
        if role is Role.POWER:
            exponent = node.operands[1]
            whole = isinstance(exponent, Constant) and float(exponent.value).is_integer()
            return self._varying_powers if varying[1] else self._whole if whole else self.powers
        if role is Role.ROOT:
            return self.powers
        return role is Role.NEGATION or node.operator in self._operators
