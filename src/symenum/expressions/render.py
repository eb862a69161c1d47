"""Tree to text, to LaTeX, and to MathML.

`to_text` writes what `parse` reads back as the very same tree, and what SymPy's `sympify` reads with the same
meaning. (A few letters mean something else to SymPy: for variables named S, N, beta, ... give sympify `locals`, or
use `to_sympy`.) `to_latex` writes for the eye: brackets that only say in which order equal operators are applied are
left out. So does `to_mathml`, which browsers show without any script.
"""

from __future__ import annotations

import re
from functools import partial
from html import escape

from symenum.expressions.parse import ATOM_PRECEDENCE, PRECEDENCE, PREFIX_PRECEDENCE
from symenum.expressions.tree import Constant, Expression, Variable, fold

__all__ = ["latex_name", "mathml_equation", "to_latex", "to_mathml", "to_text"]


# lambda is a keyword of Python and omicron no command of LaTeX.
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|mu|nu|xi|rho|sigma|tau|upsilon|phi|chi|psi|omega|"
    "Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
_LATEX_CONSTANTS = {"pi": r"\pi", "E": "e"}
_MATHML_CONSTANTS = {"pi": "π", "E": "e"}
_MATHML_SIGNS = {"add": "+", "sub": "−", "mul": "·"}
_MINUS = "<mo>−</mo>"
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
        return node.name, ATOM_PRECEDENCE
    if isinstance(node, Constant):
        text = node.name or _digits(node, precision)
        return text, PREFIX_PRECEDENCE if text.startswith("-") else ATOM_PRECEDENCE
    name, sign = node.operator.name, node.operator.sign
    if sign is None:
        return f"{name}({', '.join(text for text, _ in operands)})", ATOM_PRECEDENCE
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
        return latex_name(node.name), ATOM_PRECEDENCE
    if isinstance(node, Constant):
        return _latex_number(node, precision)
    operator = node.operator
    texts = [text for text, _ in operands]
    if operator.sign is None:
        return operator.latex.format(*texts), ATOM_PRECEDENCE
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
    stem, index = _stem_and_index(name)
    if _GREEK.fullmatch(stem):
        stem = "\\" + stem
    elif len(stem) > 1:
        stem = r"\mathrm{" + stem.replace("_", r"\_") + "}"
    elif stem == "_":
        stem = r"\_"
    return f"{stem}_{{{index}}}" if index else stem


def _stem_and_index(name: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?[^0-9_])_?([0-9]+)", name)
    return (match[1], match[2]) if match else (name, "")


def _latex_number(constant: Constant, precision: int | None) -> _Piece:
    if constant.name is not None:
        return _LATEX_CONSTANTS.get(constant.name) or latex_name(constant.name), ATOM_PRECEDENCE
    text = _digits(constant, precision)
    if "e" in text:
        mantissa, exponent = text.split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRECEDENCE["mul"]
    return text, PREFIX_PRECEDENCE if text.startswith("-") else ATOM_PRECEDENCE


def mathml_equation(target: str, expression: Expression, precision: int | None = None) -> str:
    """target = expression as a displayed formula; all names are escaped."""
    return (
        f'<math display="block"><mrow>{_mathml_name(target)}<mo>=</mo>{to_mathml(expression, precision)}</mrow></math>'
    )


def to_mathml(expression: Expression, precision: int | None = None) -> str:
    """The inside of a <math> element; `precision` is the number of significant digits of its floats.

    >>> from symenum.expressions import parse
    >>> print(to_mathml(parse("x1/2")))
    <mfrac><mrow><msub><mi>x</mi><mn>1</mn></msub></mrow><mrow><mn>2</mn></mrow></mfrac>
    """
    _check_precision(precision)
    piece: _Piece = fold(expression, partial(_mathml, precision=precision))
    return piece[0]


def _mathml(node: Expression, operands: tuple[_Piece, ...], precision: int | None) -> _Piece:
    if isinstance(node, Variable):
        return _mathml_name(node.name), ATOM_PRECEDENCE
    if isinstance(node, Constant):
        return _mathml_number(node, precision)
    name = node.operator.name
    if node.operator.sign is None:
        return _mathml_call(name, [text for text, _ in operands]), ATOM_PRECEDENCE
    if name == "neg":
        ((text, binds),) = operands
        needed = binds < PRECEDENCE["mul"] or text.startswith(_MINUS)
        return f"{_MINUS}{_mathml_bracket(text, needed)}", min(PREFIX_PRECEDENCE, max(binds, PRECEDENCE["mul"]))
    (left, left_binds), (right, right_binds) = operands
    if name == "div":
        return f"<mfrac><mrow>{left}</mrow><mrow>{right}</mrow></mfrac>", PRECEDENCE["mul"]
    if name == "pow":
        base = _mathml_bracket(left, left_binds <= PRECEDENCE["pow"])
        return f"<msup><mrow>{base}</mrow><mrow>{right}</mrow></msup>", PRECEDENCE["pow"]
    binds = PRECEDENCE[name]
    left = _mathml_bracket(left, left_binds < binds)
    right = _mathml_bracket(right, right_binds < binds + (name == "sub") or right.startswith(_MINUS))
    return f"{left}<mo>{_MATHML_SIGNS[name]}</mo>{right}", binds


def _mathml_call(name: str, operands: list[str]) -> str:
    inside = "<mo>,</mo>".join(operands)
    if name == "sqrt":
        return f"<msqrt>{inside}</msqrt>"
    if name == "abs":
        return f"<mrow><mo>|</mo><mrow>{inside}</mrow><mo>|</mo></mrow>"
    return f'<mi mathvariant="normal">{escape(name)}</mi><mo>&#8289;</mo>{_mathml_bracket(inside, True)}'


def _mathml_bracket(text: str, needed: bool) -> str:
    return f"<mrow><mo>(</mo><mrow>{text}</mrow><mo>)</mo></mrow>" if needed else text


def _mathml_name(name: str) -> str:
    """x1 and x_1 as x with the index 1, Greek names as letters, longer words upright."""
    stem, index = _stem_and_index(name)
    if _GREEK.fullmatch(stem):
        letter = f"<mi>&{stem};</mi>"
    elif len(stem) > 1:
        letter = f'<mi mathvariant="normal">{escape(stem)}</mi>'
    else:
        letter = f"<mi>{escape(stem)}</mi>"
    return f"<msub>{letter}<mn>{index}</mn></msub>" if index else letter


def _mathml_number(constant: Constant, precision: int | None) -> _Piece:
    if constant.name is not None:
        letter = _MATHML_CONSTANTS.get(constant.name)
        return (f"<mi>{letter}</mi>" if letter else _mathml_name(constant.name)), ATOM_PRECEDENCE
    text = _digits(constant, precision)
    sign, text = (_MINUS, text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, exponent = text.partition("e")
    if exponent:
        power = f"<msup><mn>10</mn><mn>{str(int(exponent)).replace('-', '−')}</mn></msup>"
        return f"{sign}<mn>{mantissa}</mn><mo>·</mo>{power}", PRECEDENCE["mul"]
    return f"{sign}<mn>{mantissa}</mn>", PREFIX_PRECEDENCE if sign else ATOM_PRECEDENCE
