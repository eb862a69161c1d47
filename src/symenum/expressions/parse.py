"""Text to tree: a tokenizer and a recursive-descent parser; and the names that variables may have in formulas and code.

The grammar is what `to_text` prints, a subset of Python's expressions with Python's precedences:

    sum     = product { ("+" | "-") product }
    product = unary { ("*" | "/") unary }
    unary   = "-" unary | power
    power   = atom [ "**" unary ]
    atom    = number | "pi" | "E" | name | function "(" sum { "," sum } ")" | "(" sum ")"

A minus right before a number that is not the base of a power belongs to the number: -2 is a constant, -(2) and -2**x
are negations. Unary plus, implicit products (2x) and ^ are refused. Functions are the operators without an infix sign,
under the names that `get_operator` knows; those with a form (inv, sigmoid, ...) are written out.

Hostile text gives a ValueError, not an exhausted stack: length and nesting are bounded. Every tree up to 100 levels
deep is within the bound, and sums and products may be longer than that. Nothing is evaluated here, and SymPy's whole
language is not read (see `from_sympy`).
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from symenum.core.words import did_you_mean
from symenum.expressions.tree import NAMED_CONSTANTS, Constant, Expression, Variable, apply
from symenum.operators import OPERATORS, Operator, get_operator

__all__ = [
    "ATOM_PRECEDENCE",
    "C_FUNCTIONS",
    "C_RESERVED",
    "FORMULA_RESERVED",
    "MAX_LENGTH",
    "MAX_NESTING",
    "PRECEDENCE",
    "PREFIX_PRECEDENCE",
    "PYTHON_RESERVED",
    "check_names",
    "formula_names",
    "parse",
    "safe_names",
]

MAX_LENGTH = 100_000
"""The longest text that is read, in characters: far more than any law has, and it bounds the work of hostile text."""
MAX_NESTING = 200
"""The most brackets, signs and exponents inside one another. Each takes up to three of Python's 1,000 stack frames."""
PRECEDENCE: Mapping[str, int] = {"add": 1, "sub": 1, "mul": 2, "div": 2, "pow": 4}
"""How strongly an infix operator binds."""
PREFIX_PRECEDENCE = 3
"""The unary minus: stronger than a product, weaker than a power."""
ATOM_PRECEDENCE = 5
"""A name, a number without a sign, a call: stronger than any operator."""
# By sign; the unary minus is read apart.
_INFIX = {operator.sign: operator for operator in OPERATORS.values() if operator.sign and operator.arity == 2}
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS = ("**", "+", "-", "*", "/", "(", ")", ",")
_HINTS = {"^": "; powers are written **", "=": "; only what stands to the right of it is the formula"}


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
                while end < len(text) and _may_continue_a_name(text[end]):
                    end += 1
            elif sign:
                kind, end = "sign", position + len(sign)
            else:
                hint = _HINTS.get(character, "")
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
            hint = did_you_mean(name.text, known)
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
        # Shown are 60 characters before the position and 40 after it. Tabs and newlines would move the caret.
        start, stop = max(0, position - 60), position + 40
        before, after = "..." if start else "", "..." if stop < len(self.text) else ""
        line = before + re.sub(r"\s", " ", self.text[start:stop]) + after
        caret = " " * (len(before) + position - start) + "^"
        return ValueError(f"cannot read the expression at column {position + 1}: {problem}\n    {line}\n    {caret}")


# Names of variables in formulas (`formula_names`, for whoever reads data) and in generated source code (`safe_names`).

