"""Genetic programming as token generator (the paper's Algorithm 3): trees evolve towards explaining y.

An individual's fitness is what a pass of one layer could explain with it (`explain`), so an individual need not look
like y, and one that explains what the front leaves unexplained counts as much. Individuals *and their sub-trees* become
tokens, drawn by how much of y they explain, by their merit in earlier passes, and by how often good laws hold them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from symenum.core.budget import NO_LIMIT, Budget
from symenum.core.threads import torch_threads
from symenum.expressions import Apply, Constant, Expression, walk
from symenum.tokens.explain import (
    COMPLEXITY_PRICE,
    SCOUTS,
    Explainer,
    Scouted,
    promising_features,
    scout,
    simple_partners,
)
from symenum.tokens.generator import ScoredExpression, TokenContext, check_count, check_front
from symenum.tokens.needed_parts import Grown, grown_laws, in_turns, ranked_groups
from symenum.tokens.pool import FRONT_PARTNERS, MAX_COMPLEXITY, Memory, cross_variable, front_parts
from symenum.tokens.trees import (
    RANDOM_DEPTH,
    Evaluator,
    composite_parts,
    crossover,
    mutate,
    pick_distinct,
    random_tree,
    random_trees,
)

__all__ = ["Genetic", "GeneticState"]

Array = npt.NDArray[np.float64]

# Chosen by trial: benchmarks/constants.py shows what half and twice of each do.
_START_DEPTH = 2  # largest depth (operators from root to leaf) of random trees in a new population
_FRONT_SHARE = 0.4  # part of the fresh trees of a population that are parts of the front
_SEED_SHARE = 0.4  # part of the fresh trees that are seeds; the others are random
_FRESH_SHARE = 0.2  # part of the last population that fresh trees replace before each run
_STALE_PASSES = 8  # passes without improvement after which population and hall of fame are forgotten
_TOKEN_SEEDS = 100  # seeds, the best first, that may become tokens
_PLANTED_SEEDS = 20  # seeds, the best first, that mutations plant
_VARIABLE_JOINS = 0.1  # chance that a join of two variables is tried before a drawn token
_FRONT_PARTS = 0.3  # chance that a part of the front is tried before a drawn token
_GREEDY_SHARE = 0.5  # part of the tokens that are the best there are; the others are drawn
_CONSTANT_PRICE = 3  # complexity that a constant costs: most are just another scale or offset
_MIN_DECADES = 0.05  # of y explained, less the price, that every token counts with: each has a chance
_SPARE_TREES = 16  # random trees that are wanted at most, where nothing else can be drawn
_MIN_WEIGHT = 1e-9  # added to weights: chances must not all be 0


@dataclass(frozen=True)
class GeneticState:
    """Population and hall of fame of the last run; partners, seeds, scouted tokens, grown laws; all passes' memory."""

    population: tuple[Expression, ...]
    hall: tuple[Expression, ...]
    partners: tuple[Expression, ...]
    seeds: tuple[Expression, ...]
    scouted: tuple[Scouted, ...] = ()
    memory: Memory = field(default_factory=Memory)
    grown: tuple[Grown, ...] = ()


@dataclass(frozen=True)
class Genetic:
    """See `TokenGenerator`; the defaults are the paper's (Algorithm 3), but for the generations and the last three.

    The paper has 20 generations; with growing laws more than 6 add nothing (benchmarks/generators.py).

    `crossover` and `mutation` are chances for each pair and tree. `parsimony`: decades of 1 - R² that one unit of
    complexity costs. `scouts`: new tokens scouted for each proposal. `growth`: whether laws grow (`growth`).
    """

    population: int = 50
    generations: int = 6
    tournament: int = 10
    max_height: int = 10
    crossover: float = 0.1
    mutation: float = 0.5
    hall_of_fame: int = 20
    parsimony: float = COMPLEXITY_PRICE
    scouts: int = SCOUTS
    growth: bool = True
    name: str = "gp"

    def start(self, context: TokenContext) -> GeneticState:
        with torch_threads(1):
            partners = simple_partners(context)
            return GeneticState((), (), partners, promising_features(context, partners))

    def propose(
        self,
        context: TokenContext,
        state: GeneticState,
        count: int,
        rng: np.random.Generator,
        budget: Budget = NO_LIMIT,
    ) -> tuple[tuple[Expression, ...], GeneticState]:
        check_count(count)
        if not context.working:
            return (), replace(state, memory=state.memory.with_proposal(()))
        with torch_threads(1):
            run = _Run(self, context, state, rng)
            population, hall = run.evolve(budget)
            grown = run.grow(population, hall) if self.growth else ()
            tokens = run.tokens(population, hall, grown, count)
        memory = state.memory.with_proposal(tokens)
        return tokens, replace(state, population=population, hall=hall, scouted=run.scouted, grown=grown, memory=memory)

    def learn(
        self, context: TokenContext, state: GeneticState, reward: float, front: Sequence[ScoredExpression]
    ) -> GeneticState:
        check_front(reward, front, context)
        memory = state.memory.after_pass(reward, front)
        if memory.stale and memory.stale % _STALE_PASSES == 0:  # the next proposal starts a new population
            return replace(state, population=(), hall=(), grown=(), memory=memory)
        return replace(state, memory=memory)


