r"""A front of laws as a LaTeX table, for a paper: needs \usepackage{amsmath,booktabs} there.

A pure function of rows: where they come from, and which of them are shown, is the caller's choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from symenum.display.rows import LawRow
from symenum.expressions.render import latex_name, to_latex
from symenum.expressions.tree import Apply, Expression, Variable
from symenum.operators.traits import ADDITIVE

__all__ = ["latex_equation", "latex_number", "latex_table"]

# Longer lines, in characters of LaTeX without its commands, do not fit on a page beside the numbers.
_LONG = 60


def latex_table(
    rows: Iterable[LawRow],
    *,
    target: str = "y",
    precision: int = 3,
    columns: Sequence[str] = ("equation", "complexity", "loss", "score"),
) -> str:
    r"""The table, one line for each row; a sum that is too long for one line is broken between its terms.

    >>> from symenum.expressions import parse
    >>> print(latex_table([LawRow(parse("x1*1.23456"), 1, 0.0000125, 2.0, 0.5)], columns=["equation", "loss"]))
    \begin{tabular}{@{}lr@{}}
    \toprule
    Equation & Loss \\
    \midrule
    $y = x_{1} \cdot 1.23$ & $1.25 \cdot 10^{-5}$ \\
    \bottomrule
    \end{tabular}
    """
    known = ("equation", "complexity", "loss", "score")
    unknown = [column for column in columns if column not in known]
    if unknown or not columns or isinstance(columns, str):
        raise ValueError(f"columns must name some of {', '.join(known)}, not {columns!r}")
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
    """A number of a table, in mathematical mode."""
    if not math.isfinite(value):
        return r"\text{--}" if math.isnan(value) else r"\infty" if value > 0 else r"-\infty"
    mantissa, _, exponent = f"{value:.{precision}g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_equation(expression: Expression, target: str = "y", precision: int | None = None) -> str:
    """target = expression, in mathematical mode; a sum that is too long for one line is broken between its terms."""
    left = latex_name(target) if target.isidentifier() else rf"\text{{{_escaped(target)}}}"
    whole = to_latex(expression, precision)
    lines: list[str] = []
    if _width(whole) > _LONG:
        for term in _terms(expression, precision):
            if lines and _width(lines[-1]) + _width(term) <= _LONG:
                lines[-1] += f" {term}"
            else:
                lines.append(term)
    if len(lines) < 2:
        return f"{left} = {whole}"
    body = " \\\\ ".join(f"&{'' if i == 0 else ' {}'}{line}" for i, line in enumerate(lines))
    return rf"\begin{{aligned}}[t] {left} = {{}} {body} \end{{aligned}}"


def _terms(expression: Expression, precision: int | None) -> list[str]:
    """The terms of the outermost sum, each but the first with its sign before it."""
    terms: list[str] = []
    while isinstance(expression, Apply) and expression.operator.role in ADDITIVE:
        rest, last = expression.operands
        # Written as what follows a term, so that the brackets are those of the whole.
        shown = to_latex(Apply(expression.operator, (Variable("z"), last)), precision)
        terms.append(shown.removeprefix("z "))
        expression = rest
    return [to_latex(expression, precision), *reversed(terms)]


def _escaped(text: str) -> str:
    """Plain text for LaTeX; the three characters that only a command could show are left out."""
    return re.sub(r"([&%$#_{}])", r"\\\1", re.sub(r"[\\^~\s]+", " ", text))


def _width(latex: str) -> int:
    return len(re.sub(r"\\[A-Za-z]+|[{}\\ ]", "", latex))
