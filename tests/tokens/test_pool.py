"""The pool is what the front is made of, and the memory knows which tokens helped."""

from __future__ import annotations

import numpy as np
import pytest
from tokens.contexts import make_context

from symenum.expressions import parse, variables
from symenum.tokens import ScoredExpression
from symenum.tokens.pool import MAX_COMPLEXITY, Memory, cross_variable, front_parts, stripped


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("2.3*x1*x2 + 1", "x1*x2"),
        ("x1 - 0.5*sin(1.5*x2)", "x1 - sin(x2)"),
        ("3/x1", "1/x1"),
        ("x1**2/4 - x2", "x1**2 - x2"),
        ("-x1", "x1"),
        ("7", "7"),
    ],
)
def test_stripped_loses_scales_and_offsets_but_no_exponents(text: str, bare: str) -> None:
    assert stripped(parse(text)) == parse(bare)


def test_parts_come_with_and_without_constants_and_weigh_their_rewards() -> None:
    front = [ScoredExpression(parse("2.5*x1*x2 + sin(x1)"), 0.2), ScoredExpression(parse("sin(x1)*x2"), 0.4)]
    weights = front_parts(front)
    assert weights[parse("sin(x1)")] == pytest.approx(1.5)
    assert weights[parse("sin(x1)*x2")] == pytest.approx(1.0)
    assert weights[parse("x1*x2")] == pytest.approx(0.5)
    assert weights[parse("2.5*x1*x2")] == pytest.approx(0.5)
    assert not any(part == parse("x1") for part in weights)
    assert front_parts([]) == {}


def test_all_pairs_of_a_sum_are_parts_whatever_its_brackets() -> None:
    weights = front_parts([ScoredExpression(parse("sin(x1) + x2 + x1*x2"), 0.5)])
    assert parse("sin(x1) + x1*x2") in weights
    assert parse("x2 + x1*x2") in weights


def test_parts_are_of_modest_complexity() -> None:
    deep = "sin(x1 + exp(x2 + cos(x1 + log(x2 + sin(x1 + exp(x2))))))"
    assert all(part.complexity <= MAX_COMPLEXITY for part in front_parts([ScoredExpression(parse(deep), 1.0)]))


def test_a_token_of_a_better_front_gains_and_one_tried_in_vain_loses() -> None:
    good, bad, other = parse("x1*x2"), parse("cos(x1)"), parse("x1 + x2")
    front = [ScoredExpression(parse("sin(x1*x2)"), 0.5)]
    memory = Memory().with_proposal((good, bad)).after_pass(0.5, front)
    assert memory.merit(good) > memory.merit(other) == 1.0 > memory.merit(bad)
    assert memory.stale == 0
    again = memory.with_proposal((good, bad)).after_pass(0.4, front)
    assert again.merit(good) < memory.merit(good)
    assert again.merit(bad) < memory.merit(bad)
    assert (again.stale, again.steps, again.best_reward) == (1, 2, 0.5)


def test_a_token_of_a_runner_up_gains_less_than_one_of_the_best_law_and_more_than_others() -> None:
    best, near, vain = parse("x1*x2"), parse("cos(x1)"), parse("x1 + x2")
    memory = Memory().after_pass(0.3, [])
    laws = [ScoredExpression(parse("2.1*x1*(x2 + 0.7)"), 0.5), ScoredExpression(parse("x2*cos(1.5*x1)"), 0.2)]
    memory = memory.with_proposal((best, near, vain)).after_pass(0.5, laws)
    assert memory.merit(best) > memory.merit(near) > memory.merit(vain)


def test_joins_of_variables_use_the_operators_and_the_range() -> None:
    data = make_context(operators="arithmetic", constant_range=(2.0, 2.0))
    rng = np.random.default_rng(0)
    joins = [cross_variable(data, rng) for _ in range(60)]
    assert all(join is not None and join.depth == 1 and variables(join) for join in joins)
    assert parse("x1*x2") in joins
    assert any("2.0" in str(join) for join in joins)
    assert cross_variable(make_context(operators=("sin",)), rng) is None
