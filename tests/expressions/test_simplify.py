"""Constants are folded, and the function stays what it was."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given

from symenum.expressions import evaluate, parse, same_function, sample_points, simplify, variables

from .strategies import any_tree, tame_tree


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("2*3.1*x", "6.2*x"),
        ("(x + 1) + 2", "x + 3"),
        ("(x + 1) + 2*3.5", "x + 8"),
        ("x - (-2)*3", "x + 6"),
        ("x + (-313.38)", "x - 313.38"),
        ("4*sin(x)/2", "2*sin(x)"),
        ("1*x", "x"),
        ("x + 0", "x"),
        ("0*x + y", "y"),
        ("-(-x)", "x"),
        ("x/2/y", "x/(2*y)"),
        ("2/3*x", "2*x/3"),
        ("-x + y", "y - x"),
        ("-x - y", "-x - y"),
        ("x - (-2)*y", "x + 2*y"),
        ("1.5/(2*x)", "0.75/x"),
        ("x + (-(2*pi))", "x - 2*pi"),
        ("x**1", "x"),
        ("x - 0.5 - (y - 3.5)", "x - y + 3"),
        ("sqrt(2)*x", "sqrt(2)*x"),
        ("1/3 + x", "1/3 + x"),
        ("exp(0.0)*x", "x"),
    ],
)
def test_numbers_are_written_as_people_write_them(text: str, simple: str) -> None:
    assert str(simplify(parse(text))) == simple


@given(tame_tree)
def test_the_function_stays_the_same_where_both_have_values(tree) -> None:
    simple = simplify(tree)
    names = variables(tree)
    columns = dict(zip(names, sample_points(len(names)).unbind(1), strict=True)) or {"x": torch.zeros(1).double()}
    before, after = evaluate(tree, columns), evaluate(simple, columns)
    both = torch.isfinite(before) & torch.isfinite(after)
    if not same_function(tree, simple):  # 0*f has values where f has none
        size = before[both].abs().clamp_min(1e-6)
        assert bool(((before - after)[both].abs() <= 1e-6 * size).all())


@given(any_tree)
def test_ugly_numbers_do_no_harm_and_nothing_is_left_to_do(tree) -> None:
    simple = simplify(tree)
    assert parse(str(simple)) == simple or "sin" in variables(simple)
    assert simple.complexity <= tree.complexity + 1


def test_a_long_sum_is_no_deep_recursion() -> None:
    total = parse("x")
    for i in range(3000):
        total = parse("a + b").__class__(parse("a + b").operator, (total, parse(f"x*{i}")))
    assert simplify(total) is not None
