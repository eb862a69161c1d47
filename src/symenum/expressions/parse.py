"""Text to tree: an own tokenizer and recursive-descent parser, with no eval anywhere.

The grammar is what `to_text` prints, a subset of Python's expressions with Python's precedences:

    sum     = product { ("+" | "-") product }
    product = unary { ("*" | "/") unary }
    unary   = "-" unary | power
    power   = atom [ "**" unary ]
    atom    = number | "pi" | "E" | name | function "(" sum { "," sum } ")" | "(" sum ")"

A minus right before a number that is not the base of a power belongs to the number: -2 is a constant, -(2) and -2**x
are negations. Unary plus, implicit products (2x) and ^ are refused. Functions are the operators without an infix
sign, under the names that `get_operator` knows; those with a form (inv, sigmoid, ...) are written out.

Not for SymPy's whole language (see `from_sympy`). Hostile text gives a ValueError, not an exhausted stack: length and
nesting are bounded. Every tree up to 100 levels deep is within the bound, and sums and products may be longer than
that.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from symenum.expressions.build import apply
from symenum.expressions.tree import NAMED_CONSTANTS, Constant, Expression, Variable
from symenum.operators import OPERATORS, Operator, get_operator

__all__ = ["MAX_LENGTH", "MAX_NESTING", "PRECEDENCE", "PREFIX_PRECEDENCE", "parse"]

MAX_LENGTH = 100_000
"""The longest text that is read, in characters."""
MAX_NESTING = 200
"""The most brackets, signs and exponents inside one another; each costs up to three Python frames of about 1,000."""

PRECEDENCE: Mapping[str, int] = {"add": 1, "sub": 1, "mul": 2, "div": 2, "pow": 4}
"""How strongly an infix operator binds."""
PREFIX_PRECEDENCE = 3
"""The unary minus: stronger than a product, weaker than a power."""

_INFIX = {operator.sign: operator for operator in OPERATORS.values() if operator.sign and operator.arity == 2}
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS = ("**", "+", "-", "*", "/", "(", ")", ",")


@dataclass(frozen=True)
class _Token:
    kind: str  # "number", "name", "sign" or "end"
    text: str
    position: int


def parse(text: str, operators: Iterable[Operator] = (), constants: Mapping[str, float] | None = None) -> Expression:
    """The tree of a text; `operators` are the user's own (of `make_operator`), read in addition to the built-in ones.

    Names in `constants` are read as numbers of that name; all other names but pi and E are variables.

    >>> parse("2*sin(x1) - x2**2/3")
    <Apply 2*sin(x1) - x2**2/3>
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression to read must be a string, not {type(text).__name__}")
    own: dict[str, Operator] = {}
    for operator in operators:
        if not isinstance(operator, Operator):
            raise TypeError(f"operators must hold Operator records, not {type(operator).__name__}")
        own[operator.name] = operator
    if len(text) > MAX_LENGTH:
        raise ValueError(f"the text has {len(text):,} characters, more than the {MAX_LENGTH:,} that are read")
    named = {name: Constant(value, name) for name, value in {**(constants or {}), **NAMED_CONSTANTS}.items()}
    return _Parser(text, own, named).whole()


