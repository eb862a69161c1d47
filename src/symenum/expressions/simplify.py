"""Constants folded and written as people write them; the function stays the same to rounding.

Only numbers are worked on: nothing is cancelled, expanded or factored. Whole numbers stay whole and fractions of them
stay fractions; sqrt(2), 2*pi and 1/3 are left as they are written. 0·f is 0, also where f has no value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from symenum.expressions.tree import Apply, Constant, Expression, fold
from symenum.operators import ADDITIVE, MULTIPLICATIVE, OPERATORS, Role

__all__ = ["Product", "Sum", "as_product", "as_sum", "simplify"]

_ADD, _SUB, _MUL, _DIV, _NEG = (OPERATORS[name] for name in ("add", "sub", "mul", "div", "neg"))
_LARGEST = 1e300  # what is beyond, or below its inverse, is left as it is written
_WHOLE = 2**53
_SMALL = 10**9  # a float that is a whole number below this is written as one


@dataclass(frozen=True)
class Product:
    """numerator/denominator · factors / divisors; a number that is not a fraction has the denominator 1."""

    numerator: float
    denominator: int
    factors: tuple[Expression, ...]
    divisors: tuple[Expression, ...]

    @property
    def number(self) -> float:
        return self.numerator / self.denominator

    def close(self) -> Expression:
        """The product as one expression."""
        if self.numerator == 0:
            return Constant(0)
        front = abs(self.numerator) != 1 or not self.factors
        factors = (_number(self.numerator), *self.factors) if front else self.factors
        below = (Constant(self.denominator), *self.divisors) if self.denominator != 1 else self.divisors
        result = _chain(factors)
        if not front and self.numerator < 0:
            result = Apply(_NEG, (result,))
        return Apply(_DIV, (result, _chain(below))) if below else result


@dataclass(frozen=True)
class Sum:
    """The terms, each with whether it is added (or subtracted), and a number."""

    terms: tuple[tuple[bool, Expression], ...]
    number: float

    def close(self) -> Expression:
        """The sum as one expression, a positive term first where there is one, the number last."""
        terms = list(self.terms)
        if self.number != 0 or not terms:
            terms.append((self.number > 0 or not terms, _number(abs(self.number) if terms else self.number)))
        first = next((i for i, (added, _) in enumerate(terms) if added), None)
        result = _negated(terms.pop(0)[1]) if first is None else terms.pop(first)[1]
        for added, term in terms:
            result = Apply(_ADD if added else _SUB, (result, term))
        return result


def simplify(expression: Expression) -> Expression:
    """The same function with its constants folded.

    >>> from symenum.expressions import parse
    >>> print(simplify(parse("(x + 1) + 2*3.5")), simplify(parse("4*sin(x)/2 + (-3)")), simplify(parse("1*x + 0*y")))
    x + 8 2*sin(x) - 3 x
    """
    return _close(fold(expression, _visit))


def as_sum(expression: Expression | Sum | Product) -> Sum:
    """The terms and the number of a simplified expression."""
    if isinstance(expression, Sum):
        return expression
    number = _number_of(expression)
    if number is not None:
        return Sum((), number)
    product = as_product(expression)
    if not product.factors and not product.divisors and product.denominator == 1:
        return Sum((), product.numerator)
    if product.numerator < 0:
        return Sum(((False, replace(product, numerator=-product.numerator).close()),), 0)
    if isinstance(expression, Apply) and expression.operator.role in ADDITIVE:
        left, right = (as_sum(operand) for operand in expression.operands)
        return _added(left, right, expression.operator.role is Role.SUM)
    return Sum(((True, _close(expression)),), 0) if product.numerator else Sum((), 0)


def as_product(expression: Expression | Sum | Product) -> Product:
    """The number, factors and divisors of a simplified expression."""
    if isinstance(expression, Product):
        return expression
    number = _number_of(expression)
    if number is not None:
        return Product(number, 1, (), ())
    if isinstance(expression, Apply) and expression.operator.role in (*MULTIPLICATIVE, Role.NEGATION):
        parts = [as_product(operand) for operand in expression.operands]
        if expression.operator.role is Role.NEGATION:
            return replace(parts[0], numerator=-parts[0].numerator)
        product = _multiplied(parts[0], parts[1], expression.operator.role is Role.QUOTIENT)
        if product is not None:
            return product
    return Product(1, 1, (_close(expression),), ())


def _visit(node: Expression, operands: tuple[Expression | Sum | Product, ...]) -> Expression | Sum | Product:
    if not isinstance(node, Apply):
        return node
    role = node.operator.role
    if role in ADDITIVE:
        total = _added(as_sum(operands[0]), as_sum(operands[1]), role is Role.SUM)
        if abs(total.number) < _LARGEST:
            return total
    if role is Role.NEGATION:
        product = as_product(operands[0])
        return replace(product, numerator=-product.numerator)
    if role in MULTIPLICATIVE:
        folded = _multiplied(as_product(operands[0]), as_product(operands[1]), role is Role.QUOTIENT)
        if folded is not None:
            return folded
    closed = tuple(_close(operand) for operand in operands)
    return _folded(Apply(node.operator, closed))


def _folded(node: Apply) -> Expression:
    """An operator on numbers alone is a number, unless all are whole: sqrt(2) says more than its digits."""
    if node.operator.role is Role.POWER and _number_of(node.operands[1]) == 1:
        return node.operands[0]
    numbers = [number for number in map(_number_of, node.operands) if number is not None]
    if len(numbers) < len(node.operands) or all(isinstance(number, int) for number in numbers):
        return node
    value = float(node.operator.function(*(torch.tensor([float(n)], dtype=torch.float64) for n in numbers)))
    return Constant(value) if math.isfinite(value) else node


def _added(left: Sum, right: Sum, plus: bool) -> Sum:
    terms = right.terms if plus else tuple((not added, term) for added, term in right.terms)
    return Sum(left.terms + terms, left.number + right.number if plus else left.number - right.number)


def _multiplied(left: Product, right: Product, over: bool) -> Product | None:
    """The product, or the quotient; None where the number would not be one."""
    above: list[float] = [left.numerator, right.denominator if over else right.numerator]
    below: list[float] = [left.denominator, right.numerator if over else right.denominator]
    number = _fraction(above[0] * above[1], below[0] * below[1])
    if number is None:
        return None
    inside, outside = (right.divisors, right.factors) if over else (right.factors, right.divisors)
    return Product(*number, left.factors + inside, left.divisors + outside)


def _fraction(above: float, below: float) -> tuple[float, int] | None:
    """above/below as numerator and denominator; None where it is not finite or too near to the ends of the range."""
    if below == 0:
        return None
    if isinstance(above, int) and isinstance(below, int):
        divisor = math.gcd(above, below) * (1 if below > 0 else -1)
        above, below = above // divisor, below // divisor
        return (above, below) if max(abs(above), below) < _WHOLE else None
    value = above / below
    if above != 0 and not 1 / _LARGEST < abs(value) < _LARGEST:
        return None
    return (int(value) if value == round(value) and abs(value) < _SMALL else value), 1


def _number(value: float) -> Constant:
    return Constant(int(value) if value == round(value) and abs(value) < _SMALL else value)


def _negated(expression: Expression) -> Expression:
    product = as_product(expression)
    return replace(product, numerator=-product.numerator).close()


def _chain(factors: tuple[Expression, ...]) -> Expression:
    result = factors[0]
    for factor in factors[1:]:
        result = Apply(_MUL, (result, factor))
    return result


def _number_of(expression: Expression | Sum | Product) -> float | None:
    """The value of a number without a name."""
    return expression.value if isinstance(expression, Constant) and expression.name is None else None


def _close(result: Expression | Sum | Product) -> Expression:
    return result.close() if isinstance(result, (Sum, Product)) else result
