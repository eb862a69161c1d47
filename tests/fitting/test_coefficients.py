"""A family begins at its candidate, and the data can determine each of its coefficients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from expressions.strategies import tame_tree
from hypothesis import given

from symenum.expressions import evaluate, parse, same_function, sample_points, variables
from symenum.fitting import free_constants, with_coefficients, with_one_more
from symenum.fitting.constants import postfix
from symenum.fitting.machine import Machine
from symenum.fitting.program import compile_program

CANDIDATES = [
    "x*y",
    "exp(x + 1)",
    "log(2*x)",
    "x*log(2*x)",
    "(2*x + 3*y)*z",
    "sin(x) + cos(y*x)",
    "x + x",
    "sqrt(4*x + y)",
    "(x + 1)**2",
    "x**2.5",
    "1/(x + exp(y))",
    "x/(x*y + 1)",
    "sin(sin(x))",
    "2*pi*x",
    "abs(x - 1)*y",
    "exp(-x*x/2)/y",
    "tanh(x)*exp(y) - z",
]


@pytest.mark.parametrize("text", CANDIDATES)
def test_no_coefficient_is_redundant(text: str) -> None:
    family = with_coefficients(parse(text))
    generator = torch.Generator().manual_seed(0)
    columns = {name: 0.5 + 2 * torch.rand(80, generator=generator, dtype=torch.float64) for name in "xyz"}
    program = compile_program([postfix(family)], columns)
    moved = program.starts + np.random.default_rng(0).uniform(0.05, 0.2, program.starts.shape)
    machine = Machine(program, np.array([0]), 80)
    machine.load(program.data)
    machine.seeds[:] = 1.0
    machine.values(moved[:, :, None])
    J = machine.derivatives()[0, :, 0]
    singular = np.linalg.svd(J / np.linalg.norm(J, axis=1, keepdims=True), compute_uv=False)
    assert singular[-1] / singular[0] > 1e-7


@pytest.mark.parametrize("text", [*CANDIDATES, "2**(x + 1) - y", "x**(x + 1)", "(x + 1)**(y - 2)"])
def test_the_start_is_the_candidate(text: str) -> None:
    assert same_function(parse(text), with_coefficients(parse(text)))


@given(tame_tree)
def test_the_start_is_any_candidate_where_both_have_values(tree) -> None:
    family = with_coefficients(tree)
    names = variables(tree)
    columns = dict(zip(names, sample_points(len(names)).unbind(1), strict=True))
    if columns:
        before, after = evaluate(tree, columns), evaluate(family, columns)
        both = torch.isfinite(before) & torch.isfinite(after)
        assert same_function(tree, family) or bool(
            ((before - after)[both].abs() <= 1e-6 * before[both].abs().clamp_min(1e-6)).all()
        )


def test_a_scale_for_each_term_an_offset_and_inner_coefficients() -> None:
    assert str(with_coefficients(parse("sin(x) + x*y"))) == "1.0*sin(1.0*x + 0.0) + 1.0*x*y + 0.0"
    assert len(free_constants(with_coefficients(parse("x**2")))) == 2


def test_one_more_coefficient_wherever_there_may_be_one() -> None:
    assert [str(family) for family in with_one_more(parse("2*tanh(x + x*x) + 3"))] == [
        "2*tanh(x + x*x) + 3",
        "2*tanh(1.1*x + x*x) + 3",
        "2*tanh(x + 1.1*x*x) + 3",
        "2*tanh(x + x*x + 0.1) + 3",
    ]