# A variable called sin would print as sin*x: legal, but easily misread. So are the names that others know as functions
# or as numbers. S, I, beta, … stay: `to_sympy` makes symbols of them, and never gives SymPy text to read.
_MISREAD = ("ln", "tan", "Abs", "nan", "oo", "zoo")
FORMULA_RESERVED = frozenset({*OPERATORS, *NAMED_CONSTANTS, *keyword.kwlist, *_MISREAD})
# "lambda" and the like cannot be assigned; a parameter called "abs" would hide the function that the code calls.
PYTHON_RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "math", "np", "numpy"})
# Keywords of C23 and of C++ (headers are shared), and the macros of <math.h>. Functions that the code calls are added
# by their operators.
_C_WORDS = """
alignas alignof auto bool break case char const constexpr continue default do double else enum extern false float for
goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct switch
thread_local true typedef typeof typeof_unqual union unsigned void volatile while _Alignas _Alignof _Atomic _BitInt
_Bool _Complex _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn _Static_assert _Thread_local
and asm catch class co_await co_return co_yield compl concept const_cast decltype delete dynamic_cast explicit export
friend mutable namespace new noexcept not operator or private protected public reinterpret_cast requires static_cast
template this throw try typeid typename using virtual wchar_t xor
fpclassify isfinite isinf isnan isnormal signbit isgreater isless isunordered math_errhandling
HUGE_VAL HUGE_VALF HUGE_VALL INFINITY NAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO FP_ILOGB0 FP_ILOGBNAN
MATH_ERRNO MATH_ERREXCEPT M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2
M_SQRT1_2 DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS EDOM ERANGE linux unix
"""
C_RESERVED = frozenset(_C_WORDS.split())
# What <math.h> declares: a parameter may hide these, but a function of that name would be a second declaration.
_C_DECLARED = """
main acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim floor
fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround
modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn significand sin
sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
"""
C_FUNCTIONS = frozenset(_C_DECLARED.split())


def check_names(names: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
    """The names as a tuple, once it is sure that each occurs once and that every variable in use is among them."""
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of names, such as [{names!r}], not one string")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"names must hold strings, not {type(name).__name__}")
    repeated = sorted(name for name, count in Counter(listed).items() if count > 1)
    if repeated:
        raise ValueError(f"names holds {', '.join(map(repr, repeated))} more than once")
    known = set(listed)
    missing = [name for name in used if name not in known]
    if missing:
        raise ValueError(
            f"the expression uses {', '.join(missing)}, which names does not hold; "
            f"names: {', '.join(listed) or 'nothing'}"
        )
    return listed


def formula_names(names: Sequence[str], other_names: Collection[str] = ()) -> Mapping[str, str]:
    """What the columns of a table are called in formulas: their own names wherever these are free identifiers.

    `other_names`: what else stands beside the formulas, such as the target; no name that is changed becomes one.

    >>> formula_names(["mass", "sin", "distance (AU)"])
    {'mass': 'mass', 'sin': 'sin_', 'distance (AU)': 'distance_AU'}
    >>> formula_names(["x 1"], other_names=["x_1"])
    {'x 1': 'x_1_'}
    """
    return safe_names(names, {*FORMULA_RESERVED, *(set(other_names) - set(names))})


def safe_names(names: Sequence[str], reserved: Collection[str], *, ascii_only: bool = False) -> Mapping[str, str]:
    """What each name is called in the code: itself where that works, else a similar identifier, with underscores at its
    end where that is taken or reserved.

    >>> safe_names(["x1", "lambda", "distance (AU)"], {"lambda"})
    {'x1': 'x1', 'lambda': 'lambda_', 'distance (AU)': 'distance_AU'}
    """
    identifiers = {name: _identifier(name, ascii_only) for name in names}
    # Names that can stay are taken first: a variable called sin_ keeps its name, and sin becomes sin__.
    chosen = {name: name for name, identifier in identifiers.items() if identifier == name and name not in reserved}
    taken = set(chosen)
    for name, identifier in identifiers.items():
        if name in chosen:
            continue
        while identifier in taken or identifier in reserved:
            identifier += "_"
        chosen[name] = identifier
        taken.add(identifier)
    return {name: chosen[name] for name in names}


def _identifier(name: str, ascii_only: bool) -> str:
    # Python reads identifiers in this normal form, so two names that differ before it may be one after it.
    name = unicodedata.normalize("NFKC", name)
    if ascii_only:
        name = "".join(character if character.isascii() else f"u{ord(character):04x}" for character in name)
        # Names that begin with an underscore are for the compiler.
        name = re.sub("^_+", "", name) if re.match("_[_A-Z]", name) else name
    if name.isidentifier():
        return name
    # Not by \W: some signs of numbers, such as U+09F4, count as letters there and are refused in an identifier.
    allowed = "".join(character if _may_continue_a_name(character) else " " for character in name)
    words = re.sub(" +", "_", allowed).strip("_")
    return words if words.isidentifier() else f"x_{words}".rstrip("_")


def _may_continue_a_name(character: str) -> bool:
    return ("a" + character).isidentifier()
