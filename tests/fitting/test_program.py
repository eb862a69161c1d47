"""A batch of different expressions has the values of each, and the derivatives by each constant."""

from __future__ import annotations

import numpy as np
import torch

from symenum.expressions import evaluate, parse
from symenum.fitting import with_constants
from symenum.fitting.program import compile_program
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


def test_values_are_those_of_evaluate_and_members_may_repeat() -> None:
    expressions = [parse(text) for text in TEXTS]
    program = compile_program(expressions, columns(), integers=True)
    members = np.array([2, 0, 3, 2, 6, 5, 4, 1, 0])
    values = program.machine(members).values(torch.from_numpy(program.starts[members]))
    for row, member in zip(values, members, strict=True):
        torch.testing.assert_close(row, evaluate(expressions[member], columns()), rtol=1e-14, atol=1e-14)


def test_derivatives_agree_with_finite_differences() -> None:
    softplus = make_operator("softplus", torch.nn.functional.softplus)
    expressions = [*map(parse, TEXTS), parse("1.1*softplus(x*0.4)", operators=[softplus])]
    program = compile_program(expressions, columns(), integers=True)
    everyone = np.arange(len(expressions))
    _, J = program.machine(everyone).linearise(torch.from_numpy(program.starts))
    for i, expression in enumerate(expressions):
        values = program.starts[i, : program.count[i]]
        for k in range(len(values)):
            up, down = (
                evaluate(with_constants(expression, values + h * np.eye(len(values))[k]), columns())
                for h in (1e-6, -1e-6)
            )
            torch.testing.assert_close(J[i, k], (up - down) / 2e-6, rtol=1e-6, atol=1e-8)
        assert not bool(J[i, len(values) :].any())


def test_values_are_affine_in_the_linear_constants() -> None:
    expressions = [parse(text) for text in TEXTS]
    program = compile_program(expressions, columns(), integers=True)
    everyone = np.arange(len(expressions))
    moved = program.starts + program.linear * np.random.default_rng(0).normal(size=program.starts.shape)
    values, J = program.machine(everyone).linearise(torch.from_numpy(program.starts))
    predicted = values + (torch.from_numpy(moved - program.starts)[:, None] @ J)[:, 0]
    torch.testing.assert_close(program.machine(everyone).values(torch.from_numpy(moved)), predicted)
    assert program.linear[1].sum() == 1
    assert program.linear[4].sum() == 0  # its only constants are an exponent and inside tanh
