"""Tree to text, to LaTeX, and to MathML.

`to_text` writes what `parse` reads back as the very same tree, and what SymPy's `sympify` reads with the same
meaning. (A few letters mean something else to SymPy: for variables named S, N, beta, ... give sympify `locals`, or
use `to_sympy`.) `to_latex` writes for the eye: brackets that only say in which order equal operators are applied are
left out. So does `to_mathml`, which browsers show without any script. All three write the tree that they are given:
outputs give them the law as people write it (`symenum.expressions.written`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from html import escape

from symenum.expressions.parse import ATOM_PRECEDENCE, PRECEDENCE, PREFIX_PRECEDENCE
from symenum.expressions.tree import Constant, Expression, Variable, fold

__all__ = ["SHOWN_DIGITS", "latex_name", "mathml_equation", "to_latex", "to_mathml", "to_text"]

SHOWN_DIGITS = 5
"""Significant digits of a constant wherever a law is shown; files and columns to compute with hold all of them."""

# lambda is a keyword of Python and omicron no command of LaTeX.
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|mu|nu|xi|rho|sigma|tau|upsilon|phi|chi|psi|omega|"
    "Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
# The endings of names of derivatives (`q_dot`), and how their accents are written in LaTeX and in MathML.
_ACCENTS = {"dot": (r"\dot", "˙"), "ddot": (r"\ddot", "¨")}
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
        if texts[0].startswith("-") and operands[0][1] >= binds:  # the minus of a product stands before the fraction
            return f"-{operator.latex.format(texts[0][1:], texts[1])}", binds
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


@dataclass(frozen=True)
class _Name:
    """A name in parts: x1 and x_1 are x with the index 1; rho_kg_m_3 is rho with three words; q_dot has an accent."""

    stem: str
    indices: tuple[str, ...] = ()
    accent: str = ""

    @property
    def upright(self) -> bool:
        """Whether single letters of the index are upright too, because they stand among words: kg m."""
        return any(len(word) > 1 and word.isalpha() and not _GREEK.fullmatch(word) for word in self.indices)

    @staticmethod
    def of(name: str) -> _Name:
        words = name.split("_")
        if not all(words):  # underscores at an end or in a row: they tell it from another name
            return _Name(name)
        accent = words.pop() if len(words) > 1 and words[-1] in _ACCENTS else ""
        match = re.fullmatch(r"(.*?[^0-9])([0-9]+)", words[0])
        first = (match[1], match[2]) if match else (words[0],)
        return _Name(first[0], (*first[1:], *words[1:]), accent)


def latex_name(name: str, dots: int = 0) -> str:
    r"""x1 and x_1 as x with the index 1, Greek names as letters, longer words upright, further words as an index.

    `dots`: 1 or 2 for the first or second derivative by time.

    >>> print(latex_name("rho_kg_m_3"), latex_name("theta_dot"))
    \rho_{\mathrm{kg}\,\mathrm{m}\,3} \dot{\theta}
    """
    parts = _Name.of(name)
    stem = _latex_word(parts.stem)
    if dots:
        stem = f"{_ACCENTS['d' * dots + 'ot'][0]}{{{stem}}}"
    if parts.accent:
        stem = f"{_ACCENTS[parts.accent][0]}{{{stem}}}"
    index = r"\,".join(_latex_word(word, upright=parts.upright) for word in parts.indices)
    return f"{stem}_{{{index}}}" if index else stem


def _latex_word(word: str, *, upright: bool = False) -> str:
    if _GREEK.fullmatch(word):
        return "\\" + word
    if word.isdigit() or (len(word) == 1 and word != "_" and not upright):
        return word
    text = word.replace("_", r"\_")
    return text if word == "_" else rf"\mathrm{{{text}}}"


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
        if left.startswith(_MINUS) and left_binds >= PRECEDENCE["mul"]:
            left = left.removeprefix(_MINUS)
            return f"{_MINUS}<mfrac><mrow>{left}</mrow><mrow>{right}</mrow></mfrac>", PRECEDENCE["mul"]
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
    """As `latex_name`."""
    parts = _Name.of(name) if name.isidentifier() else _Name(name)
    stem = _mathml_word(parts.stem)
    if parts.accent:
        stem = f"<mover>{stem}<mo>{_ACCENTS[parts.accent][1]}</mo></mover>"
    if not parts.indices:
        return stem
    space = '<mspace width="0.17em"/>'
    index = space.join(_mathml_word(word, upright=parts.upright) for word in parts.indices)
    return f"<msub>{stem}{index if len(parts.indices) == 1 else f'<mrow>{index}</mrow>'}</msub>"


def _mathml_word(word: str, *, upright: bool = False) -> str:
    if _GREEK.fullmatch(word):
        return f"<mi>&{word};</mi>"
    if word.isdigit():
        return f"<mn>{word}</mn>"
    italic = len(word) == 1 and not upright
    return f"<mi>{escape(word)}</mi>" if italic else f'<mi mathvariant="normal">{escape(word)}</mi>'


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
