"""Algebra on trees: one order of operands, constants folded, products of powers, and equality of functions.

- `canonical`: one order for all trees that differ only by commuting and re-associating sums and products.
- `simplify`: constants folded and written as people write them; nothing is cancelled, expanded or factored.
- `powers_of`, `power_product`: flat products of powers; (x/y)²·y is x²/y.
- `with_joined_powers`: powers of one base as one power, where an exponent was fitted; x*x**0.4997 is x**1.4997, and so
  is exp(1.4997*log(x)).
- `with_one_scale`: one number in front of a product for those of the sums in it; 3*(2*x + 4) is 6*(x + 2).
- `plain_form`: the sum of products that people write for positive quantities; sqrt(y/x**2)*x is sqrt(y).
- `same_function`, `fingerprint`: equality of functions, by their values on fixed points.

Not for the whole of computer algebra: that is SymPy's (`sympy_bridge`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from symenum.core.exactness import EPSILON
from symenum.core.memory import LAWS_REMEMBERED
from symenum.expressions.tree import Apply, Constant, Expression, Variable, apply, fold, natural_key, variables, walk
from symenum.operators import OPERATORS, Operator
from symenum.operators.traits import ADDITIVE, MULTIPLICATIVE, Role

__all__ = [
    "LARGEST_DENOMINATOR",
    "Powers",
    "Product",
    "Sum",
    "as_product",
    "as_sum",
    "canonical",
    "fingerprint",
    "folded_fraction",
    "multiplied_powers",
    "number_constant",
    "plain_form",
    "power_product",
    "powers_of",
    "product_of",
    "same_function",
    "sample_points",
    "simplify",
    "sort_key",
    "with_factor",
    "with_joined_powers",
    "with_numbers_in_sums",
    "with_one_scale",
]

# Canonical order. Re-association may move the last digits of a value, and an overflow, but not the function.

_ASSOCIATIVE = (Role.SUM, Role.PRODUCT)
_VARIABLE, _COMPOSITE, _CONSTANT = range(3)  # the order of the kinds of node in `sort_key`
SortKey: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class _Chain:
    """The operands of a chain of one associative operator, in any order."""

    operator: Operator
    terms: tuple[Expression, ...]


def canonical(expression: Expression) -> Expression:
    """The tree with the operands of commutative operators in order, and sums and products associated to the left.

    Constants come last in sums and first in products, as people write them.

    >>> from symenum.expressions import parse
    >>> print(canonical(parse("1 + (x10*3 + (x2 + sin(x1)))")))
    x2 + sin(x1) + 3*x10 + 1
    """
    return _sorted_chain(fold(expression, _canonical_node))


def _canonical_node(node: Expression, operands: tuple[Expression | _Chain, ...]) -> Expression | _Chain:
    if not isinstance(node, Apply):
        return node
    operator = node.operator
    if operator.role in _ASSOCIATIVE:
        terms: list[Expression] = []
        for operand in operands:
            if isinstance(operand, _Chain) and operand.operator == operator:
                terms.extend(operand.terms)
            else:
                terms.append(_sorted_chain(operand))
        # Sorted only when the whole chain is known, or a sum of n terms would be sorted n times.
        return _Chain(operator, tuple(terms))
    closed = tuple(_sorted_chain(operand) for operand in operands)
    return Apply(operator, tuple(sorted(closed, key=sort_key)) if operator.commutative else closed)


def _sorted_chain(result: Expression | _Chain) -> Expression:
    """The chain as one expression, its operands in order; an expression as it is."""
    if not isinstance(result, _Chain):
        return result
    terms = sorted(result.terms, key=sort_key)
    if result.operator.role is Role.PRODUCT:
        constants = [term for term in terms if isinstance(term, Constant)]
        terms = constants + [term for term in terms if not isinstance(term, Constant)]
    closed = terms[0]
    for term in terms[1:]:
        closed = Apply(result.operator, (closed, term))
    return closed


def sort_key(expression: Expression) -> SortKey:
    """A key that orders all trees: variables in natural order, then composites from small to large, then constants.

    Only equal trees have equal keys (two operators of the user's that share a name apart).
    """
    # The nodes from the root down, in a flat tuple: a nested one could be too deep to compare.
    nodes: list[SortKey] = []
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Variable):
            nodes.append((_VARIABLE, natural_key(node.name)))
        elif isinstance(node, Constant):
            sign = math.copysign(1.0, node.value)
            nodes.append((_CONSTANT, node.value, sign, isinstance(node.value, float), node.name or ""))
        else:
            nodes.append((_COMPOSITE, node.operator.name))
            stack.extend(reversed(node.operands))
    return (nodes[0][0], len(nodes), *nodes)


# Constants folded. Whole numbers stay whole and fractions of them stay fractions; sqrt(2), 2*pi and 1/3 stay.
# 0·f becomes 0, also where f has no value.

_ADD, _SUB, _MUL, _DIV, _NEG, _POW = (OPERATORS[name] for name in ("add", "sub", "mul", "div", "neg", "pow"))
_LARGEST = 1e300  # numbers above this, or below its inverse, are not folded: a further product could leave the doubles
_EXACT_WHOLE = 2**53  # doubles hold every whole number up to this one
_LARGEST_WRITTEN_WHOLE = 10**9  # floats with a whole value below this are written as whole numbers, larger as 1.5e+20


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
        factors = (number_constant(self.numerator), *self.factors) if front else self.factors
        below = (Constant(self.denominator), *self.divisors) if self.denominator != 1 else self.divisors
        result = product_of(factors)
        if not front and self.numerator < 0:
            result = Apply(_NEG, (result,))
        return Apply(_DIV, (result, product_of(below))) if below else result


@dataclass(frozen=True)
class Sum:
    """The terms, each with whether it is added (or subtracted), and a number."""

    terms: tuple[tuple[bool, Expression], ...]
    number: float

    def close(self) -> Expression:
        """The sum as one expression, a positive term first where there is one, the number last."""
        terms = list(self.terms)
        if self.number != 0 or not terms:
            terms.append((self.number > 0 or not terms, number_constant(abs(self.number) if terms else self.number)))
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
    return _as_expression(fold(expression, _simplify_node))


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
    return Sum(((True, _as_expression(expression)),), 0) if product.numerator else Sum((), 0)


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
    return Product(1, 1, (_as_expression(expression),), ())


def _simplify_node(node: Expression, operands: tuple[Expression | Sum | Product, ...]) -> Expression | Sum | Product:
    if not isinstance(node, Apply):
        return node
    role = node.operator.role
    if role in ADDITIVE:
        total = _added(as_sum(operands[0]), as_sum(operands[1]), role is Role.SUM)
        if abs(total.number) < _LARGEST:
            return total
    product = _product_of_node(role, operands)
    if product is not None:
        return product
    if role is Role.STEP:  # of a number that multiplies its argument nothing but the sign counts
        argument = as_product(operands[0])
        if argument.numerator and (argument.factors or argument.divisors):
            operands = (replace(argument, numerator=1 if argument.numerator > 0 else -1, denominator=1),)
    closed = tuple(_as_expression(operand) for operand in operands)
    return _folded(Apply(node.operator, closed))


def _product_of_node(role: Role, operands: Sequence[Expression | Sum | Product]) -> Product | None:
    """The product that a sign, a product or a quotient of the operands is; None for others and for too large a one."""
    if role is Role.NEGATION:
        product = as_product(operands[0])
        return replace(product, numerator=-product.numerator)
    if role in MULTIPLICATIVE:
        return _multiplied(as_product(operands[0]), as_product(operands[1]), role is Role.QUOTIENT)
    return None


def _folded(node: Apply) -> Expression:
    """The number that an operator on numbers gives, unless all of them are whole: sqrt(2) says more than its digits."""
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
    """The product, or the quotient `over` right; None where its number is not finite or too large or small to fold."""
    above: list[float] = [left.numerator, right.denominator if over else right.numerator]
    below: list[float] = [left.denominator, right.numerator if over else right.denominator]
    number = folded_fraction(above[0] * above[1], below[0] * below[1])
    if number is None:
        return None
    inside, outside = (right.divisors, right.factors) if over else (right.factors, right.divisors)
    return Product(*number, left.factors + inside, left.divisors + outside)


def folded_fraction(above: float, below: float) -> tuple[float, int] | None:
    """above/below as numerator and denominator; None where it is not finite, or too large or too small to fold."""
    if below == 0:
        return None
    if isinstance(above, int) and isinstance(below, int):
        divisor = math.gcd(above, below) * (1 if below > 0 else -1)
        above, below = above // divisor, below // divisor
        return (above, below) if max(abs(above), below) < _EXACT_WHOLE else None
    value = above / below
    if above != 0 and not 1 / _LARGEST < abs(value) < _LARGEST:
        return None
    return (int(value) if value == round(value) and abs(value) < _LARGEST_WRITTEN_WHOLE else value), 1


def number_constant(value: float) -> Constant:
    """The constant, as a whole number where it is one that people write."""
    return Constant(int(value) if value == round(value) and abs(value) < _LARGEST_WRITTEN_WHOLE else value)


def _negated(expression: Expression) -> Expression:
    product = as_product(expression)
    return replace(product, numerator=-product.numerator).close()


def _number_of(expression: Expression | Sum | Product) -> float | None:
    """The value of a number without a name."""
    return expression.value if isinstance(expression, Constant) and expression.name is None else None


def _as_expression(result: Expression | Sum | Product) -> Expression:
    return result.close() if isinstance(result, (Sum, Product)) else result


# Products of powers.

Powers = Mapping[Expression, Fraction]


def powers_of(expression: Expression) -> Powers:
    """The factors of a product and their exponents; the expression itself where it is none."""
    if isinstance(expression, Apply):
        role, operands = expression.operator.role, expression.operands
        if role in MULTIPLICATIVE:
            power = Fraction(1 if role is Role.PRODUCT else -1)
            return multiplied_powers((powers_of(operands[0]), Fraction(1)), (powers_of(operands[1]), power))
        exponent = operands[-1]
        if role is Role.POWER and isinstance(exponent, Constant) and isinstance(exponent.value, int):
            return multiplied_powers((powers_of(operands[0]), Fraction(exponent.value)))
    return {} if expression == Constant(1) else {expression: Fraction(1)}


def multiplied_powers(*parts: tuple[Powers, Fraction]) -> Powers:
    """The product of the parts, each to its exponent; what cancels is gone."""
    total: dict[Expression, Fraction] = {}
    for powers, exponent in parts:
        for base, power in powers.items():
            total[base] = total.get(base, Fraction(0)) + power * exponent
    return {base: power for base, power in total.items() if power}


def power_product(powers: Powers) -> Expression:
    """Numerator over denominator.

    >>> from symenum.expressions import parse
    >>> squared_ratio, b = (powers_of(parse("a/b")), Fraction(2)), (powers_of(parse("b")), Fraction(1))
    >>> print(power_product(multiplied_powers(squared_ratio, b)))
    a**2/b
    """
    above = [_to_the_power(base, power) for base, power in powers.items() if power > 0]
    below = [_to_the_power(base, -power) for base, power in powers.items() if power < 0]
    numerator = product_of(above) if above else Constant(1)
    return apply("div", numerator, product_of(below)) if below else numerator


def _to_the_power(base: Expression, power: Fraction) -> Expression:
    if power == 1:
        return base
    if power == Fraction(1, 2):
        return apply("sqrt", base)
    whole = power.denominator == 1
    return apply("pow", base, Constant(int(power) if whole else float(power)))


def product_of(factors: Sequence[Expression]) -> Expression:
    """The product of at least one factor, associated to the left."""
    return reduce(lambda a, b: Apply(_MUL, (a, b)), factors)


def with_factor(factor: Expression, term: Expression) -> Expression:
    """factor·term with the factor in front of the whole product: 3*x*y rather than 3*(x*y), 3/x rather than 3*(1/x)."""
    if isinstance(term, Apply) and term.operator.role in MULTIPLICATIVE:
        first, second = term.operands
        return Apply(term.operator, (factor if first == Constant(1) else with_factor(factor, first), second))
    return Apply(_MUL, (factor, term))


_ONE = Product(1, 1, (), ())


def with_one_scale(expression: Expression) -> Expression:
    """The same function, in which the first term of each sum that is a factor or a divisor has no number.

    Fitted parts bring a scale each; a product can tell one only.

    >>> from symenum.expressions import parse
    >>> print(with_one_scale(parse("0.5*(4*x + 10)*y/(3*x - 1.5)")))
    2*(x + 2.5)*y/(3*(x - 0.5))
    """
    return fold(simplify(expression), _one_scale_node)


def _one_scale_node(node: Expression, operands: tuple[Expression, ...]) -> Expression:
    if not isinstance(node, Apply):
        return node
    node = Apply(node.operator, operands)
    if node.operator.role not in MULTIPLICATIVE:
        return node
    product = as_product(node)
    whole = replace(product, factors=(), divisors=())
    for parts, over in ((product.factors, False), (product.divisors, True)):
        for part in parts:
            scale, rest = _scale_out_of(part)
            joined = _multiplied(whole, replace(scale, factors=(rest,)), over)
            if joined is None:  # its number is too large or too small to fold
                return node
            whole = joined
    return whole.close()


def _scale_out_of(factor: Expression) -> tuple[Product, Expression]:
    """The number of the first term of a sum, and the sum divided by it; 1 and the factor itself for all others."""
    total = as_sum(factor)
    if len(total.terms) + (total.number != 0) < 2:
        return _ONE, factor
    positive, first = total.terms[0]
    scale = replace(as_product(first), factors=(), divisors=())
    number = folded_fraction(total.number * scale.denominator, scale.numerator)
    terms = []
    for added, term in total.terms:
        product = _multiplied(as_product(term), scale, over=True)
        if product is None or number is None:  # too large or too small to fold
            return _ONE, factor
        terms.append((added == positive, product.close()))
    assert number is not None  # there are terms
    rest = Sum(tuple(terms), (1 if positive else -1) * number[0] / number[1]).close()
    return (scale if positive else replace(scale, numerator=-scale.numerator)), rest


def with_numbers_in_sums(expression: Expression) -> Expression:
    """The same function, in which no number stands before a product with a sum: it is multiplied into the first sum.

    >>> from symenum.expressions import parse
    >>> print(with_numbers_in_sums(parse("2.5*(x - 0.4*y)*z + 2*(x + y)/x")))
    (2.5*x - y)*z + (2*x + 2*y)/x
    """
    return simplify(fold(simplify(expression), _numbers_in_sums_node))


def _numbers_in_sums_node(node: Expression, operands: tuple[Expression, ...]) -> Expression:
    if not isinstance(node, Apply):
        return node
    node = Apply(node.operator, operands)
    product = as_product(node)
    sums = [factor for factor in product.factors if _is_sum(factor)]
    if len(sums) != 1 or product.number in (0.0, 1.0):
        return node
    total, number = as_sum(sums[0]), replace(product, factors=(), divisors=())
    offset = folded_fraction(total.number * number.numerator, number.denominator)
    if offset is None:
        return node
    terms = []
    for added, term in total.terms:
        scaled = _multiplied(as_product(term), number, over=False)
        if scaled is None:  # its number is too large or too small to fold
            return node
        terms.append((added, scaled.close()))
    inner = simplify(Sum(tuple(terms), offset[0] / offset[1]).close())
    others = tuple(factor for factor in product.factors if factor is not sums[0])
    return replace(product, numerator=1, denominator=1, factors=(*others, inner)).close()


# Powers of one base as one, where an exponent is no whole number. Such a power has values on bases of at least 0 only,
# and where the product has a value, the joined power has the same. (At 0 a product with a negative exponent is 0*inf,
# no value; the joined power may have one.) Products of whole powers stay: x**2/x is left to whoever wrote it. So does
# exp(2*log(x)), which has no value on negative numbers.


@lru_cache(LAWS_REMEMBERED)  # every find is asked for this, again and again; a search has some thousands at hand
def with_joined_powers(expression: Expression) -> Expression:
    """The expression with the powers of each base in a product as one power, where an exponent is a fitted number.

    >>> from symenum.expressions import parse
    >>> print(with_joined_powers(parse("2.5*x*y*x**0.5003")), with_joined_powers(parse("x*x*sqrt(y)/x**0.3")))
    2.5*y*x**1.5003 sqrt(y)*x**1.7
    >>> print(with_joined_powers(parse("exp(1.4997*log(x/y))")))
    (x/y)**1.4997
    """
    if not _has_fitted_power(expression):
        return expression
    joined = _with_joined(fold(expression, _join_node))
    return joined if joined.complexity < expression.complexity else expression


def _has_fitted_power(expression: Expression) -> bool:
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply):
            if _numeric_power(node)[2] or _is_exponential_of_a_logarithm(node):
                return True
            stack += node.operands
    return False


def _join_node(node: Expression, operands: tuple[Expression | Product, ...]) -> Expression | Product:
    if not isinstance(node, Apply):
        return node
    role = node.operator.role
    product = _product_of_node(role, operands)
    if product is not None:
        return product
    closed = Apply(node.operator, tuple(map(_with_joined, operands)))
    return _as_powers(closed) if role is Role.EXPONENTIAL else closed


def _is_exponential_of_a_logarithm(node: Apply) -> bool:
    """Whether it is exp of what holds a logarithm: `_as_powers` looks closer."""
    return node.operator.role is Role.EXPONENTIAL and any(
        isinstance(part, Apply) and part.operator.role is Role.LOGARITHM for part in walk(node.operands[0])
    )


def _as_powers(exponential: Apply) -> Expression | Product:
    """The powers that exp(p*log(u) + …) is, for each p that is not whole; exp of what else is in the sum."""
    total = as_sum(exponential.operands[0])
    powers: list[Expression] = []
    rest: list[tuple[bool, Expression]] = []
    for added, term in total.terms:
        product = as_product(term)
        factor = product.factors[0] if len(product.factors) == 1 and not product.divisors else None
        exponent = product.number if added else -product.number
        if isinstance(factor, Apply) and factor.operator.role is Role.LOGARITHM and exponent != round(exponent):
            powers.append(Apply(_POW, (factor.operands[0], number_constant(exponent))))
        else:
            rest.append((added, term))
    if not powers:
        return exponential
    if rest:
        left = _as_expression(replace(total, terms=tuple(rest)))
        return Product(1, 1, (*powers, Apply(exponential.operator, (left,))), ())
    if abs(total.number) > math.log(_LARGEST):  # the factor could not be folded with others
        return exponential
    return Product(math.exp(total.number), 1, tuple(powers), ())


def _with_joined(piece: Expression | Product) -> Expression:
    """The product as one expression, a power of a base in the place of the first one that was fitted."""
    if not isinstance(piece, Product):
        return piece
    signed = [(factor, 1) for factor in piece.factors] + [(divisor, -1) for divisor in piece.divisors]
    alike: dict[Expression, list[tuple[float, bool]]] = {}
    for factor, sign in signed:
        base, exponent, fitted = _numeric_power(factor)
        alike.setdefault(base, []).append((sign * exponent, fitted))
    joined = {
        base: total
        for base, powers in alike.items()
        if len(powers) > 1
        and any(fitted for _, fitted in powers)
        and (total := math.fsum(exponent for exponent, _ in powers))  # a base that would vanish stays
    }
    if not joined:
        return piece.close()
    factors: list[Expression] = []
    divisors: list[Expression] = []
    for factor, sign in signed:
        base, _, fitted = _numeric_power(factor)
        if base not in alike:
            continue  # its power is there already
        if base not in joined:
            (factors if sign > 0 else divisors).append(factor)
        elif fitted:
            del alike[base]
            factors.append(_folded(Apply(_POW, (base, number_constant(joined[base])))))
    return replace(piece, factors=tuple(factors), divisors=tuple(divisors)).close()


def _numeric_power(factor: Expression) -> tuple[Expression, float, bool]:
    """The base and the exponent, a number, that a factor is; and whether this is a number that is not whole.

    A root is a half, which was not fitted. Any other factor is itself to the power of 1.
    """
    if isinstance(factor, Apply):
        if factor.operator.role is Role.ROOT:
            return factor.operands[0], 0.5, False
        if factor.operator.role is Role.POWER:
            exponent = _number_of(factor.operands[1])
            if exponent is not None:
                return factor.operands[0], exponent, exponent != round(exponent)
    return factor, 1, False


# The form that people write for positive quantities. Roots of products become products of roots and sums are multiplied
# out, as if all that stands under a root or a logarithm were positive. Where it is not, the result is another function:
# whoever asks must judge it by the data.

LARGEST_DENOMINATOR = 12
"""Of a small fraction, by definition: 12 is the least that allows halves, thirds, quarters, sixths and twelfths."""
_FRACTION_ROUNDING = 1e-15  # relative distance of a double from the fraction that it stands for: some roundings
_E = Constant(math.e, "E")
_Term = tuple[Fraction | float, Powers]  # a number and the factors


def plain_form(expression: Expression) -> Expression:
    """The sum of products that it is where all bases are positive; equal products are one, simple factors come first.

    >>> from symenum.expressions import parse
    >>> print(plain_form(parse("x*(5*exp(1 - z)/(2*E) + exp(log(y/x**2)/2))")))
    5*x*exp(-z)/2 + sqrt(y)
    >>> print(plain_form(parse("(x + x + x + y)/y")))
    3*x/y + 1
    >>> print(plain_form(parse("3*(x + x)*sin(x)/2")))
    3*x*sin(x)
    """
    joined: dict[frozenset[tuple[Expression, Fraction]], _Term] = {}
    for number, powers in _terms(expression):
        before, first = joined.get(key := frozenset(powers.items()), (Fraction(0), powers))
        joined[key] = (before + number, first)
    total: Expression = Constant(0)
    for number, powers in joined.values():
        simple_first = dict(sorted(powers.items(), key=lambda one: one[0].complexity))
        total = apply("add", total, apply("mul", _constant(number), power_product(simple_first)))
    return simplify(total)


def _terms(expression: Expression) -> Iterator[_Term]:
    total = as_sum(simplify(expression))
    if total.number:
        yield _fraction_of_whole(total.number), {}
    for added, term in total.terms:
        number, powers = _factors(term)
        yield from _multiplied_out(number if added else -number, powers)


def _multiplied_out(number: Fraction | float, powers: Powers) -> Iterator[_Term]:
    """The terms of number·powers: where exactly one factor is a sum, it is multiplied out."""
    sums = [base for base, power in powers.items() if power == 1 and _is_sum(base)]
    if len(sums) != 1:
        yield number, powers
        return
    rest = multiplied_powers((powers, Fraction(1)), ({sums[0]: Fraction(1)}, Fraction(-1)))
    for inner, factors in _terms(sums[0]):
        yield number * inner, multiplied_powers((rest, Fraction(1)), (factors, Fraction(1)))


def _is_sum(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.operator.role in ADDITIVE


def _factors(expression: Expression) -> _Term:
    """The number and the factors of a product, or of what is raised to a power."""
    product = as_product(simplify(expression))
    number = _fraction_of_whole(product.numerator) / product.denominator
    parts: list[tuple[Powers, Fraction]] = []
    for factors, sign in ((product.factors, 1), (product.divisors, -1)):
        for factor in factors:
            own, powers = _factor(factor)
            number *= own**sign
            parts.append((powers, Fraction(sign)))
    return number, multiplied_powers(*parts)


def _factor(factor: Expression) -> _Term:
    """The number and the powers that one factor of a product is."""
    if isinstance(factor, Apply):
        role, operands = factor.operator.role, factor.operands
        exponent = Fraction(1, 2) if role is Role.ROOT else _exponent(operands[-1]) if role is Role.POWER else None
        if exponent is not None:
            return _plain_power(_factors(operands[0]), exponent)
        if role is Role.EXPONENTIAL:
            return _exponential(operands[0])
    return Fraction(1), {factor: Fraction(1)}


def _plain_power(term: _Term, exponent: Fraction) -> _Term:
    number, powers = term
    if number < 0:
        whole = power_product(powers)
        return Fraction(1), {simplify(apply("mul", _constant(number), whole)): exponent}
    value = float(number) ** float(exponent)
    if exponent.denominator == 1 or value == round(value):
        return (number ** int(exponent) if exponent.denominator == 1 else Fraction(round(value))), multiplied_powers(
            (powers, exponent)
        )
    return Fraction(1), multiplied_powers((powers, exponent), ({_constant(number): Fraction(1)}, exponent))


def _exponential(argument: Expression) -> _Term:
    """Logarithms in the argument become powers, a whole number a power of E."""
    total = as_sum(simplify(argument))
    number: Fraction | float = Fraction(1)
    whole = isinstance(total.number, int)
    parts: list[tuple[Powers, Fraction]] = [({_E: Fraction(1)}, Fraction(total.number))] if whole else []
    rest: Expression = Constant(0) if whole else Constant(total.number)
    for added, term in total.terms:
        product = as_product(term)
        power = _exponent(Constant(product.number))
        factor = product.factors[0] if len(product.factors) == 1 and not product.divisors else None
        if power is not None and isinstance(factor, Apply) and factor.operator.role is Role.LOGARITHM:
            own, powers = _plain_power(_factors(factor.operands[0]), power if added else -power)
            number *= own
            parts.append((powers, Fraction(1)))
        else:
            rest = apply("add" if added else "sub", rest, term)
    rest = simplify(rest)
    return number, multiplied_powers(
        *parts, ({} if rest == Constant(0) else {apply("exp", rest): Fraction(1)}, Fraction(1))
    )


def _exponent(expression: Expression) -> Fraction | None:
    """The fraction with a denominator of up to `LARGEST_DENOMINATOR` that a constant is; None where it is none."""
    if isinstance(expression, Apply):
        parts = as_product(expression)
        if parts.factors or parts.divisors:
            return None
        return Fraction(parts.number).limit_denominator(LARGEST_DENOMINATOR)
    if not isinstance(expression, Constant) or expression.name is not None:
        return None
    near = Fraction(expression.value).limit_denominator(LARGEST_DENOMINATOR)
    return near if abs(float(near) - expression.value) <= _FRACTION_ROUNDING * abs(expression.value) else None


def _fraction_of_whole(number: float) -> Fraction | float:
    return Fraction(number) if isinstance(number, int) else number


def _constant(number: Fraction | float) -> Expression:
    if isinstance(number, float):
        return Constant(number)
    above, below = Constant(Fraction(number).numerator), Fraction(number).denominator
    return above if below == 1 else apply("div", above, Constant(below))


# Equality of functions. `same_function` decides; `fingerprint` is a key for buckets, so that a collection need not be
# compared pair by pair. Both see identities that no reordering shows: log(exp(x)) and x, sin(x)**2 + cos(x)**2 and 1.
# Numbers cannot prove an identity: functions that agree to 1e-9 on all points count as one. The points do not depend on
# the data, nor on any global state.

_SEED = 20_240_229  # any fixed number, and not the search's seed: whether two functions are equal must not depend on it
# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_VALUE_TOLERANCE = 1e-9  # relative difference of two values that are equal
_ERROR_FACTOR = 8.0  # estimated rounding errors by which two equal values may differ; the estimate is of first order
_MIN_FINITE = 4  # points on which a function must be finite for its values to decide
_DIGITS = 6  # significant digits of a value in a fingerprint
# Number of points and interval of each domain: both signs, inside the unit interval, outside it. So every operator of
# the table has values on many points. Most points have both signs: abs(f) and f differ only where f is negative.
_DOMAINS = ((96, -3.0, 3.0), (24, 0.2, 1.0), (24, 1.0, 4.0))
_POINTS = sum(count for count, _, _ in _DOMAINS)
_LOW = np.concatenate([np.full(count, low) for count, low, _ in _DOMAINS])
_WIDTH = np.concatenate([np.full(count, high - low) for count, low, high in _DOMAINS])


def sample_points(inputs: int) -> Tensor:
    """The fixed points, float64 of shape (144, inputs): 96 uniform in (-3, 3), 24 in (0.2, 1), 24 in (1, 4).

    A coordinate's values do not depend on how many coordinates there are.
    """
    if isinstance(inputs, bool) or not isinstance(inputs, int) or inputs < 0:
        raise ValueError(f"inputs must be a whole number of at least 0, not {inputs!r}")
    uniform = np.random.default_rng(_SEED).random((inputs, _POINTS))
    return torch.from_numpy(np.ascontiguousarray((_LOW + _WIDTH * uniform).T))


def same_function(a: Expression, b: Expression) -> bool:
    """Whether both have the same values: finite on the same points, and there equal to 1e-9 or to rounding error.

    With fewer than 4 finite points the values say too little, and only equal canonical forms are the same.
    """
    if a == b:
        return True
    names = sorted({*variables(a), *variables(b)}, key=natural_key)
    columns = dict(zip(names, sample_points(len(names)).unbind(1), strict=True))
    value_a, error_a = _values(a, columns)
    value_b, error_b = _values(b, columns)
    finite = torch.isfinite(value_a)
    if not torch.equal(finite, torch.isfinite(value_b)):
        return False
    if int(finite.sum()) < _MIN_FINITE:
        return canonical(a) == canonical(b)
    scale = torch.maximum(value_a.abs(), value_b.abs())
    # A relative tolerance alone would separate (x + y) - y from x near x = 0; an absolute one alone would unite 1e-12*x
    # and 2e-12*x.
    tolerance = _VALUE_TOLERANCE * scale + _ERROR_FACTOR * (error_a + error_b)
    return bool(((value_a - value_b).abs() <= tolerance)[finite].all())


def fingerprint(expression: Expression, variables: Sequence[str] | None = None) -> bytes:
    """A key that equal functions nearly always share: the values on the points, to 6 significant digits.

    Nearly, because a value may lie at the edge of two roundings; different functions may share it too, so follow it
    with `same_function`. `variables` says which coordinate of the points each variable takes. Without it the
    coordinate follows from the name, and fingerprints of all expressions compare; never mix the two ways.
    """
    names = _variables(expression)
    if variables is None:
        columns = {name: _column(name) for name in names}
    else:
        missing = [name for name in names if name not in variables]
        if missing:
            raise ValueError(f"variables must name every variable of the expression: {', '.join(missing)} missing")
        columns = dict(zip(variables, sample_points(len(variables)).unbind(1), strict=True))
    values, errors = _values(expression, columns)
    # What is only rounding error counts as zero, and -0.0 as 0.0.
    values = torch.where(values.abs() <= _ERROR_FACTOR * errors, 0.0, values) + 0.0
    return " ".join([f"{value:.{_DIGITS - 1}e}" if abs(value) < np.inf else "-" for value in values.tolist()]).encode()


_variables = variables  # the function, under a name that the parameter of fingerprint does not hide


def _column(name: str) -> Tensor:
    uniform = np.random.default_rng([_SEED, zlib.crc32(name.encode())]).random(_POINTS)
    return torch.from_numpy(_LOW + _WIDTH * uniform)


def _values(expression: Expression, columns: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Values and first-order estimates of their rounding error, float64 of shape (144,) each, a number for each point.

    The error of an operand adds the change of the value when the operand moves by that error. So no operator needs a
    derivative, and a difference of nearly equal numbers is known to be rounding.
    """

    def visit(node: Expression, operands: tuple[tuple[Tensor, Tensor], ...]) -> tuple[Tensor, Tensor]:
        if isinstance(node, Variable):
            return columns[node.name], torch.zeros(_POINTS, dtype=torch.float64)
        if isinstance(node, Constant):
            full = torch.full((_POINTS,), float(node.value), dtype=torch.float64)
            return full, torch.zeros(_POINTS, dtype=torch.float64)
        arguments = [value for value, _ in operands]
        value = node.operator.function(*arguments)
        error = EPSILON * value.abs()
        for i, (argument, change) in enumerate(operands):
            if bool(change.any()):
                neighbour = node.operator.function(*arguments[:i], argument + change, *arguments[i + 1 :])
                error = error + (neighbour - value).abs()
        # Next to a pole or the end of a domain the estimate is not finite. Zero then keeps two functions apart.
        return value, torch.where(torch.isfinite(error), error, 0.0)

    return fold(expression, visit)
