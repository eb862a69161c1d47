"""The dimension of an expression: inferred from those of its variables, or the reason why it has none.

Numbers are plain numbers, or, where the user allows it, have whatever dimension is missing at their place. Each
operator says by its `dimension_rule` what it asks of its operands; nothing here knows an operator's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from symenum.core.dimensions import DIMENSIONLESS, Dimension, solve_exponents
from symenum.expressions.evaluate import evaluate
from symenum.expressions.tree import Apply, Constant, Expression, Variable, apply, fold, variables
from symenum.operators.traits import ADDITIVE, DimensionRule, Role

__all__ = ["DimensionError", "Units"]

_MAX_DENOMINATOR = 12  # of a power of something with a unit: roots of roots of physics stop far before it
_NEAR_FRACTION = 1e-9  # distance of an exponent such as 0.333333333333 from its fraction

Found: TypeAlias = "Dimension | None"
"""A dimension; None: any, that of a number which takes the dimension that is missing."""


class DimensionError(ValueError):
    """An expression that has no dimension, and why."""


@dataclass(frozen=True)
class Units:
    """What is known of dimensions: of the variables by name, of the target, and of constants that have names.

    `free`: numbers may have any dimension; else they are plain numbers. `by_names`: a free number must in the end be a
    plain one times named constants, so that it has a dimension of these.
    """

    variables: Mapping[str, Dimension]
    target: Dimension
    free: bool = False
    constants: Mapping[str, Dimension] = field(default_factory=dict)
    by_names: bool = False

    def may_have(self, dimension: Dimension) -> bool:
        """Whether a number of a law may have this dimension."""
        if dimension.dimensionless or not self.free:
            return dimension.dimensionless
        return not self.by_names or solve_exponents(list(self.constants.values()), dimension) is not None

    def of(self, expression: Expression) -> Found:
        """Its dimension, None where a number in it leaves that open; DimensionError where its parts contradict."""
        return fold(expression, self._of_node)

    def consistent(self, expression: Expression) -> bool:
        """Whether it has a dimension, whatever that is."""
        return self.reason(expression, whole=False) is None

    def allows(self, expression: Expression) -> bool:
        """Whether it may be a law: it has the dimension of the target."""
        return self.reason(expression) is None

    def reason(self, expression: Expression, *, whole: bool = True) -> str | None:
        """Why it may not be a law, or with `whole=False` not even a part of one; None where it may."""
        try:
            found = self.of(expression)
        except DimensionError as error:
            return str(error)
        if whole and found is not None and found != self.target and not _is_zero(expression):
            return f"its unit is {found}, and that of the target {self.target}"
        return None

    def repaired(self, expression: Expression) -> Expression:
        """The expression without numbers that are added to something with a unit: of c*length + 0.1 only c*length.

        Where numbers may have any unit it stays as it is.
        """
        if self.free and not self.by_names:
            return expression

        def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
            if not isinstance(node, Apply):
                return node
            if node.operator.role in ADDITIVE:
                numbers = [not variables(operand) for operand in operands]
                if any(numbers) and not all(numbers) and self._has_unit(operands[numbers.index(False)]):
                    negative = numbers[0] and node.operator.role is Role.DIFFERENCE
                    rest = operands[numbers.index(False)]
                    return apply("neg", rest) if negative else rest
            return apply(node.operator, *operands) if operands != node.operands else node

        return fold(expression, visit)

    def _has_unit(self, expression: Expression) -> bool:
        """Whether it has a dimension other than that of a plain number."""
        try:
            found = self.of(expression)
        except DimensionError:
            return False
        return found is not None and not found.dimensionless and not self.may_have(found)

    def wanted(self, outer: Expression, hole: str) -> Dimension | None:
        """The dimension of the variable `hole`, which occurs once in `outer`, that gives `outer` the target's.

        None where no dimension does. The other parts of `outer` must have dimensions.
        """
        needed, node = self.target, outer
        while not isinstance(node, Variable):
            assert isinstance(node, Apply)  # the hole is in it
            at = next(i for i, operand in enumerate(node.operands) if hole in variables(operand))
            try:
                others = [self.of(operand) for i, operand in enumerate(node.operands) if i != at]
            except DimensionError:
                return None
            inner = _undone(node, at, needed, others)
            if inner is None:
                return None
            needed, node = inner, node.operands[at]
        return needed

    def of_numbers(self, law: Expression) -> list[tuple[Constant, Dimension]]:
        """Each number of a law from left to right, with the dimension that it must have.

        Of several numbers of one product the first has all of it.
        """
        found: list[tuple[Constant, Dimension]] = []

        def note(number: Constant, dimension: Dimension) -> Expression:
            found.append((number, dimension))
            return number

        self._shared(law, self.target, note)
        return found

    def with_constants(self, law: Expression, values: Mapping[str, float]) -> Expression | None:
        """The law with each number that must have a unit as a plain number times powers of the named constants.

        `values`: of the constants, by name. None where no such product has the unit.
        """
        names = list(self.constants)
        loose = replace(self, free=True)

        def named(number: Constant, dimension: Dimension) -> Expression:
            if dimension.dimensionless or number.value == 0:
                return number
            exponents = solve_exponents([self.constants[name] for name in names], dimension)
            if exponents is None:
                raise DimensionError(f"no product of {', '.join(names)} has the unit {dimension}")
            factor, product = float(number.value), None
            for name, exponent in zip(names, exponents, strict=True):
                if exponent:
                    factor /= values[name] ** float(exponent)
                    power: Expression = Constant(values[name], name)
                    whole = int(exponent) if exponent.denominator == 1 else float(exponent)
                    power = power if exponent == 1 else apply("pow", power, Constant(whole))
                    product = power if product is None else apply("mul", product, power)
            assert product is not None  # the dimension is not that of a number
            return apply("mul", Constant(factor), product)

        try:
            return loose._shared(law, self.target, named)
        except (DimensionError, ValueError, OverflowError, ZeroDivisionError):
            return None

    def _shared(
        self, node: Expression, needed: Dimension, visit: Callable[[Constant, Dimension], Expression]
    ) -> Expression:
        """The expression with what `visit` makes of each number and the dimension that it must have."""
        if isinstance(node, Constant):
            return node if node.name is not None else visit(node, needed)
        if isinstance(node, Variable):
            return node
        parts: list[Found] = [self.of(operand) for operand in node.operands]
        operands = []
        for at, operand in enumerate(node.operands):
            if parts[at] is None:
                others = [part for i, part in enumerate(parts) if i != at]
                parts[at] = _undone(node, at, needed, others) or DIMENSIONLESS
            own = parts[at]
            assert own is not None  # found, or known
            operands.append(self._shared(operand, own, visit))
        return apply(node.operator, *operands)

    def _of_node(self, node: Expression, operands: tuple[Found, ...]) -> Found:
        if isinstance(node, Variable):
            if node.name not in self.variables:
                raise DimensionError(f"{node.name} has no unit")
            return self.variables[node.name]
        if isinstance(node, Constant):
            if node.name is not None and node.name in self.constants:
                return self.constants[node.name]
            return None if self.free or node.value == 0 else DIMENSIONLESS
        rule = node.operator.dimension_rule
        if rule is DimensionRule.PRODUCT:
            return None if None in operands else operands[0] * operands[1]  # type: ignore[operator]
        if rule is DimensionRule.QUOTIENT:
            return None if None in operands else operands[0] / operands[1]  # type: ignore[operator]
        if rule is DimensionRule.POWER:
            return _power(node, operands)
        if rule is DimensionRule.HOMOGENEOUS:
            degree = _fraction(node.operator.dimension_degree)
            alike = {one for one in operands if one is not None}
            if len(alike) > 1:
                raise DimensionError(f"{node} joins {' and '.join(str(one) for one in operands)}")
            return None if not alike or degree is None else alike.pop() ** degree
        for operand, found in zip(node.operands, operands, strict=True):
            if found is not None and not found.dimensionless:
                raise DimensionError(f"{node} takes a plain number, and {operand} has the unit {found}")
        return DIMENSIONLESS


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value == 0


def _power(node: Apply, operands: tuple[Found, ...]) -> Found:
    base, exponent = operands
    if exponent is not None and not exponent.dimensionless:
        raise DimensionError(f"the exponent of {node} has the unit {exponent}")
    power = node.operands[1]
    if base is None or base.dimensionless:
        return base
    fraction = None if not isinstance(power, Constant) else _fraction(float(power.value))
    if fraction is None and not variables(power):
        fraction = _number(power)
    if fraction is None:
        raise DimensionError(f"the base of {node} has the unit {base}, and its exponent is no simple number")
    return base**fraction


def _number(expression: Expression) -> Fraction | None:
    """The fraction that an expression of whole numbers such as 1/2 or -2 is."""
    return _fraction(float(evaluate(expression, {})))


def _fraction(value: float) -> Fraction | None:
    found = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
    return found if abs(float(found) - value) <= _NEAR_FRACTION else None


def _undone(node: Apply, at: int, needed: Dimension, others: Sequence[Found]) -> Dimension | None:
    """The dimension of operand number `at` with which the node has the one that is needed; None: there is none."""
    rule = node.operator.dimension_rule
    other = others[0] if others else None
    if rule is DimensionRule.PRODUCT:
        return needed / (other or DIMENSIONLESS)
    if rule is DimensionRule.QUOTIENT:
        return needed * (other or DIMENSIONLESS) if at == 0 else (other or DIMENSIONLESS) / needed
    if rule is DimensionRule.POWER:
        power = node.operands[1]
        fraction = _fraction(float(power.value)) if at == 0 and isinstance(power, Constant) else None
        if fraction:
            return needed ** (1 / fraction)
        return DIMENSIONLESS if needed.dimensionless else None
    if rule is DimensionRule.HOMOGENEOUS:
        degree = _fraction(node.operator.dimension_degree)
        if not degree:
            return DIMENSIONLESS if needed.dimensionless else None
        inner = needed ** (1 / degree)
        return inner if other is None or other == inner else None
    return DIMENSIONLESS if needed.dimensionless else None
