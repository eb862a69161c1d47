r"""A front of laws as a LaTeX table, for a paper: needs \usepackage{amsmath,booktabs} there.

Pure functions of rows and expressions: which laws are shown is the caller's choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from symenum.display.table import LawRow
from symenum.expressions.render import SHOWN_DIGITS, latex_name, to_latex
from symenum.expressions.tree import Apply, Expression, Variable
from symenum.expressions.written import written
from symenum.operators.traits import ADDITIVE

__all__ = ["latex_equation", "latex_number", "latex_table"]

_COLUMNS = ("equation", "complexity", "loss", "score")
# Characters of an equation's line, LaTeX commands not counted: about what fits on a page beside the numbers.
_MAX_LINE = 60


def latex_table(
    rows: Iterable[LawRow],
    *,
    target: str = "y",
    precision: int = SHOWN_DIGITS,
    columns: Sequence[str] = _COLUMNS,
) -> str:
    r"""The table, one line for each row; a sum that is too long for one line is broken between its terms.

    >>> from symenum.expressions import parse
    >>> print(latex_table([LawRow(parse("x1*1.23456"), 1, 0.0000125, 2.0, 0.5)], columns=["equation", "loss"]))
    \begin{tabular}{@{}lr@{}}
    \toprule
    Equation & Loss \\
    \midrule
    $y = 1.2346 \cdot x_{1}$ & $1.25 \cdot 10^{-5}$ \\
    \bottomrule
    \end{tabular}
    """
    unknown = [column for column in columns if column not in _COLUMNS]
    if unknown or not columns or isinstance(columns, str):
        raise ValueError(f"columns must name some of {', '.join(_COLUMNS)}, not {columns!r}")
    lines = [
        rf"\begin{{tabular}}{{@{{}}{''.join('l' if column == 'equation' else 'r' for column in columns)}@{{}}}}",
        r"\toprule",
        " & ".join(column.capitalize() for column in columns) + r" \\",
        r"\midrule",
    ]
    for row in rows:
        cells = {
            "equation": f"${latex_equation(row.expression, target, precision)}$",
            "complexity": f"${row.complexity:g}$",
            "loss": f"${latex_number(row.loss, precision)}$",
            "score": f"${latex_number(row.score, precision)}$",
        }
        lines.append(" & ".join(cells[column] for column in columns) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def latex_number(value: float, precision: int) -> str:
    """A number of a table in math mode, with so many significant digits; a dash for NaN."""
    if not math.isfinite(value):
        return r"\text{--}" if math.isnan(value) else r"\infty" if value > 0 else r"-\infty"
    mantissa, _, exponent = f"{value:.{precision}g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_equation(expression: Expression, target: str = "y", precision: int | None = SHOWN_DIGITS) -> str:
    """target = expression in math mode, as people write it; a sum that is too long for one line is broken."""
    expression = written(expression)
    left_side = latex_name(target) if target.isidentifier() else rf"\text{{{_escaped(target)}}}"
    whole = to_latex(expression, precision)
    lines: list[str] = []
    if _width(whole) > _MAX_LINE:
        for term in _terms(expression, precision):
            if lines and _width(lines[-1]) + _width(term) <= _MAX_LINE:
                lines[-1] += f" {term}"
            else:
                lines.append(term)
    if len(lines) < 2:
        return f"{left_side} = {whole}"
    body = " \\\\ ".join(f"&{'' if i == 0 else ' {}'}{line}" for i, line in enumerate(lines))
    return rf"\begin{{aligned}}[t] {left_side} = {{}} {body} \end{{aligned}}"


def _terms(expression: Expression, precision: int | None) -> list[str]:
    """The terms of the outermost sum as LaTeX; each but the first begins with its sign."""
    terms: list[str] = []
    while isinstance(expression, Apply) and expression.operator.role in ADDITIVE:
        rest, last = expression.operands
        # Written after a term z, so that the term has the sign and the brackets that it has in the whole sum.
        shown = to_latex(Apply(expression.operator, (Variable("z"), last)), precision)
        terms.append(shown.removeprefix("z "))
        expression = rest
    return [to_latex(expression, precision), *reversed(terms)]


def _escaped(text: str) -> str:
    """Plain text for LaTeX; the backslash, ^ and ~, which need commands of their own, become spaces."""
    return re.sub(r"([&%$#_{}])", r"\\\1", re.sub(r"[\\^~\s]+", " ", text))


def _width(latex: str) -> int:
    """The number of characters that are set, roughly: commands, braces and spaces do not count."""
    return len(re.sub(r"\\[A-Za-z]+|[{}\\ ]", "", latex))
