"""The tree that people write for a law: the form in which every output shows it.

`written` gives the same function, value by value up to rounding, and defined at the same points. So it cancels nothing
(x**2/x stays) and multiplies nothing out. It writes x**2 for x*x, 4*R for R + R + R + R, a - b for a + (-1)*b and for
-(b - a), x**0.17 for 1/x**(-0.17), cos(2*x) for cos(-2*x), and puts factors in the usual order: number, other
constants, variables, sums, functions.

It is for the eye: a law keeps the complexity of the tree that the search has found. Of the search, only the front asks
for this form: of laws that print alike it keeps one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce

from symenum.expressions.algebra import folded_fraction, number_constant
from symenum.expressions.tree import Apply, Constant, Expression, Variable, fold, natural_key, variables
from symenum.operators import OPERATORS, Operator
from symenum.operators.traits import ADDITIVE, MULTIPLICATIVE, Role

__all__ = ["written"]

_ADD, _SUB, _MUL, _DIV, _NEG, _POW, _SQRT = (
    OPERATORS[name] for name in ("add", "sub", "mul", "div", "neg", "pow", "sqrt")
)
_ONE_HALF = Fraction(1, 2)
_SHORT_DECIMALS = 1000  # fractions whose denominator divides this have at most three decimals: 2.5 rather than 5/2
_CACHED = 2048  # laws: some fronts, each of which is shown many times while a search runs
_MAX_PASSES = 8  # one pass may bring factors together that the next one joins: x*(x + x), x*(2*x), 2*x**2
# The order of the factors of a product.
_CONSTANT, _VARIABLE, _SUM, _OTHER = range(4)

_Exponent = Fraction | float  # above zero
_Factor = tuple[Expression, _Exponent]


@dataclass(frozen=True)
class _Product:
    """numerator/denominator · factors / divisors; a number that is not a fraction has the denominator 1."""

    numerator: float = 1
    denominator: int = 1
    factors: tuple[_Factor, ...] = ()
    divisors: tuple[_Factor, ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.factors and not self.divisors

    def negated(self) -> _Product:
        return replace(self, numerator=-self.numerator)

    def tidied(self) -> _Product:
        """Equal factors as powers, exp(-2*u) for a divisor exp(u)**2, and everything in order."""
        factors, divisors = _in_order(self.factors), _in_order(self.divisors)
        powers = [(base, exponent) for base, exponent in factors if exponent != 1] + [
            (base, -exponent) for base, exponent in divisors
        ]
        exponentials = [(base, power) for base, power in powers if _is_exponential_of_a_term(base) and power % 1 == 0]
        if not exponentials:
            return replace(self, factors=factors, divisors=divisors)
        single = tuple((_exponential_raised(base, int(power)), Fraction(1)) for base, power in exponentials)
        factors = tuple((base, exponent) for base, exponent in factors if (base, exponent) not in exponentials)
        divisors = tuple((base, exponent) for base, exponent in divisors if (base, -exponent) not in exponentials)
        return replace(self, factors=_in_order(factors + single), divisors=divisors)

    def with_sign_in_a_sum(self, *, leads: bool) -> _Product:
        """A minus sign goes into a factor that is a difference: 2*(b - a) for -2*(a - b).

        It does so where the difference has more minus than plus signs, or where the minus would lead the formula.
        """
        if self.numerator >= 0:
            return self
        for i, (base, exponent) in enumerate(self.factors):
            terms = _signed_terms(base)
            minus = sum(not added for added, _ in terms)
            if exponent == 1 and len(terms) > 1 and minus > (0 if leads else len(terms) - minus):
                turned = _closed(fold(Apply(_NEG, (base,)), _write))
                factors = (*self.factors[:i], (turned, exponent), *self.factors[i + 1 :])
                return replace(self.negated(), factors=factors)
        return self

    def close(self) -> Expression:
        """The tidied product as one expression."""
        numerator, denominator = self.numerator, self.denominator
        if denominator != 1 and abs(numerator) != 1 and _SHORT_DECIMALS % denominator == 0:
            numerator, denominator = numerator / denominator, 1
        factors = [_power(base, exponent) for base, exponent in self.factors]
        if abs(numerator) != 1 or not factors:
            factors.insert(0, number_constant(numerator))
        elif numerator < 0:
            factors[0] = Apply(_NEG, (factors[0],))
        divisors = [_power(base, exponent) for base, exponent in self.divisors]
        if denominator != 1:
            divisors.insert(0, Constant(denominator))
        result = _chain(_MUL, factors)
        return Apply(_DIV, (result, _chain(_MUL, divisors))) if divisors else result


@dataclass(frozen=True)
class _Sum:
    """The terms; a number is a term without factors."""

    terms: tuple[_Product, ...]

    def negated(self) -> _Sum:
        return _Sum(tuple(term.negated() for term in self.terms))

    def close(self) -> Expression:
        return _joined(self.signed_terms())

    def signed_terms(self) -> list[tuple[bool, Expression]]:
        """The closed terms, each with whether it is added (or subtracted): like terms are one, the number is last."""
        collected: dict[tuple[tuple[_Factor, ...], tuple[_Factor, ...]], list[_Product]] = {}
        for term in self.terms:
            tidy = term.tidied()
            alike = collected.setdefault((tidy.factors, tidy.divisors), [])
            total = _added(alike[-1], tidy) if alike else None
            if total is None:
                alike.append(tidy)
            else:
                alike[-1] = total
        terms = [term for alike in collected.values() for term in alike]
        numbers = [term for term in terms if term.is_number and term.numerator != 0]
        others = [term for term in terms if not term.is_number]
        if all(_is_monomial(term) for term in others):
            others.sort(key=_by_degree)
        leads = not any(term.numerator > 0 for term in others + numbers)
        others = [term.with_sign_in_a_sum(leads=leads and i == 0) for i, term in enumerate(others)]
        shown = (others + numbers) or [_Product(0)]
        return [(term.numerator >= 0, (term if term.numerator >= 0 else term.negated()).close()) for term in shown]


_Piece = Expression | _Product | _Sum


@lru_cache(_CACHED)
def written(expression: Expression) -> Expression:
    """The same function as people write it.

    >>> from symenum.expressions import parse
    >>> print(written(parse("5*exp(-x2)*x1/2 + (-91.3)")), written(parse("R + R + R*R*R")), written(parse("-(a - b)")))
    2.5*x1*exp(-x2) - 91.3 R**3 + 2*R b - a
    """
    for _ in range(_MAX_PASSES):
        before, expression = expression, _closed(fold(expression, _write))
        if expression == before:
            break
    return expression


def _write(node: Expression, operands: tuple[_Piece, ...]) -> _Piece:
    if isinstance(node, Constant):
        return _Product(node.value) if node.name is None else node
    if not isinstance(node, Apply):
        return node
    operator = node.operator
    if operator.role in ADDITIVE:
        left, right = (_as_sum(operand) for operand in operands)
        return _Sum(left.terms + (right if operator.role is Role.SUM else right.negated()).terms)
    if operator.role is Role.NEGATION:
        return operands[0].negated() if isinstance(operands[0], _Sum) else _as_product(operands[0]).negated()
    if operator.role in MULTIPLICATIVE:
        product = _multiplied(operands[0], operands[1], over=operator.role is Role.QUOTIENT)
        return Apply(operator, tuple(map(_closed, operands))) if product is None else product
    if operator.role is Role.ROOT:
        return _Product(factors=((_closed(operands[0]), _ONE_HALF),))
    if operator.role is Role.POWER:
        return _raised(operands[0], operands[1])
    return _called(operator, operands)


def _called(operator: Operator, operands: tuple[_Piece, ...]) -> _Piece:
    """A function of its operands; the sign of the operand goes where the function is even or odd."""
    parity = operator.traits.parity if operator.arity == 1 else 0
    if not parity:
        return Apply(operator, tuple(map(_closed, operands)))
    negative, operand = _unsigned(operands[0])
    call = Apply(operator, (operand,))
    return _Product(-1 if negative and parity < 0 else 1, factors=((call, Fraction(1)),))


def _unsigned(piece: _Piece) -> tuple[bool, Expression]:
    """Whether it is a product with a minus sign or a sum of minus signs only, and the expression without that sign."""
    terms = _signed_terms(_closed(piece))
    if any(added for added, _ in terms):
        return False, _closed(piece)
    return True, _joined([(True, term) for _, term in terms])


def _raised(base: _Piece, power: _Piece) -> _Piece:
    exponent = _exponent(power)
    product = _as_product(base)
    if exponent is None or exponent == 0 or product.is_number:
        return Apply(_POW, (_closed(base), _closed(power)))
    if exponent == 1:
        return base
    whole = isinstance(exponent, Fraction) and exponent.denominator == 1
    sign = 1
    if whole:
        negative, inner = _unsigned(base)
        sign = -1 if negative and exponent % 2 else 1
        factors = product.tidied().factors
        if abs(product.numerator) == 1 == product.denominator and len(factors) == 1 and not product.divisors:
            ((inner_base, inner_exponent),) = factors
            if isinstance(inner_exponent, Fraction) and inner_exponent.denominator == 1:  # (x**2)**3 is x**6
                inner, exponent = inner_base, exponent * inner_exponent
    else:
        inner = _closed(base)
    positive = exponent if exponent > 0 else -exponent
    factor = ((inner, positive),)
    return _Product(sign, factors=factor) if exponent > 0 else _Product(sign, divisors=factor)


def _exponent(piece: _Piece) -> _Exponent | None:
    """The exponent as a number, exact where it is a fraction of whole numbers; None where it is none."""
    product = _as_product(piece)
    if not product.is_number:
        return None
    if isinstance(product.numerator, float) and product.numerator not in (0.5, -0.5):
        return Fraction(product.numerator) if product.numerator.is_integer() else product.numerator
    return Fraction(product.numerator) / product.denominator


def _multiplied(left: _Piece, right: _Piece, *, over: bool) -> _Piece | None:
    """The product, or the quotient `over` right; None where the number is not to be folded."""
    a, b = _as_product(left), _as_product(right)
    for product, other in ((b, left), (a, right)):
        if isinstance(other, _Sum) and product.is_number and abs(product.numerator) == 1 == product.denominator:
            if over and product is a:
                break
            return other.negated() if product.numerator < 0 else other
    above = (a.numerator, b.denominator if over else b.numerator)
    below = (a.denominator, b.numerator if over else b.denominator)
    number = folded_fraction(above[0] * above[1], below[0] * below[1])
    if number is None:
        return None
    factors, divisors = (b.divisors, b.factors) if over else (b.factors, b.divisors)
    return _Product(*number, a.factors + factors, a.divisors + divisors)


def _added(a: _Product, b: _Product) -> _Product | None:
    """The sum of two like terms; None where it is zero, or not to be folded."""
    number = folded_fraction(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator)
    if number is None or (number[0] == 0 and not a.is_number):
        return None
    return replace(a, numerator=number[0], denominator=number[1])


def _as_product(piece: _Piece) -> _Product:
    if isinstance(piece, _Product):
        return piece
    if isinstance(piece, _Sum):
        negative, inner = _unsigned(piece)
        return _Product(-1 if negative else 1, factors=((inner, Fraction(1)),))
    return _Product(factors=((piece, Fraction(1)),))


def _as_sum(piece: _Piece) -> _Sum:
    return piece if isinstance(piece, _Sum) else _Sum((_as_product(piece),))


def _closed(piece: _Piece) -> Expression:
    if isinstance(piece, _Product):
        return piece.tidied().with_sign_in_a_sum(leads=True).close()
    return piece.close() if isinstance(piece, _Sum) else piece


def _in_order(factors: Sequence[_Factor]) -> tuple[_Factor, ...]:
    """The factors, equal bases to whole powers as one, in the order in which people write them."""
    powers: dict[Expression, _Exponent] = {}
    others: list[_Factor] = []
    for base, exponent in factors:
        if isinstance(exponent, Fraction) and exponent.denominator == 1:
            powers[base] = powers.get(base, Fraction(0)) + exponent
        else:
            others.append((base, exponent))
    return tuple(sorted([*powers.items(), *others], key=_place))


def _place(factor: _Factor) -> tuple[int, object]:
    base, exponent = factor
    if isinstance(base, Variable):
        return (_OTHER if exponent == _ONE_HALF else _VARIABLE), natural_key(base.name)
    if not variables(base):
        return _CONSTANT, ()
    return (_SUM if len(_signed_terms(base)) > 1 and exponent != _ONE_HALF else _OTHER), ()


def _power(base: Expression, exponent: _Exponent) -> Expression:
    if exponent == 1:
        return base
    if exponent == _ONE_HALF:
        return Apply(_SQRT, (base,))
    if isinstance(exponent, Fraction):
        return Apply(_POW, (base, _Product(exponent.numerator, exponent.denominator).close()))
    return Apply(_POW, (base, Constant(exponent)))


def _is_exponential_of_a_term(base: Expression) -> bool:
    is_exponential = isinstance(base, Apply) and base.operator.role is Role.EXPONENTIAL
    return is_exponential and len(_signed_terms(base.operands[0])) == 1  # type: ignore[union-attr]


def _exponential_raised(base: Expression, power: int) -> Expression:
    """exp(u)**power as exp(power*u)."""
    assert isinstance(base, Apply)
    argument = Apply(_MUL, (Constant(power), base.operands[0]))
    return Apply(base.operator, (_closed(fold(argument, _write)),))


def _is_monomial(term: _Product) -> bool:
    """Whether it is a product of whole powers of variables."""
    whole = all(isinstance(base, Variable) and exponent % 1 == 0 for base, exponent in term.factors)
    return whole and not term.divisors


def _by_degree(term: _Product) -> tuple[_Exponent, list[object]]:
    """Orders monomials: higher degrees first, then as in a dictionary, higher powers first."""
    names = [(natural_key(str(base)), -exponent) for base, exponent in term.factors]
    return -sum((exponent for _, exponent in term.factors), Fraction(0)), list(names)


def _signed_terms(expression: Expression) -> list[tuple[bool, Expression]]:
    """The terms of a closed sum, each with whether it is added; a first term that begins with a minus is not."""
    terms: list[tuple[bool, Expression]] = []
    while isinstance(expression, Apply) and expression.operator.role in ADDITIVE:
        terms.append((expression.operator.role is Role.SUM, expression.operands[1]))
        expression = expression.operands[0]
    first = _without_minus(expression)
    terms.append((True, expression) if first is None else (False, first))
    return terms[::-1]


def _without_minus(product: Expression) -> Expression | None:
    """A closed product without the minus sign that it begins with; None where there is none."""
    spine: list[Apply] = []
    while isinstance(product, Apply) and product.operator.role in MULTIPLICATIVE:
        spine.append(product)
        product = product.operands[0]
    if isinstance(product, Apply) and product.operator.role is Role.NEGATION:
        plain = product.operands[0]
    elif isinstance(product, Constant) and product.name is None and product.value < 0:
        plain = Constant(-product.value)
    else:
        return None
    for node in reversed(spine):
        plain = Apply(node.operator, (plain, node.operands[1]))
    return plain


def _joined(terms: Sequence[tuple[bool, Expression]]) -> Expression:
    """The sum of closed terms, a positive one first where there is one."""
    ordered = list(terms)
    first = next((i for i, (added, _) in enumerate(ordered) if added), None)
    result = _with_minus(ordered.pop(0)[1]) if first is None else ordered.pop(first)[1]
    for added, term in ordered:
        result = Apply(_ADD if added else _SUB, (result, term))
    return result


def _with_minus(product: Expression) -> Expression:
    """A closed product with a minus sign before its first factor."""
    spine: list[Apply] = []
    while isinstance(product, Apply) and product.operator.role in MULTIPLICATIVE:
        spine.append(product)
        product = product.operands[0]
    result: Expression = Apply(_NEG, (product,))
    if isinstance(product, Constant) and product.name is None:
        result = Constant(-product.value)
    for node in reversed(spine):
        result = Apply(node.operator, (result, node.operands[1]))
    return result


def _chain(operator: Operator, operands: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: Apply(operator, (a, b)), operands)
