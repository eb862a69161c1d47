"""Trees to SymPy and back, node by node; text is never handed to SymPy, so a variable named S stays a variable.

SymPy simplifies on the way (x/x is 1, 1/2*2 is 1), so a round trip keeps the function, not the tree. It also widens the
domain: sqrt(x)**2 becomes x, which has values where the tree has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import sympy
import torch

from symenum.expressions.algebra import product_of
from symenum.expressions.tree import NAMED_CONSTANTS, Constant, Expression, Variable, apply, fold
from symenum.operators import OPERATORS, Operator
from symenum.operators.traits import Role

__all__ = ["from_sympy", "to_sympy"]


_CONSTANTS = {"pi": sympy.pi, "E": sympy.E}
# The table's operators whose SymPy function is a class (sin, Abs, ...); sqrt is a Pow there.
_FUNCTIONS: dict[object, Operator] = {
    operator.sympy: operator for operator in OPERATORS.values() if isinstance(operator.sympy, type)
}
_Piece = tuple[sympy.Expr, float | None]  # and its value, where it is a number
# Bits of an exact power; larger ones become floating point, because SymPy would compute 9**9**9 to the last digit.
_MAX_BITS = 4096  # 1,233 decimal digits: four times what a double's range of 1e308 needs


def to_sympy(expression: Expression, *, real: bool = False) -> sympy.Expr:
    """The expression in SymPy. Whole numbers become Integer, other numbers Float, pi and E themselves; constants that
    the user has named become symbols.

    The symbols are plain, equal to `sympy.Symbol(name)`, so that `result.subs("x1", 2)` works. With `real` they are
    declared real, which lets SymPy simplify more (sqrt(x**2) to Abs(x)) but makes them other symbols than the plain
    ones.

    >>> from symenum.expressions import parse
    >>> to_sympy(parse("x*x + 1/2"))
    x**2 + 1/2
    """

    def visit(node: Expression, pieces: tuple[_Piece, ...]) -> _Piece:
        if isinstance(node, Variable):
            return (sympy.Symbol(node.name, real=True) if real else sympy.Symbol(node.name)), None
        if isinstance(node, Constant):
            if node.name is not None:
                symbol = _CONSTANTS.get(node.name)
                return (sympy.Symbol(node.name, real=real or None) if symbol is None else symbol), node.value
            whole = isinstance(node.value, int)
            return (sympy.Integer(node.value) if whole else sympy.Float(node.value)), float(node.value)
        numbers = [number for _, number in pieces]
        value = _value(node.operator, numbers)
        if value is not None and not all(math.isfinite(number) for number in numbers if number is not None):
            return sympy.Float(value), value
        operands = tuple(expr for expr, _ in pieces)
        function = node.operator.sympy
        if function is None:
            function = sympy.Function(node.operator.name)
        if node.operator.role is Role.POWER:
            operands = (_bounded(*operands), operands[1])
        return function(*operands), value

    return fold(expression, visit)[0]


def _value(operator: Operator, operands: Sequence[float | None]) -> float | None:
    """The number that an operator makes of numbers, in double precision; None where a variable takes part.

    SymPy holds 9**9**9 as it is, but would never finish a function of such a number.
    """
    numbers = [torch.tensor(number, dtype=torch.float64) for number in operands if number is not None]
    return float(operator.function(*numbers)) if len(numbers) == len(operands) else None


def _bounded(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    if not (base.is_Rational and exponent.is_Rational) or base in (0, 1, -1):
        return base
    bits = max(abs(base.p).bit_length(), base.q.bit_length())
    return sympy.Float(base) if bits * abs(exponent) > _MAX_BITS else base


def from_sympy(expr: sympy.Expr, operators: Iterable[Operator] = ()) -> Expression:
    """The tree of a SymPy expression of real numbers; `operators` are the user's own, found by name.

    Sums with negative terms become differences, negative powers quotients, and square roots `sqrt`.

    >>> import sympy
    >>> x = sympy.Symbol("x")
    >>> print(from_sympy(sympy.sqrt(x) - 2/x))
    sqrt(x) - 2/x
    """
    if not isinstance(expr, sympy.Basic):
        raise TypeError(f"from_sympy takes a SymPy expression, not {type(expr).__name__}; for text use parse")
    return _Reader({operator.name: operator for operator in operators}).read(expr)


class _Reader:
    """Reads with the user's own operators at hand. SymPy's trees are flat and shallow: recursion is safe here."""

    def __init__(self, own: dict[str, Operator]) -> None:
        self.own = own

    def read(self, expr: sympy.Basic) -> Expression:
        if isinstance(expr, sympy.Symbol):
            return Variable(expr.name)
        if isinstance(expr, sympy.Number) or expr in _CONSTANTS.values():
            return self._number(expr)
        if isinstance(expr, sympy.Add):
            return self._sum(expr.as_ordered_terms())
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        if isinstance(expr, sympy.Pow):
            return self._power(*expr.args)
        if isinstance(expr, sympy.re):  # SymPy writes |0**x| as 0**re(x); our variables are real
            return self.read(expr.args[0])
        operator = self.own.get(expr.func.__name__) or _FUNCTIONS.get(expr.func)
        if operator is None or operator.arity != len(expr.args):
            known = ", ".join(["+ - * / **", "sqrt", *(o.name for o in _FUNCTIONS.values()), *self.own])
            raise ValueError(f"cannot write {_short(expr)} ({expr.func.__name__}) with our operators: {known}")
        return apply(operator, *(self.read(argument) for argument in expr.args))

    def _number(self, number: sympy.Basic) -> Expression:
        for name, constant in _CONSTANTS.items():
            if number == constant:
                return Constant(NAMED_CONSTANTS[name], name)
        if isinstance(number, sympy.Integer):
            return Constant(int(number))
        if isinstance(number, sympy.Rational):
            return apply("div", Constant(int(number.p)), Constant(int(number.q)))
        if not isinstance(number, sympy.Float) or not math.isfinite(float(number)):
            raise ValueError(f"cannot write {_short(number)} as a constant: it is not a finite real number")
        return Constant(float(number))

    def _sum(self, terms: Sequence[sympy.Expr]) -> Expression:
        # A positive term leads, if there is one: b - a rather than -a + b.
        leading = next((i for i, term in enumerate(terms) if not term.could_extract_minus_sign()), 0)
        total = self.read(terms[leading])
        for term in [*terms[:leading], *terms[leading + 1 :]]:
            if _is_negative(term):
                total = apply("sub", total, self.read(-term))
            else:
                total = apply("add", total, self.read(term))
        return total

    def _product(self, expr: sympy.Mul) -> Expression:
        above: list[Expression] = []
        below: list[Expression] = []
        negative = False
        for factor in expr.args:
            if factor == -1:
                negative = not negative
            elif isinstance(factor, sympy.Rational) and not isinstance(factor, sympy.Integer):
                negative ^= factor.p == -1
                above += [Constant(int(factor.p))] if abs(factor.p) != 1 else []
                below.append(Constant(int(factor.q)))
            elif isinstance(factor, sympy.Pow) and _is_negative(factor.exp):
                below.append(self._power(factor.base, -factor.exp))
            else:
                above.append(self.read(factor))
        product = product_of(above) if above else Constant(1)
        if negative:
            product = Constant(-1) if product == Constant(1) else apply("neg", product)
        return apply("div", product, product_of(below)) if below else product

    def _power(self, base: sympy.Basic, exponent: sympy.Basic) -> Expression:
        if exponent == 1:
            return self.read(base)
        if isinstance(exponent, sympy.Rational) and exponent.is_negative:
            return apply("div", Constant(1), self._power(base, -exponent))
        if exponent == sympy.Rational(1, 2):
            return apply("sqrt", self.read(base))
        return apply("pow", self.read(base), self.read(exponent))


def _is_negative(expr: sympy.Expr) -> bool:
    """Whether it is a negative number, or has one as its first factor."""
    first = expr.args[0] if isinstance(expr, sympy.Mul) else expr
    return isinstance(first, sympy.Number) and bool(first.is_negative) and bool(first.is_finite)


def _short(expr: sympy.Basic) -> str:
    text = str(expr)
    return text if len(text) <= 80 else text[:77] + "..."
