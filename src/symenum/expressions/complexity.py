"""Complexity by weights of the user's own, in place of the paper's weights, which trees have counted already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from symenum.expressions.tree import Apply, Expression, Variable, walk

__all__ = ["ComplexityWeights"]


@dataclass(frozen=True)
class ComplexityWeights:
    """What each operator, variable and constant adds to the complexity of a law, in whole numbers of at least 0.

    `operators`: by name; the others keep the weight of the table of operators. `variables`: by name; the others count
    `variable`. `constant`: of each number, as often as it occurs.
    """

    operators: tuple[tuple[str, int], ...] = ()
    variables: tuple[tuple[str, int], ...] = ()
    variable: int = 0
    constant: int = 0

    def of(self, expression: Expression) -> int:
        """The complexity of an expression.

        >>> from symenum.expressions import parse
        >>> ComplexityWeights((("sin", 5),), variable=1, constant=2).of(parse("3*sin(x) + x"))
        11
        """
        total = 0
        for node in walk(expression):
            if isinstance(node, Apply):
                total += self._by_operator.get(node.operator.name, node.operator.complexity)
            elif isinstance(node, Variable):
                total += self._by_variable.get(node.name, self.variable)
            else:
                total += self.constant
        return total

    @cached_property
    def _by_operator(self) -> dict[str, int]:
        return dict(self.operators)

    @cached_property
    def _by_variable(self) -> dict[str, int]:
        return dict(self.variables)
