"""Which expressions may be laws: what a set of operators can write, and what the user knows of a law's shape.

Both judge an expression as it is printed, after the search has found it; neither makes any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from symenum.expressions import (
    Apply,
    Constant,
    Expression,
    Units,
    Variable,
    fold,
    same_function,
    substitute,
    variables,
    walk,
)
from symenum.expressions.complexity import ComplexityWeights
from symenum.expressions.degree import degree_in
from symenum.operators import Abilities, Operator, get_operator
from symenum.operators.traits import ADDITIVE, Role

__all__ = ["NO_PRIOR", "OperatorGrammar", "Prior"]


class OperatorGrammar:
    """Whether a set of operators can write an expression, where coefficients are free.

    Heads multiply by fitted numbers and add them whatever the set says: that is what coefficients are. Joining two
    parts that both hold variables takes the operator itself.
    """

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
        """Whether this operator may join these operands, whatever is inside them."""
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


@dataclass(frozen=True)
class Prior:
    """What the user knows of a law's shape before the search. Numbers that only scale or shift are no operators.

    `max_depth`: of the tree. `nested`: outer operator -> inner one -> how often it may occur inside on one path from
    the outer one to a leaf; by name or record. `variable_operators`: for a variable, the only operators that may act on
    expressions that hold it. `required`: variables that every law must depend on. `arguments`: for an operator, the
    largest complexity of each of its operands, None for any; `weights` say what complexity counts. `units`: the
    dimensions of variables and target, which a law must keep to. `straight`: variables in which every law is a straight
    line, a + b·x with a and b of the other variables; as it is written, so that it holds for parts of a law, too.
    """

    max_depth: int | None = None
    nested: Mapping[str | Operator, Mapping[str | Operator, int]] = field(default_factory=dict)
    variable_operators: Mapping[str, tuple[Operator, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    arguments: Mapping[Operator, tuple[int | None, ...]] = field(default_factory=dict)
    weights: ComplexityWeights | None = None
    units: Units | None = None
    straight: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Whether there is anything that it forbids."""
        return self.forbids_parts or bool(self.required)

    @property
    def forbids_parts(self) -> bool:
        """Whether some expressions may not even be a part of a law."""
        shaped = bool(self.nested or self.variable_operators or self.arguments or self.straight)
        return self.max_depth is not None or shaped or self.units is not None

    def allows(self, expression: Expression) -> bool:
        """Whether it may be a law."""
        if not set(self.required) <= set(variables(expression)) or not self.allows_part(expression):
            return False
        if self.units is not None and not self.units.allows(expression):
            return False
        return all(_depends_on(expression, name) for name in self.required)

    def allows_part(self, expression: Expression) -> bool:
        """Whether it may be a part of a law."""
        if self.max_depth is not None and expression.depth > self.max_depth:
            return False
        if self.arguments and not self._has_small_arguments(expression):
            return False
        if self.units is not None and not self.units.consistent(expression):
            return False
        if any(degree_in(expression, name) > 1 for name in self.straight):
            return False
        return (not self.nested or self._nests_well(expression)) and self._acts_well(expression)

    def _has_small_arguments(self, expression: Expression) -> bool:
        for node in walk(expression):
            if not isinstance(node, Apply) or node.operator not in self.arguments:
                continue
            for operand, limit in zip(node.operands, self.arguments[node.operator], strict=True):
                size = operand.complexity if self.weights is None else self.weights.of(operand)
                if limit is not None and size > limit:
                    return False
        return True

    def _nests_well(self, expression: Expression) -> bool:
        inner = {operator for limits in self._limits.values() for operator in limits}
        nests_well = True

        def visit(node: Expression, operands: tuple[dict[Operator, int], ...]) -> dict[Operator, int]:
            """For each operator, the most often that it occurs on one path from this node to a leaf."""
            nonlocal nests_well
            if not isinstance(node, Apply):
                return {}
            inside = {one: max((counts.get(one, 0) for counts in operands), default=0) for one in inner}
            nests_well &= all(inside[one] <= limit for one, limit in self._limits.get(node.operator, {}).items())
            return {one: count + (one == node.operator) for one, count in inside.items()}

        fold(expression, visit)
        return nests_well

    def _acts_well(self, expression: Expression) -> bool:
        if not self.variable_operators:
            return True
        for node in walk(expression):
            if isinstance(node, Apply):
                inside = [name for name in variables(node) if name in self._grammar_of]
                if not all(self._grammar_of[name].allows_node(node) for name in inside):
                    return False
        return True

    @cached_property
    def _limits(self) -> dict[Operator, dict[Operator, int]]:
        return {
            get_operator(outer): {get_operator(inner): limit for inner, limit in limits.items()}
            for outer, limits in self.nested.items()
        }

    @cached_property
    def _grammar_of(self) -> dict[str, OperatorGrammar]:
        return {name: OperatorGrammar(operators) for name, operators in self.variable_operators.items()}

    def must_hold(self) -> tuple[Variable, ...]:
        """The required variables as expressions."""
        return tuple(Variable(name) for name in self.required)


def _depends_on(expression: Expression, name: str) -> bool:
    """Whether the values change with this variable, which occurs in it: those of x*y/x do not change with x."""
    other = f"{name}_"
    while other in variables(expression):
        other += "_"
    return not same_function(expression, substitute(expression, {name: Variable(other)}))


NO_PRIOR = Prior()
"""Nothing is known: every expression may be a law."""
