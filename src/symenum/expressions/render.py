"""Tree to text and to LaTeX.

`to_text` writes what `parse` reads back as the very same tree, and what SymPy's `sympify` reads with the same
meaning. (A few letters mean something else to SymPy: for variables named S, N, beta, ... give sympify `locals`, or
use `to_sympy`.) `to_latex` writes for the eye: brackets that only say in which order equal operators are applied are
left out.
"""

from __future__ import annotations

import re
from functools import partial

from symenum.expressions.parse import PRECEDENCE, PREFIX_PRECEDENCE
from symenum.expressions.tree import Constant, Expression, Variable, fold

__all__ = ["latex_name", "to_latex", "to_text"]

_ATOM = 5  # binds more strongly than any operator

# lambda is a keyword of Python and omicron no command of LaTeX.
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|mu|nu|xi|rho|sigma|tau|upsilon|phi|chi|psi|omega|"
    "Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
_LATEX_CONSTANTS = {"pi": r"\pi", "E": "e"}

# A piece of output and how strongly its outermost operator binds.
_Piece = tuple[str, int]


def to_text(expression: Expression, precision: int | None = None) -> str:
    """The expression as text, with no more brackets than reading it back needs.

    With a `precision`, floats are written with that many significant digits: for the eye, not to be read back.

    >>> from symenum.expressions import parse
    >>> to_text(parse("((a) - (b - (c)))*(-2)**x"))
    '(a - (b - c))*(-2)**x'
    """
    _check_precision(precision)
    piece: _Piece = fold(expression, partial(_text, precision=precision))
    return piece[0]


def _check_precision(precision: int | None) -> None:
    if precision is not None and (isinstance(precision, bool) or not isinstance(precision, int) or precision < 1):
        raise ValueError(f"precision must be a whole number of digits, 1 or more, or None for all, not {precision!r}")


def _digits(constant: Constant, precision: int | None) -> str:
    exact = precision is None or isinstance(constant.value, int)
    return repr(constant.value) if exact else f"{constant.value:.{precision}g}"


def _text(node: Expression, operands: tuple[_Piece, ...], precision: int | None) -> _Piece:
    if isinstance(node, Variable):
        return node.name, _ATOM
    if isinstance(node, Constant):
        text = node.name or _digits(node, precision)
        return text, PREFIX_PRECEDENCE if text.startswith("-") else _ATOM
    name, sign = node.operator.name, node.operator.sign
    if sign is None:
        return f"{name}({', '.join(text for text, _ in operands)})", _ATOM
    if node.operator.arity == 1:
        ((text, binds),) = operands
        # -(2) is the negation of 2, while -2 is a number; -(-x) rather than --x.
        operand = node.operands[0]
        number = isinstance(operand, Constant) and operand.name is None
        bare = binds > PREFIX_PRECEDENCE and not number
        return f"{sign}{text}" if bare else f"{sign}({text})", PREFIX_PRECEDENCE
    (left, left_binds), (right, right_binds) = operands
    binds = PRECEDENCE[name]
    left_needs, right_needs = (binds + 1, binds) if name == "pow" else (binds, binds + 1)
    left = left if left_binds >= left_needs else f"({left})"
    # a + -b is legal, but not what anybody writes.
    right = right if right_binds >= right_needs and not right.startswith("-") else f"({right})"
    return f"{left} {sign} {right}" if binds == PRECEDENCE["add"] else f"{left}{sign}{right}", binds


def to_latex(expression: Expression, precision: int | None = None) -> str:
    r"""The expression in LaTeX's mathematical mode; `precision` is the number of significant digits of its floats.

    Without a precision every digit is written. Whole numbers and named constants are always exact.

    The templates are the operators' own. One without an infix sign is taken to delimit its operands itself, as
    \\sin\\left(...\\right) does; mind that in the `latex` of `make_operator`.

    >>> from symenum.expressions import parse
    >>> print(to_latex(parse("(x1 + 1)*x2**2")))
    \left(x_{1} + 1\right) \cdot {x_{2}}^{2}
    """
    _check_precision(precision)
    piece: _Piece = fold(expression, partial(_latex, precision=precision))
    return piece[0]


def _latex(node: Expression, operands: tuple[_Piece, ...], precision: int | None) -> _Piece:
    if isinstance(node, Variable):
        return latex_name(node.name), _ATOM
    if isinstance(node, Constant):
        return _latex_number(node, precision)
    operator = node.operator
    texts = [text for text, _ in operands]
    if operator.sign is None:
        return operator.latex.format(*texts), _ATOM
    if operator.arity == 1:
        # -a*b may stand for both -(a*b) and (-a)*b: they are one value.
        texts = [_bracket(texts[0], operands[0][1] < PRECEDENCE["mul"] or texts[0].startswith("-"))]
        binds = min(PREFIX_PRECEDENCE, max(operands[0][1], PRECEDENCE["mul"]))
    elif operator.name == "div":
        binds = PRECEDENCE["mul"]  # the fraction bar brackets the operands
    elif operator.name == "pow":
        binds = PRECEDENCE["pow"]
        texts[0] = _bracket(texts[0], operands[0][1] <= binds)
    else:
        binds = PRECEDENCE[operator.name]
        right_needs = binds + (operator.name == "sub")
        texts[0] = _bracket(texts[0], operands[0][1] < binds)
        texts[1] = _bracket(texts[1], operands[1][1] < right_needs or texts[1].startswith("-"))
    return operator.latex.format(*texts), binds


def _bracket(text: str, needed: bool) -> str:
    return rf"\left({text}\right)" if needed else text


def latex_name(name: str) -> str:
    """x1 and x_1 as x with the index 1, Greek names as letters, longer words upright."""
    match = re.fullmatch(r"(.*?[^0-9_])_?([0-9]+)", name)
    stem, index = match.groups() if match else (name, "")
    if _GREEK.fullmatch(stem):
        stem = "\\" + stem
    elif len(stem) > 1:
        stem = r"\mathrm{" + stem.replace("_", r"\_") + "}"
    elif stem == "_":
        stem = r"\_"
    return f"{stem}_{{{index}}}" if index else stem


def _latex_number(constant: Constant, precision: int | None) -> _Piece:
    if constant.name is not None:
        return _LATEX_CONSTANTS.get(constant.name) or latex_name(constant.name), _ATOM
    text = _digits(constant, precision)
    if "e" in text:
        mantissa, exponent = text.split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRECEDENCE["mul"]
    return text, PREFIX_PRECEDENCE if text.startswith("-") else _ATOM
