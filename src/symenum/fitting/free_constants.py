"""The constants of an expression: which are free to be fitted, where one more could stand, and which part could go.

Constants count as often as they occur, from left to right: in 2.5*x + sin(2.5) there are two. Nothing is fitted here
(`refine`), and no constant is given a nice value (`snap`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeGuard

from symenum.core.memory import LAWS_REMEMBERED
from symenum.expressions import Apply, Constant, Expression, apply, evaluate, fold, simplify, variables
from symenum.expressions.algebra import as_product, as_sum, product_of, with_factor
from symenum.expressions.written import written
from symenum.operators.traits import ADDITIVE, ARITHMETIC, Role

__all__ = [
    "form_as_printed",
    "form_of",
    "free_constants",
    "free_leaves",
    "freed",
    "postfix",
    "rebuilt",
    "with_coefficients",
    "with_constants",
    "with_leaves",
    "with_one_less",
    "with_one_more",
]

_NEUTRAL = (0.0, 1.0)  # an offset and a factor that change nothing
_START_DISTANCE = 0.1  # from the neutral value, so that `simplify` keeps a new coefficient; any small number will do
_ANY_NUMBER = 0.5  # in the place of every number of a law: any that is not whole, since whole ones stay whole
_MAX_EXPONENT = 600.0  # exp of more, or of less than the negative, is too near to the end of the doubles, exp(709)


def postfix(expression: Expression, *, integers: bool = True) -> list[tuple[Expression, bool]]:
    """All nodes, operands before their operator, shared sub-trees as often as they occur; and whether each is free.

    A number is free unless it has a name, or is a whole number in an exponent: x**2 is a square, x**2.0 a power to be
    fitted. Without `integers` no whole number is free.
    """
    # The stack gives each operator before its operands, the last operand first: the reverse of the postfix order.
    reverse: list[tuple[Expression, bool]] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, exponent = stack.pop()
        if isinstance(node, Apply):
            reverse.append((node, False))
            operands = node.operands
            stack.append((operands[0], False))
            if len(operands) == 2:
                stack.append((operands[1], node.operator.role is Role.POWER))
        else:
            number = isinstance(node, Constant) and node.name is None
            whole = isinstance(node, Constant) and isinstance(node.value, int)
            reverse.append((node, number and not (whole and (exponent or not integers))))
    reverse.reverse()
    return reverse


def free_constants(expression: Expression, *, integers: bool = True) -> tuple[float, ...]:
    """The values of the free constants, from left to right.

    >>> from symenum.expressions import parse
    >>> free_constants(parse("2*x**2 + sin(1.5*pi*x)")), free_constants(parse("2*x + 1.5"), integers=False)
    ((2.0, 1.5), (1.5,))
    """
    return tuple(float(leaf.value) for leaf in free_leaves(expression, integers=integers))


def free_leaves(expression: Expression, *, integers: bool = True) -> tuple[Constant, ...]:
    """The free constants themselves, from left to right."""
    return tuple(node for node, free in postfix(expression, integers=integers) if free and isinstance(node, Constant))


def with_constants(expression: Expression, values: Sequence[float], *, integers: bool = True) -> Expression:
    """The expression with its free constants replaced, from left to right; one that keeps its value stays as it is.

    >>> from symenum.expressions import parse
    >>> print(with_constants(parse("2*x + 3"), [2.0, 0.5]))
    2*x + 0.5
    """
    return with_leaves(expression, [Constant(float(value)) for value in values], integers=integers)


def with_leaves(expression: Expression, leaves: Sequence[Expression], *, integers: bool = True) -> Expression:
    """The expression with other expressions in the places of its free constants, from left to right."""
    return rebuilt(postfix(expression, integers=integers), leaves)


def rebuilt(nodes: Iterable[tuple[Expression, bool]], leaves: Sequence[Expression]) -> Expression:
    """The expression whose nodes `postfix` gave, with `leaves` in the places of its free constants.

    Sub-trees in which nothing changes are the same objects as before. ValueError where there are too few or too many
    leaves.
    """
    stack: list[Expression] = []
    replacements = iter(leaves)
    for node, free in nodes:
        if isinstance(node, Apply):
            at = len(stack) - len(node.operands)
            operands = tuple(stack[at:])
            del stack[at:]
            old = node.operands
            unchanged = operands[0] is old[0] and operands[-1] is old[-1]
            stack.append(node if unchanged else Apply(node.operator, operands))
        elif free and isinstance(node, Constant):
            leaf = next(replacements, None)
            if leaf is None:
                raise ValueError(f"{len(leaves)} values are too few for the free constants")
            same = isinstance(leaf, Constant) and leaf.name is None and leaf.value == node.value
            stack.append(node if same else leaf)
        else:
            stack.append(node)
    if next(replacements, None) is not None:
        raise ValueError(f"{len(leaves)} values are too many for the free constants of {stack[0]}")
    return stack[0]


def with_coefficients(expression: Expression) -> Expression:
    """The expression with coefficients that change nothing yet.

    Each term of a sum gets a factor, each sum an offset, the arguments of functions a factor and a shift. A coefficient
    that another one already gives is left out, so that the data can determine all of them: of C₁·exp(x + C₂) only the
    factor is kept, of C₁·(C₂·x + C₃·y) one of the three goes, log(C·x) + B is log(x) + B. (Two cases are not seen: the
    offset outside a quotient of sums of the same terms, and two exponentials in one product.) Constants that are there
    are taken as the start; whole exponents stay.

    >>> from symenum.expressions import parse
    >>> print(with_coefficients(parse("sin(x)*y")))
    1.0*sin(1.0*x + 0.0)*y + 0.0
    """
    simple = simplify(expression)
    try:
        return _affine(simple, scale=True, offset=True)[0]
    except (ValueError, ArithmeticError):  # a constant part such as log(0) or 10**400 has no value to start from
        return simple


def with_one_more(expression: Expression) -> list[Expression]:
    """The expression as it is, and in all ways with one more coefficient, which starts 0.1 above its neutral value.

    >>> from symenum.expressions import parse
    >>> print(*with_one_more(parse("2*exp(x) + 3")), sep="; ")
    2*exp(x) + 3; 2*exp(1.1*x) + 3
    """
    family = with_coefficients(expression)
    values = free_constants(family)
    variants = {simplify(with_constants(family, values)): None}
    for at, value in enumerate(values):
        if value in _NEUTRAL:
            moved = [*values[:at], value + _START_DISTANCE, *values[at + 1 :]]
            variants[simplify(with_constants(family, moved))] = None
    return list(variants)


def _affine(expression: Expression, *, scale: bool, offset: bool) -> tuple[Expression, float, float]:
    """result, factor and number with expression = factor·result + number; the result is Σ C·term + B, the factor > 0.

    Without `scale` the first term of the result has no coefficient C, and its size is the factor. Without `offset` the
    result has no B, which is then the number; with it the number is 0.
    """
    total = as_sum(expression)
    number = float(total.number)
    bodies: dict[Expression, float] = {}
    for added, term in total.terms:
        if not variables(term):
            number += float(evaluate(term, {})) * (1 if added else -1)
            continue
        body, coefficient, constant = _term(term, offset)
        sign = 1.0 if added else -1.0
        number += sign * constant
        bodies[body] = bodies.get(body, 0.0) + sign * coefficient
    bodies = {body: coefficient for body, coefficient in bodies.items() if coefficient != 0}
    if not bodies:
        return Constant(number), 1.0, 0.0
    first = abs(next(iter(bodies.values())))
    factor = 1.0 if scale else first
    result: Expression | None = None
    for body, coefficient in bodies.items():
        if result is None and not scale:
            result = body if coefficient > 0 else apply("neg", body)
            continue
        piece = with_factor(Constant(coefficient / factor), body)
        result = piece if result is None else apply("add", result, piece)
    assert result is not None
    return (apply("add", result, Constant(number / factor)), factor, 0.0) if offset else (result, factor, number)


def _term(term: Expression, offset: bool) -> tuple[Expression, float, float]:
    """body, coefficient and number with term = coefficient·body + number; the number is 0 but for a logarithm.

    log(size·f) is log(f) + log(size), so that a logarithm that stands alone gives a number to the `offset` of its sum.
    """
    product = as_product(term)
    coefficient = product.number
    alone = offset and len(product.factors) == 1 and not product.divisors
    sides: list[list[Expression]] = [[], []]
    for side, factors, power in ((0, product.factors, 1), (1, product.divisors, -1)):
        for factor in factors:
            if not variables(factor):
                coefficient *= float(evaluate(factor, {})) ** power
                continue
            if alone and isinstance(factor, Apply) and factor.operator.role is Role.LOGARITHM:
                inside, size, _ = _affine(factor.operands[0], scale=False, offset=True)
                return apply("log", inside), coefficient, coefficient * math.log(size)
            body, size = _factor(factor)
            coefficient *= size**power
            sides[side].append(body)
    above, below = sides
    body = product_of(above) if above else Constant(1)
    return apply("div", body, product_of(below)) if below else body, coefficient, 0.0


def _factor(factor: Expression) -> tuple[Expression, float]:
    """A factor of a product with coefficients inside, and the number that it gives to the coefficient outside."""
    if not isinstance(factor, Apply):
        return factor, 1.0
    role, degree = factor.operator.role, factor.operator.traits.degree
    if role in ADDITIVE:
        body, size, _ = _affine(factor, scale=False, offset=True)
        return body, size
    if role is Role.EXPONENTIAL:
        body, _, number = _affine(factor.operands[0], scale=True, offset=False)
        if abs(number) < _MAX_EXPONENT:
            return apply("exp", body), math.exp(number)
    if degree is not None and len(factor.operands) == 1:
        # A positive factor of the argument comes out, to the power of the degree; the rest may be shifted.
        body, size, _ = _affine(factor.operands[0], scale=False, offset=True)
        return apply(factor.operator, body), size**degree
    if role is Role.POWER:
        return _power(factor)
    return apply(factor.operator, *(_affine(o, scale=True, offset=True)[0] for o in factor.operands)), 1.0


def _power(factor: Apply) -> tuple[Expression, float]:
    """A power with coefficients inside, and the number that it gives to the coefficient outside.

    A base is shifted only where it is a sum: x**2 stays a square of x.
    """
    base, exponent = factor.operands
    shifted = isinstance(base, Apply) and base.operator.role in ADDITIVE
    if variables(exponent):
        body, _, number = _affine(exponent, scale=True, offset=False)
        if not variables(base):  # 2**(x + 1) is 2·2**x
            return apply("pow", base, body), math.pow(float(evaluate(base, {})), number)
        inside = _affine(base, scale=True, offset=shifted)[0]
        return apply("pow", inside, apply("add", body, Constant(number)) if number else body), 1.0
    body, size, number = _affine(base, scale=False, offset=shifted)
    if number:
        return factor, 1.0
    return apply("pow", body, exponent), size ** float(evaluate(exponent, {}))


def with_one_less(expression: Expression) -> list[Expression]:
    """The expression in all ways without one operand of a sum, a difference, a product or a quotient.

    Under noise a law with a term too many fits a little better, and hides the simple law.

    >>> from symenum.expressions import parse
    >>> print(*with_one_less(parse("2*sin(x + y) - 3")), sep="; ")
    2*sin(x) - 3; 2*sin(y) - 3; sin(x + y) - 3; 2*sin(x + y)
    """
    variants = dict.fromkeys(simplify(variant) for variant in fold(expression, _shortened))
    return [variant for variant in variants if variables(variant) and variant.complexity < expression.complexity]


def _shortened(node: Expression, below: tuple[list[Expression], ...]) -> list[Expression]:
    """All variants of the node without one operand: of an operator below it (`below`), then of its own."""
    if not isinstance(node, Apply):
        return []
    operands = node.operands
    found = [
        apply(node.operator, *operands[:at], variant, *operands[at + 1 :])
        for at, variants in enumerate(below)
        for variant in variants
    ]
    role = node.operator.role
    if role not in ARITHMETIC:
        return found
    first, second = operands
    without_first = second
    if role is Role.DIFFERENCE:
        without_first = apply("neg", second)
    elif role is Role.QUOTIENT:
        without_first = apply("div", Constant(1), second)
    return [*found, first, without_first]


# The form of a law is what is left of it when its numbers do not count. There are two: `form_of` for laws that are to
# be fitted, so that one form is fitted once, whatever it looks like; `form_as_printed` for laws that are to be shown,
# so that a reader sees no two that are alike. (What occurs in a law as a part is told by `symenum.tokens.credit`, for
# which signs, order and factors of terms do not count either.)


@lru_cache(LAWS_REMEMBERED)  # asked for the laws of a front and those near it in every step
def form_of(law: Expression) -> Expression:
    """The law with 1 for each of its constants but exponents: laws that differ in these only have the same form."""
    law = freed(law)
    return with_constants(law, [1.0] * len(free_constants(law, integers=False)), integers=False)


@lru_cache(LAWS_REMEMBERED)  # a front compares the same laws in every step; a search has thousands
def form_as_printed(law: Expression) -> Expression:
    """The law as it is printed, all its numbers alike but whole exponents.

    >>> from symenum.expressions import parse
    >>> form_as_printed(parse("3*x*x")) == form_as_printed(parse("3.01*x**2"))
    True
    """
    shown = written(law)
    return with_constants(shown, [_ANY_NUMBER] * len(free_constants(shown)))


def freed(law: Expression) -> Expression:
    """The law with its whole numbers free to be fitted, but for exponents and 1.

    Laws of the front have rounded constants: beside a further part 16 may be no good number any more.
    """

    def visit(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if not isinstance(node, Apply):
            return node
        kept = operands[1:] if node.operator.role is Role.POWER else ()
        free = (Constant(float(one.value)) if _is_whole(one) else one for one in operands[: len(operands) - len(kept)])
        return Apply(node.operator, (*free, *kept))

    return fold(law, visit)


def _is_whole(node: Expression) -> TypeGuard[Constant]:
    return isinstance(node, Constant) and node.name is None and isinstance(node.value, int) and abs(node.value) != 1
