"""Derivatives as expressions, against SymPy's."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
import torch

from symenum import make_operator
from symenum.expressions import apply, derivative, evaluate, parse, to_sympy
from symenum.expressions.tree import Variable
from symenum.operators import OPERATORS


@pytest.mark.parametrize(
    "text",
    ["x**2*y", "sin(x*y) + cos(x)", "exp(x/y)*x", "log(x + y)", "sqrt(x*y)", "x/(x + y)", "y/x", "x**y", "y**x", "x**x",
     "tanh(x*y)", "sinh(x)*cosh(y*x)", "abs(x - y)", "-x**3", "1/(1 + exp(-x))", "3", "y", "x**2.5",
     "x**(y - 1)"],
)  # fmt: skip
def test_the_derivative_is_that_of_sympy(text: str) -> None:
    law = parse(text)
    found = derivative(law, "x")
    assert found is not None
    points = {name: np.random.default_rng(0).uniform(0.5, 2, 20) for name in ("x", "y")}
    x, y = sympy.symbols("x y", positive=True)
    symbols = {sympy.Symbol(name): value for name, value in (("x", x), ("y", y))}
    wanted = sympy.lambdify((x, y), sympy.diff(to_sympy(law).subs(symbols), x), "numpy")(points["x"], points["y"])
    assert np.allclose(evaluate(found, points), wanted, rtol=1e-9, atol=1e-12)


def test_a_function_of_ones_own_has_no_derivative_that_is_written() -> None:
    erf = make_operator("erf", torch.special.erf)
    assert derivative(apply(erf, Variable("x")), "x") is None


@pytest.mark.parametrize("name", [one.name for one in OPERATORS.values() if one.slope_form is not None])
def test_the_written_slope_of_an_operator_is_its_partial_derivative(name: str) -> None:
    operator = OPERATORS[name]
    a = torch.linspace(0.3, 2, 30, dtype=torch.float64)
    assert operator.slope_form is not None
    written = evaluate(parse(operator.slope_form), {"a": a})
    partial = torch.as_tensor(operator.partial(0, operator.function(a), a), dtype=torch.float64).expand(30)
    assert torch.allclose(written, partial, rtol=1e-12)
