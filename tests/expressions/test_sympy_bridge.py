"""To SymPy and back."""

import math

import pytest
import sympy
import torch
from expressions.strategies import tame_tree
from hypothesis import given, settings

from symenum.expressions import Variable, apply, evaluate, from_sympy, parse, same_function, to_sympy, walk
from symenum.operators import make_operator

X, Y = sympy.symbols("x y")
COLUMNS = {
    name: torch.tensor([0.7, -1.3, 2.1], dtype=torch.float64).roll(i) for i, name in enumerate(["x1", "x2", "x10"])
}


@pytest.mark.parametrize("real", [False, True])
@settings(max_examples=100, deadline=None)
@given(tree=tame_tree)
def test_the_round_trip_keeps_the_values(real, tree):
    tree = apply("add", tree, Variable("x1"))
    parts = torch.stack([evaluate(node, COLUMNS) for node in walk(tree)])
    moderate = (parts.isfinite() & ((parts == 0) | ((parts.abs() > 1e-3) & (parts.abs() < 1e3)))).all(0)
    if not moderate.any():
        return
    expr = to_sympy(tree, real=real)
    if expr.has(sympy.zoo, sympy.nan):  # SymPy writes 0**(-x) as zoo**x, which has no values of its own
        return
    back = from_sympy(expr)
    values = evaluate(back, COLUMNS)
    torch.testing.assert_close(values[moderate], parts[-1][moderate], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (X + Y, "x + y"),
        (Y - X, "y - x"),
        (-X - Y, "-x - y"),
        (X * Y, "x*y"),
        (-X, "-x"),
        (-2 * X, "-2*x"),
        (1 / X, "1/x"),
        (X / Y, "x/y"),
        (-X / 2, "-x/2"),
        (2 * X / (3 * Y), "2*x/(3*y)"),
        (sympy.Rational(1, 3), "1/3"),
        (sympy.Rational(-2, 3), "-2/3"),
        (sympy.sqrt(X), "sqrt(x)"),
        (1 / sympy.sqrt(X), "1/sqrt(x)"),
        (X ** sympy.Rational(2, 3), "x**(2/3)"),
        (X ** sympy.Rational(-2, 3), "1/x**(2/3)"),
        (X**2, "x**2"),
        (X**-2, "1/x**2"),
        (X**Y, "x**y"),
        (2.5 * X, "2.5*x"),
        (sympy.pi * X + sympy.E, "pi*x + E"),
        (sympy.exp(-X), "exp(-x)"),
        (sympy.Abs(X) * sympy.sign(Y), "abs(x)*sign(y)"),
        (sympy.log(sympy.tanh(X)), "log(tanh(x))"),
        (sympy.Integer(0), "0"),
        (sympy.pi, "pi"),
        (X ** (-Y), "x**(-y)"),
    ],
)
def test_from_sympy(expr, text):
    tree = from_sympy(expr)
    assert same_function(tree, parse(text))
    assert sorted(str(tree)) == sorted(text)  # the order of operands is SymPy's


@pytest.mark.parametrize(
    "expr",
    [sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, X + sympy.I, sympy.tan(X), sympy.gamma(X), sympy.true, X > 0,
     sympy.Derivative(sympy.sin(X * Y), X), sympy.Function("f")(X), sympy.Piecewise((X, X > 0), (0, True)),
     sympy.GoldenRatio, sympy.Integer(10) ** 400, sympy.Float("1e400"), sympy.Max(X, Y),
     sympy.Matrix([X]).as_immutable()],
    ids=str,
)  # fmt: skip
def test_what_is_not_ours_is_refused(expr):
    with pytest.raises(ValueError, match=r"cannot write|constant must"):
        from_sympy(expr)


def test_only_sympy_is_converted_from():
    with pytest.raises(TypeError, match="parse"):
        from_sympy("x + 1")


def test_symbols_are_plain_unless_asked_to_be_real():
    assert to_sympy(parse("x")) == X
    assert to_sympy(parse("sqrt(x**2)"), real=True) == sympy.Abs(sympy.Symbol("x", real=True))
    assert to_sympy(parse("x + S*beta")).free_symbols == {X, sympy.Symbol("S"), sympy.Symbol("beta")}


def test_numbers_keep_their_kind():
    assert to_sympy(parse("1/2")) == sympy.Rational(1, 2)
    assert isinstance(to_sympy(parse("0.5")), sympy.Float)
    assert to_sympy(parse("pi + E")) == sympy.pi + sympy.E


def test_towers_of_powers_do_not_hang():
    assert float(sympy.log(to_sympy(parse("9**9**9")))) == pytest.approx(9**9 * math.log(9))


@pytest.mark.parametrize(
    "text", ["9.5**9.5**9.5**9.5", "9**9**9**9", "sin(exp(exp(50.0)))", "exp(exp(exp(exp(10.0))))"]
)
def test_functions_of_numbers_beyond_the_doubles_are_those_of_infinity(text):
    expr = to_sympy(parse(f"x + {text}"))
    assert expr.has(sympy.oo, sympy.nan)


def test_own_operators_pass_through():
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    tree = apply("add", apply(softplus, Variable("x")), Variable("y"))
    expr = to_sympy(tree)
    assert expr == sympy.Function("softplus")(X) + Y
    assert same_function(from_sympy(expr, [softplus]), tree)
