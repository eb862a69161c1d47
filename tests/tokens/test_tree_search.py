"""Tree search finds sets that explain y, and takes the true reward of a pass back along its path."""

from __future__ import annotations

import numpy as np
from tokens.contexts import make_context

from symenum.expressions import parse
from symenum.tokens import ScoredExpression, TreeSearch
from symenum.tokens.explain import Explainer
from symenum.tokens.random_tokens import RandomTokens
from symenum.tokens.tree_search import TreeSearchState
from symenum.tokens.trees import Evaluator

DEEP = "cos(sin(x1*(x1 + x2)) - x1)"
HARD = "exp(cos(x1*x1)/(x2 + sin(x1/x2)))"


def proposed(reward: float, passes: int = 2) -> tuple[TreeSearchState, list[tuple[str, ...]]]:
    data = make_context(HARD)  # DEEP is one the cheap look sees through: every set that it simulates is as good
    generator, rng = TreeSearch(), np.random.default_rng(0)
    state = generator.start(data)
    out = []
    for number in range(passes):
        tokens, state = generator.propose(data, state, 3, rng)
        out.append(tuple(map(str, tokens)))
        state = generator.learn(data, state, reward + number * (reward - 0.5), [])
    return state, out


def test_its_sets_explain_more_than_random_ones() -> None:
    data = make_context(DEEP)
    evaluator = Evaluator(data)
    explainer = Explainer(data, evaluator, data.variables)
    left = {}
    for generator in (TreeSearch(), RandomTokens()):
        rng = np.random.default_rng(0)
        state = generator.start(data)  # type: ignore[var-annotated]
        found = []
        for _ in range(5):
            tokens, state = generator.propose(data, state, 3, rng)  # type: ignore[arg-type]
            found.append(np.log10(explainer.unexplained_by_set(evaluator.matrix(tokens))))
        left[generator.name] = np.mean(found)
    assert left["mcts"] < left["random"]


def test_the_path_leads_from_the_empty_set_to_the_proposal() -> None:
    data = make_context(DEEP)
    tokens, state = TreeSearch().propose(data, TreeSearch().start(data), 3, np.random.default_rng(0))
    assert state.path[0] == ()
    assert set(state.path[-1]) == set(tokens)
    for small, large in zip(state.path, state.path[1:], strict=False):
        assert set(small) <= set(large)


def test_the_true_reward_counts_for_several_simulations_on_the_path() -> None:
    data = make_context(DEEP)
    generator = TreeSearch()
    _, state = generator.propose(data, generator.start(data), 3, np.random.default_rng(0))
    before = {node.tokens: node for node in state.nodes}
    good = {node.tokens: node for node in generator.learn(data, state, 0.9, []).nodes}
    for tokens in state.path:
        assert good[tokens].visits == before[tokens].visits + generator.pass_weight
        assert good[tokens].total == before[tokens].total + generator.pass_weight
    untouched = set(before) - set(state.path)
    assert all(good[tokens] == before[tokens] for tokens in untouched)


def test_feedback_changes_proposals() -> None:
    assert proposed(0.9, 4)[1] != proposed(0.1, 4)[1]


def test_sets_tried_in_vain_are_not_proposed_again() -> None:
    data = make_context(DEEP)
    generator, rng = TreeSearch(), np.random.default_rng(0)
    state = generator.start(data)
    sets = []
    for _ in range(6):
        tokens, state = generator.propose(data, state, 3, rng)
        state = generator.learn(data, state, 0.1, [])
        sets.append(tokens)
    assert len(set(sets)) == len(sets)


def test_tokens_are_built_on_parts_of_the_front() -> None:
    data = make_context(HARD)
    generator, rng = TreeSearch(), np.random.default_rng(0)
    state = generator.start(data)
    front = [ScoredExpression(parse("log(x2/cos(x2 - x1)**2 + 40)"), 0.9)]
    texts = []
    for _ in range(6):
        state = generator.learn(data, state, 0.5, front)
        tokens, state = generator.propose(data, state, 3, rng)
        texts += [str(token) for token in tokens]
    assert any("cos(x2 - x1)" in text for text in texts)


def test_values_of_nodes_are_means_between_zero_and_one() -> None:
    state, _ = proposed(0.5)
    assert state.nodes
    assert all(0 <= node.total <= node.visits * (1 + 1e-12) for node in state.nodes)
