"""Inverse steps: what they undo, their slopes against finite differences, and where they do not apply."""

from __future__ import annotations

import pytest
import torch

from symenum.expressions import Variable, evaluate
from symenum.heads.inverse_steps import (
    function_steps,
    joining_steps,
    monotone_step,
    power_steps,
    reciprocal_step,
    subtraction,
)
from symenum.operators import Abilities, Traits, get_operators, make_operator
from symenum.operators.traits import REALS, Interval

OPERATORS = get_operators(["+", "-", "*", "/", "**", "exp", "log", "sqrt", "sin", "cos", "tanh", "sinh", "inv"])
ABLE = Abilities(OPERATORS)
A = torch.tensor([0.5, 1.5, 2.0, 0.7], dtype=torch.float64)
INNER = torch.tensor([0.2, 0.9, 0.4, 0.6], dtype=torch.float64)  # t', where every step below is defined
PART = Variable("a")
STEPS = [
    *function_steps(ABLE),
    *(step for operator in OPERATORS if (step := monotone_step(operator)) is not None),
    reciprocal_step(),
    *joining_steps(ABLE, PART, A),
    *power_steps(ABLE, PART, A),
    subtraction(PART, A),
]


def outer(step, inner):
    """t of t', by the law that the step writes."""
    return evaluate(step.back(Variable("f")), {"f": inner, "a": A})


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_undoes_the_law_that_it_writes(step):
    t = outer(step, INNER)
    assert bool(step.applies(t[None]).all())
    torch.testing.assert_close(step.undo(t[None])[0], INNER, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_slope_is_that_of_the_law(step):
    h = 1e-6
    difference = (outer(step, INNER + h) - outer(step, INNER - h)) / (2 * h)
    t = outer(step, INNER)
    torch.testing.assert_close(step.slope(t, step.undo(t)), difference.abs(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_is_the_same_on_other_rows(step):
    rows = torch.tensor([2, 0])
    there = step.on(lambda part: A[rows])
    t = outer(step, INNER)
    torch.testing.assert_close(there.undo(t[rows]), step.undo(t)[rows])


def test_steps_apply_where_all_rows_lie_on_their_branch():
    t = torch.tensor([[1.0, 2.0], [-1.0, -2.0], [1.0, -2.0], [0.5, -0.5]], dtype=torch.float64)
    applies = {}
    for step in function_steps(ABLE):
        applies.setdefault(step.name, []).append(step.applies(t).tolist())
    assert applies["log({})"] == [[True, False, False, False]]
    assert applies["log(-{})"] == [[False, True, False, False]]
    assert applies["{}**2"] == [[True, False, False, False], [False, True, False, False]]
    assert applies["asin({})"] == [[False, False, False, True]]


def test_a_function_is_undone_only_inside_its_range():
    (tanh,) = (step for operator in get_operators(["tanh"]) if (step := monotone_step(operator)) is not None)
    t = torch.tensor([[0.5, -0.9], [0.5, 1.5]], dtype=torch.float64)
    assert tanh.applies(t).tolist() == [True, False]


def test_an_operator_without_an_inverse_has_no_step():
    bump = make_operator("bump", lambda x: 1 / (1 + x * x), traits=Traits(parity=1, domain=REALS))
    assert monotone_step(bump) is None


def test_an_own_operator_that_only_rises_is_undone():
    rising = Traits(monotone=1, domain=REALS, range=Interval(-1, 1))
    step = monotone_step(make_operator("soft", lambda x: x / (1 + x.abs()), traits=rising))
    assert step is not None
    t = torch.tensor([[0.5, -0.75]], dtype=torch.float64)
    torch.testing.assert_close(step.undo(t), torch.tensor([[1.0, -3.0]], dtype=torch.float64), rtol=1e-9, atol=1e-9)
