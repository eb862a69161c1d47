"""Text is read back as the same tree, by SymPy with the same meaning; LaTeX and MathML are bracketed right."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
import sympy
import torch
from expressions.strategies import any_tree, tame_tree
from hypothesis import given, settings

from symenum.expressions import (
    Apply,
    Constant,
    Variable,
    apply,
    evaluate,
    mathml_equation,
    parse,
    to_latex,
    to_mathml,
    to_text,
    walk,
)
from symenum.operators import get_operator, make_operator

X = Variable("x")


@settings(max_examples=400)
@given(any_tree)
def test_text_is_read_back_as_the_same_tree(tree):
    text = to_text(tree)
    back = parse(text)
    assert back == tree
    assert to_text(back) == text


@settings(max_examples=150, deadline=None)
@given(tame_tree)
def test_sympy_reads_the_text_with_the_same_meaning(tree):
    columns = {"x1": 0.7, "x2": -1.3, "x10": 2.1}
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in columns.items()}
    # Exact arithmetic differs where a double overflows or cancels; a moderate tree is compared.
    parts = [evaluate(node, tensors).item() for node in walk(tree)]
    if not all(math.isfinite(part) and (part == 0 or 1e-3 < abs(part) < 1e3) for part in parts):
        return
    value = complex(sympy.sympify(to_text(tree)).subs(columns).evalf())
    assert value.imag == pytest.approx(0, abs=1e-9)
    assert value.real == pytest.approx(parts[-1], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    ["a - (b - c)", "a - b - c", "a + (b + c)", "a/(b*c)", "a/b*c", "a*(b/c)", "(a**b)**c", "a**b**c", "-(a + b)",
     "-(2)", "-(-x)", "-(-2)", "(-2)**x", "-2**x", "(-x)**2", "-x**2", "x - (-2)", "-2*x", "x*(-2)", "2**(-x)",
     "-(a*b)", "-a*b", "x**(1/2)", "1/(1 + exp(-x))", "abs(x)", "-pi", "E**x", "1e-300*x", "x + (-a*b)", "(a + b)*c",
     "-sin(x)"],
)  # fmt: skip
def test_brackets_are_where_needed_and_nowhere_else(text):
    assert to_text(parse(text)) == text


def test_long_sums_are_printed():
    assert to_text(parse(" + ".join(["x"] * 2_000))) == " + ".join(["x"] * 2_000)


def test_own_operators_are_printed_as_calls():
    both = make_operator("arctan_2", torch.atan2, arity=2)
    assert to_text(apply(both, X, Constant(2))) == "arctan_2(x, 2)"
    assert to_latex(apply(both, X, Constant(2))) == r"\operatorname{arctan\_2}\left(x, 2\right)"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("(a + b)*c", r"\left(a + b\right) \cdot c"),
        ("a + (b + c)", "a + b + c"),
        ("a - (b + c)", r"a - \left(b + c\right)"),
        ("a*(b*c)", r"a \cdot b \cdot c"),
        ("a/(b + c)", r"\frac{a}{b + c}"),
        ("(a + b)**2", r"{\left(a + b\right)}^{2}"),
        ("(a/b)**2", r"{\left(\frac{a}{b}\right)}^{2}"),
        ("(a**b)**c", r"{\left({a}^{b}\right)}^{c}"),
        ("a**(b + c)", "{a}^{b + c}"),
        ("(-2)**x", r"{\left(-2\right)}^{x}"),
        ("sin(x)**2", r"{\sin\left(x\right)}^{2}"),
        ("-(a + b)", r"-\left(a + b\right)"),
        ("-(-a)", r"-\left(-a\right)"),
        ("(-a)**2", r"{\left(-a\right)}^{2}"),
        ("(-(a*b))**2", r"{\left(-a \cdot b\right)}^{2}"),
        ("a*(-b)", r"a \cdot \left(-b\right)"),
        ("a - (-2)", r"a - \left(-2\right)"),
        ("sqrt(a + b)", r"\sqrt{a + b}"),
        ("abs(a)", r"\left|a\right|"),
        ("x1 + x_12", "x_{1} + x_{12}"),
        ("theta2*omega", r"\theta_{2} \cdot \omega"),
        ("mass_ratio", r"\mathrm{mass}_{\mathrm{ratio}}"),
        ("rho_kg_m_3", r"\rho_{\mathrm{kg}\,\mathrm{m}\,3}"),
        ("v_x*x_alpha", r"v_{x} \cdot x_{\alpha}"),
        ("q_dot + theta1_ddot", r"\dot{q} + \ddot{\theta}_{1}"),
        ("dot*sin_", r"\mathrm{dot} \cdot \mathrm{sin\_}"),
        ("-x/y", r"-\frac{x}{y}"),
        ("-2*x/y", r"-\frac{2 \cdot x}{y}"),
        ("(-x - 1)/y", r"\frac{-x - 1}{y}"),
        ("a - (-x)/y", r"a - \left(-\frac{x}{y}\right)"),
        ("_", r"\_"),
        ("pi*E", r"\pi \cdot e"),
        ("1e-05", r"1 \cdot 10^{-5}"),
        ("(1.5e+20)**x", r"{\left(1.5 \cdot 10^{20}\right)}^{x}"),
        ("x*(-1e-05)", r"x \cdot \left(-1 \cdot 10^{-5}\right)"),
    ],
)
def test_latex(text, latex):
    assert to_latex(parse(text)) == latex


@given(any_tree)
def test_latex_has_balanced_braces_and_brackets(tree):
    latex = to_latex(tree)
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")


def test_text_with_a_precision_rounds_floats_only() -> None:
    expression = parse("123456*x1 + 1.23456789*sin(x1) - pi")
    assert to_text(expression, 3) == "123456*x1 + 1.23*sin(x1) - pi"
    with pytest.raises(ValueError, match="precision"):
        to_text(expression, 0)


def words(markup: str) -> str:
    """What a reader sees, without the way it is set."""
    greek = markup.replace("&theta;", "θ").replace("&rho;", "ρ")
    return "".join(ElementTree.fromstring(f"<math>{greek}</math>").itertext()).replace("\u2061", "")


@given(any_tree)
def test_every_tree_gives_well_formed_markup_with_the_brackets_of_latex(tree):
    markup = to_mathml(tree, 4)
    assert words(markup)
    assert markup.count("<mo>(</mo>") == to_latex(tree, 4).count(r"\left(")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a - (b - c)", "a−(b−c)"),
        ("-(a + b)*c", "−(a+b)·c"),
        ("a*(-2)", "a·(−2)"),
        ("sqrt(x1) + exp(-x2)", "x1+exp(−x2)"),
        ("abs(theta)*pi", "|θ|·π"),
        ("1.5e-7*x", "1.5·10−7·x"),
        ("rho_kg_m_3*q_dot", "ρkgm3·q˙"),
        ("-x/y + (-x - 1)/y", "−xy+−x−1y"),
    ],
)
def test_mathml_shows_the_text(text, seen):
    assert words(to_mathml(parse(text))) == seen


def test_a_power_of_a_power_and_of_a_quotient_is_bracketed():
    assert words(to_mathml(parse("(x**2)**y"))) == "(x2)y"
    assert words(to_mathml(parse("(x/z)**2"))) == "(xz)2"


def test_a_notebook_shows_the_formula_as_people_write_it():
    assert parse("x*x*2.123456")._repr_latex_() == r"$\displaystyle 2.1235 \cdot {x}^{2}$"


def test_a_name_is_never_markup_of_mathml():
    markup = mathml_equation("<script>alert(1)</script>", Apply(get_operator("sin"), (Variable("x"),)))
    assert "<script" not in markup
    assert "&lt;script&gt;" in markup


def test_precision_of_mathml_is_for_floats_only_and_checked():
    assert words(to_mathml(Constant(3.14159), 3)) == "3.14"
    assert words(to_mathml(Constant(314159), 3)) == "314159"
    with pytest.raises(ValueError, match="precision"):
        to_mathml(Constant(1.0), 0)
