"""Monte Carlo tree search over sets of tokens as token generator (the paper's Algorithm 4).

A node is a set of tokens, grown one by one: an action applies an operator to variables, parts of the front, or tokens
already in the set. A simulation is judged by what a pass of one layer could explain with the whole set (`explain`). The
true reward of the pass comes back in `learn` and counts for several simulations. Statistics belong to the sets, not to
the ways that lead there, so they stay valid when the front, and with it the actions, change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.threads import torch_threads
from symenum.expressions import Expression, apply, sort_key
from symenum.tokens.explain import (
    MIN_UNEXPLAINED,
    SCOUTS,
    Explainer,
    Scouted,
    promising_features,
    scout,
    simple_partners,
)
from symenum.tokens.generator import ScoredExpression, TokenContext, check_count, check_front
from symenum.tokens.needed_parts import Grown, grown_laws, ranked_groups
from symenum.tokens.pool import MAX_COMPLEXITY, Memory, front_parts
from symenum.tokens.trees import RANDOM_DEPTH, Evaluator, pick_distinct, random_constant, random_trees

__all__ = ["SetNode", "TreeSearch", "TreeSearchState"]

TokenSet = tuple[Expression, ...]  # in the order of `sort_key`, so that equal sets are equal tuples

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_SET_SIZE = 4  # tokens of a set at most: slots for tokens that a pass has
_MAX_NODES = 1000  # nodes that are remembered from pass to pass, the most visited first
_BASE_PARTS = 12  # parts of the front that actions start from
_BASE_SEEDS = 24  # features that explain much of y, or scouted tokens, that actions start from
_SEEDS_CONSIDERED = 4 * _BASE_SEEDS  # the seeds are those of the highest merit of so many
_UNCHANGED_SHARE = 0.2  # part of the actions that take a part or seed as it is, without a further operator
_GREEDY_SHARE = 0.5  # chance that a new node is the best of the actions tried; else it is drawn
_CONSTANT_SHARE = 0.1  # chance that an operand of a binary operator is a constant, where constants are wanted
_TRIES_PER_ACTION = 40  # random tokens drawn at most for each that is usable
_ROLLOUT_TRIES = 8  # usable tokens that are compared with those of a set, until one differs from all
_MIN_WEIGHT = 1e-6  # added to weights of actions, which are decades of y: chances must not all be 0


@dataclass(frozen=True)
class SetNode:
    """How often a set of tokens was part of a simulation or a pass, and the sum of their values."""

    tokens: TokenSet
    visits: float
    total: float


@dataclass(frozen=True)
class TreeSearchState:
    """Partners, seeds, scouted tokens, grown laws; the most visited nodes; the paths of the last proposal; memory."""

    partners: tuple[Expression, ...]
    seeds: tuple[Expression, ...]
    scouted: tuple[Scouted, ...] = ()
    nodes: tuple[SetNode, ...] = ()
    path: tuple[TokenSet, ...] = ()
    memory: Memory = field(default_factory=Memory)
    grown: tuple[Grown, ...] = ()


@dataclass(frozen=True)
class TreeSearch:
    """See `TokenGenerator`.

    `simulations` per proposal; `exploration`: weight of the UCB term; `prior`: actions tried for a new node;
    `pass_weight`: simulations that one true pass counts for; `scouts`: new tokens scouted for each proposal; `growth`:
    whether laws grow (`growth`), whose tokens are sets to begin with.
    """

    simulations: int = 12
    exploration: float = 0.5
    prior: int = 24
    pass_weight: float = 6.0
    scouts: int = SCOUTS
    growth: bool = True
    name: str = "mcts"

    def start(self, context: TokenContext) -> TreeSearchState:
        with torch_threads(1):
            partners = simple_partners(context)
            return TreeSearchState(partners, promising_features(context, partners))

    def propose(
        self,
        context: TokenContext,
        state: TreeSearchState,
        count: int,
        rng: np.random.Generator,
        budget: Budget = NO_LIMIT,
    ) -> tuple[tuple[Expression, ...], TreeSearchState]:
        check_count(count)
        if not context.working or not count:
            return (), replace(state, path=(), memory=state.memory.with_proposal(()))
        with torch_threads(1):
            planner = _Planner(self, context, state, rng)
            tokens, path = planner.plan(count, budget)
        nodes = tuple(sorted(planner.nodes.values(), key=lambda node: -node.visits)[:_MAX_NODES])
        return tokens, replace(
            state,
            nodes=nodes,
            path=path,
            scouted=planner.scouted,
            grown=planner.grown,
            memory=state.memory.with_proposal(tokens),
        )

    def learn(
        self, context: TokenContext, state: TreeSearchState, reward: float, front: Sequence[ScoredExpression]
    ) -> TreeSearchState:
        check_front(reward, front, context)
        memory = state.memory.after_pass(reward, front)
        improved = memory.stale == 0
        nodes = {node.tokens: node for node in state.nodes}
        for tokens in state.path:
            nodes[tokens] = _visited(nodes, tokens, float(improved), self.pass_weight)
        return replace(state, nodes=tuple(nodes.values()), path=(), memory=memory)


def _visited(nodes: Mapping[TokenSet, SetNode], tokens: TokenSet, value: float, weight: float = 1.0) -> SetNode:
    before = nodes.get(tokens, SetNode(tokens, 0.0, 0.0))
    return SetNode(tokens, before.visits + weight, before.total + weight * value)


class _Planner:
    """One proposal: the tree while it grows, and what is computed once."""

    def __init__(
        self, settings: TreeSearch, context: TokenContext, state: TreeSearchState, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self.context = context
        self.memory = state.memory
        self.rng = rng
        self.nodes = {node.tokens: node for node in state.nodes}
        self.children: dict[TokenSet, list[TokenSet]] = {}
        for tokens in self.nodes:
            for i in range(len(tokens)):
                self.children.setdefault(tokens[:i] + tokens[i + 1 :], []).append(tokens)
        self.evaluator = Evaluator(context)
        self.explainer = Explainer(context, self.evaluator, [*state.partners, *self.memory.best_members()])
        parts = front_parts(self.memory.front)
        usable = [part for part in parts if self.evaluator.usable(part)]
        usable.sort(key=lambda part: -parts[part] * self.memory.merit(part))
        self.parts = usable[:_BASE_PARTS]
        passes = state.memory.steps
        self.scouted = scout(
            context, self.evaluator, self.explainer, state.seeds, state.scouted, settings.scouts, passes, rng
        )
        seeds = [*(one.token for one in self.scouted), *state.seeds][:_SEEDS_CONSIDERED]
        seeds.sort(key=lambda seed: -self.memory.merit(seed))  # stable: the best of equal merit first
        self.seeds = seeds[:_BASE_SEEDS]
        self.grown: tuple[Grown, ...] = ()
        if settings.growth:
            self.grown = grown_laws(context, self.evaluator, self.memory, parts, seeds, state.grown, rng)
        self.groups = [
            group for group in ranked_groups(self.grown, self.memory) if all(map(self.evaluator.usable, group))
        ]

    def plan(self, count: int, budget: Budget) -> tuple[tuple[Expression, ...], tuple[TokenSet, ...]]:
        """`count` tokens, those of the most promising sets that were simulated; and the nodes on the ways to the sets.

        The tokens of a set stand side by side, the best set first. Where the sets hold too few tokens, seeds, parts of
        the front and random trees follow.
        """
        size = min(count, _SET_SIZE)
        ends: dict[TokenSet, tuple[float, list[TokenSet]]] = {}
        for number in range(max(self.settings.simulations, math.ceil(count / size))):
            budget.check()
            if number % 2 == 0 and number // 2 < len(self.groups):
                group = pick_distinct(self.evaluator, self.context, self.groups[number // 2][: size - 1], size)
                path = [(), _ordered(group)]
            else:
                path = self._walk(size)
            full = self._filled_up(path[-1], size)
            value = self._value(full)
            for tokens in dict.fromkeys([*path, full]):
                self.nodes[tokens] = _visited(self.nodes, tokens, value)
            if len(full) == size:
                ends[full] = (value, [*path, full])
        ranked = sorted(ends, key=lambda tokens: -ends[tokens][0] * self._merit(tokens))
        in_sets = (token for tokens in ranked for token in tokens)
        others = (*self.seeds, *self.parts)
        stream = chain(in_sets, others, random_trees(self.context, self.rng, count, RANDOM_DEPTH))
        chosen = tuple(pick_distinct(self.evaluator, self.context, stream, count))
        used = [tokens for tokens in ranked if set(tokens) <= set(chosen)]
        path_nodes = dict.fromkeys(node for tokens in used for node in ends[tokens][1])
        return chosen, tuple(path_nodes) or (_ordered(chosen),)

    def _merit(self, tokens: TokenSet) -> float:
        return sum(self.memory.merit(token) for token in tokens) / len(tokens)

    def _walk(self, count: int) -> list[TokenSet]:
        """The sets from the empty one to a new or a full one, each with one token more: by UCB, or by a new action."""
        path: list[TokenSet] = [()]
        while len(path[-1]) < count:
            here = path[-1]
            known = self.children.get(here, [])
            visits = self.nodes[here].visits if here in self.nodes else 0.0
            # Progressive widening: there are hundreds of actions, and a new one must be worth a simulation.
            if len(known) <= math.sqrt(visits):
                action = self._best_action(here)
                if action is None:
                    break
                new = _ordered((*here, action))
                if new not in known:
                    self.children.setdefault(here, []).append(new)
                path.append(new)
                break
            path.append(self._by_ucb(here, known))
        return path

    def _by_ucb(self, here: TokenSet, known: Sequence[TokenSet]) -> TokenSet:
        log_visits = math.log(1.0 + self.nodes[here].visits)

        def bound(tokens: TokenSet) -> float:
            node = self.nodes.get(tokens)
            if node is None:
                return math.inf
            return node.total / node.visits + self.settings.exploration * math.sqrt(log_visits / node.visits)

        return max(known, key=bound)

    def _best_action(self, here: TokenSet) -> Expression | None:
        """Of several random actions, one of those that explain y best."""
        actions = list(dict.fromkeys(self._actions(here, self.settings.prior)))
        if not actions:
            return None
        unexplained = self.explainer.unexplained(self.evaluator.matrix(actions)).tolist()
        weight = np.array(
            [-math.log10(part) * self.memory.merit(token) for part, token in zip(unexplained, actions, strict=True)]
        )
        weight = (weight + _MIN_WEIGHT) ** 2
        order = self.rng.choice(len(actions), size=len(actions), replace=False, p=weight / weight.sum())
        if self.rng.random() < _GREEDY_SHARE:
            order = np.argsort(-weight, kind="stable")
        ranked = (actions[int(i)] for i in order)
        chosen = pick_distinct(self.evaluator, self.context, ranked, len(here) + 1, here)
        return chosen[-1] if len(chosen) > len(here) else None

    def _filled_up(self, tokens: TokenSet, count: int) -> TokenSet:
        """The set, filled up by random actions."""
        chosen = list(tokens)
        while len(chosen) < count:
            before = len(chosen)
            stream = self._actions(tuple(chosen), _ROLLOUT_TRIES)
            chosen = pick_distinct(self.evaluator, self.context, stream, before + 1, chosen)
            if len(chosen) == before:
                break
        return _ordered(chosen)

    def _actions(self, here: TokenSet, count: int) -> Iterator[Expression]:
        """At most `count` random usable tokens. Their values may still equal those of a token of the set."""
        found = 0
        for _ in range(_TRIES_PER_ACTION * count):
            token = self._action(here)
            if token.complexity > MAX_COMPLEXITY or token in here or not self.evaluator.usable(token):
                continue
            yield token
            found += 1
            if found == count:
                return

    def _action(self, here: TokenSet) -> Expression:
        rng, context = self.rng, self.context
        ready = [*self.parts, *self.seeds]
        if ready and rng.random() < _UNCHANGED_SHARE:
            return ready[int(rng.integers(len(ready)))]
        operator = context.working[int(rng.integers(len(context.working)))]
        operands = [self._operand(here) for _ in range(operator.arity)]
        if operator.arity == 2 and context.constant_range is not None and rng.random() < _CONSTANT_SHARE:
            operands[int(rng.integers(2))] = random_constant(context, rng)
        return apply(operator, *operands)

    def _operand(self, here: TokenSet) -> Expression:
        """A variable, a token of the set, a part of the front or a seed; each kind is as likely as the others."""
        kinds = [kind for kind in (self.context.variables, here, self.parts, self.seeds) if len(kind)]
        kind = kinds[int(self.rng.integers(len(kinds)))]
        return kind[int(self.rng.integers(len(kind)))]

    def _value(self, tokens: TokenSet) -> float:
        """0 to 1: the decades of y that a pass of one layer explains with the set, of the nine that can be told."""
        if not tokens:
            return 0.0
        unexplained = self.explainer.unexplained_by_set(self.evaluator.matrix(tokens))
        return math.log10(unexplained) / math.log10(MIN_UNEXPLAINED)


def _ordered(tokens: Sequence[Expression]) -> TokenSet:
    return tuple(sorted(tokens, key=sort_key))
