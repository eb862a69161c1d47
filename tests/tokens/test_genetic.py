"""Genetic programming explains y, learns from the front, and gives up what leads nowhere."""

from __future__ import annotations

import time

import numpy as np
import torch
from tokens.contexts import make_context

from symenum.expressions import Apply, parse
from symenum.tokens import Genetic, ScoredExpression
from symenum.tokens.explain import Explainer
from symenum.tokens.genetic import GeneticState
from symenum.tokens.pool import front_parts
from symenum.tokens.random_tokens import RandomTokens
from symenum.tokens.trees import Evaluator

DEEP = "cos(sin(x1*(x1 + x2)) - x1)"


def test_its_tokens_explain_more_than_random_ones() -> None:
    data = make_context(DEEP)
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    rng = np.random.default_rng(0)
    left = {}
    for generator in (Genetic(), RandomTokens()):
        state = generator.start(data)  # type: ignore[var-annotated]
        found = []
        for _ in range(5):
            tokens, state = generator.propose(data, state, 3, rng)  # type: ignore[arg-type]
            found.append(explainer.unexplained(evaluator.matrix(tokens)).amin())
        left[generator.name] = float(torch.stack(found).log10().mean())
    assert left["gp"] < left["random"]


def test_a_token_of_two_layers_that_leaves_nothing_is_proposed_at_once() -> None:
    data = make_context("sin(x1 + log(x1*x2))")
    tokens, _ = Genetic().propose(data, Genetic().start(data), 3, np.random.default_rng(0))
    evaluator = Evaluator(data)
    left = Explainer(data, evaluator, data.variables).unexplained(evaluator.matrix(tokens))
    assert float(left.amin()) < 1e-6, [*map(str, tokens)]


def test_parts_of_the_front_come_up() -> None:
    data = make_context("exp(cos(x1*x1)/(x2 + sin(x1/x2)))")
    generator = Genetic()
    front = [ScoredExpression(parse("1.7*log(x2/cos(x2 - x1)**2 + 40) - 3"), 0.9)]
    seen = []
    for learned in (False, True):
        rng = np.random.default_rng(0)
        state = generator.start(data)
        parts = set(front_parts(front))
        count = 0
        for _ in range(4):
            if learned:
                state = generator.learn(data, state, 0.5, front)
            tokens, state = generator.propose(data, state, 12, rng)
            count += sum(token in parts for token in tokens)
        seen.append(count)
    assert seen[1] > seen[0]


def test_feedback_changes_proposals() -> None:
    data = make_context(DEEP)
    generator = Genetic()
    tokens, state = generator.propose(data, generator.start(data), 3, np.random.default_rng(0))
    after = [
        generator.propose(data, generator.learn(data, state, reward, front), 3, np.random.default_rng(1))[0]
        for reward, front in ((0.1, []), (0.9, [ScoredExpression(Apply(tokens[0].operator, tokens[0].operands), 0.9)]))
        if isinstance(tokens[0], Apply)
    ]
    assert after[0] != after[1]


def test_tokens_tried_in_vain_make_room_for_others() -> None:
    data = make_context(DEEP)
    generator, rng = Genetic(), np.random.default_rng(0)
    state = generator.start(data)
    sets = []
    for _ in range(6):
        tokens, state = generator.propose(data, state, 3, rng)
        state = generator.learn(data, state, 0.1, [])
        sets.append(frozenset(tokens))
    assert len(set(sets)) == len(sets)
    assert len(frozenset.union(*sets)) > 8


def test_a_population_that_leads_nowhere_is_given_up() -> None:
    data = make_context(DEEP)
    generator, rng = Genetic(generations=2), np.random.default_rng(0)
    state: GeneticState = generator.start(data)
    populations = []
    for _ in range(10):
        _, state = generator.propose(data, state, 2, rng)
        state = generator.learn(data, state, 0.1, [])
        populations.append(len(state.population))
    assert 0 in populations
    assert max(populations) == 50


def test_trees_keep_within_the_height() -> None:
    data = make_context(DEEP)
    generator = Genetic(max_height=4)
    _, state = generator.propose(data, generator.start(data), 2, np.random.default_rng(0))
    assert all(tree.depth <= 4 for tree in (*state.population, *state.hall))
    assert len(state.hall) <= 20


def test_proposing_takes_a_fraction_of_a_pass() -> None:
    data = make_context(DEEP, rows=256)
    generator, rng = Genetic(), np.random.default_rng(0)
    state = generator.start(data)
    start = time.process_time()
    for _ in range(3):
        _, state = generator.propose(data, state, 3, rng)
    assert (time.process_time() - start) / 3 < 1.0  # about 0.15 s on an idle core
