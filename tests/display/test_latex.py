"""The LaTeX table: one line for each law, numbers of the wanted precision, sums that fit on a page."""

import math

import pytest

from symenum.display.latex import latex_table
from symenum.display.table import LawRow
from symenum.expressions import parse, to_latex

LONG = "1.23456*x1*sin(x2) - 2.34567*(x2 - x3)*cos(x1) + 3.45678*exp(x3)*log(x1) + 4.56789*x1*x2*x3 - 5.6789"


def test_precision_is_in_significant_digits_of_floats_only():
    assert to_latex(parse("123456*x + 0.123456*pi"), precision=3) == r"123456 \cdot x + 0.123 \cdot \pi"
    assert to_latex(parse("1.23456e-10"), precision=2) == r"1.2 \cdot 10^{-10}"
    assert to_latex(parse("2.0"), precision=3) == "2"
    assert to_latex(parse("0.1234567890123")) == "0.1234567890123"


@pytest.mark.parametrize("precision", [0, -1, 2.5, True, "3"])
def test_a_precision_that_is_none_is_refused(precision):
    with pytest.raises(ValueError, match="precision"):
        to_latex(parse("x"), precision=precision)


def test_table_has_one_line_for_each_row_and_booktabs_rules():
    rows = [LawRow(parse("x1"), 0, 1.5, 0.0, 1.0), LawRow(parse("x1 + 1"), 1, 0.0, math.inf, 1.0)]
    lines = latex_table(rows, target="v_max").splitlines()
    assert lines[1:4] == [r"\toprule", r"Equation & Complexity & Loss & Score \\", r"\midrule"]
    assert lines[4] == r"$v_{\mathrm{max}} = x_{1}$ & $0$ & $1.5$ & $0$ \\"
    assert lines[5] == r"$v_{\mathrm{max}} = x_{1} + 1$ & $1$ & $0$ & $\infty$ \\"
    assert lines[6:] == [r"\bottomrule", r"\end{tabular}"]


def test_a_long_sum_is_broken_between_its_terms_and_loses_none():
    row = LawRow(parse(LONG), 9, 0.1, 0.1, 1.0)
    table = latex_table([row], columns=["equation"])
    body = table.split("{} &")[1].split(r" \end{aligned}")[0]
    assert r"\begin{aligned}[t] y = {} &" in table
    whole = body.replace(r" \\ & {}", " ")
    assert whole == to_latex(parse(LONG), 5)


def test_a_long_product_stays_on_one_line():
    text = "*".join(f"sin(x{i})" for i in range(30))
    assert "aligned" not in latex_table([LawRow(parse(text), 9, 0.1, 0.1, 1.0)])


def test_a_target_that_is_no_identifier_does_not_break_the_table():
    assert r"$\text{speed \& (m/s)} = x$" in latex_table([LawRow(parse("x"), 0, 1, 0, 1.0)], target="speed & (m/s)")


@pytest.mark.parametrize("columns", [["equations"], [], "loss"])
def test_unknown_columns_are_refused(columns):
    with pytest.raises(ValueError, match="columns must name some of equation, complexity, loss, score"):
        latex_table([], columns=columns)
