"""What every token generator owes the search, whatever the data; and what they refuse."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens.contexts import NAMES, make_context

from symenum.bench.problems.experiments import CHAOTIC_OPERATORS
from symenum.expressions import Apply, Expression, evaluate, parse
from symenum.operators import Operator, get_operators
from symenum.tokens import (
    GENERATORS,
    Genetic,
    RandomTokens,
    ScoredExpression,
    TokenContext,
    TokenGenerator,
    TreeSearch,
    deal,
    get_generator,
)
from symenum.tokens.credit import form
from symenum.tokens.pool import front_parts

each = pytest.mark.parametrize("name", NAMES)

FRONT = (ScoredExpression(parse("2.5*x1*x2 + 0.3"), 0.4), ScoredExpression(parse("x1*sin(1.5*x2)/(x1 + x2)"), 0.6))


def assert_tokens(tokens: tuple[Expression, ...], context: TokenContext) -> None:
    values = []
    for token in tokens:
        assert isinstance(token, Apply)
        value = evaluate(token, context.columns)
        assert torch.isfinite(value).all(), token
        assert value.max() - value.min() > 1e-12 * value.abs().max(), token
        values.append(value)
    everything = [*context.columns.values(), *values]
    for i, a in enumerate(everything):
        for b in everything[max(i + 1, len(context.columns)) :]:
            assert (a - b).norm() > 1e-10 * a.norm(), f"two slots are equal: {[*map(str, tokens)]}"


SMALL: dict[str, TokenGenerator[Any]] = {
    "gp": Genetic(population=12, generations=3, scouts=40),
    "mcts": TreeSearch(simulations=4, prior=6, scouts=40),
    "random": RandomTokens(),
}


def steps(name: str, context: TokenContext, count: int, passes: int, seed: int) -> list[tuple[Expression, ...]]:
    generator = SMALL[name]
    rng = np.random.default_rng(seed)
    state = generator.start(context)
    out = []
    for number in range(passes):
        tokens, state = generator.propose(context, state, count, rng)
        front = FRONT[: number + 1] if len(context.columns) > 1 else ()
        state = generator.learn(context, state, 0.3 + 0.1 * number, front)
        out.append(tokens)
    return out


def test_the_table_holds_all_three() -> None:
    assert tuple(GENERATORS) == NAMES
    assert all(get_generator(name).name == name for name in NAMES)


@each
@settings(max_examples=5)
@given(data=st.data())
def test_tokens_are_composite_finite_varying_and_distinct(name: str, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 6))
    low, high = data.draw(st.sampled_from([(-3.0, 3.0), (0.5, 3.5), (200.0, 300.0)]))
    context = make_context(
        data.draw(st.sampled_from(["x1*sin(x2) + 1", "exp(x1)/x2", "x1", "x2 - x2 + 3"])),
        seed=data.draw(st.integers(0, 100)),
        rows=data.draw(st.integers(2, 60)),
        low=low,
        high=high,
        operators=data.draw(st.sampled_from(["koza", "semikoza", "basic_koza", "arithmetic", CHAOTIC_OPERATORS])),
        constant_range=data.draw(st.sampled_from([None, (-3.0, 3.0), (2.0, 2.0)])),
    )
    for tokens in steps(name, context, count, 2, data.draw(st.integers(0, 100))):
        assert len(tokens) == count
        assert_tokens(tokens, context)


@each
def test_one_seed_gives_the_same_tokens_and_another_need_not(name: str) -> None:
    runs = [steps(name, make_context(constant_range=(-3.0, 3.0)), 3, 4, seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@each
def test_a_state_is_a_value_that_can_be_used_twice(name: str) -> None:
    context = make_context()
    generator = SMALL[name]
    _, state = generator.propose(context, generator.start(context), 3, np.random.default_rng(0))
    state = generator.learn(context, state, 0.5, FRONT)
    one = generator.propose(context, state, 3, np.random.default_rng(5))
    two = generator.propose(context, state, 3, np.random.default_rng(5))
    assert one == two


def holds_only_values(value: Any) -> bool:
    if isinstance(value, Operator):
        return True
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]
        return all(holds_only_values(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, tuple):
        return all(map(holds_only_values, value))
    return value is None or isinstance(value, (int, float, str))


@each
def test_states_hold_only_frozen_values_of_expressions_and_numbers(name: str) -> None:
    context = make_context()
    generator = SMALL[name]
    state = generator.start(context)
    assert holds_only_values(state)
    for _ in range(2):
        _, state = generator.propose(context, state, 3, np.random.default_rng(0))
        assert holds_only_values(state)
        state = generator.learn(context, state, 0.5, FRONT)
        assert holds_only_values(state)


@each
def test_states_stay_bounded(name: str) -> None:
    context = make_context(rows=20)
    generator = SMALL[name]
    rng = np.random.default_rng(0)
    state = generator.start(context)
    for number in range(30):
        _, state = generator.propose(context, state, 2, rng)
        state = generator.learn(context, state, number / 30, FRONT)
    assert len(repr(state)) < 2_000_000


@each
def test_a_law_beyond_the_operators_or_a_constant_target_does_no_harm(name: str) -> None:
    for law in ("x1 - x1", "x1*1e140"):
        assert_tokens(steps(name, make_context(law), 3, 2, 0)[1], make_context(law))


@each
def test_operators_that_build_nothing_give_no_tokens(name: str) -> None:
    assert steps(name, make_context(operators=("identity",)), 3, 2, 0) == [(), ()]


@each
def test_where_few_functions_exist_those_few_come_back(name: str) -> None:
    tokens = steps(name, make_context("x1", inputs=1, operators=("neg", "abs")), 3, 1, 0)[0]
    assert tokens == ()  # -x1 is x1 with another sign, |x1| is x1 on positive data


@each
def test_front_members_beyond_finite_values_do_no_harm(name: str) -> None:
    context = make_context()
    generator = SMALL[name]
    state = generator.start(context)
    for _ in range(2):
        tokens, state = generator.propose(context, state, 2, np.random.default_rng(0))
        assert_tokens(tokens, context)
        odd = [
            ScoredExpression(parse("log(-x1)"), 0.5),
            ScoredExpression(parse("x1"), 0.2),
            ScoredExpression(parse("3"), 0.1),
        ]
        state = generator.learn(context, state, -1.0, odd)


@each
def test_two_hundred_variables_are_no_trouble(name: str) -> None:
    context = make_context("x1*x200 + sin(x7)", inputs=200)
    assert len(steps(name, context, 20, 2, 0)[1]) == 20


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'gp', 'mcts', 'random'.*did you mean 'mcts'"):
        get_generator("mtcs")
    with pytest.raises(ValueError, match="must be one of 'gp', 'mcts', 'random', not 3"):
        get_generator(3)  # type: ignore[arg-type]


@each
@pytest.mark.parametrize("count", [-1, 1.5, True])
def test_a_count_that_is_none_is_refused(name: str, count: Any) -> None:
    generator = SMALL[name]
    with pytest.raises(ValueError, match="count"):
        generator.propose(make_context(), generator.start(make_context()), count, np.random.default_rng(0))


@each
def test_a_reward_or_front_that_makes_no_sense_is_refused(name: str) -> None:
    generator = SMALL[name]
    state = generator.start(make_context())
    with pytest.raises(ValueError, match="NaN"):
        generator.learn(make_context(), state, float("nan"), ())
    with pytest.raises(ValueError, match="x9"):
        generator.learn(make_context(), state, 0.5, [ScoredExpression(parse("x1*x9"), 0.5)])


GOOD = {
    "operators": get_operators("koza"),
    "columns": {"x1": torch.rand(5, dtype=torch.float64)},
    "y": torch.rand(5, dtype=torch.float64),
    "weight": torch.full((5,), 0.2, dtype=torch.float64),
}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"operators": ()}, ValueError, "operators"),
        ({"columns": {}}, ValueError, "columns"),
        ({"columns": {"x1": torch.rand(5)}}, TypeError, "x1 must be a float64"),
        ({"columns": {"x1": torch.rand(4, dtype=torch.float64)}}, ValueError, "4 rows"),
        ({"y": torch.tensor([0.0, 1, 2, 3, float("nan")], dtype=torch.float64)}, ValueError, "y is not finite"),
        ({"weight": torch.ones(5, dtype=torch.float64)}, ValueError, "sum to 1"),
        ({"constant_range": (3.0, -3.0)}, ValueError, "constant_range"),
        ({"constant_range": (0.0, float("inf"))}, ValueError, "constant_range"),
    ],
)
def test_material_that_makes_no_sense_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TokenContext(**{**GOOD, **change})


# Dealing tokens into the sets of a batch of passes

TOKENS = tuple(parse(f"x1*{i}.5") for i in range(1, 21))


@given(st.integers(1, 8), st.integers(1, 5), st.integers(1, 20), st.integers(0, 100))
def test_sets_are_full_differ_and_use_the_tokens_in_order(sets: int, size: int, count: int, seed: int) -> None:
    tokens = TOKENS[:count]
    dealt = deal(tokens, sets, size, np.random.default_rng(seed))
    assert dealt[0] == tokens[:size]
    assert len({frozenset(one) for one in dealt}) == len(dealt) <= sets
    assert all(len(set(one)) == len(one) == min(size, count) for one in dealt)
    assert {token for one in dealt for token in one} >= set(tokens[: sets * size])


def test_neighbours_meet_in_one_set_and_empty_places_are_filled() -> None:
    dealt = deal(TOKENS[:7], 4, 3, np.random.default_rng(0))
    assert dealt[:2] == (TOKENS[:3], TOKENS[3:6])
    assert dealt[2][0] == TOKENS[6]
    assert len(dealt) == 4
    assert deal((), 4, 3, np.random.default_rng(0)) == ((),)


@each
def test_a_hundred_tokens_at_once_are_distinct(name: str) -> None:
    context = make_context("x1*sin(x2) + x3/x4 - x5", inputs=5, rows=60)
    for tokens in steps(name, context, 100, 2, 0):
        assert len(tokens) == 100
        assert_tokens(tokens, context)


@pytest.mark.parametrize("name", ["gp", "mcts"])
def test_parts_of_a_runner_up_are_tokens_in_the_next_proposal(name: str) -> None:
    context = make_context("x1*sin(x2) + x3/x4 - x5", inputs=5, rows=60)
    generator = get_generator(name)
    _, state = generator.propose(context, generator.start(context), 4, np.random.default_rng(0))
    runner_up = ScoredExpression(parse("0.7*tanh(x1*x4 - 0.3*x5**2)*x3"), 0.3)
    state = generator.learn(context, state, 0.4, [ScoredExpression(parse("x1 - x5"), 0.4), runner_up])
    tokens, _ = generator.propose(context, state, 80, np.random.default_rng(1))
    parts = {form(part).key for part in front_parts([runner_up])}
    assert any(form(token).key in parts for token in tokens)
