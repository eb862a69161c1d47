"""A batch of different expressions has the values of each, and the derivatives by each constant."""

from __future__ import annotations

import numpy as np
import torch

from symenum.expressions import Expression, evaluate, parse
from symenum.fitting import with_constants
from symenum.fitting.batch_evaluation import Machine, Slopes
from symenum.fitting.batch_program import Program, compile_program
from symenum.fitting.free_constants import postfix
from symenum.operators import make_operator

TEXTS = [
    "2.0",
    "1.5*x",
    "3.0*sin(1.2*x + 0.3)/(y + 2.0)",
    "(0.5 - x)*exp(y)*log(2.5*y + x)",
    "x**2 + y**1.5 - tanh(0.3*x)*sqrt(y)",
    "-(2.0*x) + pi*0.7*abs(x - 0.1)",
    "cosh(0.2*x) - sinh(x*0.1)*cos(y)",
]


def columns(rows: int = 30) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {name: 0.5 + 2 * torch.rand(rows, generator=generator, dtype=torch.float64) for name in "xy"}


def compiled(expressions: list[Expression]) -> Program:
    return compile_program([postfix(expression) for expression in expressions], columns())


def machine(program: Program, members: np.ndarray, copies: int = 1, slopes: Slopes = Slopes.ALL) -> Machine:
    made = Machine(program, members, 30, copies, slopes)
    made.load(program.data)
    if slopes is not Slopes.NONE:
        made.seeds[:] = 1.0
    return made


def test_values_are_those_of_evaluate_and_members_may_repeat() -> None:
    expressions = [parse(text) for text in TEXTS]
    program = compiled(expressions)
    members = np.array([2, 0, 3, 2, 6, 5, 4, 1, 0])
    values = machine(program, members).values(program.starts[members, :, None])
    for row, member in zip(values[:, 0], members, strict=True):
        np.testing.assert_allclose(row, evaluate(expressions[member], columns()), rtol=1e-14, atol=1e-14)


def test_copies_are_members_side_by_side() -> None:
    program = compiled([parse(text) for text in TEXTS])
    members = np.array([2, 5, 3])
    constants = program.starts[members, :, None] * [1.0, 1.1, 0.9]
    together = machine(program, members, copies=3)
    values, J = together.values(constants), together.derivatives()
    for copy in range(3):
        alone = machine(program, members)
        np.testing.assert_array_equal(values[:, copy], alone.values(constants[:, :, [copy]])[:, 0])
        np.testing.assert_array_equal(J[:, :, copy], alone.derivatives()[:, :, 0])


def test_derivatives_agree_with_finite_differences() -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    expressions = [*map(parse, TEXTS), parse("1.1*softplus(x*0.4)", operators=[softplus])]
    program = compiled(expressions)
    made = machine(program, np.arange(len(expressions)))
    made.values(program.starts[:, :, None])
    J = made.derivatives()[:, :, 0]
    for i, expression in enumerate(expressions):
        values = program.starts[i, : program.count[i]]
        for k in range(len(values)):
            up, down = (
                evaluate(with_constants(expression, values + h * np.eye(len(values))[k]), columns())
                for h in (1e-6, -1e-6)
            )
            np.testing.assert_allclose(J[i, k], (up - down) / 2e-6, rtol=1e-6, atol=1e-8)
        assert not J[i, len(values) :].any()


def test_derivatives_can_be_had_by_the_linear_constants_only_and_values_without_any() -> None:
    program = compiled([parse(text) for text in [*TEXTS, "(2.0*x + 0.5)*(sin(1.1*y) + 0.4)/(1.3*x + 9.0)"]])
    members = np.arange(len(program.count))
    constants = program.starts[:, :, None]
    full, linear, none = (machine(program, members, slopes=slopes) for slopes in Slopes)
    values = full.values(constants)
    np.testing.assert_array_equal(linear.values(constants), values)
    np.testing.assert_array_equal(none.values(constants), values)
    expected = full.derivatives()[:, :, 0] * program.linear[:, :, None]
    assert program.linear[-1].sum() == 2
    np.testing.assert_array_equal(linear.derivatives()[:, :, 0], expected)
    assert not hasattr(none, "block")  # no memory is taken for what nobody asks for


def test_values_are_affine_in_the_linear_constants() -> None:
    expressions = [parse(text) for text in TEXTS]
    program = compiled(expressions)
    made = machine(program, np.arange(len(expressions)))
    moved = program.starts + program.linear * np.random.default_rng(0).normal(size=program.starts.shape)
    values, J = made.values(program.starts[:, :, None])[:, 0], made.derivatives()[:, :, 0]
    predicted = values + ((moved - program.starts)[:, None] @ J)[:, 0]
    np.testing.assert_allclose(made.values(moved[:, :, None])[:, 0], predicted, rtol=1e-9, atol=1e-12)
    assert program.linear[1].sum() == 1
    assert program.linear[4].sum() == 0  # its only constants are an exponent and inside tanh
