"""What is made of a step's finds: rounded, with a part less, with one more coefficient, fitted on all rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.core.budget import Budget
from symenum.expressions import parse
from symenum.fitting import free_constants
from symenum.operators import get_operators
from symenum.search import run
from symenum.search.polish import _likely_digits, limit_in_disguise, loosened, pruned, rounded


def test_where_exponents_became_whole_the_factor_is_fitted_anew(make) -> None:
    task = make(lambda a, b: a * b / (2 * np.pi), rows=200, noise=0.05)
    nearly = task.data.candidate(parse("0.174*x1**0.954*x2**1.02"))
    best = min(
        (each for each in rounded(task, [nearly], Budget()) if each.expression.complexity == 2),
        key=lambda each: each.loss,
    )
    x1, x2 = (task.data.columns[name].numpy() for name in ("x1", "x2"))
    y = task.data.target.y.numpy()
    factor = (y @ (x1 * x2)) / np.sum((x1 * x2) ** 2)
    assert free_constants(best.expression, integers=False) == pytest.approx([factor], rel=1e-9)


def test_a_law_stands_beside_the_one_with_terms_too_many(make) -> None:
    task = make(lambda a, b: a * np.sin(b), rows=200, noise=0.05)
    found = pruned(task, [parse("x1*sin(x2) - 0.043*x1/x2 + 0.0668")], Budget())
    assert "x1*sin(x2)" in [str(each.expression) for each in found]
    assert all(each.loss == pytest.approx(task.data.candidate(each.expression).loss) for each in found)


def test_without_time_nothing_is_pruned(make) -> None:
    over = Budget()
    over.end()
    assert pruned(make(lambda a, b: a * b), [parse("x1*x2 + 0.1*x1")], over) == []


@pytest.mark.parametrize(("look", "fitted"), [(0.01, True), (1.0, False)])
def test_the_last_fit_is_on_all_rows_even_where_steps_took_all_the_time_but_not_long_after_it(
    make, look: float, fitted: bool
) -> None:
    task = make(lambda a, b: 1.73421 * a * b + 0.3 * np.sin(3 * b), rows=5000, noise=0.3)
    assert task.partial
    looks = itertools.count()  # every look at the clock is so many seconds later than the one before
    outcome = run(task, 0, max_time=2 * look, clock=lambda: look * next(looks))
    before = {entry.complexity: entry.loss for entry in outcome.state.front}
    after = {entry.complexity: entry.loss for entry in outcome.front}
    assert any(after[complexity] < before[complexity] for complexity in before.keys() & after.keys()) is fitted


@pytest.mark.parametrize(
    ("operators", "name"), [(("add", "mul", "sign", "tanh"), "sign"), (("add", "mul", "tanh"), "tanh")]
)
def test_a_steep_tanh_is_a_step_where_steps_are_allowed(make, operators: tuple[str, ...], name: str) -> None:
    task = make(lambda a, b: 0.7 * np.sign(a - 2.0) + b, rows=200, noise=0.05, operators=get_operators(operators))
    found = loosened(task, [parse("0.7*tanh(99.5*(x1 - 2.0)) + x2")], Budget())
    assert found
    admitted = [limit_in_disguise(task, each, Budget()) or each for each in found]
    assert all(f"{name}(" in str(each.expression) for each in admitted)


@pytest.mark.parametrize(
    ("value", "error", "digits"),
    [
        (0.500073, 1e-4, 1),  # 0.5: one digit, and a step of 0.1 is far
        (0.50007, 1e-5, 0),  # too far from 0.5 for that error
        (2.25003, 5e-5, 3),
        (3.612, 0.04, 0),  # 3.6 is near, but numbers of two digits are near to everything then
        (1.4998, 2e-6, 0),
        (math.pi, 1e-3, 0),
    ],
)
def test_a_constant_becomes_a_number_of_few_digits_only_where_that_is_hardly_chance(value, error, digits) -> None:
    assert _likely_digits(value, error) == digits


def test_the_digits_of_a_law_under_noise_are_those_that_people_write() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (400, 2))
    y = 0.5 * X[:, 0] * X[:, 1] + 0.01 * rng.standard_normal(400)
    model = PSERegressor(operators=["+", "*"], max_iterations=25, max_time=None, random_state=0).fit(X, y)
    assert "0.5*x1*x2" in [str(entry.expression) for entry in model.front_]