class _Run:
    """One proposal: what is computed once for it, and its random numbers."""

    def __init__(self, settings: Genetic, context: TokenContext, state: GeneticState, rng: np.random.Generator) -> None:
        self.settings = settings
        self.context = context
        self.state = state
        self.rng = rng
        self.evaluator = Evaluator(context)
        parts = front_parts(state.memory.front)
        self.parts = {part: weight for part, weight in parts.items() if self.evaluator.usable(part)}
        self.explainer = Explainer(context, self.evaluator, [*state.partners, *state.memory.best_members()])
        passes = state.memory.steps
        self.scouted = scout(
            context, self.evaluator, self.explainer, state.seeds, state.scouted, settings.scouts, passes, rng
        )
        self.seeds = (*(one.token for one in self.scouted), *state.seeds)
        self._interned: dict[Expression, Expression] = {}
        self._unexplained: dict[Expression, float] = {}
        self._constant_counts: dict[Expression, int] = {}

    def evolve(self, budget: Budget) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """The population after all generations, and the hall of fame, best first."""
        settings, rng = self.settings, self.rng
        population = self._first_population()
        hall: dict[Expression, float] = {}
        pool = [*self.parts, *self.seeds[:_PLANTED_SEEDS]]
        for generation in range(settings.generations + 1):
            budget.check()
            fitness = self._judge(population)
            hall.update(zip(population, fitness, strict=True))
            hall = dict(sorted(hall.items(), key=lambda item: item[1])[: settings.hall_of_fame])
            if generation == settings.generations:
                break
            population = self._selected(population, np.array(fitness))
            for i in range(1, len(population), 2):
                if rng.random() < settings.crossover:
                    population[i - 1], population[i] = crossover(
                        population[i - 1], population[i], rng, settings.max_height
                    )
            for i in range(len(population)):
                if rng.random() < settings.mutation:
                    population[i] = mutate(population[i], self.context, rng, settings.max_height, pool)
                # Equal trees become one object, so that later look-ups in dictionaries need not compare trees.
                population[i] = self._interned.setdefault(population[i], population[i])
        return tuple(population), tuple(hall)

    def grow(self, population: Sequence[Expression], hall: Sequence[Expression]) -> tuple[Grown, ...]:
        """The front's best laws, and those grown before, with parts replaced by what the data ask for there."""
        memory = self.state.memory
        return grown_laws(
            self.context,
            self.evaluator,
            memory,
            self.parts,
            [*hall, *self.seeds, *population],
            self.state.grown,
            self.rng,
        )

    def tokens(
        self, population: Sequence[Expression], hall: Sequence[Expression], grown: Sequence[Grown], count: int
    ) -> tuple[Expression, ...]:
        """`count` tokens: those of grown laws, and sub-trees of population and hall of fame, seeds and front parts.

        They take turns. Half of the sub-trees are the best, the others are drawn by how good they are. A sub-tree is
        good by its merit, and by the number of trees and front members that it occurs in.
        """
        occurrences: dict[Expression, float] = {}
        for tree in dict.fromkeys((*hall, *population)):
            for part in composite_parts(tree):
                occurrences[part] = occurrences.get(part, 0.0) + 1.0
        top, front_top = max(occurrences.values(), default=1.0), max(self.parts.values(), default=1.0)
        share = {part: number / top for part, number in occurrences.items()}
        share.update((seed, share.get(seed, 0.0)) for seed in self.seeds[:_TOKEN_SEEDS])
        for part, weight in self.parts.items():
            share[part] = share.get(part, 0.0) + weight / front_top
        able = [token for token in share if token.complexity <= MAX_COMPLEXITY and self.evaluator.usable(token)]
        score = [(1.0 + share[token]) * merit for token, merit in zip(able, self._merits(able), strict=True)]
        stream = self._stream(able, np.array(score), math.ceil(_GREEDY_SHARE * count))
        groups = ranked_groups(grown, self.state.memory)
        return tuple(pick_distinct(self.evaluator, self.context, in_turns(groups, stream, count), count))

    def _merits(self, tokens: Sequence[Expression]) -> list[float]:
        """Decades of y explained, less the price of complexity, times the merit of the token in earlier passes."""
        memory = self.state.memory
        return [
            max(-fitness, _MIN_DECADES) * memory.merit(token)
            for token, fitness in zip(tokens, self._judge(tokens), strict=True)
        ]

    def _stream(self, able: list[Expression], score: Array, greedy: int) -> Iterator[Expression]:
        """The `greedy` best, then all in a random order that favours high scores, with other sources in between."""
        if able:
            yield from (able[int(i)] for i in np.argsort(-score, kind="stable")[:greedy])
            p = score**2
            for i in self.rng.choice(len(able), size=len(able), replace=False, p=p / p.sum()):
                other = self._other_source()
                yield from [able[int(i)]] if other is None else [other, able[int(i)]]
        yield from random_trees(self.context, self.rng, _SPARE_TREES, RANDOM_DEPTH)

    def _other_source(self) -> Expression | None:
        """With chance 0.1 a join of variables, with chance 0.3 a part of the front by weight and merit, else None."""
        chance = self.rng.random()
        if chance < _VARIABLE_JOINS:
            return cross_variable(self.context, self.rng)
        if chance > _VARIABLE_JOINS + _FRONT_PARTS or not self.parts:
            return None
        parts, chances = self._weighted_parts
        return parts[int(self.rng.choice(len(parts), p=chances))]

    @cached_property
    def _weighted_parts(self) -> tuple[list[Expression], Array]:
        """The parts of the front, and the chance of each by weight and merit."""
        parts = list(self.parts)
        weight = np.array([self.parts[part] * self.state.memory.merit(part) for part in parts]) + _MIN_WEIGHT
        return parts, weight / weight.sum()

    def _first_population(self) -> list[Expression]:
        """The last population with a fifth of it replaced; all fresh trees where there is none.

        Fresh trees are parts of the front, seeds, and random trees. The first places belong to the front members.
        """
        settings, rng = self.settings, self.rng
        old = list(self.state.population)
        fresh: list[Expression] = []
        parts = list(self.parts)
        wanted = settings.population if not old else math.ceil(_FRESH_SHARE * settings.population)
        if parts:
            p = np.array([self.parts[part] for part in parts])
            size = min(len(parts), math.ceil(_FRONT_SHARE * wanted))
            picked = rng.choice(len(parts), size=size, replace=False, p=(p + _MIN_WEIGHT) / (p + _MIN_WEIGHT).sum())
            fresh += [parts[int(i)] for i in picked]
        if self.seeds:
            seeds = self.seeds[:_TOKEN_SEEDS]
            size = min(len(seeds), math.ceil(_SEED_SHARE * wanted))
            fresh += [seeds[int(i)] for i in rng.choice(len(seeds), size=size, replace=False)]
        while len(fresh) < wanted:
            fresh.append(random_tree(self.context, rng, int(rng.integers(1, _START_DEPTH + 1))))
        if old:
            fitness = self._judge(old)
            order = sorted(range(len(old)), key=lambda i: fitness[i])[: settings.population - len(fresh)]
            fresh += [old[i] for i in order]
        members = [member.expression for member in self.state.memory.front if isinstance(member.expression, Apply)]
        members = [m for m in members if m.depth <= settings.max_height]
        return (members[:FRONT_PARTNERS] + fresh)[: settings.population]

    def _selected(self, population: list[Expression], fitness: Array) -> list[Expression]:
        """The winners of as many tournaments as there are trees."""
        drawn = self.rng.integers(len(population), size=(len(population), self.settings.tournament))
        winners = drawn[np.arange(len(population)), fitness[drawn].argmin(axis=1)]
        return [population[int(i)] for i in winners]

    def _judge(self, trees: Sequence[Expression]) -> list[float]:
        """The fitness of each tree, less is better: log10 of the unexplained part of y, plus the price of complexity.

        Infinite for a tree that cannot be a token.
        """
        price = self.settings.parsimony
        return [
            math.log10(unexplained) + price * (tree.complexity + _CONSTANT_PRICE * self._constants(tree))
            if self.evaluator.usable(tree)
            else math.inf
            for tree, unexplained in zip(trees, self._unexplained_by(trees), strict=True)
        ]

    def _unexplained_by(self, trees: Sequence[Expression]) -> list[float]:
        """1 - R² of the best fit with each tree; each tree is judged once in a proposal."""
        new = list(dict.fromkeys(tree for tree in trees if tree not in self._unexplained))
        if new:
            unexplained: torch.Tensor = self.explainer.unexplained(self.evaluator.matrix(new))
            self._unexplained.update(zip(new, unexplained.tolist(), strict=True))
        return [self._unexplained[tree] for tree in trees]

    def _constants(self, tree: Expression) -> int:
        """The number of constants in a tree; each tree is counted once in a proposal."""
        known = self._constant_counts.get(tree)
        if known is None:
            known = sum(isinstance(node, Constant) for node in walk(tree))
            self._constant_counts[tree] = known
        return known