class _Parser:
    """One text being read; `at` is the token to read next."""

    def __init__(self, text: str, own: Mapping[str, Operator], named: Mapping[str, Constant]) -> None:
        self.text = text
        self.own = own
        self.named = named
        self.tokens = self._tokenize()
        self.at = 0
        self.nesting = 0

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        text, position = self.text, 0
        while position < len(text):
            character = text[position]
            if character.isspace():
                position += 1
                continue
            number = _NUMBER.match(text, position)
            sign = next((sign for sign in _SIGNS if text.startswith(sign, position)), None)
            end = position + 1
            if number:
                kind, end = "number", number.end()
            elif character.isidentifier():
                kind = "name"
                # A character may continue a name exactly if it may follow a letter in one.
                while end < len(text) and ("a" + text[end]).isidentifier():
                    end += 1
            elif sign:
                kind, end = "sign", position + len(sign)
            else:
                hint = "; powers are written **" if character == "^" else ""
                raise self._error(f"unexpected character {character!r}{hint}", position)
            tokens.append(_Token(kind, text[position:end], position))
            position = end
        tokens.append(_Token("end", "", len(text.rstrip())))
        return tokens

    def whole(self) -> Expression:
        expression = self._sum(1)
        token = self.tokens[self.at]
        if token.kind != "end":
            raise self._error(f"expected an operator or the end, found {token.text!r}", token.position)
        return expression

    def _sum(self, weakest: int) -> Expression:
        """Operands joined by infix operators that bind at least as strongly as `weakest`."""
        left = self._operand()
        while True:
            token = self.tokens[self.at]
            operator = _INFIX.get(token.text) if token.kind == "sign" else None
            if operator is None or PRECEDENCE[operator.name] < weakest:
                return left
            self.at += 1
            if operator.name == "pow":  # to the right: a**b**c is a**(b**c)
                self._enter(token)
                right = self._sum(PRECEDENCE["pow"])
                self.nesting -= 1
            else:
                right = self._sum(PRECEDENCE[operator.name] + 1)
            left = apply(operator, left, right)

    def _operand(self) -> Expression:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "number":
            return self._number(token, token.text)
        if token.kind == "name":
            if self.tokens[self.at].text == "(":
                return self._call(token)
            if token.text in self.named:
                return self.named[token.text]
            try:
                return Variable(token.text)
            except ValueError as error:
                raise self._error(str(error), token.position) from None
        if token.text == "-":
            following = self.tokens[self.at]
            if following.kind == "number" and self.tokens[self.at + 1].text != "**":
                self.at += 1
                return self._number(following, "-" + following.text)
            self._enter(token)
            operand = self._sum(PRECEDENCE["pow"])
            self.nesting -= 1
            return apply("neg", operand)
        if token.text == "(":
            self._enter(token)
            inner = self._sum(1)
            self._close(token)
            return inner
        found = repr(token.text) if token.kind == "sign" else "the end"
        hint = "; a sign + before an operand is not read" if token.text == "+" else ""
        raise self._error(f"expected a number, a name, a function, '-' or '(', found {found}{hint}", token.position)

    def _number(self, token: _Token, text: str) -> Constant:
        try:
            return Constant(int(text) if text.lstrip("-").isdigit() else float(text))
        except ValueError:  # beyond the doubles, or more digits than int reads
            shown = token.text if len(token.text) < 30 else token.text[:27] + "..."
            raise self._error(f"the number {shown} is too large for a double", token.position) from None

    def _call(self, name: _Token) -> Expression:
        operator = self._function(name)
        opening = self.tokens[self.at]
        self.at += 1
        self._enter(opening)
        operands = [self._sum(1)]
        while self.tokens[self.at].text == ",":
            self.at += 1
            operands.append(self._sum(1))
        self._close(opening)
        if len(operands) != operator.arity:
            plural = "argument" if operator.arity == 1 else "arguments"
            raise self._error(
                f"expected {operator.arity} {plural} of {name.text}, found {len(operands)}", name.position
            )
        return apply(operator, *operands)

    def _function(self, name: _Token) -> Operator:
        if name.text in self.own:
            return self.own[name.text]
        try:
            operator = get_operator(name.text)
        except ValueError:
            known = [operator.name for operator in OPERATORS.values() if operator.sign is None] + list(self.own)
            close = difflib.get_close_matches(name.text, known, n=1, cutoff=0.5)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise self._error(
                f"unknown function {name.text!r}{hint}; known: {', '.join(known)}", name.position
            ) from None
        if operator.sign is not None:
            raise self._error(
                f"{name.text!r} is not a function here: write it with its sign {operator.sign}", name.position
            )
        return operator

    def _enter(self, token: _Token) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self._error(f"more than {MAX_NESTING} levels of nesting", token.position)

    def _close(self, opening: _Token) -> None:
        token = self.tokens[self.at]
        if token.text != ")":
            found = "the end" if token.kind == "end" else repr(token.text)
            column = opening.position + 1
            raise self._error(
                f"expected an operator or the ')' of the '(' in column {column}, found {found}", token.position
            )
        self.at += 1
        self.nesting -= 1

    def _error(self, problem: str, position: int) -> ValueError:
        # Of a long text only the neighbourhood is shown. Tabs and newlines would move the caret.
        start, stop = max(0, position - 60), position + 40
        before, after = "..." if start else "", "..." if stop < len(self.text) else ""
        line = before + re.sub(r"\s", " ", self.text[start:stop]) + after
        caret = " " * (len(before) + position - start) + "^"
        return ValueError(f"cannot read the expression at column {position + 1}: {problem}\n    {line}\n    {caret}")
