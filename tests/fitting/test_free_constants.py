"""Which constants are free, coefficients that the data can determine, and laws without one of their parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from expressions.strategies import tame_tree
from hypothesis import given

from symenum.expressions import evaluate, parse, same_function, sample_points, variables
from symenum.fitting import free_constants, with_coefficients, with_constants, with_one_less, with_one_more
from symenum.fitting.batch_evaluation import Machine
from symenum.fitting.batch_program import compile_program
from symenum.fitting.free_constants import postfix

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


@pytest.mark.parametrize(
    ("text", "free", "held_integers"),
    [
        ("2*x + 0.5", (2.0, 0.5), (0.5,)),
        ("x**2 + x**1.5", (1.5,), (1.5,)),
        ("2**x", (2.0,), ()),
        ("x**(2*0.5)", (2.0, 0.5), (0.5,)),
        ("pi*x + E", (), ()),
        ("2.5*x + sin(2.5)", (2.5, 2.5), (2.5, 2.5)),
        ("x", (), ()),
    ],
)
def test_numbers_without_names_are_free_but_not_whole_exponents(text, free, held_integers) -> None:
    assert free_constants(parse(text)) == free
    assert free_constants(parse(text), integers=False) == held_integers


def test_values_go_in_from_left_to_right_and_equal_ones_keep_their_leaf() -> None:
    assert str(with_constants(parse("2*x**2 + sin(3*x)"), [2.0, -1.5])) == "2*x**2 + sin(-1.5*x)"


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0]])
def test_a_wrong_number_of_values_is_an_error(values) -> None:
    with pytest.raises(ValueError, match="values are too"):
        with_constants(parse("2*x + 3"), values)


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("x + y", ["x", "y"]),
        ("x - y", ["x", "-y"]),
        ("x/y", ["x", "1/y"]),
        ("sin(x*y) + 3", ["sin(x) + 3", "sin(y) + 3", "sin(x*y)"]),
        ("sin(x)", []),
        ("x", []),
    ],
)
def test_with_one_less_leaves_each_part_out_once(text: str, shorter: list[str]) -> None:
    expected = {parse(each) for each in shorter if parse(each).complexity < parse(text).complexity}
    assert set(with_one_less(parse(text))) == expected


def test_with_one_less_gives_simpler_laws_that_are_not_numbers() -> None:
    law = parse("2.5*x1*exp(x2/3 - x1) - x2/(x1 + 1.5) + tanh(x1 + 0.1)")
    found = with_one_less(law)
    assert found
    assert all(variables(each) and each.complexity < law.complexity for each in found)
