"""What the search is told (prior, guesses, loss) holds in passes with tokens too, and repeats under a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from symenum.core.budget import Budget
from symenum.core.target import Target
from symenum.expressions import parse
from symenum.fitting import free_constants
from symenum.fitting.losses import Absolute
from symenum.heads.operator_grammar import Prior
from symenum.operators import get_operators
from symenum.search import Settings, State, Task, make_task, start, step
from symenum.search.front_update import outlier_weights


def hard(a, b):
    return np.sin(3 * a) / (b + np.exp(np.cos(a * b))) + np.tanh(a - b)


def token_steps(task: Task, count: int) -> State:
    """The state after so many passes with tokens, the stages of the heads left out."""
    state = replace(start(task, 0), iteration=len(task.stages[0]) + len(task.stages[1]) * 2 + 1)
    names: list[str] = []
    while names.count("tokens") < count:
        state, name = step(task, state, Budget())
        names.append(name)
    return state


def test_a_prior_holds_for_laws_of_tokens(make) -> None:
    prior = Prior(4, {"sin": {"sin": 0, "cos": 0}, "cos": {"sin": 0}}, {}, ("x2",))
    operators = get_operators(["+", "*", "-", "sin", "cos"])
    state = token_steps(make(hard, operators=operators, prior=prior), 2)
    assert len(state.front) > 1
    assert all(prior.allows(entry.expression) for entry in state.front)


def test_parts_of_guesses_are_tokens_though_they_do_not_stand_on_the_front(make) -> None:
    guess = parse("x1*(x2 + x1*x2)*x1*x2*x2*x1 - x2*x2*x2*x1*x1")
    task = make(hard, guesses=(guess,))
    state = token_steps(task, 1)
    assert guess not in [entry.expression for entry in state.front]
    assert guess in [member.expression for member in state.generator.memory.front]


def test_a_search_under_a_robust_loss_repeats(make) -> None:
    def law(a, b):
        y = a * b + np.random.default_rng(5).normal(0, 0.01, len(a))
        y[::9] += 100.0
        return y

    fronts = [token_steps(make(law, loss=Absolute()), 1).front for _ in range(2)]
    assert [(str(e.expression), e.loss) for e in fronts[0]] == [(str(e.expression), e.loss) for e in fronts[1]]
    assert "x1*x2" in [str(entry.expression) for entry in fronts[0]]


def test_rows_that_the_law_denies_weigh_less() -> None:
    x = torch.linspace(1, 2, 30, dtype=torch.float64)
    y = 2 * x + 0.01 * torch.sin(40 * x)
    y[3] += 10.0
    weight = torch.full((30,), 1 / 30, dtype=torch.float64)
    target = outlier_weights(parse("2*x"), {"x": x}, Target(y, weight))
    assert float(target.weight.sum()) == pytest.approx(1.0)
    assert float(target.weight[3]) < 1e-4 * float(target.weight.median())
    assert float(target.weight.min()) == float(target.weight[3])


def test_without_constants_the_first_laws_in_required_variables_have_none(make) -> None:
    front = start(make(hard, constants=False, prior=Prior(required=("x1",))), 0).front
    assert len(front) > 0
    assert not any(free_constants(entry.expression, integers=False) for entry in front)


def test_without_constants_a_loss_fits_none(make) -> None:
    task = make(hard, constants=False, loss=Absolute())
    state = replace(start(task, 0), iteration=len(task.stages[0]))
    state, name = step(task, state, Budget())
    assert name == "tokens"
    whole = [value for entry in state.front[1:] for value in free_constants(entry.expression, integers=False)]
    assert all(value.is_integer() for value in whole)  # what fills slots, as it was put there


@pytest.mark.parametrize(
    ("told", "parameter"),
    [({"prior": Prior(required=("x2",))}, "required_variables"), ({"guesses": (parse("x1*x2"),)}, "guesses")],
)
def test_variables_that_say_nothing_cannot_be_asked_for(told, parameter: str) -> None:
    X = torch.stack([torch.linspace(1, 2, 30, dtype=torch.float64), torch.full((30,), 7.0, dtype=torch.float64)], dim=1)
    target = Target(X[:, 0], torch.full((30,), 1 / 30, dtype=torch.float64))
    with pytest.raises(ValueError, match=f"{parameter} has x2"):
        make_task(("x1", "x2"), X, target, Settings(**told))
