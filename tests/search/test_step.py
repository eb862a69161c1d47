"""A step takes a state and gives a state back, the same one every time; prior, guesses and loss hold in every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from symenum.bench.problems.experiments import TURBULENCE_OPERATORS
from symenum.core.budget import Budget
from symenum.core.target import check_target
from symenum.expressions import evaluate, parse, variables
from symenum.fitting import free_constants
from symenum.fitting.losses import Absolute
from symenum.front import Front
from symenum.heads.operator_grammar import Prior
from symenum.operators import get_operators
from symenum.search import Settings, State, Task, make_task, start, step, stop_reason
from symenum.search.schedule import moves_of
from symenum.search.state import Record
from symenum.tokens import GENERATORS


def steps(task, count: int, seed: int = 0):
    state = start(task, seed)
    names = []
    for _ in range(count):
        state, name = step(task, state, Budget())
        names.append(name)
    return state, names


def only(task: Task, *moves: str, seed: int = 0) -> State:
    """A state after two steps in which all moves but these are at their end."""
    ended = tuple(Record(move.name, ended=True) for move in moves_of(task) if move.name not in moves)
    return replace(steps(task, 2, seed)[0], records=ended)


def texts(front: Front) -> list[tuple[str, float]]:
    return [(str(entry.expression), entry.loss) for entry in front]


def hard(a, b):
    """Nothing that the heads find."""
    return np.sin(3 * a) / (b + np.exp(np.cos(a * b))) + np.tanh(a - b)


def test_the_start_knows_the_mean_and_the_linear_regression(make) -> None:
    task = make(lambda a, b: 2 * a - 3 * b + 0.1 * np.sin(9 * a), rows=60)
    state = start(task, 0)
    assert state.iteration == 0
    assert {entry.complexity for entry in state.front} >= {0}
    linear = state.front[-1]
    A = np.column_stack([np.ones(60), *[column.numpy() for column in task.columns.values()]])
    residual = task.target.y.numpy() - A @ np.linalg.lstsq(A, task.target.y.numpy(), rcond=None)[0]
    assert linear.loss == pytest.approx(np.mean(residual**2), rel=0.2)  # the constants are snapped


def test_cheap_heads_come_first_and_then_the_network_takes_turns_with_the_others(make) -> None:
    task = make(hard, rows=20, planned_time=0.5)
    state, names = steps(task, 40)
    opening = names[: names.index("network")]
    assert {"products of powers", "polynomials"} <= set(opening)
    assert state.opening_work <= 0.5
    assert names.count("network") >= 2
    assert len(set(names)) > len(set(opening)) + 2


def test_inner_coefficients_are_found_for_what_stands_on_the_front(make) -> None:
    task = make(lambda a, b: 2.1 * np.tanh(0.4 * a) + 0.5, noise=0.05, operators=get_operators(TURBULENCE_OPERATORS))
    plain = task.data.candidate(parse("2.1*tanh(x1) + 0.5"))
    state = replace(only(task, "variants"), front=Front.of(task.target).update([plain]))
    state, name = step(task, state, Budget())
    assert name == "variants"
    assert plain.expression in state.polished
    law = next(entry for entry in state.front if entry.complexity == plain.complexity + 1)
    assert law.loss < 0.1 * plain.loss
    assert law.loss == pytest.approx(0.05**2, rel=0.5)


def test_a_head_goes_on_where_it_stopped_until_it_is_at_its_end(make) -> None:
    task = make(hard, rows=20)
    stage = next(stage for stage in task.stages.on_variables if stage.scan(1) is not None)
    state = only(task, stage.name)
    parts = []
    while not state.record(stage.name).ended:
        parts.append(state.record(stage.name).part)
        state, name = step(task, state, Budget())
        assert name == stage.name
    assert parts == list(range(len(parts)))
    assert stage.scan(len(parts)) is None
    assert step(task, state, Budget()) == (state, None)


def test_heads_work_on_the_slots_of_a_pass_until_all_have_had_them(make) -> None:
    task = make(hard, rows=20)
    state = only(task, "network", "heads on tokens")
    names, slots = [], []
    while state.record("heads on tokens").rounds < 2 and len(names) < 60:
        before = state
        state, name = step(task, state, Budget())
        names.append(name)
        if name == "heads on tokens":
            slots.append(state.head_slots)
            if before.record(name).part:
                assert state.head_slots == before.head_slots
    assert len(set(slots)) == 2
    assert all(len(some) == task.plan.inputs for some in slots)


def test_heads_find_what_a_law_leaves_of_y(make) -> None:
    task = make(lambda a, b: 2 * a * b + 3 * np.sin(b), operators=get_operators("koza"))
    part = task.data.candidate(parse("2.2*x1*x2"))
    state = replace(only(task, "residuals"), front=Front.of(task.target).update([part]))
    state, name = step(task, state, Budget())
    assert name == "residuals"
    assert state.continued == ()  # a further factor is still to be looked for
    assert state.record("residuals").part == 1
    assert any(entry.loss <= state.front.floor for entry in state.front)


def test_losses_on_the_front_are_those_of_what_is_printed(make) -> None:
    task = make(hard, noise=0.1)
    state, _ = steps(task, 12)
    assert len(state.front) > 2
    for entry in state.front:
        values = evaluate(parse(str(entry.expression)), task.columns)
        assert entry.loss == pytest.approx(float(task.target.loss(values[None])), rel=1e-9)


@pytest.mark.parametrize("generator", list(GENERATORS))
def test_two_runs_with_one_seed_are_the_same(make, generator: str) -> None:
    def front(seed: int) -> list[tuple[str, float]]:
        task = make(hard, rows=20, token_generator=generator)
        state = only(task, "network", "variants", seed=seed)
        for _ in range(3):
            state, _ = step(task, state, Budget())
        return texts(state.front)

    assert front(1) == front(1)


def test_a_search_can_be_taken_up_where_it_was_left(make) -> None:
    task, again = make(hard, rows=20), make(hard, rows=20)
    whole = left = step(task, only(task, "network", "variants"), Budget())[0]
    for _ in range(2):
        whole, _ = step(task, whole, Budget())
        left, _ = step(again, left, Budget())
    assert texts(left.front) == texts(whole.front)


def test_a_step_that_has_no_time_left_ends_with_the_front_it_had(make) -> None:
    task = make(hard)
    state = start(task, 0)
    over = Budget(stop=lambda: True)
    for _ in range(20):
        state, _ = step(task, state, over)
    assert len(state.front) >= 1


def test_without_constants_no_law_holds_one(make) -> None:
    task = make(lambda a, b: 1.7 * a * b + 0.3, constants=False)
    state, _ = steps(task, 3)
    numbers = [entry for entry in state.front if "." in str(entry.expression)]
    assert [entry.complexity for entry in numbers] in ([], [0])  # but the mean, which everything must beat


def test_reasons_to_stop(make) -> None:
    task = make(lambda a, b: a * b, stop_loss=1e-3)
    found = Front.of(task.target).update([task.data.candidate(parse("x1*x2"))])
    assert "0.001" in stop_reason(task, found)
    assert "law" in stop_reason(make(lambda a, b: a * b), found)
    probing = make(lambda a, b: a * b, probe=parse("x2*x1"))
    assert "probe" in stop_reason(probing, found)
    assert stop_reason(make(hard), Front.of(task.target)) is None


def test_many_rows_are_worked_on_in_part_and_judged_on_all() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (6_000, 2))
    y = X[:, 0] / X[:, 1] + 0.01 * rng.normal(size=len(X))
    target, _ = check_target(y, None, len(X))
    task = make_task(["a", "b"], torch.tensor(X), target, Settings(operators=get_operators("arithmetic")))
    assert task.partial
    state, _ = steps(task, 5)
    for entry in state.front:
        values = evaluate(entry.expression, task.columns)
        assert entry.loss == pytest.approx(float(target.loss(values[None])), rel=1e-12)
    assert any(str(entry.expression) == "a/b" for entry in state.front)


def token_steps(task: Task, count: int) -> State:
    """The state after so many passes with tokens, the heads on the raw variables left out."""
    state = only(task, "network", "variants")
    while state.passes < count:
        state, _ = step(task, state, Budget())
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
    state = token_steps(task, 1 + task.plan.sets)
    assert guess not in [entry.expression for entry in state.front]
    assert guess in [member.expression for member in state.generator.memory.front]


def test_a_search_under_a_robust_loss_repeats(make) -> None:
    def law(a, b):
        y = a * b + np.random.default_rng(5).normal(0, 0.01, len(a))
        y[::9] += 100.0
        return y

    fronts = [token_steps(make(law, loss=Absolute()), 1).front for _ in range(2)]
    assert [(str(e.expression), e.loss) for e in fronts[0]] == [(str(e.expression), e.loss) for e in fronts[1]]
    assert any(str(entry.expression).startswith("x1*x2") for entry in fronts[0])


def test_without_constants_the_first_laws_in_required_variables_have_none(make) -> None:
    front = start(make(hard, constants=False, prior=Prior(required=("x1",))), 0).front
    assert len(front) > 0
    assert not any(free_constants(entry.expression, integers=False) for entry in front)


def test_without_constants_a_loss_fits_none(make) -> None:
    task = make(hard, constants=False, loss=Absolute())
    state, name = step(task, only(task, "network"), Budget())
    assert name == "network"
    whole = [value for entry in state.front[1:] for value in free_constants(entry.expression, integers=False)]
    assert all(value.is_integer() for value in whole)  # what fills slots, as it was put there


def test_the_first_front_holds_the_simplest_laws(make) -> None:
    front = start(make(lambda a, b: 1.1 * a + 0.1 * b, rows=40, noise=0.02), 0).front
    assert str(front[0].expression) == "x1"
    assert [(entry.complexity, variables(entry.expression)) for entry in front] == [
        (0, ("x1",)),
        (1, ("x1",)),
        (2, ("x1",)),
        (3, ("x1", "x2")),
    ]
