"""Linear combinations written as people write them: a/3 - 2*b + 1, and nothing for a zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symenum.expressions import Apply, Constant, Expression, apply
from symenum.fitting.recognise import Number
from symenum.operators import ADDITIVE, MULTIPLICATIVE, Role

__all__ = ["linear_combination", "scaled"]

ONE = Constant(1)


def linear_combination(numbers: Sequence[Number], terms: Sequence[Expression]) -> Expression:
    """The sum of number·term, zeros left out; constants last, a positive term first where there is one.

    >>> from symenum.expressions import parse
    >>> from symenum.fitting import nice_number
    >>> print(linear_combination([nice_number(v, 1e-12) for v in (2, -1, 0.5)], [parse("1"), parse("x"), parse("y")]))
    y/2 - x + 2
    """
    pairs = [(number, term) for number, term in zip(numbers, terms, strict=True) if number.value != 0.0]
    if not pairs:
        return Constant(0)
    if len(pairs) == 1:
        return scaled(*pairs[0])
    pieces = [piece for pair in pairs for piece in _pieces(*pair)]
    pieces.sort(key=lambda piece: isinstance(piece.term, Constant))
    leading = next((i for i, piece in enumerate(pieces) if piece.positive), None)
    if leading is None:
        first = next(pair for pair in pairs if pair[1] != ONE)
        pairs.remove(first)
        total = scaled(*first)
        pieces = [piece for pair in pairs for piece in _pieces(*pair)]
    else:
        total = pieces.pop(leading).term
    for piece in pieces:
        total = apply("add" if piece.positive else "sub", total, piece.term)
    return total


@dataclass(frozen=True)
class _Piece:
    positive: bool
    term: Expression


def _pieces(number: Number, term: Expression) -> list[_Piece]:
    """The summands of number·term: a sum that is taken as it is gives up its brackets."""
    positive = number.value > 0
    if number.denominator is not None or not _is_one(number.numerator):
        return [_Piece(positive, _magnitude_times(number, term))]
    pieces: list[_Piece] = []
    stack = [_Piece(positive, term)]
    while stack:
        piece = stack.pop()
        node = piece.term
        if isinstance(node, Apply) and node.operator.role in ADDITIVE:
            left, right = node.operands
            same = piece.positive == (node.operator.role is Role.SUM)
            stack += [_Piece(same, right), _Piece(piece.positive, left)]
        else:
            pieces.append(piece)
    return pieces


def scaled(number: Number, term: Expression) -> Expression:
    """number·term as one expression, the sign in the number."""
    if number.value >= 0:
        return _magnitude_times(number, term)
    if term == ONE:
        return number.expression
    if _is_one(number.numerator):
        product = apply("neg", term)
        return product if number.denominator is None else apply("div", product, number.denominator)
    if isinstance(number.numerator, Constant) and number.numerator.name is None:
        product = _times(Constant(-number.numerator.value), term)
        return product if number.denominator is None else apply("div", product, number.denominator)
    return apply("neg", _magnitude_times(number, term))


def _magnitude_times(number: Number, term: Expression) -> Expression:
    if term == ONE:
        return number.magnitude
    product = term if _is_one(number.numerator) else _times(number.numerator, term)
    return product if number.denominator is None else apply("div", product, number.denominator)


def _times(factor: Expression, term: Expression) -> Expression:
    """factor·term with the factor in front of the whole product: 3*x*y rather than 3*(x*y), 3/x rather than 3*(1/x)."""
    if isinstance(term, Apply) and term.operator.role in MULTIPLICATIVE:
        first, second = term.operands
        return apply(term.operator, factor if _is_one(first) else _times(factor, first), second)
    return apply("mul", factor, term)


def _is_one(expression: Expression) -> bool:
    return expression == ONE
