"""Scouting finds what is one operator away, sees every join in its turn, and never forgets the best."""

from __future__ import annotations

import numpy as np
from tokens.contexts import make_context

from symenum.expressions import parse, same_function
from symenum.tokens.explain import UNEXPLAINED, Explainer, Scouted, scout
from symenum.tokens.pool import MAX_COMPLEXITY
from symenum.tokens.trees import Evaluator

SEEDS = tuple(map(parse, ("x1*x2", "sin(x1)", "log(x1 + x2)")))


def scouted(law: str, count: int, start: int = 0, before: tuple[Scouted, ...] = ()) -> tuple[Scouted, ...]:
    data = make_context(law)
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    return scout(data, evaluator, explainer, SEEDS, before, count, start, np.random.default_rng(0))


def test_the_token_that_leaves_nothing_is_found_and_comes_first() -> None:
    found = scouted("sin(x1 + x2/log(x1 + x2))", 200)
    assert same_function(found[0].token, parse("x2/log(x1 + x2)"))
    assert found[0].fitness < np.log10(UNEXPLAINED) + 1


def test_every_join_of_a_seed_with_a_variable_has_its_turn() -> None:
    seen = set()
    for start in range(0, 60, 10):
        seen |= {one.token for one in scouted("x1*x2 + 1", 20, start)}
    for text in ("x1*x2 + x1", "x1*x2 - x2", "exp(sin(x1))", "log(x1 + x2)/x2"):
        assert any(same_function(token, parse(text)) for token in seen), text


def test_the_best_are_kept_in_order_and_are_modest() -> None:
    first = scouted("cos(x1*x2 + x1)", 60)
    second = scouted("cos(x1*x2 + x1)", 60, 30, first)
    assert second[0].fitness <= first[0].fitness
    assert [one.fitness for one in second] == sorted(one.fitness for one in second)
    assert len(second) <= 60
    assert all(one.token.complexity <= MAX_COMPLEXITY for one in second)


def test_without_seeds_or_operators_nothing_new_is_found() -> None:
    data = make_context(operators=("identity",))
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    old = (Scouted(parse("x1*x2"), -1.0),)
    assert scout(data, evaluator, explainer, SEEDS, old, 10, 0, np.random.default_rng(0)) == old
