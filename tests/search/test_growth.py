"""Laws that grow: by terms, factors, shifts and functions, beside noise, and on wide tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from symenum import PSERegressor
from symenum.core.budget import Budget
from symenum.core.target import check_target
from symenum.expressions import parse, same_function, variables
from symenum.fitting.free_constants import form_of
from symenum.front import Front
from symenum.operators import get_operators
from symenum.search import Settings, Task, make_task, start, step
from symenum.search.growth import grown, price
from symenum.search.moves import GROWTH, SIMPLE_GROWTH
from symenum.search.schedule import moves_of
from symenum.search.state import State


def only_growth(X: np.ndarray, y: np.ndarray, **settings) -> Task:
    """A task in which laws grow and nothing else happens."""
    target, _ = check_target(y, None, len(y))
    names = [f"x{i + 1}" for i in range(X.shape[1])]
    task = make_task(names, torch.tensor(X), target, Settings(device="cpu", **settings))
    shares = {move.name: 0.0 for move in moves_of(task) if move.name not in (GROWTH, SIMPLE_GROWTH)}
    return replace(task, settings=replace(task.settings, shares=shares))


def searched(task: Task, turns: int) -> State:
    state = start(task, 0)
    for _ in range(turns):
        state, name = step(task, state, Budget())
        if name is None or state.front.has_law():
            break
    return state


def r_squared(state: State, y: np.ndarray) -> float:
    return 1 - min(entry.loss for entry in state.front) / float(np.var(y))


def test_a_sum_of_unlike_parts_grows_from_the_mean_under_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (200, 6))
    clean = 2 * np.sin(1.3 * X[:, 0] * X[:, 1] + 0.4) + (X[:, 2] - 0.6) ** 2 + 0.7 * X[:, 3]
    y = clean + 0.2 * rng.normal(size=200)
    state = searched(only_growth(X, y), 12)
    best = min(state.front, key=lambda law: price(law, 0.0, 200))
    assert 1 - best.loss / float(np.var(y)) > 0.95
    assert best.complexity <= 30
    assert set(variables(best.expression)) == {"x1", "x2", "x3", "x4"}


def test_newtons_law_of_cooling_is_found() -> None:
    rng = np.random.default_rng(1)
    outside, first, time = rng.uniform(10, 30, 100), rng.uniform(50, 95, 100), rng.uniform(0, 40, 100)
    y = outside + (first - outside) * np.exp(-0.07 * time)
    state = searched(only_growth(np.stack([outside, first, time], axis=1), y), 4)
    assert same_function(state.front[-1].expression, parse("x1 + (x2 - x1)*exp(-0.07*x3)"))
    assert state.front[-1].complexity <= 8


@pytest.mark.parametrize(
    "law",
    [
        lambda a, b: 1.7 * (a - 0.8) * (b + 1.3),
        lambda a, b: np.log(a * a + 2.5 * b),
        lambda a, b: 3.1 * np.exp(-a / 0.7) + b,
        lambda a, b: np.sin(2.2 * a + 0.4) * b,
    ],
    ids=["factors with shifts", "outer function", "inner constant", "factor"],
)
def test_laws_with_constants_inside_grow_from_the_mean(law) -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(0.5, 3, (80, 2))
    y = law(*X.T)
    assert r_squared(searched(only_growth(X, y), 8), y) > 1 - 1e-6


def test_noise_does_not_grow() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(75, 40)), rng.normal(size=75)
    state = searched(only_growth(X, y), 8)
    assert r_squared(state, y) < 0.5
    assert max(entry.complexity for entry in state.front) <= 12


def test_a_part_that_is_not_needed_leaves() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(0.5, 3, (60, 2))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=60)
    task = only_growth(X, y)
    found = grown(task, parse("0.9*sin(2.1*x1) + 0.02*x2 + 0.01*x1*x2"), Budget())
    assert any("x2" not in variables(law.expression) and law.loss < 0.004 for law in found)


def test_what_is_not_allowed_does_not_grow() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(0.5, 3, (60, 2))
    y = np.exp(X[:, 0]) * np.sin(X[:, 1])
    task = only_growth(X, y, operators=get_operators("arithmetic"), max_complexity=9)
    for entry in searched(task, 5).front:
        assert task.heads.grammar.allows(entry.expression)
        assert entry.complexity <= 9


def test_without_noise_simple_laws_grow_though_a_series_is_nearly_right() -> None:
    x = np.random.default_rng(5).uniform(0.5, 3, (60, 1))
    task = only_growth(x, x[:, 0] ** 3 + np.sqrt(x[:, 0]))
    laws = [task.data.candidate(parse(text)) for text in ("25.5*x1 - 29.5", "x1**3 + 0.25*x1 + 0.9")]
    series = replace(laws[1], expression=parse("4000.5*sinh(0.1*x1) - 4000.5*sin(0.1*x1) + 0.25*x1 + 0.9"), loss=1e-8)
    growth, simple = (move for move in moves_of(task) if move.name in (GROWTH, SIMPLE_GROWTH))
    state = replace(start(task, 0), front=Front((*laws, series), rows=60))
    assert growth.work(state) == simple.work(state)
    _, after = growth.run(task, state, np.random.default_rng(0), Budget())
    assert after.grown == (form_of(laws[0].expression),)
    noisy = replace(state, front=Front((*laws, replace(series, loss=1e-3)), rows=60))
    assert growth.run(task, noisy, np.random.default_rng(0), Budget())[1].grown == (form_of(series.expression),)


def test_laws_that_differ_in_constants_have_one_form() -> None:
    assert form_of(parse("2*x + 16")) == form_of(parse("2.3*x + 1.5"))
    assert form_of(parse("x**2 + 1.5")) != form_of(parse("x**3 + 1.5"))


def test_the_price_weighs_loss_against_complexity() -> None:
    task = only_growth(np.random.default_rng(0).normal(size=(100, 2)), np.arange(100.0))
    simple, long = (task.data.candidate(parse(text)) for text in ("x1", "x1 + 0*x2"))
    assert simple.loss == long.loss
    assert price(simple, 0.0, 100) < price(long, 0.0, 100)


@pytest.mark.parametrize(
    ("law", "wanted"),
    [
        (lambda X: 3 * X[:, 5] - 2 * X[:, 77], "3*x6 - 2*x78"),
        (lambda X: X[:, 4] * X[:, 119] + np.sin(X[:, 199]), "x5*x120 + sin(x200)"),
    ],
)
def test_three_columns_of_300_are_found(law, wanted: str) -> None:
    X = np.random.default_rng(3).normal(size=(1000, 300))
    model = PSERegressor(max_iterations=45, max_time=None, random_state=0, device="cpu").fit(X, law(X))
    assert any(same_function(entry.expression, parse(wanted)) for entry in model.front_)


def test_five_columns_of_50_are_found_beside_copies_of_them() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 50))
    X[:, 10:20] = X[:, :10] + 0.3 * rng.normal(size=(400, 10))
    y = X[:, 0] * X[:, 1] + 2 * np.sin(1.5 * X[:, 2]) + X[:, 3] ** 2 - 1.5 * X[:, 4] + 0.3 * rng.normal(size=400)
    state = searched(only_growth(X, y), 12)
    best = min(state.front, key=lambda one: price(one, 0.0, 400))
    assert set(variables(best.expression)) == {"x1", "x2", "x3", "x4", "x5"}
    assert 1 - best.loss / float(np.var(y)) > 0.97


def test_the_same_seed_gives_the_same_front() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 70))  # more columns than slots
    y = X[:, 3] * X[:, 60] + 0.1 * rng.normal(size=120)
    fronts = [
        [
            (str(e.expression), e.loss)
            for e in PSERegressor(max_iterations=6, max_time=None, random_state=1).fit(X, y).front_
        ]
        for _ in range(2)
    ]
    assert fronts[0] == fronts[1]
